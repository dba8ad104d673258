#pragma once

#include <chrono>
#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/net/address.h"
#include "base/net/mac.h"
#include "base/result.h"

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
[[nodiscard]] Result<std::vector<std::optional<net::Mac>>> probe_neighbours(const std::string& interface_name,
                                                                            std::span<const net::Address> addresses,
                                                                            const ProbeTiming& timing,
                                                                            const Clock& clock, Random& random,
                                                                            Deadline deadline);

/// Says announce_num times that this host has them (RFC 5227 §2.3; unsolicited neighbour advertisements, RFC 4861
/// §7.2.6). Takes (announce_num - 1) * announce_interval. Errors: as above; then some were maybe not said.
[[nodiscard]] Result<void> announce_neighbours(const std::string& interface_name,
                                               std::span<const net::Address> addresses, const ProbeTiming& timing,
                                               const Clock& clock, Deadline deadline);

}  // namespace croft::os
