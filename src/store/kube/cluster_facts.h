#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.h"
#include "base/net/address.h"
#include "base/net/prefix.h"
#include "base/result.h"
#include "collector/decide/facts.h"
#include "ipam/audit/runtime_comparison.h"
#include "store/kube/api.h"
#include "store/kube/object_list.h"

// The statements of Kubernetes' nodes about their network, and Croft's about them.
namespace croft::store::kube {

struct NodeObject {
  std::string name;
  /// `spec.podCIDR` and `spec.podCIDRs` that can be read, as Kubernetes reads them (net::parse_prefix_leniently).
  std::vector<net::Prefix> cidrs;
  std::optional<Error> damage;  ///< something else that stands there is no range
  bool being_deleted = false;
  std::string written_by;  ///< the manager of these, by managedFields; empty: none
  /// InternalIP and ExternalIP in `status.addresses`; ::ffff:10.0.0.5 is 10.0.0.5. A text that is no address is left
  /// out.
  std::vector<net::Address> addresses;
};

/// All nodes, asked for anew, until the deadline (none: ten minutes). Errors: of for_each_object.
[[nodiscard]] Result<std::vector<NodeObject>> list_nodes(Api& api, const Clock& clock, Deadline deadline = {});

/// One node, asked for anew. Errors: not_found; of the API; corrupt.
[[nodiscard]] Result<NodeObject> find_node(Api& api, const std::string& node, Deadline deadline);

/// Says the ranges of a node that says none, `podCIDR` the first of them; the API lets nobody change them afterwards.
/// An unknown outcome is read back. Errors: not_found; conflict when the node says others; of the API.
[[nodiscard]] Result<void> say_node_cidrs(Api& api, const std::string& node, const std::vector<net::Prefix>& cidrs,
                                          Deadline deadline);

/// Takes back the condition NetworkUnavailable, which cloud controllers set on new nodes and which keeps pods away by a
/// taint. One that is not there, or says False, is left. Whether it was changed. Errors: not_found; of the API;
/// permission_denied says what to allow. An unknown outcome is an error: ask again.
[[nodiscard]] Result<bool> clear_network_unavailable(Api& api, const std::string& node, WallTime now,
                                                     Deadline deadline);

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

/// The server's judgement of a token that somebody else has presented.
struct TokenReviewed {
  bool is_known = false;    ///< the server knows whose it is
  bool is_allowed = false;  ///< and the user has all rights
  std::string user;         ///< "system:serviceaccount:ops:alice"; empty: nobody
};

/// Asks whose a token is (TokenReview, authentication.k8s.io/v1), and whether that user has all rights that
/// are `needed` in the whole cluster (SubjectAccessReview, authorization.k8s.io/v1). This account needs `create` of
/// both, as deploy/kubernetes/access.yaml gives it to the controller. Errors: those of the API, the missing right among
/// them; corrupt.
[[nodiscard]] Result<TokenReviewed> review_token(Api& api, std::string_view token, std::span<const NeededRights> needed,
                                                 Deadline deadline);

/// A pod as one that lives, or seems to, with addresses of its own; nothing for any other.
[[nodiscard]] inline std::optional<core::audit::RunningPod> running_pod(const core::collect::PodFact& pod) {
  const bool has_ended = pod.phase == "Succeeded" || pod.phase == "Failed";
  if (has_ended || pod.has_no_sandbox || pod.is_in_node_network || pod.addresses.empty()) return std::nullopt;
  return core::audit::RunningPod{{pod.name, pod.namespace_name, pod.uid}, pod.node, pod.addresses};
}

/// The pods of a cluster that live, or seem to, with addresses of their own. With `all`: every pod as a fact, without
/// nodes, frozen, of the same list. Errors: of for_each_pod().
[[nodiscard]] inline Result<std::vector<core::audit::RunningPod>> list_running_pods(
    Api& api, const Clock& clock, core::collect::Facts* all = nullptr) {
  std::vector<core::audit::RunningPod> running;
  const auto begin = [&] {
    running.clear();
    if (all != nullptr) *all = {};
  };
  TRY_VOID(for_each_pod(api, clock, begin, [&](const core::collect::PodFact& pod) {
    if (auto one = running_pod(pod)) running.push_back(*std::move(one));
    if (all != nullptr) all->add_pod(pod);
  }));
  if (all == nullptr) return running;
  all->set_pods_known();
  all->freeze();
  return running;
}

}  // namespace croft::store::kube
