#include "core/service/bitmap_range.h"

#include <algorithm>

#include <fmt/format.h>

#include "base/assert.h"

namespace croft::core::service {
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

BitmapRange::BitmapRange(std::string text, std::uint32_t size, std::uint32_t band)
    : band_(std::min(band, size)), text_(std::move(text)), bits_(size) {}

BitmapRange BitmapRange::random_scan_with_band(std::string text, std::uint32_t size, std::uint32_t band) {
  return {std::move(text), size, band};
}

Result<bool> BitmapRange::take(std::int64_t offset) {
  if (!contains(offset)) {
    return fail(ErrorCode::invalid_argument, fmt::format("offset {} out of range [0,{}]", offset, size()));
  }
  return bits_.take(ordinal(offset));
}

std::uint32_t BitmapRange::take_next_or_size(Random& random) {
  const std::uint32_t next = find_next(random);
  if (next == size()) return next;
  const bool was_free = bits_.take(Ordinal{next});
  CROFT_ASSERT(was_free);
  return next;
}

bool BitmapRange::give_back(std::int64_t offset) { return contains(offset) && bits_.give_back(ordinal(offset)); }

Result<std::uint64_t> BitmapRange::restore(const RangeSnapshot& snapshot) {
  if (snapshot.range != text_) {
    return fail(ErrorCode::refused_by_configuration, "the provided range does not match the current range");
  }
  return decode_bits(snapshot.data, bits_);
}

std::uint32_t BitmapRange::find_next(Random& random) const {
  if (free_count() == 0) return size();
  const std::uint32_t dynamic = scan(random, band_, size());
  return dynamic != size() ? dynamic : scan(random, 0, band_);
}

/// The first free one of `from` to `end` - 1; size() when there is none.
std::uint32_t BitmapRange::first_free(std::uint32_t from, std::uint32_t end) const {
  const auto found = bits_.next_free_at_or_after(Ordinal{from});
  return found && found->value < end ? found->value : size();
}

/// The first free one of `first` to `end` - 1 at or after a uniform start, wrapping inside; size() when there is none.
std::uint32_t BitmapRange::scan(Random& random, std::uint32_t first, std::uint32_t end) const {
  if (first == end) return size();
  const std::uint32_t found = first_free(first + uniform_below(random, end - first), end);
  return found != size() ? found : first_free(first, end);
}

}  // namespace croft::core::service
