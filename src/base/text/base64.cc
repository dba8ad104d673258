#include "base/text/base64.h"

#include <array>
#include <cstdint>

namespace croft::wire {
namespace {

constexpr std::string_view kAlphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
constexpr std::uint8_t kNoSextet = 0xff;

constexpr std::array<std::uint8_t, 256> kSextets = [] {
  std::array<std::uint8_t, 256> sextets{};
  sextets.fill(kNoSextet);
  for (std::size_t i = 0; i < kAlphabet.size(); ++i) {
    sextets[static_cast<unsigned char>(kAlphabet[i])] = static_cast<std::uint8_t>(i);
  }
  return sextets;
}();

std::uint32_t byte_at(std::string_view bytes, std::size_t i) { return static_cast<unsigned char>(bytes[i]); }

char low_byte(std::uint32_t bits) { return static_cast<char>(bits & 0xff); }

}  // namespace

std::string encode_base64(std::string_view bytes) {
  std::string text((bytes.size() + 2) / 3 * 4, '=');
  char* out = text.data();
  const auto put = [&](std::uint32_t bits, int digits) {
    for (int i = 0; i < digits; ++i) *out++ = kAlphabet[bits >> (18 - 6 * i) & 0x3f];
  };
  std::size_t at = 0;
  for (; bytes.size() - at >= 3; at += 3) {
    put(byte_at(bytes, at) << 16 | byte_at(bytes, at + 1) << 8 | byte_at(bytes, at + 2), 4);
  }
  if (bytes.size() - at == 1) put(byte_at(bytes, at) << 16, 2);
  if (bytes.size() - at == 2) put(byte_at(bytes, at) << 16 | byte_at(bytes, at + 1) << 8, 3);
  return text;
}

std::optional<std::string> decode_base64(std::string_view text) {
  if (text.size() % 4 != 0) return std::nullopt;
  std::size_t padding = 0;
  while (padding < 2 && text.ends_with('=')) {
    text.remove_suffix(1);
    ++padding;
  }
  std::string bytes(text.size() * 3 / 4, '\0');
  char* out = bytes.data();
  std::uint32_t bits = 0;
  std::uint32_t seen = 0;  // the bits of all sextets together: kNoSextet leaves a mark that no other does
  std::size_t at = 0;
  const auto take = [&] {
    const std::uint8_t sextet = kSextets[static_cast<unsigned char>(text[at++])];
    seen |= sextet;
    bits = bits << 6 | sextet;
  };
  while (text.size() - at >= 4) {
    for (int i = 0; i < 4; ++i) take();
    *out++ = low_byte(bits >> 16);
    *out++ = low_byte(bits >> 8);
    *out++ = low_byte(bits);
  }
  while (at < text.size()) take();
  const bool is_two_left = padding == 1;
  if (padding != 0 && (bits & (is_two_left ? 0x3U : 0xfU)) != 0) return std::nullopt;
  if (is_two_left) {
    *out++ = low_byte(bits >> 10);
    *out++ = low_byte(bits >> 2);
  } else if (padding == 2) {
    *out++ = low_byte(bits >> 4);
  }
  if (seen > 0x3f) return std::nullopt;
  return bytes;
}

}  // namespace croft::wire
