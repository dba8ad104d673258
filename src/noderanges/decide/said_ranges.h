#pragma once

#include <string>
#include <vector>

#include "base/net/prefix.h"
#include "register/node_range.h"

// Ranges that nodes' own objects say, beside Croft's records (docs/notes/node-ranges.md#said).
namespace croft::core {

/// Whether a range that an object says can be one node's. A kubelet registers its node's object with whatever it likes,
/// once and for all: one that says a whole cluster CIDR of several ranges, or more than 2^kSaidBitsMax of them, would
/// leave nobody else any. Up to there it may be of an older configuration with wider ranges, whose pods are alive.
[[nodiscard]] bool can_be_one_nodes(const net::Prefix& cidr, const std::vector<ClusterCidr>& cluster_cidrs);
inline constexpr int kSaidBitsMax = 4;

/// Without those that can't be.
[[nodiscard]] std::vector<NodeRange> said_by_one_node(std::vector<NodeRange> said,
                                                      const std::vector<ClusterCidr>& cluster_cidrs);

/// Two nodes with addresses in common, by what the object of the first one says.
struct SaidOverlap {
  NodeRange said;
  NodeRange other;
  bool other_is_recorded = false;  ///< else its object says so too
  friend bool operator==(const SaidOverlap&, const SaidOverlap&) = default;
};

/// A node with records whose object says a range that is none of them; neither is changed.
struct DifferingCidrs {
  std::string node;
  std::vector<net::Prefix> said, recorded;
  friend bool operator==(const DifferingCidrs&, const DifferingCidrs&) = default;
};

struct SaidComparison {
  std::vector<SaidOverlap> overlaps;  ///< of each set of ranges that overlap, the others with the largest
  std::vector<DifferingCidrs> differing;
  std::vector<NodeRange> too_wide;  ///< can't be one node's, and keeps nothing from others; no record, in no other list
  std::vector<NodeRange> unrecorded;  ///< said by a node that has no record at all: kept from others all the same
};

/// Compares them with one another and with the records.
[[nodiscard]] SaidComparison compare_said(const std::vector<NodeRange>& said, const std::vector<NodeRange>& recorded,
                                          const std::vector<ClusterCidr>& cluster_cidrs);

}  // namespace croft::core
