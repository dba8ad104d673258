#pragma once

#include <compare>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <limits>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "base/assert.h"
#include "base/net/address.h"
#include "base/result.h"
#include "base/strong.h"

namespace croft::net {

/// A CIDR prefix: all addresses of one family that share their first `length` bits. Always masked (host bits are zero),
/// so that equal sets are equal values and a Prefix is fit for a key; what keeps host bits is AddressWithLength.
/// An immutable value of 32 bytes. Ordered by first address (IPv4 before IPv6), then the shorter length. A
/// default-constructed Prefix is invalid, sorts first, contains nothing and overlaps nothing.
class Prefix {
 public:
  constexpr Prefix() = default;

  /// Reads "<address>/<length>", address as Address::parse reads it, length in decimal without sign or leading zero.
  /// Errors, all invalid_argument with the text and the reason: no slash, a bad address, a bad length, a length above
  /// that of the family, host bits set (the message then names the network address).
  [[nodiscard]] static Result<Prefix> parse(std::string_view text);

  /// The prefix of this length that contains a valid address: host bits are dropped. `length` must be 0 to
  /// bit_length(family).
  [[nodiscard]] static constexpr Prefix containing(Address address, int length) {
    CROFT_ASSERT(length >= 0 && length <= bit_length(address.family()));
    return {Address::from(address.family(), address.value() & ~host_mask(address.family(), length)), length};
  }

  /// nullopt when host bits are set, the length is out of range or the address is invalid.
  [[nodiscard]] static constexpr std::optional<Prefix> from(Address address, int length) {
    if (!address.is_valid() || length < 0 || length > bit_length(address.family())) return std::nullopt;
    const Prefix prefix = containing(address, length);
    return prefix.address_ == address ? std::optional(prefix) : std::nullopt;
  }

  [[nodiscard]] constexpr bool is_valid() const { return address_.is_valid(); }
  /// The network address; the invalid address when invalid.
  [[nodiscard]] constexpr Address address() const { return address_; }
  /// In bits; 0 when invalid.
  [[nodiscard]] constexpr int length() const { return length_; }
  /// The prefix must be valid; so for all below but the tests of containment.
  [[nodiscard]] constexpr Family family() const { return address_.family(); }

  [[nodiscard]] constexpr Address first() const { return address_; }
  [[nodiscard]] constexpr Address last() const { return Address::from(family(), address_.value() | last_offset()); }
  /// One less than the number of addresses, because ::/0 has 2^128 of them.
  [[nodiscard]] constexpr U128 last_offset() const { return host_mask(family(), length_); }

  [[nodiscard]] constexpr bool contains(Address address) const {
    if (!is_valid() || !address.is_valid() || address.family() != family()) return false;
    return (address.value() & ~last_offset()) == address_.value();
  }
  /// True also for the prefix itself.
  [[nodiscard]] constexpr bool contains(const Prefix& other) const {
    return other.length_ >= length_ && contains(other.address_);
  }
  /// Two prefixes are apart or one contains the other.
  [[nodiscard]] constexpr bool overlaps(const Prefix& other) const { return contains(other) || other.contains(*this); }

  /// The number of prefixes of `length` inside this one, as a power of two. `length` must be this length or longer.
  [[nodiscard]] constexpr int subprefix_count_log2(int length) const {
    CROFT_ASSERT(length >= length_ && length <= bit_length(family()));
    return length - length_;
  }
  /// The prefix number `index`, counted from 0, among those of `length` inside this one. `index` must be below their
  /// number, of which 2^128 - 1 is the largest: ::/0 has 2^128 prefixes of /128.
  [[nodiscard]] constexpr Prefix subprefix(U128 index, int length) const {
    CROFT_ASSERT(index <= U128::low_bits(subprefix_count_log2(length)));
    const U128 offset = index << (bit_length(family()) - length);
    return {Address::from(family(), address_.value() | offset), length};
  }
  /// The inverse: subprefix(subprefix_index(sub), sub.length()) == sub. `sub` must lie inside.
  [[nodiscard]] constexpr U128 subprefix_index(const Prefix& sub) const {
    CROFT_ASSERT(contains(sub));
    return (sub.address_.value() - address_.value()) >> (bit_length(family()) - sub.length_);
  }

  /// "<address>/<length>" with the address as Address prints it; "invalid" when invalid.
  [[nodiscard]] std::string to_string() const;

  friend constexpr auto operator<=>(const Prefix&, const Prefix&) = default;

 private:
  constexpr Prefix(Address address, int length) : address_(address), length_(static_cast<std::uint8_t>(length)) {}

  [[nodiscard]] static constexpr U128 host_mask(Family family, int length) {
    return U128::low_bits(bit_length(family) - length);
  }

  Address address_;
  std::uint8_t length_ = 0;
};

/// The decimal length behind the slash: digits only, no leading zero, at most 128; nullopt for anything else. Whether
/// it suits a family is the caller's question.
[[nodiscard]] constexpr std::optional<int> parse_prefix_length(std::string_view text) {
  if (text.empty() || text.size() > 3 || (text.size() > 1 && text.front() == '0')) return std::nullopt;
  int value = 0;
  for (const char c : text) {
    if (c < '0' || c > '9') return std::nullopt;
    value = value * 10 + (c - '0');
  }
  return value <= bit_length(Family::v6) ? std::optional(value) : std::nullopt;
}

/// The texts that Prefix::parse accepts, without the error text; usable in constant expressions.
[[nodiscard]] constexpr std::optional<Prefix> parse_prefix(std::string_view text) {
  const std::size_t slash = text.rfind('/');
  if (slash == text.npos) return std::nullopt;
  const auto address = parse_address(text.substr(0, slash));
  const auto length = parse_prefix_length(text.substr(slash + 1));
  return address && length ? Prefix::from(*address, *length) : std::nullopt;
}

namespace literals {

/// "10.0.0.0/8"_prefix; a text that is no prefix, or has host bits set, does not compile.
consteval Prefix operator""_prefix(const char* text, std::size_t size) {
  return parse_prefix(std::string_view(text, size)).value();
}

}  // namespace literals

/// "10.0.0.0/24, fd00::/64", in their order; empty for none.
[[nodiscard]] std::string joined(std::span<const Prefix> prefixes, std::string_view separator = ", ");

/// The place of an address in its prefix, counted from 0 at the network address.
using Ordinal = Strong<struct OrdinalTag, std::uint32_t>;

/// nullopt when the address is outside the prefix, or inside but 2^32 or more places up.
[[nodiscard]] constexpr std::optional<Ordinal> ordinal_of(const Prefix& prefix, const Address& address) {
  if (!prefix.contains(address)) return std::nullopt;
  const U128 offset = address.value() - prefix.address().value();
  if (offset > U128{std::numeric_limits<std::uint32_t>::max()}) return std::nullopt;
  return Ordinal{static_cast<std::uint32_t>(offset.lo)};
}

/// The inverse. The ordinal must lie inside the prefix.
[[nodiscard]] constexpr Address address_at(const Prefix& prefix, Ordinal ordinal) {
  CROFT_ASSERT(U128{ordinal.value} <= prefix.last_offset());
  return Address::from(prefix.family(), prefix.address().value() | U128{ordinal.value});
}

/// An interface's address and the length of the network it is in, host bits kept: what CNI prints ("10.1.2.3/24").
/// For a set of addresses, and for a key, take `network()`. Default-constructed: the invalid address.
struct AddressWithLength {
  Address address;
  int length = 0;  ///< bits, 0 to bit_length of the address's family

  /// As Prefix::parse, with host bits allowed. Errors: invalid_argument with the text and the reason.
  [[nodiscard]] static Result<AddressWithLength> parse(std::string_view text);

  /// "<address>/<length>"; "invalid" when the address is invalid.
  [[nodiscard]] std::string to_string() const;

  /// The prefix around the address, which must be valid with a length in range.
  [[nodiscard]] constexpr Prefix network() const { return Prefix::containing(address, length); }

  friend constexpr auto operator<=>(const AddressWithLength&, const AddressWithLength&) = default;
};

// The reader of what others have written, as Kubernetes' own parsers read it: netutils.ParseIPSloppy and
// ParseCIDRSloppy, which are net.ParseIP and net.ParseCIDR of Go 1.16. Zeros in front are decimal zeros, an IPv4-mapped
// address or prefix is the IPv4 one. New input and what Croft writes is read strictly
// (Address::parse, Prefix::parse).

/// nullopt for a text that is no address there either: blanks around it, a zone, a length.
[[nodiscard]] std::optional<Address> parse_address_leniently(std::string_view text);

/// Host bits are dropped (docs/notes/node-ranges.md#said). nullopt for a text that is no prefix there either.
[[nodiscard]] std::optional<Prefix> parse_prefix_leniently(std::string_view text);

/// As net.ParseCIDR of Go 1.17 and newer, by which Calico reads its records: only the length may have zeros in front.
[[nodiscard]] std::optional<Prefix> parse_prefix_as_go(std::string_view text);

}  // namespace croft::net

template <>
struct std::hash<croft::net::Prefix> {
  std::size_t operator()(const croft::net::Prefix& p) const noexcept {
    return std::hash<croft::net::Address>{}(p.address()) * 131 + static_cast<std::size_t>(p.length());
  }
};
