#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/net/address.h"
#include "base/net/prefix.h"
#include "ipam/use/transact.h"
#include "register/pool.h"
#include "store/kube/api.h"

// What lives on a node with an address, as far as it can be seen from there (docs/runbooks/kubernetes-node.md).
namespace croft::app {

struct LivingAddress {
  net::Address address;
  std::string whose;  ///< "pod default/web"
};

/// What host-local has given in a network's directory, and not taken back; none of one that is not there. Errors: of
/// one that can't be read, or has too many files.
[[nodiscard]] Result<std::vector<LivingAddress>> addresses_in_directory(const std::string& path);

/// Of the node's pods that run and have a network of their own. Errors: of for_each_pod_of_node().
[[nodiscard]] Result<std::vector<LivingAddress>> addresses_of_pods(store::kube::Api& api, const Clock& clock,
                                                                   const std::string& node, Deadline deadline);

/// Those that a pool has, and that are free: the register may give them to another. Errors: of the store; corrupt.
[[nodiscard]] Result<std::vector<LivingAddress>> not_held(const engine::Context& context,
                                                          const std::vector<core::Pool>& pools,
                                                          std::vector<LivingAddress> living);

/// One that the register has given and that lies in the ranges, or anywhere where nobody knows these. Errors: as above.
[[nodiscard]] Result<std::optional<net::Address>> held_in(const engine::Context& context,
                                                          const std::optional<std::vector<net::Prefix>>& ranges);

/// What the register has given on this node, or does not say where, and nobody gave back; on any where `node` is empty.
/// Errors: as above.
[[nodiscard]] Result<std::vector<LivingAddress>> held_on_node(const engine::Context& context, const std::string& node);

/// "10.244.0.2 (pod default/web), … and 7 more".
[[nodiscard]] std::string text_of(const std::vector<LivingAddress>& living);

}  // namespace croft::app
