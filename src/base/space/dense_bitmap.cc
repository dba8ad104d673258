#include "base/space/dense_bitmap.h"

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

}  // namespace croft::core::space
