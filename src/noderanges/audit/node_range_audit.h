#pragma once

#include <string>
#include <utility>
#include <vector>

#include "base/result.h"
#include "ipam/audit/findings.h"
#include "noderanges/decide/node_range_overview.h"

namespace croft::core::audit {

/// Finds contradictions in the ranges of nodes, by the records and by the nodes' objects, with the remedy.
/// `unreadable`: what nodes' objects say that is no range, by node.
[[nodiscard]] std::vector<Finding> audit_node_ranges(const NodeRangeOverview& seen, const SaidComparison& said,
                                                     const std::vector<std::pair<std::string, Error>>& unreadable);

/// Blocks that are the range of another node, by what the nodes' objects say (`spec.podCIDRs`): where that node gets
/// its addresses from host-local, pods of both would have one. Nothing where no node has its own range as a block: then
/// the ranges of the objects are nobody's, as those that kubeadm gives beside pools of its podSubnet.
[[nodiscard]] std::vector<Finding> audit_pod_ranges(const std::vector<BlockOfNode>& blocks,
                                                    const std::vector<NodeRange>& said);

}  // namespace croft::core::audit
