#include "services/decide/bitmap_range.h"

#include <algorithm>

#include <fmt/format.h>

#include "base/assert.h"

namespace croft::core::service {
namespace {

constexpr int kDrawsMax = 64;

/// The product of a draw and `count`, once it is one of the fair ones. A generator that is stuck gets an end to that.
[[gnu::noinline, gnu::cold]] std::uint64_t fair_product(Random& random, std::uint32_t count, std::uint64_t product) {
  const std::uint32_t unfair = (0U - count) % count;
  for (int draws = 1; static_cast<std::uint32_t>(product) < unfair && draws < kDrawsMax; ++draws) {
    product = (random.next() >> 32) * count;
  }
  return product;
}

/// Uniform below `count`, which is not 0: the upper half of a product is fair once the few starts that would come up
/// more often are drawn again (Lemire, "Fast random integer generation in an interval").
inline std::uint32_t uniform_below(Random& random, std::uint32_t count) {
  CROFT_ASSERT(count > 0);
  std::uint64_t product = (random.next() >> 32) * count;
  if (static_cast<std::uint32_t>(product) < count) product = fair_product(random, count, product);
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

/// All but the rare ends of a search are on this path, without a call but the draw.
std::uint32_t BitmapRange::take_next_or_size(Random& random) {
  if (free_count() == 0) return size();
  if (band_ < size()) {
    const std::uint32_t start = band_ + uniform_below(random, size() - band_);
    const std::uint32_t taken = bits_.take_at_or_after(start);
    if (taken != size()) return taken;
  }
  return take_next_wrapped(random);
}

/// Nothing is free from the uniform start of the dynamic band to its end.
std::uint32_t BitmapRange::take_next_wrapped(Random& random) {
  if (band_ < size()) {
    const std::uint32_t taken = bits_.take_at_or_after(band_);
    if (taken != size()) return taken;
  }
  const std::uint32_t next = first_free(uniform_below(random, band_), band_);
  const std::uint32_t taken = bits_.take_at_or_after(next != size() ? next : 0);
  CROFT_ASSERT(taken < band_);
  return taken;
}

bool BitmapRange::give_back(std::int64_t offset) { return contains(offset) && bits_.give_back(ordinal(offset)); }

Result<std::uint64_t> BitmapRange::restore(const RangeSnapshot& snapshot) {
  if (snapshot.range != text_) {
    return fail(ErrorCode::refused_by_configuration, "the provided range does not match the current range");
  }
  return decode_bits(snapshot.data, bits_);
}

/// The first free one of `from` to `end` - 1; size() when there is none.
std::uint32_t BitmapRange::first_free(std::uint32_t from, std::uint32_t end) const {
  const auto found = bits_.next_free_at_or_after(Ordinal{from});
  return found && found->value < end ? found->value : size();
}

}  // namespace croft::core::service
