#pragma once

#include <string>
#include <vector>

#include "base/clock.h"
#include "base/net/address.h"
#include "store/kube/api.h"

namespace croft::store::kube {

/// An address that a Kubernetes node says is its own: InternalIP or ExternalIP in `status.addresses`. ::ffff:10.0.0.5
/// is 10.0.0.5.
struct NodeAddress {
  std::string node;
  net::Address address;
};

/// Of all nodes, asked for anew, until the deadline (none: ten minutes). What is no address is left out: a node may say
/// anything there. Errors: of for_each_object.
[[nodiscard]] Result<std::vector<NodeAddress>> list_node_addresses(Api& api, const Clock& clock,
                                                                   Deadline deadline = {});

}  // namespace croft::store::kube
