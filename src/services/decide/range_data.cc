#include "services/decide/range_data.h"

#include <bit>
#include <cstddef>
#include <cstring>

namespace croft::core::service {
namespace {

constexpr std::size_t kWordBytes = 8;
constexpr std::uint32_t kWordBits = 64;

/// The eight bytes of a word in the order of the range's bytes, highest first.
std::uint64_t big_endian(std::uint64_t word) {
  if constexpr (std::endian::native == std::endian::big) return word;
  word = word >> 32 | word << 32;
  word = (word & 0xffff0000ffff0000U) >> 16 | (word & 0x0000ffff0000ffffU) << 16;
  return (word & 0xff00ff00ff00ff00U) >> 8 | (word & 0x00ff00ff00ff00ffU) << 8;
}

/// The bits 64 * index and on of the number; zeros where it has ended.
std::uint64_t word_of(std::string_view data, std::size_t index) {
  const std::size_t behind = index * kWordBytes;
  if (behind >= data.size()) return 0;
  const std::size_t end = data.size() - behind;
  std::uint64_t word = 0;
  if (end >= kWordBytes) {
    std::memcpy(&word, data.data() + (end - kWordBytes), kWordBytes);
    return big_endian(word);
  }
  for (const char byte : data.substr(0, end)) word = word << 8 | static_cast<unsigned char>(byte);
  return word;
}

std::uint64_t count(std::uint64_t word) { return static_cast<std::uint64_t>(std::popcount(word)); }

}  // namespace

std::uint64_t decode_bits(std::string_view data, space::DenseBitmap& bits) {
  bits.set_words([&](std::size_t index) { return word_of(data, index); });
  std::uint64_t beyond = 0;
  const std::uint32_t size = bits.size();
  if (size % kWordBits != 0) beyond = count(word_of(data, size / kWordBits) >> size % kWordBits);
  for (std::size_t index = bits.word_count(); index * kWordBytes < data.size(); ++index) {
    beyond += count(word_of(data, index));
  }
  return beyond;
}

std::string encode_bits(const space::DenseBitmap& bits) {
  std::size_t words = bits.word_count();
  while (words > 0 && bits.taken_word(words - 1) == 0) --words;
  if (words == 0) return {};

  const std::uint64_t top = bits.taken_word(words - 1);
  const auto top_bytes = static_cast<std::size_t>(std::bit_width(top) + 7) / 8;
  std::string data((words - 1) * kWordBytes + top_bytes, '\0');
  char* at = data.data() + data.size();
  for (std::size_t i = 0; i + 1 < words; ++i) {
    const std::uint64_t word = big_endian(bits.taken_word(i));
    at -= kWordBytes;
    std::memcpy(at, &word, kWordBytes);
  }
  for (std::uint64_t rest = top; rest != 0; rest >>= 8) *--at = static_cast<char>(rest);
  return data;
}

}  // namespace croft::core::service
