#pragma once

#include <memory>
#include <string>
#include <vector>

#include <CLI/CLI.hpp>

#include "base/clock.h"
#include "base/result.h"
#include "cli/stores/open_store.h"
#include "collector/use/node_facts.h"
#include "noderanges/decide/node_range_changes.h"

namespace croft::app {

/// The ranges that the nodes' objects say, in the Kubernetes API of a `kube:` store; null for another store, whose
/// nodes have no objects. Connects nothing. Error: as open_kube_api. `clock` must outlive it.
[[nodiscard]] Result<std::unique_ptr<engine::NodeCidrs>> open_node_cidrs(const std::string& store_url,
                                                                         const Clock& clock, const StoreParts& parts);

/// kube-controller-manager's flags of node ranges, as they were given (docs/notes/node-ranges.md#flags).
struct NodeRangeFlags {
  std::string cluster_cidr;  ///< one or more, with commas between
  int mask_size = 0;         ///< each 0: not given
  int mask_size_ipv4 = 0;
  int mask_size_ipv6 = 0;
  std::string service_cluster_ip_range;  ///< none, one or two
};

void add_node_range_flags(CLI::App& command, NodeRangeFlags& flags);

struct NodeRangeFlagsRead {
  core::NodeRangeSpec spec;
  std::vector<std::string> warnings;  ///< what is passed over, as in the reference
};

/// Reads them by the reference's rules and with its texts. More than one cluster CIDR of a family is allowed here, and
/// host bits are not. Errors: invalid_argument.
[[nodiscard]] Result<NodeRangeFlagsRead> read_node_range_flags(const NodeRangeFlags& flags);

}  // namespace croft::app
