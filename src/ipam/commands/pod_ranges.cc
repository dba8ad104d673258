#include "ipam/commands/pod_ranges.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "base/net/echo.h"
#include "cli/croft/command_line.h"
#include "cli/croft/filters.h"
#include "noderanges/commands/cluster_nodes.h"
#include "noderanges/use/node_cidrs.h"

namespace croft::app {

std::vector<core::NodeRange> pod_ranges(CommandLine& line) {
  const auto cidrs = open_node_cidrs(line.store_url, line.clock, operator_parts());
  if (cidrs && *cidrs == nullptr) return {};
  auto look = cidrs ? engine::look_at_node_cidrs(**cidrs) : Result<engine::NodeCidrsLook>(fail(cidrs.error()));
  if (look) return std::move(look->said);
  if (look.error().code == ErrorCode::permission_denied) {
    line.note_not_read("the podCIDRs of nodes", look.error());
    return {};
  }
  warn("the podCIDRs of nodes are not looked at: " + look.error().message);
  return {};
}

void tell_of_pod_ranges(CommandLine& line, const std::vector<net::Prefix>& cidrs, const std::string& node) {
  for (const core::NodeRange& range : pod_ranges(line)) {
    if (range.node == node) continue;
    const auto is_in = [&](const net::Prefix& cidr) { return cidr.overlaps(range.cidr); };
    if (std::ranges::none_of(cidrs, is_in)) continue;
    tell(
        fmt::format("croft: {} is the podCIDR of node {}: where host-local gives that node's addresses, pods of both "
                    "get the same (docs/runbooks/migrate.md, From host-local)",
                    range.cidr.to_string(), net::echo(range.node)));
  }
}

}  // namespace croft::app
