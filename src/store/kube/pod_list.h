#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>

#include "base/clock.h"
#include "collector/decide/facts.h"
#include "store/kube/api.h"

namespace croft::store::kube {

/// The collector's facts about a Pod (core/v1): namespace, name, UID, node, whether it is in the node's network, phase
/// and reason, whether it is a mirror. It has no sandbox when the condition PodReadyToStartContainers is False. Its
/// addresses are all that it reports for itself: `status.podIPs` and `podIP`; those that Calico's plugin notes before
/// kubelet has them (`cni.projectcalico.org/podIP`, `podIPs`); those of further networks
/// (`k8s.v1.cni.cncf.io/network-status`, and its older name `networks-status`). A pod in its node's network reports the
/// node's. An address that can't be understood, or is beyond kPodAddressesMax, is noted: then nothing is concluded from
/// the others. Error: corrupt, for a name or namespace that none can have.
[[nodiscard]] Result<core::collect::PodFact> pod_fact(wire::JsonRef object, const wire::kube::ApiMeta& meta);

/// Reads all pods of the cluster, as new as can be, page by page, so that no more than a page of their text is in
/// memory. `begin` is called before the first pod, and again when the list has to be read anew: what was taken before
/// is void then. Errors: those of the API; permission_denied names what to allow; corrupt for a pod that can be none.
/// Without an error every pod that existed when this was called, and still does, was taken. The answer is the revision
/// that the list is of, where its resourceVersion is a number.
[[nodiscard]] Result<std::optional<std::uint64_t>> for_each_pod(
    Api& api, const Clock& clock, const std::function<void()>& begin,
    const std::function<void(const core::collect::PodFact&)>& take);

/// One pod, asked for by itself: as new as can be (read from etcd's quorum), whatever a list says. Nothing where none
/// has the name. Errors: as of for_each_pod(), and corrupt for an answer that is another's.
[[nodiscard]] Result<std::optional<core::collect::PodFact>> find_pod(Api& api, const std::string& namespace_name,
                                                                     const std::string& name, Deadline deadline);

/// The same as for_each_pod() of the pods that are bound to one node, by a field selector. Errors also:
/// deadline_exceeded.
[[nodiscard]] Result<void> for_each_pod_of_node(Api& api, const Clock& clock, const std::string& node,
                                                Deadline deadline, const std::function<void()>& begin,
                                                const std::function<void(const core::collect::PodFact&)>& take);

}  // namespace croft::store::kube
