#pragma once

#include <chrono>
#include <compare>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "base/net/address.h"
#include "base/result.h"
#include "ipam/audit/findings.h"
#include "ipam/decide/assign.h"
#include "ipam/decide/release.h"
#include "register/block.h"
#include "register/node.h"
#include "register/owner.h"
#include "register/pool.h"
#include "register/snapshot.h"

namespace croft::core::audit {

/// Attachments the runtime knows (hostlocal/door/host_local_facts.h reads them). A container whose namespace is gone
/// does not live.
struct LiveAttachments {
  std::vector<RuntimeAttachment> entries;
  std::vector<UnreadableEntry> unreadable;  ///< whoever such an entry may be about counts as known
};

/// A pod that runs, with the addresses that it reports; none in its node's network.
struct RunningPod {
  PodIdentity pod;
  std::string node;
  std::vector<net::Address> addresses;
};

/// The runtime whose attachments are compared with what is held.
struct Runtime {
  std::optional<LiveAttachments> live{};  ///< absent: nothing is compared
  std::chrono::seconds grace{60};         ///< an address held for less is not: the runtime learns of it after its ADD
  std::string node{};                     ///< only what is held on it is: one runtime knows one node. Empty: everything
  std::vector<RunningPod> pods{};         ///< of the cluster; empty where they are not known
  std::vector<NodeRange> pod_ranges{};    ///< what nodes' objects say (`spec.podCIDRs`); empty where it is not known
  std::string asked_with{};  ///< the options by which `croft ip release` looks at `live` again: " --cni-cache /v/cni"
};

/// The command that releases what a holder had that is gone, once the runtime says so again.
[[nodiscard]] std::string release_command(const net::Address& address, const std::string& handle_id,
                                          SequenceNumber sequence, const std::string& asked_with);

/// Compares what is held with the attachments that the runtime knows. A plugin that calls other networks, as Multus, is
/// one network to the runtime: an entry speaks for all that its container holds. `runtime` must outlive it.
class RuntimeComparison {
 public:
  RuntimeComparison(const Runtime& runtime, WallTime now);

  /// An address that is held under a handle, on this node as far as recorded. A finding when its attachment does not
  /// live, and no running pod but the holder's own reports the address: its report may be of a container before.
  [[nodiscard]] std::optional<Finding> check(const net::Address& address, const std::string& node,
                                             const Attribute& attribute, SequenceNumber sequence);
  /// Whether an entry that may live is, or may be, of the container that holds this.
  [[nodiscard]] bool may_live(const Attribute& attribute) const;
  /// Once all have been checked: what they say together, and which entries say nothing.
  [[nodiscard]] std::vector<Finding> findings_together() const;

 private:
  /// The cache's word on the holder of an allocation, whose handle may be read in several ways.
  struct Known {
    bool may_live = false;
    const RuntimeAttachment* entry = nullptr;
  };
  using Entries = std::multimap<std::string, const RuntimeAttachment*>;
  [[nodiscard]] Known known(const std::string& handle_id, const Owner& owner) const;
  /// By the entries under a key; of an interface only, unless that is empty.
  [[nodiscard]] static Known known_in(const Entries& entries, const std::string& key,
                                      const std::string& interface_name);

  /// The owner of an address of one family.
  struct Claim {
    std::string network, namespace_name, pod, uid, interface_name;
    net::Family family = net::Family::v4;
    friend auto operator<=>(const Claim&, const Claim&) = default;
  };

  struct Holding {
    net::Address address;
    bool is_there = false;  ///< its network namespace
  };

  const std::optional<LiveAttachments>& live_;
  const std::chrono::seconds grace_;
  const std::string& node_;
  const std::string& asked_with_;
  const WallTime now_;
  std::unordered_multimap<net::Address, const PodIdentity*> reported_;  ///< by running pods
  Entries by_handle_, by_container_;                                    ///< of live_
  std::map<Claim, std::map<std::string, Holding>> claims_;              ///< of containers that may live, by container
  std::size_t not_compared_ = 0;                                        ///< addresses held, with an empty cache
};

/// How many pods whose address nobody holds are named.
inline constexpr std::size_t kPodsNamedMax = 10;

/// Compares the addresses that somebody lives with, as the runtime and the pods of the cluster say, with what is held.
/// After the register was put back to an older state, addresses that it has as free, or gave to another since, may be
/// in use. `runtime` must outlive it.
class LivingComparison {
 public:
  explicit LivingComparison(const Runtime& runtime);

  /// An address that is held, or cools.
  void see(const net::Address& address, const Attribute& attribute);
  /// The program that gave an address which nobody holds.
  enum class Giver : std::uint8_t {
    unknown,    ///< it is not Croft's to give, or its block could not be read
    here,       ///< it is
    not_yet,    ///< it is in a range of its node, of which nothing was ever given: host-local's until the node moves
    unclaimed,  ///< the same, and the node has not claimed it
  };
  /// `node` may be empty: not known.
  using GiverOf = std::function<Giver(const net::Address& address, const std::string& node)>;
  /// Once all have been seen: who lives with an address that he does not hold. A node whose addresses host-local still
  /// gives is told once.
  [[nodiscard]] std::vector<Finding> findings(const GiverOf& giver_of) const;

 private:
  /// Somebody who lives and has an address.
  struct Living {
    const RuntimeAttachment* attachment = nullptr;  ///< or the pod
    const RunningPod* pod = nullptr;
    bool holds = false;
    std::string holder = {};  ///< who has it otherwise; empty: nobody
    bool cools = false;
  };
  /// Those of one node that host-local gave.
  struct NotMoved {
    std::size_t addresses = 0;
    net::Address first;
    std::optional<net::Address> unclaimed;  ///< the first one
  };
  [[nodiscard]] const std::string& node_of(const Living& living) const;
  [[nodiscard]] static Finding finding_of(const std::string& node, const NotMoved& some);
  [[nodiscard]] static bool is_of(const Living& living, const Attribute& attribute);
  [[nodiscard]] static Finding finding_of(const net::Address& address, const Living& living);

  const std::string& node_;  ///< whose cache it is
  std::unordered_multimap<net::Address, Living> living_;
};

// The register's word on the attachments that a runtime asks about: CNI's CHECK, STATUS and GC.

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
[[nodiscard]] std::optional<Error> why_not_ready(const AssignAnswer& answer, bool fail_when_full);

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
