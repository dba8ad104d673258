#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/net/address.h"
#include "base/net/mac.h"
#include "base/result.h"

// The network interfaces of this thread's network namespace, as the kernel's rtnetlink tells of them. Safe to call from
// several threads. Errors of all: those of dump_routes() (os/host_route.h).

namespace croft::os {

struct NetworkInterface {
  int index = 0;
  std::string name;
  std::optional<net::Mac> mac;   ///< absent: it is no Ethernet, or all zero
  bool is_up = false;            ///< IFF_UP
  bool has_carrier = false;      ///< IFF_LOWER_UP: what is sent goes somewhere
  bool is_part = false;          ///< of a bond or bridge, which gets what comes in; not of a VRF
  bool is_upon_another = false;  ///< a VLAN, macvlan or the like of this namespace, which may share the other's MAC
};

/// All of them, 65,536 at most (more: unavailable).
[[nodiscard]] Result<std::vector<NetworkInterface>> list_interfaces(const Clock& clock, Deadline deadline);
/// The one with this MAC. Where several have it, the one that is no part of another and upon no other: the bond, not
/// its ports nor its VLANs. Errors: not_found; refused_by_configuration when that leaves several, naming them.
[[nodiscard]] Result<NetworkInterface> find_interface(const net::Mac& mac, const Clock& clock, Deadline deadline);

struct AddressOnInterface {
  int interface_index = 0;
  net::Address address;
  std::uint8_t prefix_length = 0;
};
/// Every address of every interface, 65,536 at most (more: unavailable). A point-to-point link counts with its own
/// side.
[[nodiscard]] Result<std::vector<AddressOnInterface>> list_addresses(const Clock& clock, Deadline deadline);

/// Every destination that a route leads to by itself (/32, /128), in all tables, 65,536 at most. Those that leave it
/// unreachable count too; broadcast, multicast and anycast addresses and exceptions of a destination (a path's MTU) do
/// not.
[[nodiscard]] Result<std::vector<net::Address>> list_host_routes(const Clock& clock, Deadline deadline);

inline constexpr const char* kNamedNamespaces = "/run/netns";
/// More addresses than these are refused.
inline constexpr std::size_t kHostAddressesMax = 65'536;

/// The addresses that this host uses, by source; each once and in order.
struct HostUse {
  std::vector<net::Address> own;  ///< interfaces and routes of this thread's namespace
  std::vector<std::vector<net::Address>>
      namespaces;  ///< interfaces of each of the others: whoever may change it says this
};
/// Every address, once and in order, that
/// - an interface has in this thread's network namespace, or in one that is kept by a file in `namespaces_directory`
///   (`ip netns` and CNI runtimes keep those of pods there; a missing directory keeps none);
/// - a route of this thread's namespace leads to by itself (list_host_routes()).
///
/// Namespaces are entered by a thread of its own: the caller's thread stays where it is. One that vanishes meanwhile is
/// passed over. Needs CAP_SYS_ADMIN. Errors, by which nothing is known: permission_denied; unavailable, naming the
/// namespace that could not be entered or read, or a file there on which none is mounted as this process sees it (in a
/// container a mount without propagation), or for more than kHostAddressesMax; deadline_exceeded.
[[nodiscard]] Result<HostUse> host_use(const std::string& namespaces_directory, const Clock& clock, Deadline deadline);

}  // namespace croft::os
