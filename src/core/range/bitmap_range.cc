#include "core/range/bitmap_range.h"

#include <algorithm>

#include <fmt/format.h>

#include "base/assert.h"

namespace croft::core::range {
namespace {

constexpr int kDrawsMax = 64;

/// Uniform below `count`, which is not 0: the upper half of a product is fair once the few starts that would come up
/// more often are drawn again (Lemire, "Fast random integer generation in an interval"). A generator that is stuck gets
/// an end to that, and an answer below `count` all the same.
std::uint32_t uniform_below(Random& random, std::uint32_t count) {
  CROFT_ASSERT(count > 0);
  std::uint64_t product = (random.next() >> 32) * count;
  if (static_cast<std::uint32_t>(product) < count) {
    const std::uint32_t unfair = (0U - count) % count;
    for (int draws = 1; static_cast<std::uint32_t>(product) < unfair && draws < kDrawsMax; ++draws) {
      product = (random.next() >> 32) * count;
    }
  }
  return static_cast<std::uint32_t>(product >> 32);
}

}  // namespace

BitmapRange::BitmapRange(Search search, std::string text, std::uint32_t size, std::uint32_t band)
    : search_(search), band_(std::min(band, size)), text_(std::move(text)), bits_(size) {}

BitmapRange BitmapRange::contiguous(std::string text, std::uint32_t size) {
  return {Search::contiguous, std::move(text), size, 0};
}

BitmapRange BitmapRange::random_scan(std::string text, std::uint32_t size) {
  return {Search::random, std::move(text), size, 0};
}

BitmapRange BitmapRange::random_scan_with_band(std::string text, std::uint32_t size, std::uint32_t band) {
  return {Search::random, std::move(text), size, band};
}

Result<bool> BitmapRange::take(std::int64_t offset) {
  if (!contains(offset)) {
    return fail(ErrorCode::invalid_argument, fmt::format("offset {} out of range [0,{}]", offset, size()));
  }
  return bits_.take(ordinal(offset));
}

std::optional<Ordinal> BitmapRange::take_next(Random& random) {
  const auto next = find_next(random);
  if (!next) return std::nullopt;
  const bool was_free = bits_.take(*next);
  CROFT_ASSERT(was_free);
  return next;
}

bool BitmapRange::give_back(std::int64_t offset) { return contains(offset) && bits_.give_back(ordinal(offset)); }

Result<std::uint64_t> BitmapRange::restore(const RangeSnapshot& snapshot) {
  if (snapshot.range != text_) {
    return fail(ErrorCode::refused_by_configuration, "the provided range does not match the current range");
  }
  DecodedBits decoded = decode_bits(size(), snapshot.data);
  bits_ = std::move(decoded.bits);
  return decoded.beyond;
}

std::optional<Ordinal> BitmapRange::find_next(Random& random) const {
  if (free_count() == 0) return std::nullopt;
  if (search_ == Search::contiguous) return bits_.next_free_at_or_after(Ordinal{0});
  if (const auto dynamic = scan(random, band_, size())) return dynamic;
  return scan(random, 0, band_);
}

/// The first free one of `first` to `end` - 1 at or after a uniform start, wrapping inside. Nothing below `first` is
/// looked at, and a find at or above `end` is none.
std::optional<Ordinal> BitmapRange::scan(Random& random, std::uint32_t first, std::uint32_t end) const {
  if (first == end) return std::nullopt;
  const Ordinal start{first + uniform_below(random, end - first)};
  auto found = bits_.next_free_at_or_after(start);
  if (!found || found->value >= end) found = bits_.next_free_at_or_after(Ordinal{first});
  return found && found->value < end ? found : std::nullopt;
}

}  // namespace croft::core::range
