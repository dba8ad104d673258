#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "base/net/prefix.h"
#include "base/result.h"

namespace croft::core::space {

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
