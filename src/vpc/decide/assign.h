#pragma once

#include <chrono>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <variant>

#include "base/clock.h"
#include "base/net/address.h"
#include "register/owner.h"
#include "register/snapshot.h"
#include "register/stock.h"
#include "vpc/decide/stock.h"
#include "vpc/decide/supply.h"

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
[[nodiscard]] Step<Changed> plan_release(const Snapshot& snapshot, const Release& release, const Instant& now);

/// Decides that a client of UK8S' protocol took an address back by itself (DelPodNetworkRecord): the record goes, and
/// nothing is let go. An address that the cloud still has is found as unknown. The answer is what was forgotten.
[[nodiscard]] Step<Changed> plan_forget(const Snapshot& snapshot, const Release& release);

/// Decides what an old client tells that it did: this pod has this address. One that the stock has for somebody else is
/// refused (already_exists); one that it does not have is taken in as held, and unsure until the cloud's list has it.
[[nodiscard]] Step<StockAddress> plan_record(const Snapshot& snapshot, const StockAddress& told, const Instant& now);

/// Gives each address that cools since an earlier boot a mark of this one, so that the cooldown can be counted; at most
/// kChangesMax at once.
[[nodiscard]] Step<Changed> plan_mark_clocks(const Snapshot& snapshot, const Instant& now);

// ---- addresses that a pod keeps by its name

// Over its ends and over nodes (docs/notes/warm-pool.md#fixed-addresses). The promise itself is a VpcIpClaim in the
// cluster. Here is what the stock knows of it: a record whose holder has such a promise (StockAddress::extra,
// kPromisedKey) does not cool and become anybody's when he lets go; it is quarantined for the pod of that name.

/// In the `extra` of who holds one: "namespace/name" of the pod it is promised to.
inline constexpr const char* kPromisedKey = "promisedTo";

/// The same of one whose pod keeps none, as the cluster said when it was given.
inline constexpr const char* kKeepsNoneKey = "keepsNoAddress";

/// "namespace/name"
[[nodiscard]] std::string promised_pod_name(const PodIdentity& pod);
/// StockAddress::why of one that waits for its pod, and Given::unfit of one that shall.
[[nodiscard]] std::string waits_for(const std::string& promise);
/// Whether it lies here and waits for some pod.
[[nodiscard]] bool is_kept(const StockAddress& address);
/// Whether it lies here and waits for this pod.
[[nodiscard]] bool is_waiting_for(const StockAddress& address, const PodIdentity& pod);
/// The pod for which an intent asks for its promised address (StockIntent::peer): what it brings is kept for that pod,
/// whoever finds out. Empty: it is for the stock.
[[nodiscard]] std::string promised_pod_name(const StockIntent& intent);

/// Whether a pod's name is one that a StatefulSet gives: it ends in `-` and a number. Others have no fixed address.
[[nodiscard]] bool has_stable_name(const PodIdentity& pod);
/// The StatefulSet of such a name; empty: the name is another one.
[[nodiscard]] std::string stateful_set_of(const PodIdentity& pod);

/// Why a record that is here does not go to the pod of `request`, to which its address is promised; nothing: it may.
/// Errors: conflict while somebody else has it, it waits for another pod or it is on its way elsewhere;
/// refused_for_safety where somebody answers for it on the wire.
[[nodiscard]] std::optional<Error> obstacle_of(const StockAddress& known, const Request& request);

/// Gives the address that is promised to `request.pod` to the request's owner, now that the cloud delivers it here
/// (`given`); the intent goes. Errors: conflict while somebody else has it or it is on its way elsewhere;
/// refused_for_safety where somebody answers for it on the wire; corrupt where its record is damaged.
[[nodiscard]] Step<Assigned> plan_give_promised(const Snapshot& snapshot, const std::string& intent_id,
                                                const Given& given, const Request& request, const Instant& now);

}  // namespace croft::core::warm
