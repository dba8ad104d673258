#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "base/net/address.h"
#include "base/net/prefix.h"
#include "base/sightings.h"
#include "register/owner.h"
#include "register/snapshot.h"
#include "register/stock.h"
#include "vpc/decide/supply.h"

// The one repair of a stock: what its records, the cloud, the pods and the host say of the same addresses, and what
// follows (docs/notes/warm-pool.md#reconcile). Ours is what the cloud says; held is what records or living pods
// say; what is not agreed is unsure (StockAddress::doubts, or quarantined) and given to nobody. Nothing is concluded
// from the word of one source, from one look, or from a list that is not known to be whole.

namespace croft::core::warm {

/// A pod of this node, as the cluster says.
struct LivePod {
  PodIdentity pod;
  std::vector<net::Address> addresses;  ///< as its status says; empty: none yet
  bool ended = false;                   ///< Succeeded or Failed: it needs no address
};

/// One look at the world. Each part was asked for after `begun`, and is whole, or it is absent.
struct Look {
  Instant begun;
  std::optional<std::vector<cloud::CloudAddress>> cloud;  ///< all addresses of this node's interface
  std::optional<cloud::Interface> card{};                 ///< that interface, where it is known
  /// Recorded addresses that are not among them: the cloud was asked for each by name, and said so again.
  std::set<net::Address> denied{};
  std::optional<std::vector<LivePod>> pods;
  std::optional<std::set<net::Address>> host;  ///< what interfaces and routes of the host use
  /// The part of `host` that only a namespace beside the host's own says.
  std::set<net::Address> said_by_pods{};
  /// Addresses without a record of which nothing is concluded: the record is damaged, or a claim names it, or whether
  /// one does is not known.
  std::set<net::Address> apart{};
  /// The first look at these records: what was lent or given back since only the cloud knows, however much that is.
  bool is_first = false;
  /// The sources that are there and did not answer, each with why: what they would have said is not known.
  std::vector<std::string> silent{};
};

/// So many addresses of the subnet may a pod's namespace say it has: its own, and what it serves beside that. The word
/// of one that says more counts for none of them, or a pod that may change its namespace would stop its node.
inline constexpr std::size_t kSaidByOnePodMax = 8;
/// Writes into the look what the host's own namespace (`own`) and the others say. It counts the subnet's addresses,
/// where its `range` is known.
void take_host(Look& look, std::set<net::Address> own, const std::vector<std::vector<net::Address>>& namespaces,
               const std::optional<net::Prefix>& range);

struct ReconcilePolicy {
  std::chrono::seconds grace{60};     ///< between the first look that shows something and the one that acts by it
  std::chrono::seconds cooldown{30};  ///< of what a gone pod held
  /// A record that was changed more recently than this is nobody's business.
  [[nodiscard]] std::chrono::seconds young() const { return 2 * grace; }
};

/// One address is to be recorded otherwise.
struct Correction {
  enum class What : std::uint8_t {
    unsure,     ///< what speaks against giving it to a pod has changed
    follows,    ///< it lies on this node's interface, and was recorded of another one
    let_go,     ///< its pod is gone: it cools
    held,       ///< a living pod has it
    set_aside,  ///< the host uses it, or nobody knows it: quarantined
    gone,       ///< the cloud does not have it: its record goes
    forgotten,  ///< it was lent so long ago that nobody asks again
  };
  net::Address address;
  What what = What::unsure;
  std::optional<StockAddress> before;  ///< as it was judged; absent: there was no record
  std::optional<StockAddress> after;   ///< absent: there is none any more
  std::string why;                     ///< for people; empty: nothing speaks against it any more
};

/// The passes' memory, by the clock that nobody sets. Records say since when in wall time, and somebody who sets that
/// clock would make them old at once, or young for as long as it was set back.
class Memory {
 public:
  /// The records as they are now. Those that are not among them any more are forgotten.
  void note(const std::vector<StockAddress>& records, const Instant& now);
  /// Whether it was so, for all we know without a break, at that moment. False also where nothing was noted then.
  [[nodiscard]] bool stood_at(const StockAddress& record, const Instant& then) const;
  /// For how long it was seen to stand: never too long, and from nothing again where a process begins.
  [[nodiscard]] std::chrono::nanoseconds seen_for(const StockAddress& record, const Instant& now) const;

  /// Since when passes have shown something of an address without a break.
  Sightings<std::pair<net::Address, Correction::What>> since{};

 private:
  Sightings<net::Address, std::pair<StockAddressState, WallTime>> noted_;  ///< with its state and StockAddress::since
};

struct Findings {
  std::vector<Correction> corrections;
  bool is_any_unsure = false;     ///< of what a pod could have else
  std::size_t kept_by_brake = 0;  ///< held ones whose pods seem gone, more than half of all at once: for an hour
  Memory memory;                  ///< for the next pass
};
/// The live pod of this node that says that it has an address; null: none does, or they were not asked.
[[nodiscard]] const LivePod* user_of(const Look& look, const net::Address& address);
[[nodiscard]] bool is_used_by_host(const Look& look, const net::Address& address);
[[nodiscard]] bool is_used(const Look& look, const net::Address& address);

/// `records` and `intents` were read after the look. A record that was not noted in `memory` before the look has come
/// since: the look does not speak of it. An address that an open intent may have brought is left alone, unless a live
/// pod has it: a pod has no address before the record that gives it says so. One that a list leaves out is missing
/// once the cloud has denied it by name, and in the first look at once.
[[nodiscard]] Findings reconcile(const Look& look, const std::vector<StockAddress>& records,
                                 const std::vector<StockIntent>& intents, Memory memory, const ReconcilePolicy& policy,
                                 const Instant& now);

/// Writes corrections, at most kChangesMax, where the records still are as they were judged. A record that has changed
/// since (a DEL came) gets what speaks against its address, and loses nothing: it is no news of the cloud. But not of
/// one that came anew, or leaves. The answer is what was done.
[[nodiscard]] Step<std::vector<Correction>> plan_corrections(const Snapshot& snapshot,
                                                             const std::vector<Correction>& corrections);

/// The cloud's addresses that an intent may have brought: those without a record that no pod and nothing of the host
/// uses, at most as many as were asked for; what is apart only where it was asked for by name for its pod. Empty where
/// a part of the look is absent that could tell: `cloud`, or `host`.
[[nodiscard]] std::vector<Given> brought_by(const StockIntent& intent, const std::vector<StockAddress>& records,
                                            const Look& look);

}  // namespace croft::core::warm
