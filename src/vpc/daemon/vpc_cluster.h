#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "base/net/address.h"
#include "base/result.h"
#include "register/owner.h"
#include "store/kube/api.h"
#include "store/kube/vpc_objects.h"
#include "vpc/use/stock_sources.h"

// The cluster of an agent of a stock of cloud addresses: promises to pods, the board where agents find each other, and
// pods' annotations.

namespace croft::app {

/// Fixed addresses as a cluster of UK8S has them: a pod's annotation asks for one, a VpcIpClaim of the pod's name in
/// its namespace is the promise (docs/notes/warm-pool.md#fixed-addresses). Safe to use from several threads.
class ClusterFixedAddresses final : public engine::FixedAddresses {
 public:
  /// `api` outlives it; `node`: this one's name in the cluster.
  ClusterFixedAddresses(store::kube::Api& api, std::string node) : api_(api), node_(std::move(node)), claims_(api) {}

  /// Asks each time: the API may know another pod of its name by now (conflict).
  [[nodiscard]] Result<Wish> wish_of(const core::PodIdentity& pod, Deadline deadline) override;
  [[nodiscard]] Result<std::optional<Promise>> promise_to(const core::PodIdentity& pod, Deadline deadline) override;
  [[nodiscard]] Result<void> attach(const core::StockAddress& held, const Wish& wish, Deadline deadline) override;

  /// A claim without an address promises none yet, and one with nonsense none that anybody could be given.
  [[nodiscard]] Result<std::vector<net::Address>> all_fixed(Deadline deadline) override;
  [[nodiscard]] Result<std::vector<core::PodIdentity>> living_with(const net::Address& address,
                                                                   Deadline deadline) override {
    return store::kube::pods_with(api_, address, deadline);
  }
  /// Lets claims go that somebody has deleted: an attached one is held by its finalizer until whoever attached it says
  /// that no pod lives with its address any more. Detaches what is deleted, and was attached by this node, if its
  /// address is none of `is_held`; and what was attached by a node that the cluster has no more. A claim that says no
  /// node is another program's. A claim that another changed meanwhile waits for the next pass. Returns how many went.
  [[nodiscard]] Result<int> let_go(const std::function<bool(const net::Address&)>& is_held, Deadline deadline);

 private:
  using Claim = wire::kube::VpcObject<wire::kube::VpcIpClaimRecord>;
  /// None in a cluster without the kind.
  [[nodiscard]] Result<std::vector<Claim>> all(Deadline deadline);
  [[nodiscard]] Result<bool> detach(const Claim& seen, Deadline deadline);

  store::kube::Api& api_;
  const std::string node_;
  store::kube::VpcObjects<wire::kube::VpcIpClaimRecord> claims_;
};

/// The agents' notice board in the cluster: an object `ipamds` a node in kube-system. From one thread at a time;
/// peers() from any.
class VpcBoard {
 public:
  /// `address` is where this node's agent serves its peers, `10.0.0.2:7312`. `api` and `clock` must outlive it.
  VpcBoard(store::kube::Api& api, const Clock& clock, std::string node, std::string address)
      : api_(api), stocks_(api), clock_(clock), node_(std::move(node)), address_(std::move(address)) {}

  struct Status {
    std::uint32_t free = 0, low = 0, high = 0;
    /// "dry", "hungry", "normal" or "overflow" (docs/notes/warm-pool.md#control-loop).
    std::string status;
  };
  /// Says how this node's stock is. Asks the API only when something is new, or ten minutes have passed: somebody may
  /// have changed or deleted it.
  [[nodiscard]] Result<void> publish(const cloud::Interface& interface, const Status& status, Deadline deadline);
  /// Deletes what names a node that is not there. Nothing at all where the cluster has not this one either: then the
  /// list is not to be believed.
  [[nodiscard]] Result<void> clean_up(Deadline deadline);

  /// engine::PeerAgents::list, without those that give no address.
  [[nodiscard]] Result<std::vector<engine::Peer>> peers(const std::string& subnet, Deadline deadline);

 private:
  using Ipamd = wire::kube::VpcObject<wire::kube::IpamdRecord>;
  store::kube::Api& api_;
  store::kube::VpcObjects<wire::kube::IpamdRecord> stocks_;
  const Clock& clock_;
  const std::string node_;
  const std::string address_;
  std::optional<Ipamd> own_;  ///< as it was written or read last
  std::chrono::nanoseconds own_at_{};
};

/// Writes a pod's address where Calico's policy reads it before kubelet has reported it. Errors: conflict, the pod of
/// this name is another one by now; those of the API.
[[nodiscard]] Result<void> annotate_pod(store::kube::Api& api, const core::PodIdentity& pod,
                                        const net::Address& address, Deadline deadline);

}  // namespace croft::app
