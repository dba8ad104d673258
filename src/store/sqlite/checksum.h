#pragma once

#include <bit>
#include <cstdint>
#include <cstring>
#include <string_view>

namespace croft::store {

/// A 64-bit sum over several byte strings that tells damage, not attacks: any change within one 8-byte word changes it.
/// Fixed by docs/formats/records.md; stored with every record.
class Checksum {
 public:
  void add(std::uint64_t word) {
    sum_ = (sum_ ^ word) * kMultiplier;
    sum_ ^= sum_ >> 32;
  }
  /// The length, then the bytes in little-endian words, the last one filled up with zeros.
  void add(std::string_view bytes) {
    add(std::uint64_t{bytes.size()});
    for (; bytes.size() >= 8; bytes.remove_prefix(8)) add(word_of(bytes.substr(0, 8)));
    if (!bytes.empty()) add(word_of(bytes));
  }
  [[nodiscard]] std::uint64_t value() const { return sum_; }

 private:
  static constexpr std::uint64_t kStart = 0xcbf29ce484222325;
  static constexpr std::uint64_t kMultiplier = 0x9e3779b97f4a7c15;

  static std::uint64_t word_of(std::string_view bytes) {
    static_assert(std::endian::native == std::endian::little);
    std::uint64_t word = 0;
    std::memcpy(&word, bytes.data(), bytes.size());
    return word;
  }

  std::uint64_t sum_ = kStart;
};

}  // namespace croft::store
