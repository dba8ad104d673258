#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>

#include "base/clock.h"
#include "base/result.h"
#include "os/ip_bytes.h"

namespace croft::os {

/// A route of the kernel's, as far as it says who is behind it.
struct Route {
  enum class Type : std::uint8_t { unicast, other } type = Type::other;
  IpBytes to;
  std::uint8_t length = 0;
  bool is_of_a_path = false;  ///< no route of the tables, but what the kernel remembers of one destination
  bool has_gateway = false;   ///< somebody on the way, of whatever family
  bool has_several_ways = false;
  int device = 0;  ///< 0: none
  /// The maker of the route (rtm_protocol): the kernel, or a message of the network (a redirect, an advertisement,
  /// DHCP), says nothing of a pod. Plugins' are `boot`, Calico's `boot` or 80.
  std::uint8_t protocol = 0;
};
/// Out of an rtmsg and the attributes behind it; nothing when that is none.
[[nodiscard]] std::optional<Route> parse_route(std::span<const std::uint8_t> payload);

/// Whether a route shows that somebody behind a device of this host lives with the address. It leads to this very
/// address (/32, /128) over one device without a gateway, as `ptp`'s and Calico's plugin make one for each pod. A
/// destination behind a gateway lives elsewhere, lo leads to nobody, and a prefix says nothing of one address. A route
/// of a neighbour's router advertisement is its sender's word. The host's own addresses are no pod's: whether a pool
/// may have these is asked when it is made.
[[nodiscard]] bool shows_life(const Route& route, const IpBytes& address);

/// The device of such a route in the network namespace of the calling thread; nothing when there is none. One request
/// and, where there is one, its name. Errors: those of ask_for_route() (os/route_netlink.h).
[[nodiscard]] Result<std::optional<std::string>> device_of_living(const IpBytes& address, const Clock& clock,
                                                                  Deadline deadline);

}  // namespace croft::os
