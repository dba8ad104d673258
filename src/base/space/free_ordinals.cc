#include "base/space/free_ordinals.h"

#include <numeric>

#include <fmt/format.h>

#include "base/assert.h"

namespace croft::core::space {

void DenseBitmap::summarize(std::size_t index) {
  for (auto& level : summaries_) {
    std::uint64_t& word = level[index / kWordBits];
    const bool was_full = word == kFull;
    word ^= mask_of(index);
    if (was_full == (word == kFull)) return;
    index /= kWordBits;
  }
}

std::size_t DenseBitmap::find_behind(std::size_t index) const {
  for (std::size_t level = 0; level < summaries_.size(); ++level) {
    const std::size_t next = index + 1;
    index = next / kWordBits;
    if (index == summaries_[level].size()) break;
    const std::uint64_t free = ~summaries_[level][index] & kFull << next % kWordBits;
    if (free == 0) continue;
    // Down again, by the first word of each level that has room. Bits past the end are clear too: they have no word.
    for (std::size_t place = index * kWordBits + static_cast<std::size_t>(std::countr_zero(free));; --level) {
      const auto& below = level == 0 ? words_ : summaries_[level - 1];
      if (place >= below.size()) return size_;
      place = place * kWordBits + static_cast<std::size_t>(std::countr_zero(~below[place]));
      if (level == 0) return place;
    }
  }
  return size_;
}

OrderedFreeList OrderedFreeList::all_free(std::uint32_t size) {
  std::vector<std::uint32_t> order(size);
  std::iota(order.begin(), order.end(), 0U);
  return {std::vector<bool>(size, true), std::move(order)};
}

Result<OrderedFreeList> OrderedFreeList::from_order(std::uint32_t size, std::vector<std::uint32_t> order) {
  std::vector<bool> free(size, false);
  for (const std::uint32_t value : order) {
    if (value >= size) {
      return fail(ErrorCode::corrupt, fmt::format("free ordinal {} lies outside a space of {}", value, size));
    }
    if (free[value]) return fail(ErrorCode::corrupt, fmt::format("free ordinal {} is listed twice", value));
    free[value] = true;
  }
  return OrderedFreeList(std::move(free), std::move(order));
}

bool OrderedFreeList::is_free(Ordinal ordinal) const {
  CROFT_ASSERT(ordinal.value < size());
  return free_[ordinal.value];
}

bool OrderedFreeList::take(Ordinal ordinal) {
  if (!is_free(ordinal)) return false;
  const auto free = order();
  const auto found = std::ranges::find(free, ordinal.value);
  CROFT_ASSERT(found != free.end());
  remove(static_cast<std::size_t>(found - free.begin()));
  return true;
}

bool OrderedFreeList::give_back(Ordinal ordinal) {
  if (is_free(ordinal)) return false;
  // At least as many were handed out since the last time as are moved now: O(1) over time.
  if (head_ > order_.size() / 2) {
    order_.erase(order_.begin(), order_.begin() + static_cast<std::ptrdiff_t>(head_));
    head_ = 0;
  }
  free_[ordinal.value] = true;
  order_.push_back(ordinal.value);
  return true;
}

std::optional<Ordinal> OrderedFreeList::take_next() {
  if (free_count() == 0) return std::nullopt;
  return remove(0);
}

Ordinal OrderedFreeList::remove(std::size_t place) {
  const auto head = order_.begin() + static_cast<std::ptrdiff_t>(head_);
  const auto found = head + static_cast<std::ptrdiff_t>(place);
  const Ordinal ordinal{*found};
  std::move_backward(head, found, found + 1);
  ++head_;
  free_[ordinal.value] = false;
  return ordinal;
}

}  // namespace croft::core::space
