#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/net/prefix.h"

namespace croft::core {

/// The prefix that a node's pods get their addresses from (docs/notes/node-ranges.md#contract). The key says which;
/// the record, who has it. At most one node has a prefix, because the key is made by create-if-absent.
struct NodeRange {
  std::string node;
  net::Prefix cidr;
  friend bool operator==(const NodeRange&, const NodeRange&) = default;
};

/// A cluster CIDR that node ranges are cut from, and how long their prefixes are.
struct ClusterCidr {
  net::Prefix cidr;
  int node_length = 24;
  friend bool operator==(const ClusterCidr&, const ClusterCidr&) = default;
};

/// The one record that says what node ranges are cut from. It is written by every commit that gives or takes one, so
/// that two that overlap without being equal can't be made at once, and so that the cursor moves on.
struct NodeRangeSet {
  std::uint64_t generation = 0;
  /// Those of one family are tried in this order: several of a family let a cluster grow.
  std::vector<ClusterCidr> cluster_cidrs;
  std::vector<net::Prefix> excluded;  ///< Service ranges and others that no node may get
  /// For each cluster CIDR, the index of its node range that is looked at next: given back ones come round again last.
  std::vector<std::uint64_t> cursors;
  friend bool operator==(const NodeRangeSet&, const NodeRangeSet&) = default;
};

}  // namespace croft::core
