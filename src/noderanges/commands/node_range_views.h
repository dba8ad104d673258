#pragma once

#include <string>
#include <vector>

#include "cli/croft/json_output.h"
#include "cli/croft/table.h"
#include "noderanges/decide/node_range_overview.h"
#include "noderanges/use/node_range.h"

namespace croft::app {

/// The ranges of nodes; wide: also the cluster CIDR each is from and whether the node has a record.
[[nodiscard]] Table table_of(const std::vector<core::NodeRangeSeen>& ranges, bool wide);
[[nodiscard]] Data json_of(const std::vector<core::NodeRangeSeen>& ranges);

/// The cluster CIDRs and how full they are, what is excluded, and below, a line each, the nodes that lack a range, keep
/// an old one, or are gone. `said`: by the nodes' objects, in their order; nothing of a store that has none.
/// Contradictions are findings of `croft check`, with their remedy.
[[nodiscard]] std::string text_of(const core::NodeRangeOverview& seen, const std::vector<core::NodeRange>& said = {});
[[nodiscard]] Data json_of(const core::NodeRangeOverview& seen, const std::vector<core::NodeRange>& said = {});

/// One object: what `assign` and `release` did.
[[nodiscard]] Data json_of(const core::NodeRangesAssigned& assigned);
[[nodiscard]] Data json_of(const core::NodeRangesReleased& released);

/// flannel's `/run/flannel/subnet.env` for a node, as flanneld writes it (docs/formats/flannel.md): its ranges, and the
/// cluster CIDRs of their families. For a node whose object says ranges (`said`) only these: nobody routes another.
/// Errors: not_found when the node has no range, or none that its object says; invalid_argument for a range of one
/// address.
[[nodiscard]] Result<std::string> subnet_env_of(const core::NodeRangeOverview& seen, const std::string& node, int mtu,
                                                bool ip_masquerade, const std::vector<core::NodeRange>& said = {});

}  // namespace croft::app
