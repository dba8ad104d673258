#pragma once

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "base/assert.h"
#include "base/net/prefix.h"
#include "base/result.h"

namespace croft::core::space {

using net::Ordinal;

/// The ordinals 0 to size() - 1, each free or taken, as one bit each, for Service addresses, ports and node ranges.
/// Above the bits lie summaries: a bit of the next level is set when its word below is full, so that a search takes a
/// few steps however full the space is (64 times as much a level).
class DenseBitmap {
 public:
  /// All ordinals free. `size` may be 0.
  explicit DenseBitmap(std::uint32_t size) : size_(size), free_count_(size), words_(words_for(size)) {
    for (std::size_t bits = words_.size(); bits > 1;) summaries_.emplace_back(bits = words_for(bits));
  }

  [[nodiscard]] std::uint32_t size() const { return size_; }
  [[nodiscard]] std::uint32_t free_count() const { return free_count_; }
  [[nodiscard]] bool is_free(Ordinal ordinal) const {
    CROFT_ASSERT(ordinal.value < size_);
    return (words_[ordinal.value / kWordBits] & mask_of(ordinal.value)) == 0;
  }

  /// False, and nothing changes, when it was taken.
  bool take(Ordinal ordinal) {
    if (!is_free(ordinal)) return false;
    set_word(ordinal.value / kWordBits, words_[ordinal.value / kWordBits] | mask_of(ordinal.value));
    --free_count_;
    return true;
  }
  /// False, and nothing changes, when it was free.
  bool give_back(Ordinal ordinal) {
    if (is_free(ordinal)) return false;
    set_word(ordinal.value / kWordBits, words_[ordinal.value / kWordBits] & ~mask_of(ordinal.value));
    ++free_count_;
    return true;
  }
  /// Takes all from first to last, and returns how many of them were free: a step for each 64.
  std::uint32_t take_all(Ordinal first, Ordinal last) {
    CROFT_ASSERT(first <= last && last.value < size_);
    const std::uint32_t before = free_count_;
    for (std::uint32_t index = first.value / kWordBits; index <= last.value / kWordBits; ++index) {
      std::uint64_t mask = ~words_[index];
      if (index == first.value / kWordBits) mask &= kFull << first.value % kWordBits;
      if (index == last.value / kWordBits) mask &= kFull >> (kWordBits - 1 - last.value % kWordBits);
      set_word(index, words_[index] | mask);
      free_count_ -= static_cast<std::uint32_t>(std::popcount(mask));
    }
    return before - free_count_;
  }

  /// The first free ordinal of `from` to `end` - 1; nullopt when there is none.
  [[nodiscard]] std::optional<Ordinal> next_free(std::uint32_t from, std::uint32_t end) const {
    if (from >= end) return std::nullopt;
    const std::uint64_t free = ~words_[from / kWordBits] & kFull << from % kWordBits;
    const std::size_t found = free == 0
                                  ? find_behind(from / kWordBits)
                                  : from / kWordBits * kWordBits + static_cast<std::size_t>(std::countr_zero(free));
    return found < end ? std::optional(Ordinal{static_cast<std::uint32_t>(found)}) : std::nullopt;
  }

  /// The whole space as words: ordinal `o` is bit o % 64 of word o / 64, set when it is taken.
  [[nodiscard]] const std::vector<std::uint64_t>& words() const { return words_; }
  /// The same form in: replaces what is taken by the bits of word_at(index); bits past the end are ignored.
  template <class F>
  void set_words(F&& word_at) {
    free_count_ = size_;
    for (std::size_t index = 0; index < words_.size(); ++index) {
      std::uint64_t word = word_at(index);
      if (index == size_ / kWordBits) word &= mask_of(size_) - 1;
      set_word(index, word);
      free_count_ -= static_cast<std::uint32_t>(std::popcount(word));
    }
  }

  /// Calls f(Ordinal) for each taken one, ascending.
  template <class F>
  void for_each_taken(F&& f) const {
    for (std::size_t index = 0; index < words_.size(); ++index) {
      for (std::uint64_t taken = words_[index]; taken != 0; taken &= taken - 1) {
        f(Ordinal{static_cast<std::uint32_t>(index * kWordBits) + static_cast<std::uint32_t>(std::countr_zero(taken))});
      }
    }
  }

 private:
  static constexpr std::uint32_t kWordBits = 64;
  static constexpr std::uint64_t kFull = ~std::uint64_t{0};
  [[nodiscard]] static std::uint64_t mask_of(std::size_t bit) { return std::uint64_t{1} << bit % kWordBits; }
  [[nodiscard]] static std::size_t words_for(std::size_t bits) { return (bits + kWordBits - 1) / kWordBits; }

  void set_word(std::size_t index, std::uint64_t word) {
    const bool was_full = words_[index] == kFull;
    words_[index] = word;
    if (was_full != (word == kFull)) summarize(index);
  }
  /// Carries upward that the word `index` has become full or no longer is.
  void summarize(std::size_t index);
  /// The first free place in a word behind `index`; size() or above when there is none.
  [[nodiscard]] std::size_t find_behind(std::size_t index) const;

  std::uint32_t size_;
  std::uint32_t free_count_;
  std::vector<std::uint64_t> words_;                   ///< the bits past the end are clear, here and above
  std::vector<std::vector<std::uint64_t>> summaries_;  ///< the lowest first; the last one is a single word
};

using net::Ordinal;

/// The ordinals 0 to size() - 1, each free or taken, in the order in which the free ones are handed out: from the head,
/// and back at the tail, so that the one idle for longest goes first. The order is exactly the `unallocated` list of a
/// stored Calico block; it survives reading, changing and writing a block, and with it the time an address rests before
/// it is used again.
///
/// take_next and give_back are O(1) over time; take_next_if is O(place of the one found); take of a given ordinal
/// searches the order, O(free_count()). Meant for blocks: 64 ordinals as a rule, 65,536 at most. Not for Service ranges
/// or ports, where any ordinal may be asked for among a million (4 bytes a free ordinal, and that search): DenseBitmap.
class OrderedFreeList {
 public:
  /// The space of size 0.
  OrderedFreeList() = default;

  /// All ordinals free, in ascending order: a new block.
  [[nodiscard]] static OrderedFreeList all_free(std::uint32_t size);

  /// The stored order; ordinals it doesn't name are taken. Error: corrupt, naming the value, when one is not below
  /// `size` or comes twice.
  [[nodiscard]] static Result<OrderedFreeList> from_order(std::uint32_t size, std::vector<std::uint32_t> order);

  [[nodiscard]] std::uint32_t size() const { return static_cast<std::uint32_t>(free_.size()); }
  [[nodiscard]] std::uint32_t free_count() const { return static_cast<std::uint32_t>(order_.size() - head_); }
  [[nodiscard]] bool is_free(Ordinal ordinal) const;

  /// The others keep their order.
  bool take(Ordinal ordinal);
  /// Puts the ordinal at the tail.
  bool give_back(Ordinal ordinal);
  /// Takes the head.
  std::optional<Ordinal> take_next();

  /// Takes the first in order for which `accepts(Ordinal)` is true; those passed over keep their places. nullopt, and
  /// nothing changes, when there is none.
  template <class Predicate>
  std::optional<Ordinal> take_next_if(Predicate&& accepts);

  /// The free ordinals, the next one to go first. Valid until the next change.
  [[nodiscard]] std::span<const std::uint32_t> order() const { return std::span(order_).subspan(head_); }

  template <class F>
  void for_each_taken(F&& f) const;

  /// The same size and the same free ordinals in the same order.
  friend bool operator==(const OrderedFreeList& a, const OrderedFreeList& b) {
    return a.size() == b.size() && std::ranges::equal(a.order(), b.order());
  }

 private:
  OrderedFreeList(std::vector<bool> free, std::vector<std::uint32_t> order)
      : free_(std::move(free)), order_(std::move(order)) {}

  /// Removes the free ordinal at `place` of order(): what is before it moves up by one, so the head costs nothing.
  Ordinal remove(std::size_t place);

  std::vector<bool> free_;            // by ordinal
  std::vector<std::uint32_t> order_;  // from head_ on; what is before has been handed out
  std::size_t head_ = 0;
};

template <class Predicate>
std::optional<Ordinal> OrderedFreeList::take_next_if(Predicate&& accepts) {
  const auto free = order();
  const auto found = std::ranges::find_if(free, [&](std::uint32_t value) { return accepts(Ordinal{value}); });
  if (found == free.end()) return std::nullopt;
  return remove(static_cast<std::size_t>(found - free.begin()));
}

template <class F>
void OrderedFreeList::for_each_taken(F&& f) const {
  for (std::uint32_t value = 0; value < size(); ++value) {
    if (!free_[value]) f(Ordinal{value});
  }
}

}  // namespace croft::core::space
