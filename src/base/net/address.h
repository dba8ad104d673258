#pragma once

#include <compare>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>

#include "base/assert.h"
#include "base/net/address_scan.h"
#include "base/net/family.h"
#include "base/net/u128.h"
#include "base/result.h"

namespace croft::net {

/// One IP address without zone: an immutable value of 24 bytes, trivially copyable, fit for a key. Ordered: invalid,
/// then IPv4, then IPv6, each by value. A default-constructed Address is invalid; it equals neither 0.0.0.0 nor ::.
/// An IPv4-mapped IPv6 address (RFC 4291 §2.5.5.2) is an IPv6 address, different from the IPv4 one, until `unmapped`.
class Address {
 public:
  constexpr Address() = default;

  /// The 32 bits in host order: v4(0x0a000001) is 10.0.0.1.
  [[nodiscard]] static constexpr Address v4(std::uint32_t value) { return {Family::v4, value}; }
  [[nodiscard]] static constexpr Address v6(U128 value) { return {Family::v6, value}; }
  /// `value` must fit the family.
  [[nodiscard]] static constexpr Address from(Family family, U128 value) {
    CROFT_ASSERT(value <= U128::low_bits(bit_length(family)));
    return {family, value};
  }

  /// Reads dotted quad or the text forms of RFC 4291 §2.2, an embedded dotted quad included. It is as strict as Go's
  /// netip.ParseAddr: octets without leading zeros, groups of 1 to 4 hex digits, nothing before or after. Unlike there,
  /// a zone ("fe80::1%eth0") is refused: a zone has no meaning off its host. Error: invalid_argument, message `invalid
  /// IP address "<text>": <reason> (at "<rest where reading stopped>")`, texts as base/net/echo.h shows them.
  [[nodiscard]] static Result<Address> parse(std::string_view text);

  [[nodiscard]] constexpr bool is_valid() const { return family_ != Family{}; }
  [[nodiscard]] constexpr bool is_v4() const { return family_ == Family::v4; }
  [[nodiscard]] constexpr bool is_v6() const { return family_ == Family::v6; }

  /// The address must be valid.
  [[nodiscard]] constexpr Family family() const {
    CROFT_ASSERT(is_valid());
    return family_;
  }
  /// The address as a number; IPv4 in the low 32 bits; 0 when invalid.
  [[nodiscard]] constexpr U128 value() const { return value_; }

  /// True inside ::ffff:0:0/96.
  [[nodiscard]] constexpr bool is_v4_mapped() const { return is_v6() && (value_ >> 32) == U128{0xffff}; }
  /// The IPv4 address inside an IPv4-mapped one; every other address unchanged.
  [[nodiscard]] constexpr Address unmapped() const {
    return is_v4_mapped() ? v4(static_cast<std::uint32_t>(value_.lo & 0xffff'ffffU)) : *this;
  }

  /// The neighbour; nullopt at the end of the family. The address must be valid.
  [[nodiscard]] constexpr std::optional<Address> next() const { return offset_by(1); }
  [[nodiscard]] constexpr std::optional<Address> previous() const {
    CROFT_ASSERT(is_valid());
    if (value_ == U128{}) return std::nullopt;
    return Address{family_, value_ - 1};
  }
  /// The address `offset` places up; nullopt past the end of the family. The address must be valid.
  [[nodiscard]] constexpr std::optional<Address> offset_by(U128 offset) const {
    if (offset > U128::low_bits(bit_length(family())) - value_) return std::nullopt;
    return Address{family_, value_ + offset};
  }

  /// Dotted quad, or RFC 5952: lower case, no leading zeros, the longest run of two or more zero groups (the first of
  /// equals) as `::`. Never an embedded dotted quad, also for IPv4-mapped addresses ("::ffff:a01:203"): RFC 5952 §5
  /// leaves that open, and one form is what keys need. "invalid" for the invalid address. parse reads it back.
  [[nodiscard]] std::string to_string() const;

  friend constexpr auto operator<=>(const Address&, const Address&) = default;

 private:
  constexpr Address(Family family, U128 value) : family_(family), value_(value) {}

  Family family_{};
  U128 value_{};
};

/// The texts that Address::parse accepts, without the error text; usable in constant expressions.
[[nodiscard]] constexpr std::optional<Address> parse_address(std::string_view text) {
  const AddressScan scan = scan_address(text);
  return scan.ok() ? std::optional(Address::from(scan.family, scan.value)) : std::nullopt;
}

namespace literals {

/// "10.0.0.1"_ip; a text that is no address does not compile.
consteval Address operator""_ip(const char* text, std::size_t size) {
  return parse_address(std::string_view(text, size)).value();
}

}  // namespace literals
}  // namespace croft::net

template <>
struct std::hash<croft::net::Address> {
  std::size_t operator()(const croft::net::Address& a) const noexcept {
    const std::size_t family = a.is_valid() ? static_cast<std::size_t>(a.family()) : 0;
    return std::hash<croft::net::U128>{}(a.value()) + family;
  }
};
