#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "base/clock.h"
#include "base/space/dense_bitmap.h"

namespace croft::core::service {

using space::Ordinal;

/// The stored form of a range: its identity as text, and which ordinals are taken.
struct RangeSnapshot {
  std::string range;  ///< compared byte for byte
  /// Kubernetes' bytes (docs/notes/service-ranges.md#bit-order): the big-endian magnitude of one number, whose bit
  /// `o` says that ordinal `o` is taken. So ordinal 0 is the lowest bit of the last byte. As few bytes as it takes.
  std::string data;
  friend bool operator==(const RangeSnapshot&, const RangeSnapshot&) = default;
};

/// Kubernetes' allocator of a range of Service addresses or node ports (docs/notes/service-ranges.md#bitmap): the
/// ordinals 0 to size() - 1, taken by name or the next one. To find the next as "the first free one at or
/// after a uniform start" costs the same in an empty range and in one that is all but full, and falls on each ordinal
/// as often as the reference's search step by step, so not evenly on the free ones.
///
/// A pure value of one bit an ordinal: copy it to try something. Not synchronised.
class BitmapRange {
 public:
  /// The next is the first free one at or after a uniform start, in two bands: first in the dynamic one, `band` to
  /// size - 1, wrapping inside it; only when that is full in the static one, 0 to `band` - 1, from a start of its own.
  /// A band above the size counts as the size.
  [[nodiscard]] static BitmapRange random_scan_with_band(std::string text, std::uint32_t size, std::uint32_t band);

  /// The identity of the range, e.g. "10.96.0.0/12".
  [[nodiscard]] const std::string& text() const { return text_; }
  [[nodiscard]] std::uint32_t size() const { return bits_.size(); }
  [[nodiscard]] std::uint32_t band() const { return band_; }
  [[nodiscard]] std::uint32_t free_count() const { return bits_.free_count(); }
  [[nodiscard]] std::uint32_t taken_count() const { return size() - free_count(); }

  /// Takes the ordinal; false, and nothing changes, when it was taken already, or is outside.
  bool take(std::int64_t offset) { return contains(offset) && bits_.take(ordinal(offset)); }
  /// Takes the next one; nullopt when none is free. Draws once or twice from `random`, very rarely more often. A
  /// generator that asks the kernel each time costs more than all the rest.
  [[nodiscard]] std::optional<Ordinal> take_next(Random& random) {
    const std::uint32_t taken = take_next_or_size(random);
    return taken == size() ? std::nullopt : std::optional(Ordinal{taken});
  }
  /// False, and nothing changes, when it was free or is outside.
  bool give_back(std::int64_t offset) { return contains(offset) && bits_.give_back(ordinal(offset)); }
  /// True when it is taken; false outside.
  [[nodiscard]] bool has(std::int64_t offset) const { return contains(offset) && !bits_.is_free(ordinal(offset)); }
  /// Calls f(Ordinal) for each taken one, ascending; `f` must not change the range.
  template <class F>
  void for_each_taken(F&& f) const {
    bits_.for_each_taken(std::forward<F>(f));
  }

  [[nodiscard]] RangeSnapshot snapshot() const;
  /// Replaces what is taken by what RangeSnapshot::data says: any number of bytes, leading zeros and none at all
  /// included; the reader limits them. Returns how many bits are set at or above size(), which is damage: they are left
  /// out. (The reference counts them, and then has fewer free ones than none.) O(size + bytes).
  std::uint64_t restore(std::string_view data);

 private:
  BitmapRange(std::string text, std::uint32_t size, std::uint32_t band);

  [[nodiscard]] bool contains(std::int64_t offset) const { return offset >= 0 && offset < std::int64_t{size()}; }
  [[nodiscard]] static Ordinal ordinal(std::int64_t offset) { return Ordinal{static_cast<std::uint32_t>(offset)}; }
  // Plain numbers with size() for none, as in DenseBitmap, for speed.
  [[nodiscard]] std::uint32_t take_next_or_size(Random& random);
  [[nodiscard]] std::uint32_t take_next_wrapped(Random& random);
  [[nodiscard]] std::uint32_t first_free(std::uint32_t from, std::uint32_t end) const;

  std::uint32_t band_;
  std::string text_;
  space::DenseBitmap bits_;
};

}  // namespace croft::core::service
