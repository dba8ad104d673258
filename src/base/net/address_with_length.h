#pragma once

#include <compare>
#include <cstddef>
#include <functional>
#include <string>
#include <string_view>

#include "base/net/address.h"
#include "base/net/prefix.h"
#include "base/result.h"

namespace croft::net {

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

}  // namespace croft::net

template <>
struct std::hash<croft::net::AddressWithLength> {
  std::size_t operator()(const croft::net::AddressWithLength& a) const noexcept {
    return std::hash<croft::net::Address>{}(a.address) * 131 + static_cast<std::size_t>(a.length);
  }
};
