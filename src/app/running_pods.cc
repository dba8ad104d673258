#include "app/running_pods.h"

#include "store/kube/pod_list.h"

namespace croft::app {

Result<std::vector<core::audit::RunningPod>> list_running_pods(store::kube::Api& api, const Clock& clock) {
  std::vector<core::audit::RunningPod> running;
  const auto take = [&](const core::collect::PodFact& pod) {
    const bool has_ended = pod.phase == "Succeeded" || pod.phase == "Failed";
    if (has_ended || pod.has_no_sandbox || pod.is_in_node_network || pod.addresses.empty()) return;
    running.push_back({{pod.name, pod.namespace_name, pod.uid}, pod.node, pod.addresses});
  };
  TRY_VOID(store::kube::for_each_pod(
      api, clock, [&] { running.clear(); }, take));
  return running;
}

}  // namespace croft::app
