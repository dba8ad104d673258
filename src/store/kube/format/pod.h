#pragma once

#include "collector/decide/facts.h"
#include "store/kube/format/api.h"

namespace croft::wire::kube {

/// The collector's facts about a Pod (core/v1): namespace, name, UID, node, whether it is in the node's network, phase
/// and reason, whether it is a mirror. It has no sandbox when the condition PodReadyToStartContainers is False. Its
/// addresses are all that it reports for itself: `status.podIPs` and `podIP`; those that Calico's plugin notes before
/// kubelet has them (`cni.projectcalico.org/podIP`, `podIPs`); those of further networks
/// (`k8s.v1.cni.cncf.io/network-status`, and its older name `networks-status`). A pod in its node's network reports the
/// node's. An address that can't be understood, or is beyond kPodAddressesMax, is noted: then nothing is concluded from
/// the others. Error: corrupt, for a name or namespace that none can have.
[[nodiscard]] Result<core::collect::PodFact> pod_fact(JsonRef object, const ApiMeta& meta);

/// A list of pods, with what pod_fact() reads of each: a tenth of their text.
[[nodiscard]] ApiListOf list_of_pods();

}  // namespace croft::wire::kube
