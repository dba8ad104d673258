#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/net/prefix.h"
#include "register/node.h"
#include "register/snapshot.h"

// Decisions about node ranges: the prefixes that nodes take their pods' addresses from
// (docs/notes/node-ranges.md#contract). The records are the truth: one of each range that says who has it, and one
// for all of them with the cluster CIDRs, which every commit here writes. So what one decision saw free, no other gives
// away meanwhile. Where commits are not atomic, two may give one node two: surplus_ranges().

namespace croft::core {

// The cluster CIDRs that node ranges are cut from.

/// The wanted cluster CIDRs.
struct NodeRangeSpec {
  std::vector<ClusterCidr> cluster_cidrs;  ///< 1 to kClusterCidrsMax; tried in this order within a family
  std::vector<net::Prefix> excluded;       ///< at most kExcludedMax; may lie elsewhere
};
inline constexpr std::size_t kClusterCidrsMax = 32;
inline constexpr std::size_t kExcludedMax = 32;

struct NodeRangesConfigured {
  NodeRangeSet set;
  bool changed = false;
  std::vector<NodeRange> outside;  ///< under none of the cluster CIDRs now: their nodes keep them
};

/// Decides what node ranges are cut from, from now on. Ranges given out stay as they are, whatever their length; a
/// cluster CIDR that stays as it was keeps its cursor. Errors: invalid_argument for none or too many cluster CIDRs and
/// what CidrSet::make finds; refused_by_configuration for two cluster CIDRs that overlap, one that overlaps a pool or
/// is excluded whole (the message names both).
[[nodiscard]] Step<NodeRangesConfigured> plan_configure_node_ranges(const Snapshot& snapshot,
                                                                    const NodeRangeSpec& spec);

/// A range that a node got, and how it was found.
struct NodeRangeAdded {
  net::Prefix cidr;
  net::Prefix cluster_cidr;
  std::uint32_t tries = 0;  ///< taken ones that were passed over (docs/notes/node-ranges.md#metrics)
  friend bool operator==(const NodeRangeAdded&, const NodeRangeAdded&) = default;
};

struct NodeRangesAssigned {
  std::string node;
  /// All ranges of the node, of the family of the first cluster CIDR first: the first one is Kubernetes' `podCIDR`.
  std::vector<net::Prefix> cidrs;
  std::vector<NodeRangeAdded> added;
  /// Why nothing was added: exhausted, naming every full cluster CIDR and what to do; not_found for a node without
  /// record where one is demanded; invalid_argument for a name that is none; refused_by_configuration where the object
  /// says a range that is not recorded.
  std::optional<Error> refusal;
};

/// Whether a node without a record gets one, or is refused.
enum class NodeRecord : std::uint8_t { make, demand };

/// Decides ranges for nodes: one for each family that has a cluster CIDR and that the node has no range of yet, from
/// the first cluster CIDR with room; all families of a node or none. One answer a node, in their order; each is
/// named once. A node that has all costs no write. Never from what is excluded, nor from Service
/// ranges and pools that the store knows (register/address_claims.h), nor what overlaps anything that is `said`
/// outside the register to be a node's, with a record or without, whosever it is and however long. A node whose object says a range already gets none: the object takes no other for as
/// long as it lives. Errors:
/// refused_by_configuration without cluster CIDRs; corrupt.
[[nodiscard]] Step<std::vector<NodeRangesAssigned>> plan_assign_node_ranges(const Snapshot& snapshot,
                                                                            const std::vector<std::string>& nodes,
                                                                            NodeRecord record,
                                                                            const std::vector<NodeRange>& said = {});
/// Nodes of one such decision: each may take two writes and its record.
inline constexpr std::size_t kAssignNodesMax = 32;

/// Decides that a node has this range, which it was given elsewhere. The same again costs no write. Errors: the
/// same, and what a refusal says there; invalid_argument when it lies under no cluster CIDR, or the node has one
/// of its family (`may specify no more than one CIDR for each IP family`); refused_by_configuration when it overlaps what is
/// excluded; already_exists when it overlaps a range of another node, or one that is `said` to be another's (named).
[[nodiscard]] Step<NodeRangesAssigned> plan_adopt_node_range(const Snapshot& snapshot, const std::string& node,
                                                             const net::Prefix& cidr, NodeRecord record,
                                                             const std::vector<NodeRange>& said = {});

struct NodeRangesReleased {
  std::string node;
  std::vector<net::Prefix> cidrs;  ///< empty: it had none, or the condition did not hold
};

/// Only if the node has no record, and exactly these ranges, in whichever order; the commit rests on both.
using OnlyIfGone = std::optional<std::vector<net::Prefix>>;

/// Whether a node's record, by which its pods may live in its ranges, keeps them.
enum class IfRecorded : std::uint8_t { refuse, release };

/// Decides that a node gives back all its ranges, or those of them that `only_these` names. Error: refused_for_safety
/// for one with a record, with IfRecorded::refuse and ranges to give back.
[[nodiscard]] Step<NodeRangesReleased> plan_release_node_ranges(
    const Snapshot& snapshot, const std::string& node, const OnlyIfGone& only_if_gone, IfRecorded if_recorded,
    const std::optional<std::vector<net::Prefix>>& only_these = {});

}  // namespace croft::core
