#pragma once

#include <string>
#include <vector>

#include "base/clock.h"
#include "base/result.h"
#include "os/ip_bytes.h"

namespace croft::os {

inline constexpr const char* kNamedNamespaces = "/run/netns";
/// More addresses than these are refused.
inline constexpr std::size_t kHostAddressesMax = 65'536;

/// The addresses that this host uses, by source; each once and in order.
struct HostUse {
  std::vector<IpBytes> own;                      ///< interfaces and routes of this thread's namespace
  std::vector<std::vector<IpBytes>> namespaces;  ///< interfaces of each of the others: whoever may change it says this
};
/// Every address, once and in order, that
/// - an interface has in this thread's network namespace, or in one that is kept by a file in `namespaces_directory`
///   (`ip netns` and CNI runtimes keep those of pods there; a missing directory keeps none);
/// - a route of this thread's namespace leads to by itself (os/interfaces.h, list_host_routes()).
///
/// Namespaces are entered by a thread of its own: the caller's thread stays where it is. One that vanishes meanwhile is
/// passed over. Needs CAP_SYS_ADMIN. Errors, by which nothing is known: permission_denied; unavailable, naming the
/// namespace that could not be entered or read, or a file there on which none is mounted as this process sees it (in a
/// container a mount without propagation), or for more than kHostAddressesMax; deadline_exceeded.
[[nodiscard]] Result<HostUse> host_use(const std::string& namespaces_directory, const Clock& clock, Deadline deadline);

}  // namespace croft::os
