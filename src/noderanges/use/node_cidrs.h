#pragma once

#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "collector/use/node_facts.h"
#include "noderanges/decide/node_range_look.h"
#include "noderanges/use/node_range.h"

// Node ranges beside the nodes' own objects (docs/notes/node-ranges.md#contract). Croft's records are the truth and
// are committed first; what a node's object says follows, and never changes again. So whoever dies in between leaves a
// range that the next pass says.

namespace croft::engine {

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
/// Compares it with the records.
[[nodiscard]] core::SaidComparison compare(const NodeCidrsLook& look, const core::NodeRangesSeen& seen);

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
