#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "collector/decide/facts.h"
#include "store/kube/format/api.h"

namespace croft::wire::kube {

/// What the collector needs of a Pod (core/v1): namespace, name, UID, node, whether it is in the node's network, phase
/// and reason, whether it is a mirror, whether it has no sandbox (the condition PodReadyToStartContainers is False, or,
/// where there is none, as from kubelets before 1.29, none of its containers runs), and every address that it reports
/// for itself: `status.podIPs` and `podIP`; those that Calico's plugin notes before kubelet has them
/// (`cni.projectcalico.org/podIP`, `podIPs`); those of further networks (`k8s.v1.cni.cncf.io/network-status`, and its
/// older name `networks-status`). A pod in its node's network reports the node's. What can't be understood among the
/// addresses, or is above kPodAddressesMax, is noted: then nothing is concluded from the others. Error: corrupt, for a
/// name or namespace that none can have, or more `status.podIPs` than any API server admits.
[[nodiscard]] Result<core::collect::PodFact> pod_fact(JsonRef object, const ApiMeta& meta);

/// What a list of pods is asked for as: a third of the bytes of JSON, and a fraction of the server's time. One that
/// has no protobuf answers in JSON.
inline constexpr std::string_view kAcceptPods = "application/vnd.kubernetes.protobuf, application/json";

/// A part of a list of pods.
struct PodPage {
  std::string resource_version;  ///< ApiListPage::resource_version
  std::string continue_token;    ///< asks for the next page; empty: this is the last
  std::vector<core::collect::PodFact> pods;
};
/// In protobuf or JSON: the first bytes tell. `limit`: pods that were asked for at most (ApiListOf::limit). Errors:
/// corrupt, as of pod_fact() and decode_list(), and for a pod with more of something than can be; kTooLarge.
[[nodiscard]] Result<PodPage> decode_pods(std::string_view body, std::int64_t limit);

}  // namespace croft::wire::kube
