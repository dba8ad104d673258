#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "base/net/prefix.h"
#include "register/node_range.h"
#include "register/snapshot.h"

// The cluster CIDRs that node ranges are cut from.
namespace croft::core {

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

}  // namespace croft::core
