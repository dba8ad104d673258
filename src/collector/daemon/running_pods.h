#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/clock.h"
#include "collector/decide/facts.h"
#include "ipam/audit/runtime_comparison.h"
#include "store/kube/api.h"
#include "store/kube/pod_list.h"

namespace croft::app {

/// A pod as one that lives, or seems to, with addresses of its own; nothing for any other.
[[nodiscard]] inline std::optional<core::audit::RunningPod> running_pod(const core::collect::PodFact& pod) {
  const bool has_ended = pod.phase == "Succeeded" || pod.phase == "Failed";
  if (has_ended || pod.has_no_sandbox || pod.is_in_node_network || pod.addresses.empty()) return std::nullopt;
  return core::audit::RunningPod{{pod.name, pod.namespace_name, pod.uid}, pod.node, pod.addresses};
}

/// The pods of a cluster that live, or seem to, with addresses of their own. Errors: of for_each_pod().
[[nodiscard]] inline Result<std::vector<core::audit::RunningPod>> list_running_pods(store::kube::Api& api,
                                                                                    const Clock& clock) {
  std::vector<core::audit::RunningPod> running;
  const auto take = [&](const core::collect::PodFact& pod) {
    if (auto one = running_pod(pod)) running.push_back(*std::move(one));
  };
  TRY_VOID(store::kube::for_each_pod(
      api, clock, [&] { running.clear(); }, take));
  return running;
}

}  // namespace croft::app
