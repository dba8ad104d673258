#pragma once

#include <compare>
#include <cstdint>
#include <string>

#include "base/assert.h"
#include "base/net/prefix.h"
#include "base/net/range.h"
#include "base/net/u128.h"

namespace croft::net {

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

}  // namespace croft::net
