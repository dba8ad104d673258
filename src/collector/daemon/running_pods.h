#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/clock.h"
#include "collector/decide/facts.h"
#include "ipam/audit/runtime_comparison.h"
#include "store/kube/api.h"
#include "store/kube/cluster_facts.h"

namespace croft::app {

/// A pod as one that lives, or seems to, with addresses of its own; nothing for any other.
[[nodiscard]] inline std::optional<core::audit::RunningPod> running_pod(const core::collect::PodFact& pod) {
  const bool has_ended = pod.phase == "Succeeded" || pod.phase == "Failed";
  if (has_ended || pod.has_no_sandbox || pod.is_in_node_network || pod.addresses.empty()) return std::nullopt;
  return core::audit::RunningPod{{pod.name, pod.namespace_name, pod.uid}, pod.node, pod.addresses};
}

/// The pods of a cluster that live, or seem to, with addresses of their own. With `all`: every pod as a fact, without
/// nodes, frozen, of the same list. Errors: of for_each_pod().
[[nodiscard]] inline Result<std::vector<core::audit::RunningPod>> list_running_pods(
    store::kube::Api& api, const Clock& clock, core::collect::Facts* all = nullptr) {
  std::vector<core::audit::RunningPod> running;
  const auto begin = [&] {
    running.clear();
    if (all != nullptr) *all = {};
  };
  TRY_VOID(store::kube::for_each_pod(api, clock, begin, [&](const core::collect::PodFact& pod) {
    if (auto one = running_pod(pod)) running.push_back(*std::move(one));
    if (all != nullptr) all->add_pod(pod);
  }));
  if (all == nullptr) return running;
  all->set_pods_known();
  all->freeze();
  return running;
}

}  // namespace croft::app
