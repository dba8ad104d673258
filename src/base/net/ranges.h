#pragma once

#include <compare>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "base/assert.h"
#include "base/net/address.h"
#include "base/net/prefix.h"
#include "base/net/u128.h"
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

/// How many addresses or blocks there are: 0 to 2^128, which is one more than U128 holds (::/0 has so many). Exact
/// within these bounds and kept inside them: a sum stops at 2^128, a difference at 0. Built implicitly from 64 bits.
class Count {
 public:
  constexpr Count() = default;
  constexpr Count(std::uint64_t number)
      : low_(number) {}  // NOLINT(google-explicit-constructor): widening loses nothing

  /// One more than an offset, as in `last_offset()`.
  [[nodiscard]] static constexpr Count up_to(U128 last_offset) {
    Count count;
    count.is_whole_ = last_offset == U128::max();
    count.low_ = last_offset + 1;
    return count;
  }
  /// The addresses of a valid prefix, or range.
  [[nodiscard]] static constexpr Count of(const Prefix& prefix) { return up_to(prefix.last_offset()); }
  [[nodiscard]] static constexpr Count of(const AddressRange& range) { return up_to(range.last_offset()); }
  /// 2^`log2`; `log2` is 0 to 128.
  [[nodiscard]] static constexpr Count power_of_two(int log2) { return up_to(U128::low_bits(log2)); }

  [[nodiscard]] constexpr bool is_zero() const { return *this == Count(); }
  [[nodiscard]] constexpr bool fits_64() const { return !is_whole_ && low_.fits_64(); }
  /// Must fit.
  [[nodiscard]] constexpr std::uint64_t as_64() const {
    CROFT_ASSERT(fits_64());
    return low_.lo;
  }
  /// Rounded.
  [[nodiscard]] double as_double() const;

  constexpr Count& operator+=(const Count& other) {
    const U128 sum = low_ + other.low_;
    if (is_whole_ || other.is_whole_ || sum < low_) return *this = power_of_two(128);
    low_ = sum;
    return *this;
  }
  constexpr Count& operator-=(const Count& other) {
    if (*this <= other) return *this = Count();
    low_ -= other.low_;  // wraps below 2^128 when this was the whole
    is_whole_ = is_whole_ && other.is_zero();
    return *this;
  }
  friend constexpr Count operator+(Count a, const Count& b) { return a += b; }
  friend constexpr Count operator-(Count a, const Count& b) { return a -= b; }
  friend constexpr auto operator<=>(const Count&, const Count&) = default;

  /// All decimal digits.
  [[nodiscard]] std::string to_string() const;

 private:
  bool is_whole_ = false;  ///< 2^128; `low_` is 0 then
  U128 low_;
};

/// A set of addresses of both families as intervals, sorted, none touching another. Made once, from any number of
/// prefixes in any order (n log n steps, n when they are sorted); asked in log n steps each.
class Intervals {
 public:
  Intervals() = default;
  /// Invalid prefixes are passed over.
  explicit Intervals(std::vector<Prefix> prefixes);

  [[nodiscard]] bool empty() const { return intervals_.empty(); }
  [[nodiscard]] std::size_t size() const { return intervals_.size(); }

  [[nodiscard]] bool contains(const Address& address) const { return at(address) != nullptr; }
  /// All of the prefix.
  [[nodiscard]] bool covers(const Prefix& prefix) const;
  /// Any of it.
  [[nodiscard]] bool overlaps(const Prefix& prefix) const;
  /// How many addresses of the prefix are in the set. Takes as many steps as intervals touch the prefix.
  [[nodiscard]] Count count_in(const Prefix& prefix) const;
  /// The last address of the interval that an address is in; nullopt when it is in none.
  [[nodiscard]] std::optional<Address> last_from(const Address& address) const;

 private:
  [[nodiscard]] const AddressRange* at(const Address& address) const;
  /// The first interval that ends at or after an address.
  [[nodiscard]] std::vector<AddressRange>::const_iterator from(const Address& address) const;

  std::vector<AddressRange> intervals_;
};

}  // namespace croft::net
