#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/net/address.h"
#include "base/net/prefix.h"
#include "store/kube/api.h"

// The statements of Kubernetes' nodes about their network, and Croft's about them.
namespace croft::store::kube {

struct NodeObject {
  std::string name;
  /// `spec.podCIDR` and `spec.podCIDRs` that can be read, as Kubernetes reads them (net::parse_prefix_leniently).
  std::vector<net::Prefix> cidrs;
  std::optional<Error> damage;  ///< something else that stands there is no range
  bool being_deleted = false;
  std::string written_by;  ///< the manager of these, by managedFields; empty: none
  /// InternalIP and ExternalIP in `status.addresses`; ::ffff:10.0.0.5 is 10.0.0.5. A text that is no address is left
  /// out.
  std::vector<net::Address> addresses;
};

/// All nodes, asked for anew, until the deadline (none: ten minutes). Errors: of for_each_object.
[[nodiscard]] Result<std::vector<NodeObject>> list_nodes(Api& api, const Clock& clock, Deadline deadline = {});

/// One node, asked for anew. Errors: not_found; of the API; corrupt.
[[nodiscard]] Result<NodeObject> find_node(Api& api, const std::string& node, Deadline deadline);

/// Says the ranges of a node that says none, `podCIDR` the first of them; the API lets nobody change them afterwards.
/// An unknown outcome is read back. Errors: not_found; conflict when the node says others; of the API.
[[nodiscard]] Result<void> say_node_cidrs(Api& api, const std::string& node, const std::vector<net::Prefix>& cidrs,
                                          Deadline deadline);

/// Takes back the condition NetworkUnavailable, which cloud controllers set on new nodes and which keeps pods away by a
/// taint. One that is not there, or says False, is left. Whether it was changed. Errors: not_found; of the API;
/// permission_denied says what to allow. An unknown outcome is an error: ask again.
[[nodiscard]] Result<bool> clear_network_unavailable(Api& api, const std::string& node, WallTime now,
                                                     Deadline deadline);

}  // namespace croft::store::kube
