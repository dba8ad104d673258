#pragma once

#include <chrono>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "base/sightings.h"
#include "collector/decide/judge.h"
#include "collector/use/node_facts.h"
#include "ipam/use/transact.h"
#include "noderanges/decide/node_range_changes.h"
#include "noderanges/decide/node_range_overview.h"

// Node ranges: the prefixes that nodes take their pods' addresses from. Each call is one commit
// (noderanges/decide/node_range_changes.h), but for reconcile, which makes several.

namespace croft::engine {

/// Says what node ranges are cut from, from now on. On a store without atomic commits all ranges in a cluster CIDR have
/// one length.
[[nodiscard]] Result<core::NodeRangesConfigured> configure_node_ranges(const Context& context,
                                                                       const core::NodeRangeSpec& spec);

/// Gives a node a range of each family, or says which it has. A node without a record gets one, except where other
/// programs keep the records of nodes: there it is not_found. Never what overlaps what nodes' objects say
/// (look_at_node_cidrs). Others may give ranges at the same time, also to this node: it has one of a family in
/// the end, and all are told the same. Error beside those of the decision: exhausted.
[[nodiscard]] Result<core::NodeRangesAssigned> assign_node_ranges(const Context& context, const std::string& node,
                                                                  const std::vector<core::NodeRange>& said = {});

/// Takes down that a node has this range; with `said`, only if no other node's object says what overlaps it.
[[nodiscard]] Result<core::NodeRangesAssigned> adopt_node_range(const Context& context, const std::string& node,
                                                                const net::Prefix& cidr,
                                                                const std::vector<core::NodeRange>& said = {});

/// Gives back all ranges of a node. Error: refused_for_safety for a node with a record, unless the operator knows that
/// nobody there has an address any more (IfRecorded::release). Without `apply` it only says what would come of it.
[[nodiscard]] Result<core::NodeRangesReleased> release_node_ranges(const Context& context, const std::string& node,
                                                                   core::IfRecorded if_recorded, bool apply = true);

[[nodiscard]] Result<core::NodeRangeOverview> read_node_range_overview(const Context& context);

/// The memory of reconcile from one look to the next: since when, within this boot, a range's node has been gone. Only
/// looks that saw nodes count; one that saw none, or less than half of those before, begins it anew.
struct GoneNodes {
  Sightings<std::pair<std::string, net::Prefix>> since;
  std::size_t nodes = 0;    ///< with a record, in the last look that saw any
  std::uint64_t epoch = 0;  ///< of the register (store::Store::epoch): in another, all begins anew
};

struct ReconcileOptions {
  /// How long a node must have been gone, in every look since, before its ranges are given back. 0: never.
  std::chrono::nanoseconds grace = std::chrono::minutes(15);
  bool dry_run = false;  ///< only say what would be done
  /// Nodes that get no further range.
  std::set<std::string> as_they_are{};
  /// Ranges that nodes' objects say, recorded or not: nobody else gets what overlaps them.
  std::vector<core::NodeRange> said{};
};

/// Counts of a cluster CIDR in one pass, under the meanings of kube-controller-manager's metrics
/// (docs/notes/node-ranges.md#metrics).
struct ClusterCidrCounts {
  std::uint64_t releases = 0;        ///< node ranges given back
  std::vector<std::uint32_t> tries;  ///< of each node range that was taken
};

struct NodeRangesReconciled {
  core::NodeRangeOverview seen;                    ///< before anything was done
  std::vector<core::NodeRangesAssigned> assigned;  ///< with `added`
  std::vector<core::NodeRangesAssigned> refused;   ///< with `refusal`
  std::vector<core::NodeRangesReleased> released;
  std::vector<core::SurplusRange> surplus;            ///< given back: their nodes have another of the family
  std::vector<core::NodeRange> gone;                  ///< of nodes without record that keep them for now
  std::vector<core::collect::Alarm> alarms;           ///< why ranges were not given back although their time was up
  std::map<net::Prefix, ClusterCidrCounts> counts{};  ///< by cluster CIDR
  bool dry_run = false;
};

/// One pass: every node with a record gets the ranges it lacks; what nodes have that have been gone for the grace, in
/// two looks at least, is given back, proven once more in the commit itself. The brake of the collector
/// (collector/decide/judge.h) applies: a list of nodes that is empty, or has shrunk to less than half, proves nothing
/// and begins the grace anew, and one pass gives back no more than removals_allowed() of the ranges. Does nothing while
/// node ranges are not configured. Errors: of the store; what was done before stays done, and the next pass goes on.
[[nodiscard]] Result<NodeRangesReconciled> reconcile_node_ranges(const Context& context, GoneNodes& memory,
                                                                 const ReconcileOptions& options);

// Node ranges beside the nodes' own objects (docs/notes/node-ranges.md#contract). Croft's records are the truth and
// are committed first; what a node's object says follows, and never changes again. So whoever dies in between leaves a
// range that the next pass says.

/// The memory of one run of a controller.
struct NodeCidrsMemory {
  std::set<std::string> without;     ///< nodes whose objects said nothing when they were looked at last
  std::optional<std::string> rival;  ///< another program gives ranges to nodes: from then on nothing is given
};

/// The words of all nodes' objects, readable and unreadable.
struct NodeCidrsLook {
  std::vector<core::NodeRange> said;
  std::vector<std::pair<std::string, Error>> unreadable;  ///< by node
};
[[nodiscard]] Result<NodeCidrsLook> look_at_node_cidrs(NodeCidrs& cidrs);

struct NodeCidrsAdopted {
  std::vector<std::pair<std::string, net::Prefix>> adopted;
  std::vector<std::pair<std::string, Error>> failed;  ///< by node; the others are done
  std::vector<core::DifferingCidrs> differing;
  std::vector<core::SaidOverlap> overlaps;
  /// For ReconcileOptions: their objects say what they have, all of it; or they are being deleted.
  std::set<std::string> as_they_are;
  /// Likewise: all that was said, taken down or not. A range that cannot be taken down (of another length, another
  /// node's by its record, beside another of its own node) is kept from others by this.
  std::vector<core::NodeRange> said;
  std::optional<std::string> rival;  ///< why nothing may be given
};

/// Takes down what nodes' objects say already, before anything is given: as Kubernetes' own controller does when it
/// starts. A range that appears on a node which had none, and is not what Croft has for it, was given by another
/// program: nobody else may give ranges, and this controller stops doing so (NodeCidrsMemory::rival). A text
/// that is no range holds nobody up: nobody can take addresses from it. Nothing while node ranges are not configured.
/// Errors: of the store and of `cidrs`.
[[nodiscard]] Result<NodeCidrsAdopted> adopt_node_cidrs(const Context& context, NodeCidrs& cidrs,
                                                        NodeCidrsMemory& memory, bool dry_run);

struct NodeCidrsSaid {
  std::vector<std::pair<std::string, std::vector<net::Prefix>>> said;
  std::vector<core::SurplusRange> surplus;  ///< given back before: an object can say one of a family
  std::vector<std::pair<std::string, Error>> failed;
};

/// Says the recorded ranges of every node whose object says none: all its families, that of the first cluster CIDR
/// first; not of a node that is being deleted, nor one that overlaps what another node says already (`failed`). Errors:
/// of the store and of `cidrs`.
[[nodiscard]] Result<NodeCidrsSaid> say_node_cidrs(const Context& context, NodeCidrs& cidrs);

}  // namespace croft::engine
