#pragma once

#include <cstdint>
#include <vector>

#include "base/net/prefix.h"
#include "register/node_range.h"

// Two programs that give ranges at once leave, where a store writes one record at a time: a node with two ranges of one
// family by its records, of which its object can say one only (docs/notes/node-ranges.md); and ranges of two nodes
// that overlap, cut by one of them with the mask size of before.
namespace croft::core {

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
