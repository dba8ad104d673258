#pragma once

#include <compare>
#include <cstddef>
#include <functional>
#include <string>
#include <vector>

#include "base/assert.h"
#include "base/net/address.h"
#include "base/net/prefix.h"
#include "base/result.h"

namespace croft::net {

/// All addresses from `first` to `last`, both included, of one family; never empty. An immutable value, ordered by
/// first, then last. A default-constructed range is invalid, contains nothing and overlaps nothing.
class AddressRange {
 public:
  constexpr AddressRange() = default;

  /// Errors, all invalid_argument: an end is invalid, the ends differ in family, first is above last.
  [[nodiscard]] static Result<AddressRange> make(Address first, Address last);

  /// All addresses of a valid prefix.
  [[nodiscard]] static constexpr AddressRange of(const Prefix& prefix) { return {prefix.first(), prefix.last()}; }

  /// The range with another, higher or equal end of the same family.
  [[nodiscard]] constexpr AddressRange extended_to(Address last) const {
    CROFT_ASSERT(last.is_valid() && last.family() == family() && last_ <= last);
    return {first_, last};
  }

  [[nodiscard]] constexpr bool is_valid() const { return first_.is_valid(); }
  [[nodiscard]] constexpr Address first() const { return first_; }
  [[nodiscard]] constexpr Address last() const { return last_; }
  /// The range must be valid.
  [[nodiscard]] constexpr Family family() const { return first_.family(); }
  /// One less than the number of addresses, as Prefix::last_offset.
  [[nodiscard]] constexpr U128 last_offset() const { return last_.value() - first_.value(); }

  // Addresses of another family sort below or above all of a range, so comparing the ends is enough.
  [[nodiscard]] constexpr bool contains(Address address) const {
    return is_valid() && first_ <= address && address <= last_;
  }
  /// True also for the range itself.
  [[nodiscard]] constexpr bool contains(const AddressRange& other) const {
    return is_valid() && other.is_valid() && first_ <= other.first_ && other.last_ <= last_;
  }
  [[nodiscard]] constexpr bool overlaps(const AddressRange& other) const {
    return is_valid() && other.is_valid() && first_ <= other.last_ && other.first_ <= last_;
  }

  /// "<first>-<last>", also when they are equal; "invalid" when invalid.
  [[nodiscard]] std::string to_string() const;

  friend constexpr auto operator<=>(const AddressRange&, const AddressRange&) = default;

 private:
  constexpr AddressRange(Address first, Address last) : first_(first), last_(last) {}

  Address first_;
  Address last_;
};

/// The fewest prefixes that together are a valid range, ascending.
[[nodiscard]] std::vector<Prefix> prefixes_of(const AddressRange& range);

}  // namespace croft::net
