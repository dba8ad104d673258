#pragma once

#include <chrono>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <variant>
#include <vector>

#include "base/clock.h"
#include "base/net/address.h"
#include "register/owner.h"
#include "register/snapshot.h"
#include "register/stock.h"
#include "vpc/decide/stock.h"

// ADD and DEL: an address leaves the stock for a pod, and comes back. No decision here waits for the cloud.

namespace croft::core::warm {

/// An attachment that wants an address.
struct Request {
  Owner owner;  ///< the container must be there; network and interface may be empty where an old client asks
  PodIdentity pod;
  std::string netns;
  std::string subnet;  ///< empty: any
  std::map<std::string, std::string> extra{};
  std::set<net::Address> in_use{};    ///< what the host is known to use: not given anew, whatever the records say
  std::chrono::seconds cooldown{30};  ///< of what an older sandbox of the pod lets go
};

/// The address, which is the owner's once the plan is committed.
struct Assigned {
  StockAddress address;
  bool was_held = false;  ///< by the same owner before
};
/// There is none to give. Addresses of the pod's older sandboxes are let go all the same.
struct Empty {
  bool is_probing = false;  ///< some come into the stock soon, or turn out to be somebody's
};
using Answer = std::variant<Assigned, Empty>;

/// Whether it is held by the same pod in a sandbox before this one, for the same interface.
[[nodiscard]] bool is_superseded(const StockAddress& address, const Request& request);

/// Decides an ADD. Asked again by the same owner it gives the same address and writes nothing. It gives the free
/// address that has been so the longest. An older sandbox of the same pod (same UID) lets go of its address for the
/// same interface in the same commit (docs/promises.md#owner), also where there is none to give: else a full node would
/// wait for what its own pods' dead sandboxes have. Only what was verified is given, and only what the cloud delivers
/// to this node's interface.
[[nodiscard]] Step<Answer> plan_assign(const Snapshot& snapshot, const Request& request, const Instant& now);

/// A DEL's wish: an owner's addresses, or one of them as an old client says it.
struct Release {
  Owner owner;        ///< an empty container: whoever holds `address`
  PodIdentity pod{};  ///< what is given has to be that of the holder
  std::optional<net::Address> address{};
  std::chrono::seconds cooldown{30};
};

/// Decides a DEL. Holding nothing is a success; a late one finds another holder and touches nothing. An address whose
/// container is not known goes by the pod's name, and is unsure then. The answer is what was let go.
[[nodiscard]] Step<std::vector<StockAddress>> plan_release(const Snapshot& snapshot, const Release& release,
                                                           const Instant& now);

/// Decides that a client of UK8S' protocol took an address back by itself (DelPodNetworkRecord): the record goes, and
/// nothing is let go. An address that the cloud still has is found as unknown. The answer is what was forgotten.
[[nodiscard]] Step<std::vector<StockAddress>> plan_forget(const Snapshot& snapshot, const Release& release);

/// Decides what an old client tells that it did: this pod has this address. One that the stock has for somebody else is
/// refused (already_exists); one that it does not have is taken in as held, and unsure until the cloud's list has it.
[[nodiscard]] Step<StockAddress> plan_record(const Snapshot& snapshot, const StockAddress& told, const Instant& now);

/// Gives each address that cools since an earlier boot a mark of this one, so that the cooldown can be counted; at most
/// kChangesMax at once. The answer is how many.
[[nodiscard]] Step<std::size_t> plan_mark_clocks(const Snapshot& snapshot, const Instant& now);

}  // namespace croft::core::warm
