#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>

#include "base/clock.h"
#include "base/result.h"
#include "base/space/dense_bitmap.h"
#include "services/decide/range_data.h"

namespace croft::core::service {

using space::Ordinal;

/// What is kept of a range: its identity as text, and which ordinals are taken (range_data.h has the form).
struct RangeSnapshot {
  std::string range;  ///< compared byte for byte
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

  /// Takes the ordinal `offset`; false, and nothing changes, when it was taken already. Error: invalid_argument,
  /// `offset <offset> out of range [0,<size>]`.
  [[nodiscard]] Result<bool> take(std::int64_t offset);
  /// Takes the next one; nullopt when none is free. Draws once or twice from `random`, very rarely more often. A
  /// generator that asks the kernel each time costs more than all the rest.
  [[nodiscard]] std::optional<Ordinal> take_next(Random& random) {
    const std::uint32_t taken = take_next_or_size(random);
    return taken == size() ? std::nullopt : std::optional(Ordinal{taken});
  }
  /// False, and nothing changes, when it was free or is outside.
  bool give_back(std::int64_t offset);
  /// True when it is taken; false outside.
  [[nodiscard]] bool has(std::int64_t offset) const { return contains(offset) && !bits_.is_free(ordinal(offset)); }
  /// Calls f(Ordinal) for each taken one, ascending; `f` must not change the range.
  template <class F>
  void for_each_taken(F&& f) const {
    bits_.for_each_taken(std::forward<F>(f));
  }

  [[nodiscard]] RangeSnapshot snapshot() const { return {text_, encode_bits(bits_)}; }
  /// Replaces what is taken by what the snapshot says. The success is the number of bits set at or above size(): they
  /// are not taken over, and a snapshot() will not have them, so whoever gets a number above 0 has found damage and
  /// must not let it go unsaid. (The reference counts them, and then has fewer free ones than none.) Error:
  /// refused_by_configuration when the snapshot's range is another text; nothing has changed then.
  [[nodiscard]] Result<std::uint64_t> restore(const RangeSnapshot& snapshot);

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
