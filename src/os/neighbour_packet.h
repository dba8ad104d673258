#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <string>

#include "base/net/address.h"
#include "base/net/mac.h"

// The Ethernet frames by which one asks who has an address, and says so: ARP (RFC 826, RFC 5227) for IPv4, neighbour
// discovery (RFC 4861, RFC 4862) for IPv6. Pure functions of bytes.

namespace croft::os {

/// Names a prober, so that it knows its own solicitations when a network sends them back (RFC 7527 §4.1).
using ProbeNonce = std::array<std::uint8_t, 6>;

/// A frame that asks whether somebody has `address`. IPv4: a broadcast ARP request with sender address 0.0.0.0 (RFC
/// 5227 §2.1.1), which changes nobody's cache. IPv6: a neighbour solicitation from `::` to the solicited-node group,
/// with hop limit 255 and the nonce (RFC 4862 §5.4.2).
[[nodiscard]] std::string probe_frame(const net::Address& address, const net::Mac& own, const ProbeNonce& nonce);

/// A frame that says that `own` has `address`. IPv4: an ARP request whose sender and target address are both it (RFC
/// 5227 §2.3). IPv6: an unsolicited neighbour advertisement to all nodes, with the override flag (RFC 4861 §7.2.6).
[[nodiscard]] std::string announcement_frame(const net::Address& address, const net::Mac& own);

/// A frame's statement about an address.
struct NeighbourSign {
  enum class Kind : std::uint8_t {
    has,   ///< `mac` uses the address
    asks,  ///< `mac` asks whether somebody has it, and means to use it
  };
  Kind kind = Kind::has;
  net::Address address;
  net::Mac mac;
  std::optional<ProbeNonce> nonce;  ///< of `asks`, when it has one of this length
};

/// The signs in a frame: two at most, the first ones set. None in anything else and anything malformed: other
/// protocols, a VLAN tag in the frame, lengths that do not fit, ARP of other hardware or protocol, an all-zero or
/// multicast MAC, IPv6 with another hop limit than 255 or extension headers, a wrong checksum, what RFC 4861 §7.1 tells
/// receivers to drop. An ordinary question for somebody's address (an ARP request or a solicitation with a sender) says
/// nothing of the address it asks for. It says that its sender has the sender's.
[[nodiscard]] std::array<std::optional<NeighbourSign>, 2> signs_in(std::span<const std::uint8_t> frame);

/// ff02::1:ff00:0/104 and the last three bytes of an IPv6 address (RFC 4291 §2.7.1).
[[nodiscard]] net::Address solicited_node_group(const net::Address& address);

/// Nobody's own address is all zero or a group.
[[nodiscard]] bool can_be_somebodys(const net::Address& ip);

}  // namespace croft::os
