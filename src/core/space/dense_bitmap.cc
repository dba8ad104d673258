#include "core/space/dense_bitmap.h"

#include <algorithm>

#include "base/assert.h"

namespace croft::core::space {
namespace {

constexpr std::uint64_t kFull = ~std::uint64_t{0};

}  // namespace

DenseBitmap::DenseBitmap(std::uint32_t size) : size_(size), free_count_(size) {
  std::uint32_t bits = size;
  add_level(bits);
  while (bits > kWordBits) {
    bits = bits / kWordBits + (bits % kWordBits != 0 ? 1 : 0);
    add_level(bits);
  }
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

DenseBitmap DenseBitmap::from_words(std::uint32_t size, std::span<const std::uint64_t> words) {
  DenseBitmap space(size);
  for (std::size_t i = 0; i < std::min(words.size(), space.word_count()); ++i) {
    space.words_[i] |= words[i];
    space.free_count_ -= static_cast<std::uint32_t>(std::popcount(space.taken_word(i)));
  }
  for (std::size_t level = 1; level < space.level_count_; ++level) {
    for (std::uint32_t bit = 0; bit < space.level_bits_[level]; ++bit) {
      if (space.words_[space.level_start_[level - 1] + bit] == kFull) space.word_of(level, bit) |= mask_of(bit);
    }
  }
  return space;
}

std::uint64_t DenseBitmap::taken_word(std::size_t index) const {
  CROFT_ASSERT(index < word_count());
  const bool cut = index == size_ / kWordBits;
  return cut ? words_[index] & (mask_of(size_) - 1) : words_[index];
}

bool DenseBitmap::is_free(Ordinal ordinal) const {
  CROFT_ASSERT(ordinal.value < size_);
  return (word_of(0, ordinal.value) & mask_of(ordinal.value)) == 0;
}

bool DenseBitmap::take(Ordinal ordinal) {
  if (!is_free(ordinal)) return false;
  --free_count_;
  std::uint32_t bit = ordinal.value;
  for (std::size_t level = 0; level < level_count_; ++level) {
    std::uint64_t& word = word_of(level, bit);
    word |= mask_of(bit);
    if (word != kFull) break;
    bit /= kWordBits;
  }
  return true;
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

std::optional<Ordinal> DenseBitmap::next_free_at_or_after(Ordinal from) const {
  std::uint32_t bit = from.value;
  for (std::size_t level = 0; level < level_count_ && bit < level_bits_[level]; ++level) {
    const std::uint64_t clear = ~word_of(level, bit) & kFull << bit % kWordBits;
    if (clear != 0) {
      const auto place = static_cast<std::uint32_t>(std::countr_zero(clear));
      return descend(level, bit / kWordBits * kWordBits + place);
    }
    bit = bit / kWordBits + 1;
  }
  return std::nullopt;
}

std::optional<Ordinal> DenseBitmap::next_free(Ordinal from) const {
  if (const auto ordinal = next_free_at_or_after(from)) return ordinal;
  return next_free_at_or_after(Ordinal{0});
}

/// The first free ordinal below a clear bit of `level`.
Ordinal DenseBitmap::descend(std::size_t level, std::uint32_t bit) const {
  while (level > 0) {
    --level;
    const std::uint64_t word = word_of(level, bit * kWordBits);
    CROFT_ASSERT(word != kFull);
    bit = bit * kWordBits + static_cast<std::uint32_t>(std::countr_one(word));
  }
  return Ordinal{bit};
}

}  // namespace croft::core::space
