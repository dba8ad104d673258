#pragma once

#include <string>
#include <utility>
#include <vector>

#include "base/result.h"
#include "core/audit/register_report.h"
#include "core/node_range/node_range_look.h"
#include "core/node_range/said_ranges.h"

namespace croft::core::audit {

/// What contradicts itself in the ranges of nodes, by the records and by what the nodes' objects say, with the remedy.
/// `unreadable`: what nodes' objects say that is no range, by node.
[[nodiscard]] std::vector<Finding> audit_node_ranges(const NodeRangesSeen& seen, const SaidComparison& said,
                                                     const std::vector<std::pair<std::string, Error>>& unreadable);

}  // namespace croft::core::audit
