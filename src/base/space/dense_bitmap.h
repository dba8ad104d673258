#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "base/assert.h"
#include "base/net/prefix.h"

namespace croft::core::space {

using net::Ordinal;

/// The ordinals 0 to size() - 1, each free or taken, as one bit each, for Service addresses, ports and node ranges. A
/// search for a free one looks at 64 at a time: 4 µs through a million that are taken.
///
/// Memory: one bit an ordinal, allocated at once. Not for spaces far larger or nearly empty, such as an IPv6 /64: those
/// want a sparse set of the taken ones.
class DenseBitmap {
 public:
  /// All ordinals free. `size` may be 0.
  explicit DenseBitmap(std::uint32_t size)
      : size_(size), free_count_(size), words_(size / kWordBits + (size % kWordBits != 0 ? 1 : 0)) {
    cut_end();
  }

  [[nodiscard]] std::uint32_t size() const { return size_; }
  [[nodiscard]] std::uint32_t free_count() const { return free_count_; }
  [[nodiscard]] bool is_free(Ordinal ordinal) const {
    CROFT_ASSERT(ordinal.value < size_);
    return (words_[ordinal.value / kWordBits] & mask_of(ordinal.value)) == 0;
  }

  bool take(Ordinal ordinal) {
    if (!is_free(ordinal)) return false;
    words_[ordinal.value / kWordBits] |= mask_of(ordinal.value);
    --free_count_;
    return true;
  }
  bool give_back(Ordinal ordinal) {
    if (is_free(ordinal)) return false;
    words_[ordinal.value / kWordBits] &= ~mask_of(ordinal.value);
    ++free_count_;
    return true;
  }
  /// Takes all from first to last, and returns how many of them were free: a step for each 64.
  std::uint32_t take_all(Ordinal first, Ordinal last) {
    CROFT_ASSERT(first <= last && last.value < size_);
    const std::uint32_t before = free_count_;
    for (std::uint32_t index = first.value / kWordBits; index <= last.value / kWordBits; ++index) {
      std::uint64_t mask = kFull;
      if (index == first.value / kWordBits) mask &= kFull << first.value % kWordBits;
      if (index == last.value / kWordBits) mask &= kFull >> (kWordBits - 1 - last.value % kWordBits);
      free_count_ -= static_cast<std::uint32_t>(std::popcount(mask & ~words_[index]));
      words_[index] |= mask;
    }
    return before - free_count_;
  }

  /// The first free ordinal at or after `from`, without wrapping; nullopt when there is none. `from` may lie past the
  /// end.
  [[nodiscard]] std::optional<Ordinal> next_free_at_or_after(Ordinal from) const {
    if (from.value >= size_) return std::nullopt;
    std::size_t index = from.value / kWordBits;
    std::uint64_t free = ~words_[index] & kFull << from.value % kWordBits;
    while (free == 0) {
      if (++index == words_.size()) return std::nullopt;
      free = ~words_[index];
    }
    return Ordinal{static_cast<std::uint32_t>(index * kWordBits) + static_cast<std::uint32_t>(std::countr_zero(free))};
  }
  /// Takes that one; size() when there is none.
  [[nodiscard]] std::uint32_t take_at_or_after(std::uint32_t from) {
    const auto found = next_free_at_or_after(Ordinal{from});
    if (!found) return size_;
    take(*found);
    return found->value;
  }
  /// The same search, then on from 0: nullopt only when no ordinal is free.
  [[nodiscard]] std::optional<Ordinal> next_free(Ordinal from) const {
    const auto found = next_free_at_or_after(from);
    return found ? found : next_free_at_or_after(Ordinal{0});
  }

  /// The whole space as words: ordinal `o` is bit o % 64 of word o / 64, set when it is taken. Bits past the end are
  /// clear. `index` must be below word_count().
  [[nodiscard]] std::uint64_t taken_word(std::size_t index) const {
    CROFT_ASSERT(index < word_count());
    return index == size_ / kWordBits ? words_[index] & (mask_of(size_) - 1) : words_[index];
  }
  [[nodiscard]] std::size_t word_count() const { return words_.size(); }
  /// The same form in: replaces what is taken by the bits of word_at(index), for each index below word_count() once and
  /// ascending; bits past the end are ignored. O(size / 64), not a step an ordinal.
  template <class F>
  void set_words(F&& word_at) {
    free_count_ = 0;
    for (std::size_t index = 0; index < words_.size(); ++index) words_[index] = word_at(index);
    cut_end();
    for (const std::uint64_t word : words_) free_count_ += static_cast<std::uint32_t>(std::popcount(~word));
  }

  /// Looks at every word: O(size / 64 + taken).
  template <class F>
  void for_each_taken(F&& f) const {
    for (std::size_t index = 0; index < words_.size(); ++index) {
      for (std::uint64_t taken = taken_word(index); taken != 0; taken &= taken - 1) {
        f(Ordinal{static_cast<std::uint32_t>(index * kWordBits) + static_cast<std::uint32_t>(std::countr_zero(taken))});
      }
    }
  }

 private:
  static constexpr std::uint32_t kWordBits = 64;
  static constexpr std::uint64_t kFull = ~std::uint64_t{0};

  [[nodiscard]] static std::uint64_t mask_of(std::uint32_t bit) { return std::uint64_t{1} << bit % kWordBits; }
  /// Bits past the end are set, so that they are never found free.
  void cut_end() {
    if (size_ % kWordBits != 0) words_.back() |= kFull << size_ % kWordBits;
  }

  std::uint32_t size_;
  std::uint32_t free_count_;
  std::vector<std::uint64_t> words_;
};

}  // namespace croft::core::space
