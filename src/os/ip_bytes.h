#pragma once

#include <array>
#include <compare>
#include <cstdint>

namespace croft::os {

/// An address as packets and the kernel carry it: network order, IPv4 in the first four bytes and zeros behind. This
/// folder knows no more of addresses; net::Address is the value that everybody else uses.
struct IpBytes {
  bool is_v6 = false;
  std::array<std::uint8_t, 16> bytes{};
  friend auto operator<=>(const IpBytes&, const IpBytes&) = default;
};

/// A 48-bit Ethernet address.
using MacBytes = std::array<std::uint8_t, 6>;

}  // namespace croft::os
