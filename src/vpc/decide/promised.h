#pragma once

#include <optional>
#include <string>

#include "base/clock.h"
#include "base/net/address.h"
#include "register/owner.h"
#include "register/snapshot.h"
#include "register/stock.h"
#include "vpc/decide/attachments.h"
#include "vpc/decide/supply.h"

// Addresses that a pod keeps by its name, over its ends and over nodes (docs/notes/warm-pool.md#fixed-addresses).
// The promise itself is a VpcIpClaim in the cluster. Here is what the stock knows of it: a record whose holder has such
// a promise (StockAddress::extra, kPromisedKey) does not cool and become anybody's when he lets go; it is quarantined
// for the pod of that name.

namespace croft::core::warm {

/// In the `extra` of who holds one: "namespace/name" of the pod it is promised to.
inline constexpr const char* kPromisedKey = "promisedTo";

/// The same of one whose pod keeps none, as the cluster said when it was given.
inline constexpr const char* kKeepsNoneKey = "keepsNoAddress";

/// "namespace/name"
[[nodiscard]] std::string promised_pod_name(const PodIdentity& pod);
/// StockAddress::why of one that waits for its pod.
[[nodiscard]] std::string waits_for(const std::string& promise);
/// Whether it lies here and waits for some pod.
[[nodiscard]] bool is_kept(const StockAddress& address);
/// Whether it lies here and waits for this pod.
[[nodiscard]] bool is_waiting_for(const StockAddress& address, const PodIdentity& pod);
/// The pod for which an intent asks for its promised address (StockIntent::peer): what it brings is kept for that pod,
/// whoever finds out. Empty: it is for the stock.
[[nodiscard]] std::string promised_pod_name(const StockIntent& intent);
/// As plan_take() takes it in so that it waits for that pod.
[[nodiscard]] Given kept_for(Given given, const std::string& promise);

/// Whether a pod's name is one that a StatefulSet gives: it ends in `-` and a number. Others have no fixed address.
[[nodiscard]] bool has_stable_name(const PodIdentity& pod);
/// The obstacle, where there is one.
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
