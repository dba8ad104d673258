#include "store/kube/pod_list.h"

#include <algorithm>
#include <array>
#include <string_view>
#include <utility>

#include <fmt/format.h>

#include "base/net/lenient.h"
#include "store/kube/form.h"
#include "store/kube/format/api.h"
#include "store/kube/object_list.h"

namespace croft::store::kube {
namespace {

using core::collect::PodFact;

constexpr std::array<std::string_view, 2> kNetworkStatuses = {"k8s.v1.cni.cncf.io/network-status",
                                                              "k8s.v1.cni.cncf.io/networks-status"};
constexpr std::array<std::string_view, 2> kCalicosAddresses = {"cni.projectcalico.org/podIP",
                                                               "cni.projectcalico.org/podIPs"};

/// A condition of a pod's status, by kubelets from 1.29 on.
constexpr std::string_view kHasSandbox = "PodReadyToStartContainers";

/// On what the API shows of a pod that a kubelet read from a file. No API server lets it be set or taken away later.
constexpr std::string_view kMirror = "kubernetes.io/config.mirror";

using wire::kube::Kept;
constexpr std::array kAnnotationsKept = {Kept{kNetworkStatuses[0]}, Kept{kNetworkStatuses[1]},
                                         Kept{kCalicosAddresses[0]}, Kept{kCalicosAddresses[1]}, Kept{kMirror}};
constexpr std::array kMetaKept = {Kept{"name"},
                                  Kept{"namespace"},
                                  Kept{"uid"},
                                  Kept{"resourceVersion"},
                                  Kept{"deletionTimestamp"},
                                  Kept{"annotations", kAnnotationsKept}};
constexpr std::array kSpecKept = {Kept{"nodeName"}, Kept{"hostNetwork"}};
constexpr std::array kConditionKept = {Kept{"type"}, Kept{"status"}};
constexpr std::array kStatusKept = {Kept{"phase"}, Kept{"reason"}, Kept{"podIP"}, Kept{"podIPs"},
                                    Kept{"conditions", kConditionKept}};
constexpr std::array kPodKept = {Kept{"metadata", kMetaKept}, Kept{"spec", kSpecKept}, Kept{"status", kStatusKept}};

std::string text_of(const std::optional<wire::JsonRef>& value) {
  return value && value->kind() == wire::JsonKind::string ? std::string(value->text()) : std::string();
}

/// An address, or one with a prefix length behind it.
void add(std::string_view text, PodFact& pod) {
  const std::size_t slash = text.find('/');
  const auto address = net::parse_address_leniently(text.substr(0, slash));
  if (address) {
    pod.addresses.push_back(*address);
  } else {
    pod.has_unreadable_address = true;
  }
}

bool has_no_sandbox(const std::optional<wire::JsonRef>& status) {
  const auto conditions = member_of(status, "conditions");
  for (auto one = conditions ? conditions->first_child() : std::nullopt; one; one = one->next_sibling()) {
    if (text_of(member_of(*one, "type")) == kHasSandbox) return text_of(member_of(*one, "status")) == "False";
  }
  return false;
}

void add_of_status(const std::optional<wire::JsonRef>& status, PodFact& pod) {
  if (const std::string address = text_of(member_of(status, "podIP")); !address.empty()) add(address, pod);
  const auto all = member_of(status, "podIPs");
  if (!all || all->is_null()) return;
  if (all->kind() != wire::JsonKind::array) pod.has_unreadable_address = true;
  for (auto entry = all->first_child(); entry; entry = entry->next_sibling()) {
    add(text_of(member_of(*entry, "ip")), pod);
  }
}

/// Separated by commas; empty once the pod has ended.
void add_of_list(std::string_view list, PodFact& pod) {
  while (!list.empty()) {
    const std::size_t comma = std::min(list.find(','), list.size());
    add(list.substr(0, comma), pod);
    list.remove_prefix(std::min(comma + 1, list.size()));
  }
}

/// [{"name": …, "interface": "net1", "ips": ["10.1.1.7"]}]
void add_of_networks(const std::string& text, PodFact& pod) {
  if (text.empty()) return;
  const auto document = wire::parse_json(text, {.bytes_max = wire::kube::kApiAnswerBytesMax});
  if (!document || document->root().kind() != wire::JsonKind::array) {
    pod.has_unreadable_address = true;
    return;
  }
  for (auto network = document->root().first_child(); network; network = network->next_sibling()) {
    const auto addresses = member_of(*network, "ips");
    if (!addresses || addresses->is_null()) continue;
    if (addresses->kind() != wire::JsonKind::array) pod.has_unreadable_address = true;
    for (auto one = addresses->first_child(); one; one = one->next_sibling()) add(text_of(*one), pod);
  }
}

[[nodiscard]] Result<std::string> list_pods(Api& api, const Clock& clock, const wire::kube::ApiSelection& select,
                                            const ToSay& say, const std::function<void()>& begin,
                                            const std::function<void(const PodFact&)>& take) {
  const auto take_fact = [&](const wire::kube::ApiObject& object) -> Result<void> {
    TRY(const auto pod, pod_fact(object.value, object.meta));
    take(pod);
    return {};
  };
  return for_each_object(api, clock, {"/api/v1/pods", {"v1", "Pod", false, kPodKept}, select}, say, begin, take_fact);
}

}  // namespace

Result<PodFact> pod_fact(wire::JsonRef object, const wire::kube::ApiMeta& meta) {
  using core::collect::kPodAddressesMax;
  using core::collect::kPodNameBytesMax;
  if (meta.name.size() > kPodNameBytesMax || meta.name_space.size() > kPodNameBytesMax) {
    return fail(ErrorCode::corrupt, fmt::format("a pod's name or namespace has more than {} bytes", kPodNameBytesMax));
  }
  const auto spec = member_of(object, "spec"), status = member_of(object, "status");
  const auto annotations = member_of(member_of(object, "metadata"), "annotations");
  PodFact pod;
  pod.namespace_name = meta.name_space;
  pod.name = meta.name;
  pod.uid = meta.uid;
  pod.node = text_of(member_of(spec, "nodeName"));
  const auto host_network = member_of(spec, "hostNetwork");
  pod.is_in_node_network = host_network && host_network->boolean();
  pod.phase = text_of(member_of(status, "phase"));
  pod.reason = text_of(member_of(status, "reason"));
  pod.is_mirror = member_of(annotations, kMirror).has_value();
  pod.has_no_sandbox = has_no_sandbox(status);
  add_of_status(status, pod);
  for (const std::string_view name : kCalicosAddresses) add_of_list(text_of(member_of(annotations, name)), pod);
  for (const std::string_view name : kNetworkStatuses) add_of_networks(text_of(member_of(annotations, name)), pod);
  std::ranges::sort(pod.addresses);
  const auto again = std::ranges::unique(pod.addresses);
  pod.addresses.erase(again.begin(), again.end());
  if (pod.addresses.size() > kPodAddressesMax) {
    // An author of one pod's annotations must not stop what is done for all others.
    pod.addresses.resize(kPodAddressesMax);
    pod.has_unreadable_address = true;
  }
  return pod;
}

Result<std::optional<std::uint64_t>> for_each_pod(Api& api, const Clock& clock, const std::function<void()>& begin,
                                                  const std::function<void(const core::collect::PodFact&)>& take) {
  TRY(const std::string resource_version, list_pods(api, clock, {}, {"list pods"}, begin, take));
  const auto revision = revision_of(resource_version);
  return revision ? std::optional(revision->value) : std::nullopt;
}

Result<std::optional<core::collect::PodFact>> find_pod(Api& api, const std::string& namespace_name,
                                                       const std::string& name, Deadline deadline) {
  // A text that can be no name is no pod's.
  if (!wire::kube::is_path_segment(namespace_name) || !wire::kube::is_path_segment(name)) return std::nullopt;
  TRY(const auto object, find_object(api, {"", "v1", "pods"}, namespace_name, name, deadline, [](const Answer& answer) {
        Error error = Error(answer.error).in("get a pod");
        if (!lacks_right(answer)) return error;
        error.message += fmt::format("; {}: `get` and `list` of pods", ToSay{}.remedy);
        return error;
      }));
  if (!object) return std::nullopt;
  TRY(auto pod, pod_fact(object->value, object->meta));
  return std::optional(std::move(pod));
}

Result<void> for_each_pod_of_node(Api& api, const Clock& clock, const std::string& node, Deadline deadline,
                                  const std::function<void()>& begin,
                                  const std::function<void(const core::collect::PodFact&)>& take) {
  const ToSay say{"list pods", deadline, "the agent of this node needs to list pods, in all namespaces"};
  TRY_VOID(list_pods(api, clock, {{}, "spec.nodeName=" + node}, say, begin, take));
  return {};
}

}  // namespace croft::store::kube
