#pragma once

#include <bit>
#include <compare>
#include <cstddef>
#include <cstdint>
#include <functional>

#include "base/assert.h"
#include "base/hex.h"

namespace croft::net {

/// An unsigned 128-bit number in two halves: arithmetic on IPv6 values without `__int128`, which is no standard type.
/// Wraps modulo 2^128 like every unsigned type. Ordered as a number. Built implicitly from 64 bits, so `x + 1` reads.
struct U128 {
  std::uint64_t hi = 0;
  std::uint64_t lo = 0;

  constexpr U128() = default;
  constexpr U128(std::uint64_t low) : lo(low) {}  // NOLINT(google-explicit-constructor): widening loses nothing
  constexpr U128(std::uint64_t high, std::uint64_t low) : hi(high), lo(low) {}

  friend constexpr auto operator<=>(const U128&, const U128&) = default;

  [[nodiscard]] static constexpr U128 max() { return {~std::uint64_t{0}, ~std::uint64_t{0}}; }

  /// Ones in the lowest `count` bits, zeros above. `count` is 0 to 128.
  [[nodiscard]] static constexpr U128 low_bits(int count) {
    CROFT_ASSERT(count >= 0 && count <= 128);
    return count == 0 ? U128{} : max() >> (128 - count);
  }

  /// The number of bits needed to write the number: 0 for 0, 128 from 2^127 on.
  [[nodiscard]] constexpr int bit_width() const {
    return hi != 0 ? 128 - std::countl_zero(hi) : 64 - std::countl_zero(lo);
  }
  [[nodiscard]] constexpr bool fits_64() const { return hi == 0; }

  friend constexpr U128 operator+(U128 a, U128 b) {
    const std::uint64_t low = a.lo + b.lo;
    return {a.hi + b.hi + (low < a.lo ? 1U : 0U), low};
  }
  friend constexpr U128 operator-(U128 a, U128 b) { return {a.hi - b.hi - (a.lo < b.lo ? 1U : 0U), a.lo - b.lo}; }
  friend constexpr U128 operator&(U128 a, U128 b) { return {a.hi & b.hi, a.lo & b.lo}; }
  friend constexpr U128 operator|(U128 a, U128 b) { return {a.hi | b.hi, a.lo | b.lo}; }
  friend constexpr U128 operator~(U128 a) { return {~a.hi, ~a.lo}; }

  /// Shifts by 0 or more bits; by 128 or more the result is 0.
  friend constexpr U128 operator<<(U128 a, int count) {
    CROFT_ASSERT(count >= 0);
    if (count == 0) return a;
    if (count >= 128) return {};
    if (count >= 64) return {a.lo << (count - 64), 0};
    return {(a.hi << count) | (a.lo >> (64 - count)), a.lo << count};
  }
  friend constexpr U128 operator>>(U128 a, int count) {
    CROFT_ASSERT(count >= 0);
    if (count == 0) return a;
    if (count >= 128) return {};
    if (count >= 64) return {0, a.hi >> (count - 64)};
    return {a.hi >> count, (a.lo >> count) | (a.hi << (64 - count))};
  }

  constexpr U128& operator+=(U128 other) { return *this = *this + other; }
  constexpr U128& operator-=(U128 other) { return *this = *this - other; }
  constexpr U128& operator++() { return *this += 1; }
  constexpr U128& operator--() { return *this -= 1; }
};

}  // namespace croft::net

template <>
struct std::hash<croft::net::U128> {
  /// splitmix64 over both halves.
  std::size_t operator()(const croft::net::U128& v) const noexcept {
    constexpr std::uint64_t kStep = 0x9e3779b97f4a7c15;
    return croft::mix_bits((croft::mix_bits(v.hi + kStep) ^ v.lo) + kStep);
  }
};
