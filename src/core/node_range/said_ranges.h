#pragma once

#include <string>
#include <vector>

#include "core/register/node_range.h"
#include "net/prefix.h"

// What nodes' own objects say of their ranges, beside Croft's records (docs/reference/node-ranges.md#said).
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

}  // namespace croft::core
