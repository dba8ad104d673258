#include "base/space/dense_bitmap.h"

#include <algorithm>
#include <span>

namespace croft::core::space {

DenseBitmap::DenseBitmap(std::uint32_t size) : size_(size), free_count_(size) {
  std::uint32_t bits = size;
  add_level(bits);
  do {
    bits = bits / kWordBits + (bits % kWordBits != 0 ? 1 : 0);
    add_level(bits);
  } while (bits > kWordBits);
}

/// One more level on top, with all its bits clear and those past its end set.
void DenseBitmap::add_level(std::uint32_t bits) {
  CROFT_ASSERT(level_count_ < kLevelsMax);
  level_start_[level_count_] = words_.size();
  level_bits_[level_count_] = bits;
  ++level_count_;
  words_.resize(words_.size() + bits / kWordBits, 0);
  if (bits % kWordBits != 0) words_.push_back(kFull << bits % kWordBits);
}

/// Level 0 is as it should be, but for the bits past its end; makes everything else so.
void DenseBitmap::count_and_summarise() {
  next_ = 0;
  free_count_ = 0;
  if (size_ % kWordBits != 0) words_[size_ / kWordBits] |= kFull << size_ % kWordBits;
  for (const std::uint64_t word : std::span(words_).first(word_count())) {
    free_count_ += static_cast<std::uint32_t>(kWordBits - static_cast<std::uint32_t>(std::popcount(word)));
  }
  for (std::size_t level = 1; level < level_count_; ++level) {
    const auto below = std::span(words_).subspan(level_start_[level - 1], level_bits_[level]);
    const auto words = std::span(words_).subspan(level_start_[level], (below.size() + kWordBits - 1) / kWordBits);
    std::ranges::fill(words, 0);
    if (below.size() % kWordBits != 0) words.back() = kFull << below.size() % kWordBits;
    for (std::size_t bit = 0; bit < below.size(); ++bit) {
      words[bit / kWordBits] |= std::uint64_t{below[bit] == kFull} << bit % kWordBits;
    }
  }
}

std::uint64_t DenseBitmap::taken_word(std::size_t index) const {
  CROFT_ASSERT(index < word_count());
  const bool cut = index == size_ / kWordBits;
  return cut ? words_[index] & (mask_of(size_) - 1) : words_[index];
}

/// The word of level 0 has become full.
void DenseBitmap::mark_full(std::uint32_t word) {
  std::uint32_t bit = word;
  for (std::size_t level = 1; level < level_count_; ++level) {
    std::uint64_t& summary = word_of(level, bit);
    summary |= mask_of(bit);
    if (summary != kFull) break;
    bit /= kWordBits;
  }
}

std::uint32_t DenseBitmap::take_all(Ordinal first, Ordinal last) {
  CROFT_ASSERT(first <= last && last.value < size_);
  const std::uint32_t before = free_count_;
  for (std::uint32_t index = first.value / kWordBits; index <= last.value / kWordBits; ++index) {
    std::uint64_t mask = kFull;
    if (index == first.value / kWordBits) mask &= kFull << first.value % kWordBits;
    if (index == last.value / kWordBits) mask &= kFull >> (kWordBits - 1 - last.value % kWordBits);
    std::uint64_t& word = words_[index];
    mask &= ~word;
    if (mask == 0) continue;
    word |= mask;
    free_count_ -= static_cast<std::uint32_t>(std::popcount(mask));
    if (word == kFull) mark_full(index);
  }
  return before - free_count_;
}

bool DenseBitmap::give_back(Ordinal ordinal) {
  if (is_free(ordinal)) return false;
  ++free_count_;
  std::uint32_t bit = ordinal.value;
  for (std::size_t level = 0; level < level_count_; ++level) {
    std::uint64_t& word = word_of(level, bit);
    const bool was_full = word == kFull;
    word &= ~mask_of(bit);
    if (!was_full) break;
    bit /= kWordBits;
  }
  return true;
}

std::optional<Ordinal> DenseBitmap::take_next() {
  const auto ordinal = next_free(Ordinal{next_});
  if (!ordinal) return std::nullopt;
  const bool was_free = take(*ordinal);
  CROFT_ASSERT(was_free);
  next_ = ordinal->value + 1;
  return ordinal;
}

/// find_free() below size_, without a branch for whether the word of `from` has a place. In a crowded space that is
/// anyone's guess, and a wrong guess of the processor costs more than to look at the words behind always.
std::uint32_t DenseBitmap::find_free_crowded(std::uint32_t from) const {
  // All three words exist: that of an ordinal, the one above it, and the one below a clear bit of level 1, since bits
  // past the end are set.
  const std::uint64_t* const words = words_.data();
  const std::uint32_t here = from / kWordBits;
  const std::uint64_t clear = ~words[here] & kFull << from % kWordBits;
  const std::uint64_t behind = ~words[level_start_[1] + here / kWordBits] & kFull << here % kWordBits << 1;
  if ((clear | behind) == 0) return find_free_behind(here);
  const std::uint32_t elsewhere = 0U - static_cast<std::uint32_t>(clear == 0);  // all ones, or none
  const std::uint32_t next = here / kWordBits * kWordBits + static_cast<std::uint32_t>(std::countr_zero(behind));
  const std::uint32_t word = here ^ ((here ^ next) & elsewhere);
  const std::uint64_t found = ~words[word] & kFull << (from % kWordBits & ~elsewhere);
  return word * kWordBits + static_cast<std::uint32_t>(std::countr_zero(found));
}

/// The first free ordinal in a later word of level 0 than this; size_ when there is none.
std::uint32_t DenseBitmap::find_free_behind(std::uint32_t word) const {
  std::uint32_t bit = word + 1;
  for (std::size_t level = 1; level < level_count_ && bit < level_bits_[level]; ++level) {
    const std::uint64_t clear = ~word_of(level, bit) & kFull << bit % kWordBits;
    if (clear != 0) {
      const auto place = static_cast<std::uint32_t>(std::countr_zero(clear));
      return descend(level, bit / kWordBits * kWordBits + place);
    }
    bit = bit / kWordBits + 1;
  }
  return size_;
}

std::optional<Ordinal> DenseBitmap::next_free(Ordinal from) const {
  if (const auto ordinal = next_free_at_or_after(from)) return ordinal;
  return next_free_at_or_after(Ordinal{0});
}

/// The first free ordinal below a clear bit of `level`.
std::uint32_t DenseBitmap::descend(std::size_t level, std::uint32_t bit) const {
  while (level > 0) {
    --level;
    const std::uint64_t word = word_of(level, bit * kWordBits);
    CROFT_ASSERT(word != kFull);
    bit = bit * kWordBits + static_cast<std::uint32_t>(std::countr_one(word));
  }
  return bit;
}

}  // namespace croft::core::space
