#pragma once

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "base/assert.h"
#include "base/net/prefix.h"

namespace croft::core::space {

using net::Ordinal;

/// The ordinals 0 to size() - 1, each free or taken, as one bit each under a tree of summaries, for Service addresses,
/// ports and node ranges. Every operation but for_each_taken is O(log64 size), at most six steps, whether the space is
/// empty or all but full.
///
/// Level 0 holds the ordinals, 64 a word; a set bit means taken. In each level above, a set bit means that the word
/// below it is full; there is a level 1, and the top level is one word. A search for a free ordinal goes up until a
/// word has a clear bit at or after the place, then down along the first clear bits. It never looks at a run of taken
/// ordinals. Bits past the end of a level are set from the start, so that they are never found free.
///
///   level 1                  [ 1 0 0 1 … ]          word 0 below is full, words 1 and 2 are not
///   level 0   [ 1 1 1 … 1 ] [ 0 1 1 … 0 ] [ 0 … ]   ordinals 0-63, 64-127, 128-191
///
/// Memory: one bit an ordinal and 1/63 on top, 130 KiB for 2^20, allocated at once. Not for spaces far larger or
/// nearly empty, such as an IPv6 /64: those want a sparse set of the taken ones.
class DenseBitmap {
 public:
  /// All ordinals free. `size` may be 0.
  explicit DenseBitmap(std::uint32_t size);

  [[nodiscard]] std::uint32_t size() const { return size_; }
  [[nodiscard]] std::uint32_t free_count() const { return free_count_; }
  [[nodiscard]] bool is_free(Ordinal ordinal) const {
    CROFT_ASSERT(ordinal.value < size_);
    return (words_[ordinal.value / kWordBits] & mask_of(ordinal.value)) == 0;
  }

  bool take(Ordinal ordinal) {
    if (!is_free(ordinal)) return false;
    mark_taken(ordinal.value);
    return true;
  }
  bool give_back(Ordinal ordinal);
  /// Takes all from first to last, and returns how many of them were free: a step for each 64.
  std::uint32_t take_all(Ordinal first, Ordinal last);

  /// Takes the first free ordinal after the one take_next() took last, from 0 again after the end. So an ordinal given
  /// back comes round again only when all others have had their turn.
  std::optional<Ordinal> take_next();

  /// The first free ordinal at or after `from`, without wrapping; nullopt when there is none. `from` may lie past the
  /// end.
  [[nodiscard]] std::optional<Ordinal> next_free_at_or_after(Ordinal from) const {
    const std::uint32_t found = find_free(from.value);
    return found == size_ ? std::nullopt : std::optional(Ordinal{found});
  }

  /// Takes that one. As a plain number, with size() for none: an optional that crosses a call is written in two pieces
  /// and read back in one, which costs more than the search.
  [[nodiscard]] std::uint32_t take_at_or_after(std::uint32_t from) {
    const std::uint32_t found = find_free(from);
    if (found != size_) mark_taken(found);
    return found;
  }

  /// The same search, then on from 0: nullopt only when no ordinal is free.
  [[nodiscard]] std::optional<Ordinal> next_free(Ordinal from) const;

  /// The whole space as words: ordinal `o` is bit o % 64 of word o / 64, set when it is taken. Bits past the end are
  /// clear. `index` must be below word_count().
  [[nodiscard]] std::uint64_t taken_word(std::size_t index) const;
  [[nodiscard]] std::size_t word_count() const { return size_ / kWordBits + (size_ % kWordBits != 0 ? 1 : 0); }
  /// The same form in: replaces what is taken by the bits of word_at(index), for each index below word_count() once and
  /// ascending; bits past the end are ignored. take_next() begins anew. O(size / 64), not a step an ordinal.
  template <class F>
  void set_words(F&& word_at);

  /// Looks at every word of level 0: O(size / 64 + taken).
  template <class F>
  void for_each_taken(F&& f) const;

 private:
  static constexpr std::uint32_t kWordBits = 64;
  static constexpr std::uint64_t kFull = ~std::uint64_t{0};
  static constexpr std::size_t kLevelsMax = 6;  // 64^6 is above 2^32

  /// The word of `level` that holds bit `bit` of that level.
  [[nodiscard]] std::uint64_t& word_of(std::size_t level, std::uint32_t bit) {
    return words_[level_start_[level] + bit / kWordBits];
  }
  [[nodiscard]] const std::uint64_t& word_of(std::size_t level, std::uint32_t bit) const {
    return words_[level_start_[level] + bit / kWordBits];
  }
  [[nodiscard]] static std::uint64_t mask_of(std::uint32_t bit) { return std::uint64_t{1} << bit % kWordBits; }

  void add_level(std::uint32_t bits);
  void count_and_summarise();
  /// next_free_at_or_after as a plain number, size_ for none.
  [[nodiscard]] std::uint32_t find_free(std::uint32_t from) const {
    if (from >= size_) return size_;
    if (is_crowded()) return find_free_crowded(from);
    const std::uint64_t clear = ~words_[from / kWordBits] & kFull << from % kWordBits;
    if (clear == 0) return find_free_behind(from / kWordBits);
    return from / kWordBits * kWordBits + static_cast<std::uint32_t>(std::countr_zero(clear));
  }
  /// A quarter is where a branch for it begins to be guessed wrong more often than that costs.
  [[nodiscard]] bool is_crowded() const { return free_count_ < size_ / 4; }
  [[nodiscard]] std::uint32_t find_free_crowded(std::uint32_t from) const;
  [[nodiscard]] std::uint32_t find_free_behind(std::uint32_t word) const;
  /// The ordinal must be free.
  void mark_taken(std::uint32_t ordinal) {
    --free_count_;
    const std::uint32_t index = ordinal / kWordBits;
    std::uint64_t& word = words_[index];
    CROFT_ASSERT((word & mask_of(ordinal)) == 0);
    word |= mask_of(ordinal);
    if (word == kFull) mark_full(index);
  }
  void mark_full(std::uint32_t word);
  [[nodiscard]] std::uint32_t descend(std::size_t level, std::uint32_t bit) const;

  std::uint32_t size_;
  std::uint32_t free_count_;
  std::uint32_t next_ = 0;  // where take_next() looks first; up to size_
  std::size_t level_count_ = 0;
  std::array<std::size_t, kLevelsMax> level_start_{};  // index of each level's first word
  std::array<std::uint32_t, kLevelsMax> level_bits_{};
  std::vector<std::uint64_t> words_;  // level after level, level 0 first
};

template <class F>
void DenseBitmap::for_each_taken(F&& f) const {
  for (std::uint32_t start = 0; start < size_; start += kWordBits) {
    std::uint64_t taken = word_of(0, start);
    if (const std::uint32_t left = size_ - start; left < kWordBits) taken &= mask_of(left) - 1;
    for (; taken != 0; taken &= taken - 1) f(Ordinal{start + static_cast<std::uint32_t>(std::countr_zero(taken))});
    if (size_ - start <= kWordBits) return;  // also keeps `start` from wrapping near 2^32
  }
}

template <class F>
void DenseBitmap::set_words(F&& word_at) {
  for (std::size_t index = 0; index < word_count(); ++index) words_[index] = word_at(index);
  count_and_summarise();
}

}  // namespace croft::core::space
