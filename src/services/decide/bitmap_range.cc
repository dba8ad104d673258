#include "services/decide/bitmap_range.h"

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstring>

#include "base/assert.h"

namespace croft::core::service {
namespace {

constexpr std::size_t kWordBytes = 8;
constexpr std::uint32_t kWordBits = 64;

/// The eight bytes of a word in the order of the range's bytes, highest first.
std::uint64_t big_endian(std::uint64_t word) {
  if constexpr (std::endian::native == std::endian::big) return word;
  word = word >> 32 | word << 32;
  word = (word & 0xffff0000ffff0000U) >> 16 | (word & 0x0000ffff0000ffffU) << 16;
  return (word & 0xff00ff00ff00ff00U) >> 8 | (word & 0x00ff00ff00ff00ffU) << 8;
}

/// The bits 64 * index and on of the number; zeros where it has ended.
std::uint64_t word_of(std::string_view data, std::size_t index) {
  const std::size_t behind = index * kWordBytes;
  if (behind >= data.size()) return 0;
  const std::size_t end = data.size() - behind;
  std::uint64_t word = 0;
  if (end >= kWordBytes) {
    std::memcpy(&word, data.data() + (end - kWordBytes), kWordBytes);
    return big_endian(word);
  }
  for (const char byte : data.substr(0, end)) word = word << 8 | static_cast<unsigned char>(byte);
  return word;
}

std::uint64_t count(std::uint64_t word) { return static_cast<std::uint64_t>(std::popcount(word)); }

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

std::uint64_t BitmapRange::restore(std::string_view data) {
  bits_.set_words([&](std::size_t index) { return word_of(data, index); });
  std::uint64_t beyond = 0;
  const std::uint32_t size = bits_.size();
  if (size % kWordBits != 0) beyond = count(word_of(data, size / kWordBits) >> size % kWordBits);
  for (std::size_t index = bits_.word_count(); index * kWordBytes < data.size(); ++index) {
    beyond += count(word_of(data, index));
  }
  return beyond;
}

RangeSnapshot BitmapRange::snapshot() const {
  std::size_t words = bits_.word_count();
  while (words > 0 && bits_.taken_word(words - 1) == 0) --words;
  if (words == 0) return {text_, {}};

  const std::uint64_t top = bits_.taken_word(words - 1);
  const auto top_bytes = static_cast<std::size_t>(std::bit_width(top) + 7) / 8;
  std::string data((words - 1) * kWordBytes + top_bytes, '\0');
  char* at = data.data() + data.size();
  for (std::size_t i = 0; i + 1 < words; ++i) {
    const std::uint64_t word = big_endian(bits_.taken_word(i));
    at -= kWordBytes;
    std::memcpy(at, &word, kWordBytes);
  }
  for (std::uint64_t rest = top; rest != 0; rest >>= 8) *--at = static_cast<char>(rest);
  return {text_, std::move(data)};
}

/// The first free one of `from` to `end` - 1; size() when there is none.
std::uint32_t BitmapRange::first_free(std::uint32_t from, std::uint32_t end) const {
  const auto found = bits_.next_free_at_or_after(Ordinal{from});
  return found && found->value < end ? found->value : size();
}

}  // namespace croft::core::service
