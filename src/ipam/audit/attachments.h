#pragma once

#include <chrono>
#include <cstddef>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "base/error.h"
#include "base/net/address.h"
#include "base/result.h"
#include "ipam/decide/assign.h"
#include "ipam/decide/release.h"
#include "register/block.h"
#include "register/node.h"
#include "register/owner.h"
#include "register/pool.h"
#include "register/snapshot.h"

// The register's word on the attachments that a runtime asks about: CNI's CHECK, STATUS and GC.

namespace croft::core::audit {

/// The addresses, ascending, that an owner holds by the blocks which its handle names. Writes nothing.
[[nodiscard]] Step<std::vector<net::Address>> held_addresses(const Snapshot& snapshot, const Owner& owner);

/// CNI CHECK: every address that the runtime believes in (`expected`) and that lies in one of the pools is held, and
/// everything held is believed in. Without expectation at least one address must be held. Error: not_found, naming the
/// address that is missing on one side.
[[nodiscard]] Result<void> check_attachment(const Owner& owner, const std::vector<net::Address>& held,
                                            const std::vector<net::Address>& expected, const std::vector<Pool>& pools);

/// CNI STATUS: what a node asks that has no pod to serve.
struct StatusRequest {
  AffinityOwner node;
  net::PerFamily<bool> wanted{true, false};
  net::PerFamily<std::vector<AskedPool>> pools;
  bool fail_when_full = false;  ///< else what keeps every node from new addresses alike is no fault of this one
};
/// The answer that an ADD of some pod on the node would get: pools for some namespaces alone, or used only by name,
/// count as serving. Writes nothing.
[[nodiscard]] Step<AssignAnswer> try_assign(const Snapshot& snapshot, const StatusRequest& request, const Instant& now);
/// Why the node is not ready by that answer; nothing when it is.
[[nodiscard]] std::optional<Error> unready(const AssignAnswer& answer, bool fail_when_full);

/// The attachments that a GC names as alive, as libcni's GCAttachment: container ID and interface name.
using GcAttachments = std::set<std::pair<std::string, std::string>>;
/// The list is authoritative for this network on this node and nothing else.
struct Authority {
  std::string network;
  std::string node;
};
inline constexpr std::chrono::seconds kCollectAgeMin{60};

struct Garbage {
  std::vector<AddressToRelease> leaked;
  std::size_t kept_young = 0;  ///< held by nobody valid, but younger than kCollectAgeMin
};
/// CNI GC (docs/promises.md#cni-gc): adds what the block has that is held by owners of this network on this node who
/// are not valid. An address younger than kCollectAgeMin, or of unknown age, is kept: its ADD may not have reached the
/// list yet. One whose owner is not certain, or whose node is not recorded, is kept too.
void add_garbage(const Block& block, const Authority& authority, const GcAttachments& valid, const Instant& now,
                 Garbage& garbage);

}  // namespace croft::core::audit
