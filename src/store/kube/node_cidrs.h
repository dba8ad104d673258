#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/net/prefix.h"
#include "store/kube/api.h"

// `spec.podCIDR` and `spec.podCIDRs` of Kubernetes' nodes (docs/reference/node-ranges.md).
namespace croft::store::kube {

/// What one node says.
struct SaidByNode {
  std::string node;
  std::vector<net::Prefix> cidrs;  ///< what can be read, as Kubernetes reads it (net::parse_prefix_leniently)
  std::optional<Error> damage;     ///< something else that it says is no range
  bool being_deleted = false;
  std::string written_by;  ///< the manager that its managedFields name; empty: none
};

/// Of all nodes, asked for anew, until the deadline (none: ten minutes). Errors: of for_each_object.
[[nodiscard]] Result<std::vector<SaidByNode>> list_node_cidrs(Api& api, const Clock& clock, Deadline deadline = {});

/// Of one node, asked for anew. Errors: not_found; of the API; corrupt.
[[nodiscard]] Result<SaidByNode> find_node_cidrs(Api& api, const std::string& node, Deadline deadline);

/// Says the ranges of a node that says none, `podCIDR` the first of them; the API lets nobody change them afterwards.
/// An unknown outcome is read back. Errors: not_found; conflict when the node says others; of the API.
[[nodiscard]] Result<void> say_node_cidrs(Api& api, const std::string& node, const std::vector<net::Prefix>& cidrs,
                                          Deadline deadline);

}  // namespace croft::store::kube
