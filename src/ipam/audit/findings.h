#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include "base/clock.h"
#include "base/net/address.h"
#include "base/net/prefix.h"
#include "base/result.h"
#include "base/shared_map.h"
#include "register/block.h"
#include "register/node.h"
#include "register/owner.h"
#include "register/records.h"
#include "register/snapshot.h"

namespace croft::core::audit {

/// The words of a finding of `croft check`. {0}, {1}, … are what found() is given.
struct FindingRow {
  std::string_view name;  ///< its identifier, for scripts; behind a dot the case, where other words or remedies fit it
  std::string_view subject, text, remedy;
};

/// Addresses that the DEL of a living container may not find.
inline constexpr std::string_view kFoundOnceGone =
    "leave the addresses to their holder while it lives; those that its DEL leaves behind the controller frees, or "
    "`croft check --cni-cache` on that node names them";

/// All findings. A remedy takes nothing from what lives, followed to the letter: e2e/check_remedies.py follows each.
inline constexpr auto kFindings = std::to_array<FindingRow>({
    {"block_corrupt", "block {0}", "{1}",
     "restore the store from a backup; its addresses stay taken until then. docs/runbooks/damaged-records.md has what "
     "else can be done"},
    {"block_corrupt.beside", "block {0}", "{1}",
     "restore the store from a backup; without one `croft record remove block {0}` leaves the block and its holders as "
     "they are, and what rests there may then be given out at once"},
    {"block_corrupt.unnamed", "block {0}", "its name is no CIDR, and nobody has an address by it: {1}",
     "`croft record remove block {0} --force`"},
    {"block_overlap", "block {0}", "it overlaps block {1}{2}", "{3}"},
    {"block_without_pool", "block {0}", "{1}{2}", "{3}"},
    {"affinity_missing", "block {0}", "it belongs to {1}, which has no claim on it", "{2}"},
    {"affinity_stale", "affinity {0}", "{1}", "croft affinity release --node {2} --cidr {3}"},
    {"affinity_stale.no_node", "affinity {0}", "{1}", "it holds no address"},
    {"affinity_unconfirmed", "affinity {0}", "it is {1}, though the block is its owner's",
     "its owner's next assignment mends it; routes are not announced before"},
    {"vacancy_missing", "block {0}", "it has room, but nobody will look there",
     "`croft affinity release --node {1} --cidr {0} --force`, then `croft affinity claim {0} --node {1}`; the "
     "addresses in it stay held"},
    {"vacancy_missing.unclaimed", "block {0}", "it has room, but nobody will look there",
     "`croft affinity claim {0} --node NODE` lets a node find it"},
    {"sequence_behind", "block {0}", "its sequence number {1} is not above the recorded {2}",
     "restore the store from a backup (docs/runbooks/backup-and-restore.md); a late release could free a successor"},
    {"handle_missing", "handle {0}", "{1} holds addresses in block {2}, but the handle has no record", kFoundOnceGone},
    {"handle_miscount", "handle {0}", "{1}", "nothing has to be done: the DEL of its container counts anew"},
    {"handle_undercount", "handle {0}", "{1}", kFoundOnceGone},
    {"handle_empty", "handle {0}", "{1}",
     "`croft check --report FILE`, then `croft ip release --from-report FILE`; an ADD under way looks the same"},
    {"pool_overlap", "pool {0}", "{1} overlaps pool {2} ({3})",
     "disable one of them with `croft pool disable`; its pods keep their addresses until they end, then `croft pool "
     "delete` takes it away"},
    {"pool_overlap.services", "pool {0}", "{1} of it is {2} too, and pods get it{3}",
     "delete that ServiceCIDR while no Service uses it, or `croft pool disable {0}` and give its pods addresses of "
     "another pool"},
    {"pool_overlap.node", "pool {0}", "{1} of it is {2} too, and pods get it{3}",
     "make an IPReservation of {1}, and delete the pod that has it, if one has"},
    {"pool_not_allocatable", "pool {0}", "pods get no address of it, though it is not disabled: {1}",
     "one that is being deleted goes with its finalizer, once nobody holds of it (`croft ip list --pool {0}`), and can "
     "be made anew; one smaller than its blocks needs a blockSize of at least {2}; else mend what the condition names"},
    {"pool_half_made", "pool {0}", "it was begun and never enabled: no pod gets an address of it",
     "`croft pool enable {0}` completes it, `croft pool delete {0}` takes it away; one that is being made looks the "
     "same"},
    {"pool_half_deleted", "pool {0}", "its deletion was begun and not ended: it is disabled",
     "`croft pool delete {0}` ends it, `croft pool enable {0}` keeps the pool; a deletion under way looks the same"},
    {"pool_full", "pool {0}", "{1}",
     "run `croft check --wait 60s` to find what is gone; for room: `croft pool create NAME --cidr CIDR` "
     "(docs/runbooks/pool-full.md)"},
    {"pool_full.cooling", "pool {0}", "{1}",
     "mend what fails behind Croft, and they come back by themselves; another pool would only fill up too "
     "(docs/runbooks/pool-full.md)"},
    {"selector_invalid", "pool {0}", "{1}",
     "correct the selector; until then the pool serves only requests that name it"},
    {"config_contradicts", "configuration", "{0}", "`croft config set`"},
    {"reservation_missing", "pool {0}", "no reservation keeps {1} out of use",
     "`croft pool create {0} --cidr {2}` makes the reservation again"},
    {"reservation_left", "reservation {0}", "there is no pool {1}: its making or its deletion was cut short",
     "`croft pool delete {1}` takes it away, unless somebody made it by hand; a pool that is being made looks the "
     "same"},
    {"reserved_held", "{0}", "it is reserved, and held by {1}",
     "nothing has to be done: its holder keeps it, and once released it stays out of use"},
    {"release_in_future", "{0}", "it cools since {1}, which is yet to come",
     "set the clocks of the nodes right; it rests until then and its cooldown"},
    {"release_waiting", "{0}", "a DEL of container {1}, interface {2}, network {3} could not reach {4} at {5}",
     "see that the node's agent, or its plugins, reach that store by that name: they make up for it"},
    {"release_unreadable", "{0}", "{1}",
     "remove the file; `croft check --cni-cache` or the controller finds what it would have released"},
    {"release_unreadable.other", "{0}", "{1}", "look again with the rights and the version of Croft that can read it"},
    {"record_unreadable", "{0} {1}", "{2}",
     "restore the store from a backup; one that no backup has: `croft record remove {0} {3}{4}`"},
    {"record_unreadable.of_others", "{0} {1}", "{2}",
     "restore the store from a backup: others work with it, and it stays until then. docs/runbooks/damaged-records.md "
     "has what else can be done"},
    {"record_unreadable.node_ranges", "node ranges", "{0}",
     "none is given until it is mended: restore the record from a backup (docs/runbooks/backup-and-restore.md)"},
    {"record_newer", "{0} {1}", "{2}", "upgrade Croft here"},
    {"register_damaged", "{0}", "{1}",
     "as docs/runbooks/backup-and-restore.md has it; until then nothing is handed out"},
    {"store_paused", "{0}", "{1}", "{2}"},
    {"not_attached", "{0}", "held since {1} by container {2} interface {3} in network {4}{5}, {6}", "{7}"},
    {"not_held", "{0}",
     "container {1} interface {2} in network {3}{4} has it, whose network namespace {5} is there, and {6}", "{7} {8}"},
    {"pod_not_held", "{0}", "pod {1} on node {2} reports it, and {3}",
     "delete the pod {4}; `croft check --cni-cache` on its node tells whether it lives"},
    {"pod_not_held.more", "pods", "{0}",
     "an older register may have been put back: docs/runbooks/restore-kubernetes-api.md has the order of what to do"},
    {"node_not_moved", "{0}",
     "{1} of its pods' addresses, as {2}, are of its own range, of which the register has never given one: they are "
     "addresses of host-local",
     "{3}move the node (docs/runbooks/migrate.md, From host-local); where Croft gave them, an older register was put "
     "back (docs/runbooks/restore-kubernetes-api.md)"},
    {"pod_twice", "pod {0}/{1}", "in network {2} {3}, and the network namespaces of all are there",
     "look which of them the runtime runs (`crictl pods`) and stop the other; its DEL releases the address"},
    {"pod_twice.unclear", "pod {0}/{1}",
     "in network {2} {3}, and the network namespaces of some can't be told to be there or gone",
     "look which of them the runtime runs (`crictl pods`); when the other is gone from there, look again: its address "
     "is named with the command that collects it"},
    {"cache_empty", "the runtime's cache", "it has no entry that can be read, and {0}",
     "name the directory that has the runtime's `results`, and look again"},
    {"cache_unreadable", "{0}", "{1}; whoever it is about counts as alive, with what addresses nobody knows",
     "look with the rights to read it; where it is damaged, delete the pod that it is of (its name has the container's "
     "ID: `crictl pods`), or remove the file when that container is gone"},
    {"cache_unreadable.more", "the runtime's cache", "{0} more entries can't be read",
     "mend those that are named, and look again"},
    {"pod_gone", "{0}", "{1}: {2}", "{3}"},
    {"node_gone", "{0}", "{1}: {2}", "{3}"},
    {"block_node_gone", "block {0}", "its {1}; {2} in it", "{3}"},
    {"holder_in_doubt.pod_ended", "{0}", "{1}: pod {2}/{3} has ended, and its kubelet's DEL has not released it",
     "`kubectl delete pod --namespace {2} {3}` lets its kubelet end it; what is held then is named with the command "
     "that releases it"},
    {"holder_in_doubt.tunnel", "{0}", "{1}: node {2} is there, and names no tunnel of this address",
     "start calico-node on {2} again: it gives back what it does not use"},
    {"holder_in_doubt", "{0}", "{1}: pod {2}/{3} reports {4}, which another sandbox of it holds",
     "on its node `croft check --cni-cache /var/lib/cni{5}` tells whether a container has it, with the command that "
     "releases it"},
    {"node_range_twice", "{0} of node {1} and {2} of node {3}",
     "they are recorded so: pods of both may get one address",
     "drain one of the two nodes, say {3}; `croft node range release {4} --force` and `croft node range assign {4}` "
     "give it another"},
    {"node_range_twice.recorded", "{0} of node {1} and {2} of node {3}",
     "the object of node {1} says what is recorded for node {3}",
     "find out whose pods live in it; if not those of node {3}, `croft node range release {4} --force`, and the "
     "controller's next pass takes down what node {1} says; else drain node {1} and delete its object: its kubelet "
     "makes it anew, and it gets another"},
    {"node_range_twice.said", "{0} of node {1} and {2} of node {3}",
     "their objects say so: pods of both may get one address",
     "drain one of the two nodes, say {3}, and delete its object; `croft node range release {4} --force` gives up its "
     "record, if it has one. Its kubelet makes the object anew, and it gets another"},
    {"node_range_surplus", "node {0}", "its records are {1}: two programs gave it one at once",
     "the controller's next pass, or `croft node range assign {0}`, gives back all but the one that its object says, "
     "else the first"},
    {"node_range_differs", "node {0}", "its object says {1}, and its record {2}; nobody else gets either",
     "if its pods live in what the object says, `croft node range release {3} --force`: the controller's next pass "
     "takes that down; else delete its object once it is drained, and its kubelet makes it anew"},
    {"node_range_unreadable", "node {0}", "{1}",
     "drain the node and delete its object: its kubelet makes it anew, and the controller gives it a range"},
    {"pod_range_overlap", "block {0} of node {1}",
     "it is the podCIDR of node {2}, by its object: where host-local gives that node's addresses, pods of both get the "
     "same",
     "`croft config set --auto-allocate-blocks false`, that no node takes a block by itself; drain node {3}, `croft "
     "affinity release --node {3} --cidr {0}`, `croft affinity claim {0} --node {4}`, and claim its own podCIDR for "
     "node {3} (docs/runbooks/migrate.md, From host-local)"},
});

/// The name of a row, checked when it is compiled.
struct FindingName {
  consteval FindingName(const char* name)
      : row(*std::ranges::find(kFindings, std::string_view(name), &FindingRow::name)) {}
  const FindingRow& row;
};

/// Something wrong or left over, and what to do about it.
struct Finding {
  std::string_view id;  ///< of its row
  std::string subject;  ///< the record or address, e.g. "10.88.0.3" or "block 10.88.0.0/28"
  std::string what;     ///< one sentence: the evidence
  std::string remedy;   ///< one sentence: how to collect or mend it
  PodIdentity pod{};    ///< whose it is, as far as recorded
  std::string since{};  ///< RFC 3339: since when it is held, of what pods and nodes were asked about; empty: not known
  int looks = 0;        ///< by how many looks at pods and nodes it is so; 0: it is not of these
};

[[nodiscard]] Finding found_with(const FindingRow& row, const std::vector<std::string>& arguments);

/// A finding in the words of its row. Arguments are texts, numbers, and values with a to_string().
template <class... Arguments>
[[nodiscard]] Finding found(FindingName name, const Arguments&... arguments) {
  const auto text_of = []<class Argument>(const Argument& argument) -> std::string {
    if constexpr (requires { argument.to_string(); }) {
      return argument.to_string();
    } else if constexpr (std::is_arithmetic_v<Argument>) {
      return std::to_string(argument);
    } else {
      return std::string(argument);
    }
  };
  return found_with(name.row, {text_of(arguments)...});
}

// The report of a look at the register.

struct Runtime;  // ipam/audit/runtime_comparison.h

/// The past or present holder of an address, as far as its attributes say: "pod shop/web-0 (handle net.0f3c) on node
/// n1", "handle net.0f3c on node n1".
[[nodiscard]] std::string holder_text(const std::string& handle_id,
                                      const std::map<std::string, std::string>& attributes);

/// One address that is held or cools.
struct Allocation {
  net::Address address;
  net::Prefix block;
  std::optional<AffinityOwner> block_owner;
  std::string handle_id;  ///< of the last holder while it cools
  SequenceNumber sequence_number;
  SharedMap<std::string, std::string> attributes;  ///< of the last holder while it cools
  SharedMap<std::string, std::string> alternate_owner;
  bool cooling = false;
  bool unattached = false;  ///< the runtime does not know its holder (finding not_attached)
  bool gone = false;        ///< its cluster does not have its holder (findings pod_gone, node_gone)
  bool problem = false;     ///< some finding names it

  /// The node it is held on; empty when not recorded.
  [[nodiscard]] std::string node() const;
  /// Held on a node that is not the owner of its block.
  [[nodiscard]] bool borrowed() const;
};

struct NodeCount {
  std::string node;
  std::size_t held = 0;
  std::size_t blocks = 0;
};

/// A handle of which no block holds anything.
struct EmptyHandle {
  Key key;  ///< of its record
  std::string id;
};

/// A block that a node claimed.
struct BlockOfNode {
  net::Prefix cidr;
  std::string node;
};

/// The result of a look.
struct Report {
  std::vector<Finding> findings;
  std::vector<std::string> notes;  ///< what is worth knowing and no fault, a sentence each
  std::size_t pools = 0, blocks = 0, handles = 0, nodes_recorded = 0, held = 0, cooling = 0;
  std::size_t borrowed = 0;
  std::size_t without_node = 0;         ///< addresses held that record no node
  std::vector<NodeCount> nodes;         ///< the most addresses first
  std::vector<Allocation> allocations;  ///< ascending
  std::vector<EmptyHandle> empty_handles;
  std::vector<BlockOfNode> blocks_of_nodes;
};

/// A record that is there and cannot be read. Without a name, permission_denied: this account may not read the kind.
struct Unreadable {
  Key key;
  Error error;
  bool is_beside = false;  ///< what cannot be read is beside a record of Calico's, which is whole
};

/// The part of the register that a look could not see. It is not held against the records that were seen. `unreadable`
/// must outlive it.
class Unseen {
 public:
  explicit Unseen(const std::vector<Unreadable>& unreadable);

  /// Whether a block may be there although it was not read.
  [[nodiscard]] bool may_have_block(const std::string& cidr) const {
    return lacks_all(Kind::block) || blocks_.contains(cidr);
  }
  /// Whether this account may not read the kind.
  [[nodiscard]] bool lacks_all(Kind kind) const { return unlistable_.contains(kind); }
  /// Whether the record is there, and could not be read.
  [[nodiscard]] bool has(const Key& key) const;
  /// The names of those of a kind; empty: all were read.
  [[nodiscard]] std::set<std::string> names_of(Kind kind) const;

  /// One finding for each record. `foreign_writers`: the programs of Calico and Kubernetes work with records of theirs.
  [[nodiscard]] std::vector<Finding> findings(bool foreign_writers) const;

 private:
  const std::vector<Unreadable>& unreadable_;
  std::set<std::string> blocks_;
  std::set<Kind> unlistable_;
};

/// The reads that a look at the register needs: lists with values, and records; the list of handles where one moment is
/// seen. `with_services`: Services are the register's own, not Kubernetes'.
[[nodiscard]] Missing wanted_by_audit(bool with_services);

/// Finds the contradictions in the register as it was seen. A damaged record is a finding, and what it would have said
/// is not held against the others. With `runtime.live`, also addresses whose attachment is not among them; when it has
/// no entry at all, that is said instead.
/// The look has two parts: all but handles at once, and then each handle, of which only the name is kept. A handle may
/// have a megabyte, and each pod has one. `snapshot` and `unreadable` must outlive it.
class RegisterAudit {
 public:
  RegisterAudit(const Snapshot& snapshot, const std::vector<Unreadable>& unreadable, const Runtime& runtime,
                const Instant& now);
  ~RegisterAudit();
  RegisterAudit(const RegisterAudit&) = delete;
  RegisterAudit& operator=(const RegisterAudit&) = delete;

  /// One that comes a second time counts once. True: no block holds anything of it (Report::empty_handles).
  bool add_handle(const Key& key, const Handle& handle);
  /// One that is there and can't be read, or all of them.
  void add_unreadable(const Unreadable& handle);
  /// Once, behind the last handle.
  [[nodiscard]] Report report();

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace croft::core::audit
