#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/net/prefix.h"
#include "register/node.h"
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
struct NodeRangeOverview {
  std::optional<NodeRangeSet> set;  ///< nothing: node ranges are not configured
  std::vector<ClusterCidrUse> use;
  std::vector<NodeRangeSeen> ranges;  ///< ascending by CIDR
  std::vector<std::string> bare;      ///< nodes with a record that lack a range of some family
  std::vector<std::pair<NodeRange, NodeRange>> collisions;
  /// Nodes that have several ranges of a family, and these, ascending (surplus_ranges).
  std::vector<std::pair<std::string, std::vector<net::Prefix>>> surplus;
  std::size_t nodes = 0;  ///< with a record

  [[nodiscard]] std::vector<NodeRange> records() const;
  [[nodiscard]] std::map<std::string, std::vector<net::Prefix>> by_node() const;
};
[[nodiscard]] Step<NodeRangeOverview> read_node_range_overview(const Snapshot& snapshot);

}  // namespace croft::core

// Ranges that nodes' own objects say, beside Croft's records (docs/notes/node-ranges.md#said).

namespace croft::core {

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
  std::vector<NodeRange> unrecorded;  ///< said by a node that has no record at all: kept from others all the same
};

/// Compares them with one another and with the records.
[[nodiscard]] SaidComparison compare_said(const std::vector<NodeRange>& said, const std::vector<NodeRange>& recorded);

// Two programs that give ranges at once leave, where a store writes one record at a time: a node with two ranges of one
// family by its records, of which its object can say one only (docs/notes/node-ranges.md); and ranges of two nodes
// that overlap, cut by one of them with the mask size of before.

/// A range with the time of its record, in an order of the store's own: the smaller the earlier.
struct RecordedRange {
  NodeRange range;
  std::uint64_t since = 0;
};

struct SurplusRange {
  NodeRange range;
  net::Prefix kept;  ///< what the node has instead, or another has of the same addresses
};

/// Ranges that are to be given back, since their node has another of the family, or they overlap one of another node:
/// what an object says (`said`) stays, else what was recorded first. One of those that overlap goes also beside one
/// that goes itself: so nothing that was answered once is given back later. Nobody has answered with the others: who
/// records a range looks at all of them afterwards, and sees what was recorded before.
[[nodiscard]] std::vector<SurplusRange> surplus_ranges(const std::vector<RecordedRange>& recorded,
                                                       const std::vector<NodeRange>& said);

}  // namespace croft::core
