#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>

#include "base/clock.h"
#include "base/net/address.h"
#include "base/result.h"

namespace croft::os {

/// Asks the kernel's rtnetlink for all objects of a kind (rtnetlink(7)), in the network namespace of the calling
/// thread.
///
/// `request` is RTM_GETLINK, RTM_GETADDR or RTM_GETROUTE, `family` AF_UNSPEC, AF_INET or AF_INET6. `take` gets the
/// payload of each answer: the kind's own header and the attributes behind it; it stops the dump by an error. `begin`
/// is called before the first one, and again when the kernel says that its answers are not of one moment
/// (NLM_F_DUMP_INTR) or that it lost some. Routes taken before are void then. Page by page: no more than 64 KiB are
/// held here. Errors: those of `take`; deadline_exceeded; unavailable when the kernel's tables change faster than they
/// can be read, or the kernel refuses.
[[nodiscard]] Result<void> dump_routes(std::uint16_t request, std::uint8_t family, const Clock& clock,
                                       Deadline deadline, const std::function<void()>& begin,
                                       const std::function<Result<void>(std::span<const std::uint8_t> payload)>& take);

/// Calls `f` with each attribute behind a header of `header_bytes`, nested ones as a whole. Stops at what does not fit.
void for_each_attribute(std::span<const std::uint8_t> payload, std::size_t header_bytes,
                        const std::function<void(std::uint16_t type, std::span<const std::uint8_t> value)>& f);

/// The address in an attribute of an object of this family; nothing when it is none.
[[nodiscard]] std::optional<net::Address> ip_of(std::uint8_t family, std::span<const std::uint8_t> value);

/// A route of the kernel's, as far as it says who is behind it.
struct Route {
  enum class Type : std::uint8_t { unicast, other } type = Type::other;
  net::Address to;
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
[[nodiscard]] bool shows_life(const Route& route, const net::Address& address);

/// The device of such a route in the network namespace of the calling thread, as the kernel's tables have it
/// (RTM_F_FIB_MATCH); nothing when there is none. One request and one answer, of which the kernel is done with the
/// first before the second is waited for, and the name of the device; needs no rights. Errors: unavailable,
/// permission_denied, deadline_exceeded.
[[nodiscard]] Result<std::optional<std::string>> device_of_living(const net::Address& address, const Clock& clock,
                                                                  Deadline deadline);

}  // namespace croft::os
