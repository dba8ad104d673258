#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/net/prefix.h"
#include "register/node_range.h"
#include "register/snapshot.h"

// Node ranges as an operator sees them.
namespace croft::core {

/// How full a cluster CIDR is, in node ranges.
struct ClusterCidrUse {
  ClusterCidr cluster;
  std::uint32_t size = 0;
  std::uint32_t taken = 0;     ///< with the excluded ones
  std::uint32_t excluded = 0;  ///< of these
};

struct NodeRangeSeen {
  NodeRange range;
  bool node_recorded = false;
  std::optional<net::Prefix> cluster_cidr;  ///< the one that contains it; none: it is of a configuration before
};

/// All there is to see. Written by nobody: a Step only because it is read like one.
struct NodeRangesSeen {
  std::optional<NodeRangeSet> set;  ///< nothing: node ranges are not configured
  std::vector<ClusterCidrUse> use;
  std::vector<NodeRangeSeen> ranges;  ///< ascending by CIDR
  std::vector<std::string> bare;      ///< nodes with a record that lack a range of some family
  std::vector<std::pair<NodeRange, NodeRange>> collisions;
  /// Nodes that have several ranges of a family, and these, ascending (surplus_ranges).
  std::vector<std::pair<std::string, std::vector<net::Prefix>>> surplus;
  std::size_t nodes = 0;  ///< with a record
};
[[nodiscard]] Step<NodeRangesSeen> look_at_node_ranges(const Snapshot& snapshot);

}  // namespace croft::core
