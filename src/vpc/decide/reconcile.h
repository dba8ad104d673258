#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/net/address.h"
#include "base/net/prefix.h"
#include "register/owner.h"
#include "register/snapshot.h"
#include "register/warm.h"
#include "vpc/decide/moves.h"
#include "vpc/decide/standing.h"

// What the stock's records, the cloud, the pods and the host say of the same addresses, and what follows where they
// differ (docs/notes/warm-pool.md#reconcile). Nothing is concluded from the word of one source, from one look, or
// from a list that is not known to be whole; nothing is ever given back to the cloud by this. But what the first look
// speaks against is given to no pod until a later one does not (WarmAddress::doubts).

namespace croft::core::warm {

/// A pod of this node, as the cluster says.
struct LivePod {
  PodIdentity pod;
  std::vector<net::Address> addresses;
  bool ended = false;
};

/// One look at the world. Each part was asked for after `begun`, and is whole, or it is absent.
struct Look {
  Instant begun;
  std::optional<std::vector<Given>> cloud;  ///< all addresses of this node's interface
  std::optional<net::Mac> card{};           ///< that interface, where it is known
  std::optional<net::Prefix> range{};       ///< of the node's subnet, where it is known
  /// Of those that are recorded and not among them: the cloud was asked for each by name, and said so again.
  std::set<net::Address> denied{};
  std::optional<std::vector<LivePod>> pods;
  std::optional<std::set<net::Address>> host;  ///< what interfaces and routes of the host use
  /// Of `host`, what only a namespace beside the host's own says.
  std::set<net::Address> said_by_pods{};
  std::size_t namespaces_unheard = 0;  ///< that say they have more than a pod has (take_host)
  /// What nothing is concluded of where there is no record: its record is damaged, or a claim names it, or whether one
  /// does is not known.
  std::set<net::Address> apart{};
  /// The sources that are there and did not answer, each with why: what they would have said is not known.
  std::vector<std::string> silent{};
};

/// So many addresses of the subnet may a pod's namespace say it has: its own, and what it serves beside that. The word
/// of one that says more counts for none of them, or a pod that may change its namespace would stop its node.
inline constexpr std::size_t kSaidByOnePodMax = 8;
/// Writes into the look what the host's own namespace (`own`) and the others say. Without `range` all addresses count
/// that have no meaning of their own, such as loopback and link-local ones.
void take_host(Look& look, std::set<net::Address> own, const std::vector<std::vector<net::Address>>& namespaces,
               const std::optional<net::Prefix>& range);

struct ReconcilePolicy {
  std::chrono::seconds grace{60};         ///< between the first look that shows something and the one that acts by it
  std::chrono::seconds young{120};        ///< a record that was changed more recently than this is nobody's business
  double share_max = 0.5;                 ///< of the held addresses: where more than this seem gone at once they stay
  std::uint32_t share_of_at_least = 5;    ///< but for as few as this
  std::chrono::seconds gone_grace{3600};  ///< for so long, seen to be gone in each look
  /// Where the cloud does not have a larger share than `share_max` of the stock, however few these are, it is the list
  /// that is doubted: their records stay for so long.
  std::chrono::seconds missing_grace{3600};
};

/// What is wrong with an address.
enum class Odd : std::uint8_t {
  pod_gone,           ///< held by a pod that is not there or has another address, and the host does not use it
  used_by_pod,        ///< nobody's in the stock, and a live pod of this node and the host say that they have it
  used_by_host,       ///< the same, and the host alone says so
  not_in_cloud,       ///< in the stock, and the cloud does not have it on this node's interface
  held_not_in_cloud,  ///< the same of one that a pod holds: told, and left to people
  unknown,            ///< the cloud has it on this node's interface, and there is no record
  pod_unrecorded,     ///< the same, and a live pod of this node says that it has it
};
[[nodiscard]] std::string_view name_of(Odd odd);

/// What looks have shown so far: since when, by the clock that nobody sets.
struct Seen {
  std::map<std::pair<net::Address, Odd>, std::chrono::nanoseconds> since_boot;
  /// Those that the cloud has not shown since a look in which it was too many at once.
  std::set<net::Address> too_many_missing{};
};

struct Finding {
  net::Address address;
  Odd odd = Odd::unknown;
  std::string detail;   ///< for people: what says so
  bool is_due = false;  ///< seen for the grace: it is acted on
  /// As the record was, for `plan_act`; absent where there is none.
  std::optional<WarmAddress> record{};
  std::optional<Given> given{};
  std::optional<PodIdentity> pod{};
};

/// What speaks against an address has changed.
struct DoubtChange {
  WarmAddress record;  ///< as it was judged
  std::vector<WarmDoubt> doubts;
  std::string detail;  ///< for people: what speaks against it; empty where nothing does any more
};

struct Judgement {
  std::vector<Finding> findings;
  std::vector<DoubtChange> doubts;     ///< due at once
  Seen seen;                           ///< for the next look
  std::optional<std::string> brake{};  ///< why addresses of pods that seem gone are not let go yet
  /// Why no record goes of what the cloud seems not to have.
  std::optional<std::string> cloud_brake{};
  /// What the cloud lists that is not recorded, as a node has no such addresses, or not so many.
  std::optional<std::string> left_out{};
};
/// As many addresses that nobody here knows are recorded: more than a node has of any sort.
inline constexpr std::size_t kStraysMax = 1024;

/// Whether a live pod of this node says that it has an address.
[[nodiscard]] bool is_used_by_pod(const Look& look, const net::Address& address);

/// `records` and `intents` were read after the look. What was not noted in `standing` before the look has come since:
/// the look does not speak of it. What an open intent may have brought is nobody's finding, unless a live pod has it: a
/// pod has no address before the record that gives it says so.
[[nodiscard]] Judgement judge(const std::vector<WarmAddress>& records, const std::vector<WarmIntent>& intents,
                              const Look& look, const Standing& standing, const Seen& before,
                              const ReconcilePolicy& policy, const Instant& now);

/// Does what follows from a due finding, if the record still is as it was judged: what a gone pod held cools, what the
/// cloud does not have goes from the stock, what is unknown is quarantined, a live pod's address is recorded as held,
/// and what only the host uses is quarantined. False: something has changed, or nothing follows.
[[nodiscard]] Step<bool> plan_act(const Snapshot& snapshot, const Finding& finding, std::chrono::seconds cooldown,
                                  const Instant& now);

/// Writes what speaks against addresses, or does not any more, where the records still are as they were judged. Of one
/// that has changed since (a DEL came) what speaks against the address is added, and nothing taken away: it is no news
/// of the cloud. But not of one that came anew, or leaves. The answer is the records as they are now. At most kMovesMax
/// changes.
[[nodiscard]] Step<Moved> plan_doubts(const Snapshot& snapshot, const std::vector<DoubtChange>& changes);

/// What of the cloud's addresses an intent may have brought: those without a record that no pod and nothing of the host
/// uses, at most as many as were asked for; what is apart only where it was asked for by name for its pod. Empty where
/// a part of the look is absent that could tell: `cloud`, or `host`.
[[nodiscard]] std::vector<Given> brought_by(const WarmIntent& intent, const std::vector<WarmAddress>& records,
                                            const Look& look);

}  // namespace croft::core::warm
