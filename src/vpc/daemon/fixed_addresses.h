#pragma once

#include <cstddef>
#include <deque>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <utility>

#include "base/clock.h"
#include "base/result.h"
#include "store/kube/api.h"
#include "store/kube/vpc_objects.h"
#include "vpc/use/warm_ports.h"

namespace croft::app {

/// Fixed addresses as a cluster of UK8S has them: a pod's annotation asks for one, a VpcIpClaim of the pod's name in
/// its namespace is the promise (docs/reference/warm-pool.md#fixed-addresses). Safe to use from several threads.
class ClusterFixedAddresses final : public engine::FixedAddresses {
 public:
  /// `api` outlives it. `node` is this one.
  explicit ClusterFixedAddresses(store::kube::Api& api, std::string node = "")
      : objects_(api), node_(std::move(node)) {}

  /// Remembers 4096 pods that keep none, by their UIDs. One that does is asked for each time: the API may know another
  /// of its name by now (conflict).
  [[nodiscard]] Result<Wish> wish_of(const core::PodIdentity& pod, Deadline deadline) override;
  [[nodiscard]] Result<std::optional<Promise>> promise_to(const core::PodIdentity& pod, Deadline deadline) override;
  [[nodiscard]] Result<void> attach(const core::WarmAddress& held, const Wish& wish, Deadline deadline) override;
  [[nodiscard]] Result<bool> is_gone(const std::string& node, Deadline deadline) override;

 private:
  void remember(const std::string& uid);

  store::kube::VpcObjects objects_;
  const std::string node_;
  std::mutex mutex_;               ///< guards all below
  std::set<std::string> others_;   ///< UIDs of pods that keep none
  std::deque<std::string> order_;  ///< of others_, the oldest first
};

}  // namespace croft::app
