#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "base/letters.h"

namespace croft {

// Bytes as hexadecimal digits in small letters, as tokens and boot ids stand in records.

inline constexpr std::string_view kHexDigits = "0123456789abcdef";

/// The value of a hexadecimal digit of either case; -1 for any other character.
[[nodiscard]] constexpr int hex_value(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  return -1;
}

/// FNV-1a, for names of files and records that are made of other names; it withstands nobody who looks for two texts of
/// one hash.
[[nodiscard]] constexpr std::uint64_t hash_of_name(std::string_view name) {
  std::uint64_t hash = 0xcbf29ce484222325;
  for (const char c : name) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3;
  return hash;
}

/// The last steps of splitmix64: neighbouring numbers land far apart.
[[nodiscard]] constexpr std::uint64_t mix_bits(std::uint64_t x) {
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9;
  x = (x ^ (x >> 27)) * 0x94d049bb133111eb;
  return x ^ (x >> 31);
}

/// Reads a text or an array of bytes.
template <class Bytes>
[[nodiscard]] std::string hex_of(const Bytes& bytes) {
  std::string hex;
  hex.reserve(2 * bytes.size());
  for (const auto one : bytes) {
    const auto byte = static_cast<std::uint8_t>(one);
    hex += kHexDigits[byte >> 4];
    hex += kHexDigits[byte & 0xf];
  }
  return hex;
}

/// A text with all but letters, digits and `kept` as %XX; without more, as RFC 3986 wants a part of a URL.
[[nodiscard]] inline std::string percent_encoded(std::string_view text, std::string_view kept = "-._~") {
  std::string encoded;
  encoded.reserve(text.size());
  for (const char c : text) {
    const bool is_kept = is_alphanumeric(c) || kept.find(c) != kept.npos;
    encoded += is_kept ? std::string(1, c) : '%' + raised(hex_of(std::string_view(&c, 1)));
  }
  return encoded;
}

/// Nothing for what hex_of does not write.
template <std::size_t N>
[[nodiscard]] std::optional<std::array<std::uint8_t, N>> bytes_of_hex(std::string_view hex) {
  if (hex.size() != 2 * N || hex.find_first_not_of(kHexDigits) != hex.npos) return std::nullopt;
  std::array<std::uint8_t, N> bytes;
  for (std::size_t i = 0; i < N; ++i) {
    bytes[i] = static_cast<std::uint8_t>(kHexDigits.find(hex[2 * i]) << 4 | kHexDigits.find(hex[2 * i + 1]));
  }
  return bytes;
}

}  // namespace croft
