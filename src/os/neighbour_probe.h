#pragma once

#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/result.h"
#include "os/host_route.h"

namespace croft::os {

/// RFC 5227 §1.1's constants, for both families: a window takes 7 s at most.
struct ProbeTiming {
  std::chrono::nanoseconds probe_wait =
      std::chrono::seconds(1);  ///< the first probe of an address: within it, by chance
  int probe_num = 3;
  std::chrono::nanoseconds probe_min = std::chrono::seconds(1);      ///< from one probe to the next, by chance
  std::chrono::nanoseconds probe_max = std::chrono::seconds(2);      ///< not below probe_min
  std::chrono::nanoseconds announce_wait = std::chrono::seconds(2);  ///< after the last probe nobody answers later
  int announce_num = 2;
  std::chrono::nanoseconds announce_interval = std::chrono::seconds(2);
};

/// More at once are refused.
inline constexpr std::size_t kProbedMax = 4096;

/// Asks the Ethernet of an interface whether somebody has any of these addresses, all in one window. It follows RFC
/// 5227 §2.1 for IPv4 and RFC 4862 §5.4 for IPv6, whose solicitations go out as often as the ARP probes. Answers in the
/// order of `addresses`: the MAC of who has it or means to have it too, the first one seen; absent: nobody said a word.
/// The host's own addresses are not seen here. Ends early when somebody has each of them. Two who ask at the same time
/// both hear of it, unless one of them has only just begun when the other has asked for the last time. Then the one
/// that began first does. Never does none of the two.
///
/// Safe to call from several threads, each of which asks for itself. Needs CAP_NET_RAW. `interface_name` is looked up
/// in the calling thread's network namespace, and the sockets stay with that very interface.
///
/// Errors, by which nothing is known of any address: invalid_argument (more than kProbedMax, an address that none can
/// have, an interface that is no Ethernet or a port of a bridge or bond); not_found (the interface); permission_denied
/// with the remedy; unavailable (the interface is down, has no carrier, went away or changed its MAC meanwhile; the
/// kernel dropped packets because too many came); deadline_exceeded (at once when the window would not fit).
[[nodiscard]] Result<std::vector<std::optional<MacBytes>>> probe_neighbours(const std::string& interface_name,
                                                                            std::span<const IpBytes> addresses,
                                                                            const ProbeTiming& timing,
                                                                            const Clock& clock, Random& random,
                                                                            Deadline deadline);

/// Says announce_num times that this host has them (RFC 5227 §2.3; unsolicited neighbour advertisements, RFC 4861
/// §7.2.6). Takes (announce_num - 1) * announce_interval. Errors: as above; then some were maybe not said.
[[nodiscard]] Result<void> announce_neighbours(const std::string& interface_name, std::span<const IpBytes> addresses,
                                               const ProbeTiming& timing, const Clock& clock, Deadline deadline);

// The Ethernet frames by which one asks who has an address, and says so: ARP (RFC 826, RFC 5227) for IPv4, neighbour
// discovery (RFC 4861, RFC 4862) for IPv6. Pure functions of bytes.

/// Names a prober, so that it knows its own solicitations when a network sends them back (RFC 7527 §4.1).
using ProbeNonce = std::array<std::uint8_t, 6>;

/// A frame that asks whether somebody has `address`. IPv4: a broadcast ARP request with sender address 0.0.0.0 (RFC
/// 5227 §2.1.1), which changes nobody's cache. IPv6: a neighbour solicitation from `::` to the solicited-node group,
/// with hop limit 255 and the nonce (RFC 4862 §5.4.2).
[[nodiscard]] std::string probe_frame(const IpBytes& address, const MacBytes& own, const ProbeNonce& nonce);

/// A frame that says that `own` has `address`. IPv4: an ARP request whose sender and target address are both it (RFC
/// 5227 §2.3). IPv6: an unsolicited neighbour advertisement to all nodes, with the override flag (RFC 4861 §7.2.6).
[[nodiscard]] std::string announcement_frame(const IpBytes& address, const MacBytes& own);

/// A frame's statement about an address.
struct NeighbourSign {
  enum class Kind : std::uint8_t {
    has,   ///< `mac` uses the address
    asks,  ///< `mac` asks whether somebody has it, and means to use it
  };
  Kind kind = Kind::has;
  IpBytes address;
  MacBytes mac{};
  std::optional<ProbeNonce> nonce;  ///< of `asks`, when it has one of this length
};

/// The signs in a frame: two at most, the first ones set. None in anything else and anything malformed: other
/// protocols, a VLAN tag in the frame, lengths that do not fit, ARP of other hardware or protocol, an all-zero or
/// multicast MAC, IPv6 with another hop limit than 255 or extension headers, a wrong checksum, what RFC 4861 §7.1 tells
/// receivers to drop. An ordinary question for somebody's address (an ARP request or a solicitation with a sender) says
/// nothing of the address it asks for. It says that its sender has the sender's.
[[nodiscard]] std::array<std::optional<NeighbourSign>, 2> signs_in(std::span<const std::uint8_t> frame);

/// 33:33:ff and the last three bytes of an IPv6 address: where its solicited-node group is sent to (RFC 2464 §7).
[[nodiscard]] MacBytes solicited_node_mac(const IpBytes& address);
/// ff02::1:ff00:0/104 and the last three bytes of an IPv6 address (RFC 4291 §2.7.1).
[[nodiscard]] IpBytes solicited_node_group(const IpBytes& address);

}  // namespace croft::os
