#pragma once

#include <functional>
#include <string>

#include "base/clock.h"
#include "base/net/address.h"
#include "base/result.h"
#include "store/kube/api.h"
#include "store/kube/vpc_objects.h"

namespace croft::app {

/// Lets VpcIpClaims go that somebody has deleted: an attached one is held by the finalizer of attach() until whoever
/// attached it says that no pod lives with its address any more. Not safe to use from several threads.
class DeletedClaims {
 public:
  /// `api` outlives it; `node`: this one's name in the cluster.
  DeletedClaims(store::kube::Api& api, std::string node) : objects_(api), node_(std::move(node)) {}

  /// Detaches what is deleted, and was attached by this node, if its address is none of `is_held`; and what was
  /// attached by a node that the cluster has no more. A claim that says no node is another program's. What another
  /// changed meanwhile waits for the next pass. Returns how many went. Errors: those of VpcObjects.
  [[nodiscard]] Result<int> let_go(const std::function<bool(const net::Address&)>& is_held, Deadline deadline);

 private:
  [[nodiscard]] Result<bool> detach(const store::kube::VpcObjects::NamedClaim& seen, Deadline deadline);

  store::kube::VpcObjects objects_;
  const std::string node_;
};

}  // namespace croft::app
