#pragma once

// rapidcheck generators for the values of net. For tests only: nothing else may include this.

#include <rapidcheck.h>

#include <cstdint>
#include <ostream>

#include "base/net/address.h"
#include "base/net/prefix.h"

namespace croft::net {

inline void showValue(const U128& v, std::ostream& out) { out << std::hex << v.hi << ":" << v.lo << std::dec; }
inline void showValue(const Address& a, std::ostream& out) { out << a.to_string(); }
inline void showValue(const Prefix& p, std::ostream& out) { out << p.to_string(); }

/// The numbers where carries and shifts go wrong (0, powers of two and their neighbours, all ones), and any others.
[[nodiscard]] inline rc::Gen<U128> any_u128() {
  const auto near_power =
      rc::gen::apply([](int bit, std::uint64_t offset) { return (U128{1} << bit) + U128{offset} - U128{1}; },
                     rc::gen::inRange(0, 129), rc::gen::inRange<std::uint64_t>(0, 3));
  const auto any = rc::gen::apply(
      [](std::uint64_t hi, std::uint64_t lo) {
        return U128{hi, lo};
      },
      rc::gen::arbitrary<std::uint64_t>(), rc::gen::arbitrary<std::uint64_t>());
  return rc::gen::oneOf(near_power, any);
}

[[nodiscard]] inline rc::Gen<Family> any_family() { return rc::gen::element(Family::v4, Family::v6); }

[[nodiscard]] inline rc::Gen<Address> any_address_of(Family family) {
  return rc::gen::map(any_u128(),
                      [family](U128 v) { return Address::from(family, v & U128::low_bits(bit_length(family))); });
}

[[nodiscard]] inline rc::Gen<Address> any_address() {
  return rc::gen::mapcat(any_family(), [](Family family) { return any_address_of(family); });
}

[[nodiscard]] inline rc::Gen<Prefix> any_prefix_of(Family family) {
  return rc::gen::apply([](Address a, int length) { return Prefix::containing(a, length); }, any_address_of(family),
                        rc::gen::inRange(0, bit_length(family) + 1));
}

[[nodiscard]] inline rc::Gen<Prefix> any_prefix() {
  return rc::gen::mapcat(any_family(), [](Family family) { return any_prefix_of(family); });
}

}  // namespace croft::net

template <>
struct rc::Arbitrary<croft::net::U128> {
  static Gen<croft::net::U128> arbitrary() { return croft::net::any_u128(); }
};
template <>
struct rc::Arbitrary<croft::net::Address> {
  static Gen<croft::net::Address> arbitrary() { return croft::net::any_address(); }
};
template <>
struct rc::Arbitrary<croft::net::Prefix> {
  static Gen<croft::net::Prefix> arbitrary() { return croft::net::any_prefix(); }
};
