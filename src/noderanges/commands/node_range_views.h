#pragma once

#include <string>
#include <utility>
#include <vector>

#include "cli/croft/data.h"
#include "cli/croft/table.h"
#include "noderanges/decide/said_ranges.h"
#include "noderanges/format/subnet_env.h"
#include "noderanges/use/node_range.h"

namespace croft::app {

/// The ranges of nodes; wide: also the cluster CIDR each is from and whether the node has a record.
[[nodiscard]] Table table_of(const std::vector<core::NodeRangeSeen>& ranges, bool wide);
[[nodiscard]] Data json_of(const std::vector<core::NodeRangeSeen>& ranges);

/// What the nodes' objects say, beside the records; nothing of a store that has none.
struct SaidView {
  core::SaidComparison compared;
  std::vector<std::pair<std::string, Error>> unreadable;  ///< by node
  std::vector<core::NodeRange> all;                       ///< as they are said, in their order
};

/// The cluster CIDRs and how full they are, what is excluded, and below, a line each, what wants the operator's eye.
[[nodiscard]] std::string text_of(const core::NodeRangesSeen& seen, const SaidView& said = {});
[[nodiscard]] Data json_of(const core::NodeRangesSeen& seen, const SaidView& said = {});

/// One object: what `assign` and `release` did.
[[nodiscard]] Data json_of(const core::NodeRangesAssigned& assigned);
[[nodiscard]] Data json_of(const core::NodeRangesReleased& released);

/// What flannel's plugin is to be told on this node: its ranges, and the cluster CIDRs of their families. Of a node
/// whose object says ranges (`said`) only these: nobody routes another. Errors: not_found when the node has no range,
/// or none that its object says; invalid_argument for a range of one address.
[[nodiscard]] Result<wire::SubnetEnv> subnet_env_of(const core::NodeRangesSeen& seen, const std::string& node, int mtu,
                                                    bool ip_masquerade, const std::vector<core::NodeRange>& said = {});

}  // namespace croft::app
