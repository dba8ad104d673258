#include "store/kube/format/pod.h"

#include <algorithm>
#include <array>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include <fmt/format.h>
#include <kube/kube.pb.h>

#include "base/net/echo.h"
#include "base/net/lenient.h"
#include "store/kube/format/message_fields.h"

namespace croft::wire::kube {
namespace {

using core::collect::PodFact;

constexpr std::array<std::string_view, 2> kNetworkStatuses = {"k8s.v1.cni.cncf.io/network-status",
                                                              "k8s.v1.cni.cncf.io/networks-status"};
constexpr std::array<std::string_view, 2> kCalicosAddresses = {"cni.projectcalico.org/podIP",
                                                               "cni.projectcalico.org/podIPs"};

/// Of a pod's status, by kubelets from 1.29 on.
constexpr std::string_view kHasSandbox = "PodReadyToStartContainers";

/// On what the API shows of a pod that a kubelet read from a file. No API server lets it be set or taken away later.
constexpr std::string_view kMirror = "kubernetes.io/config.mirror";

constexpr std::array kMetaBounds = {
    FieldBound{11, "metadata.labels", kMapEntriesMax},
    FieldBound{12, "metadata.annotations", kMapEntriesMax},
};
constexpr std::array kStatusBounds = {
    FieldBound{2, "status.conditions", kConditionsMax},
    FieldBound{8, "status.containerStatuses", kContainersMax},
    FieldBound{10, "status.initContainerStatuses", kContainersMax},
    FieldBound{12, "status.podIPs", kPodIpsMax},
    FieldBound{13, "status.ephemeralContainerStatuses", kContainersMax},
};
constexpr std::array kPodBounds = {
    FieldBound{1, "metadata", 0, kMetaBounds},
    FieldBound{3, "status", 0, kStatusBounds},
};

/// The last one counts, as in Go.
std::optional<JsonRef> member_of(const std::optional<JsonRef>& object, std::string_view name) {
  std::optional<JsonRef> found;
  if (!object || object->kind() != JsonKind::object) return found;
  for (auto member = object->first_child(); member; member = member->next_sibling()) {
    if (member->key() == name) found = *member;
  }
  return found;
}

std::string text_of(const std::optional<JsonRef>& value) {
  return value && value->kind() == JsonKind::string ? std::string(value->text()) : std::string();
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

/// What a pod says, whichever form it is read from.
struct Said {
  std::string name_space, name, uid, node, phase, reason, pod_ip;
  std::vector<std::string> pod_ips;
  std::size_t pod_ip_count = 0;  ///< of them, also those that are not kept
  bool has_unreadable_ips = false;
  bool host_network = false;
  bool is_mirror = false;
  std::string has_sandbox;  ///< "True", "False"; empty: not said
  bool has_containers = false, has_running = false;
  std::map<std::string_view, std::string> annotations;  ///< those that tell of addresses
};

void read_sandbox(const std::optional<JsonRef>& status, Said& said) {
  const auto conditions = member_of(status, "conditions");
  for (auto one = conditions ? conditions->first_child() : std::nullopt; one; one = one->next_sibling()) {
    if (text_of(member_of(*one, "type")) == kHasSandbox) said.has_sandbox = text_of(member_of(*one, "status"));
  }
  for (const char* name : {"containerStatuses", "initContainerStatuses", "ephemeralContainerStatuses"}) {
    const auto containers = member_of(status, name);
    for (auto one = containers ? containers->first_child() : std::nullopt; one; one = one->next_sibling()) {
      const auto running = member_of(member_of(*one, "state"), "running");
      said.has_containers = true;
      said.has_running = said.has_running || (running && !running->is_null());
    }
  }
}

void read_sandbox(const croft::kube::PodStatus& status, Said& said) {
  for (const auto& one : status.conditions()) {
    if (one.type() == kHasSandbox) said.has_sandbox = one.status();
  }
  for (const auto* containers :
       {&status.container_statuses(), &status.init_container_statuses(), &status.ephemeral_container_statuses()}) {
    for (const auto& one : *containers) {
      said.has_containers = true;
      said.has_running = said.has_running || one.state().has_running();
    }
  }
}

void read_status(const std::optional<JsonRef>& status, Said& said) {
  read_sandbox(status, said);
  said.phase = text_of(member_of(status, "phase"));
  said.reason = text_of(member_of(status, "reason"));
  said.pod_ip = text_of(member_of(status, "podIP"));
  const auto all = member_of(status, "podIPs");
  if (!all || all->is_null()) return;
  if (all->kind() != JsonKind::array) said.has_unreadable_ips = true;
  for (auto entry = all->first_child(); entry; entry = entry->next_sibling()) {
    if (++said.pod_ip_count <= kPodIpsMax) said.pod_ips.push_back(text_of(member_of(*entry, "ip")));
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
  const auto document = parse_json(text, {.bytes_max = kApiObjectBytesMax});
  if (!document || document->root().kind() != JsonKind::array) {
    pod.has_unreadable_address = true;
    return;
  }
  for (auto network = document->root().first_child(); network; network = network->next_sibling()) {
    const auto addresses = member_of(*network, "ips");
    if (!addresses || addresses->is_null()) continue;
    if (addresses->kind() != JsonKind::array) pod.has_unreadable_address = true;
    for (auto one = addresses->first_child(); one; one = one->next_sibling()) add(text_of(*one), pod);
  }
}

[[nodiscard]] Result<PodFact> fact_of(Said said) {
  using core::collect::kPodAddressesMax;
  using core::collect::kPodNameBytesMax;
  if (said.name.size() > kPodNameBytesMax || said.name_space.size() > kPodNameBytesMax) {
    return fail(ErrorCode::corrupt, fmt::format("a pod's name or namespace has more than {} bytes", kPodNameBytesMax));
  }
  if (said.pod_ip_count > kPodIpsMax) {
    return fail(ErrorCode::corrupt,
                fmt::format("status.podIPs of Pod {} has {} entries, and at most {} are read: no API "
                            "server admits so many; look at what answers as one",
                            net::echo(said.name), said.pod_ip_count, kPodIpsMax));
  }
  PodFact pod;
  pod.namespace_name = std::move(said.name_space);
  pod.name = std::move(said.name);
  pod.uid = std::move(said.uid);
  pod.node = std::move(said.node);
  pod.phase = std::move(said.phase);
  pod.reason = std::move(said.reason);
  pod.has_unreadable_address = said.has_unreadable_ips;
  pod.is_in_node_network = said.host_network;
  pod.is_mirror = said.is_mirror;
  // One whose containers fail again and again has a sandbox all the while.
  pod.has_no_sandbox =
      said.has_sandbox.empty() ? said.has_containers && !said.has_running : said.has_sandbox == "False";
  if (!said.pod_ip.empty()) add(said.pod_ip, pod);
  for (const std::string& ip : said.pod_ips) add(ip, pod);
  for (const std::string_view name : kCalicosAddresses) add_of_list(said.annotations[name], pod);
  for (const std::string_view name : kNetworkStatuses) add_of_networks(said.annotations[name], pod);
  std::ranges::sort(pod.addresses);
  const auto again = std::ranges::unique(pod.addresses);
  pod.addresses.erase(again.begin(), again.end());
  if (pod.addresses.size() > kPodAddressesMax) {
    // Who may write annotations of one pod must not stop what is done for all others.
    pod.addresses.resize(kPodAddressesMax);
    pod.has_unreadable_address = true;
  }
  return pod;
}

/// Of an annotation that tells of addresses, its name as kept here; nothing of others.
[[nodiscard]] std::optional<std::string_view> noted(std::string_view name) {
  for (const auto& names : {kCalicosAddresses, kNetworkStatuses}) {
    const auto found = std::ranges::find(names, name);
    if (found != names.end()) return std::string_view(*found);
  }
  return std::nullopt;
}

[[nodiscard]] Result<PodFact> fact_of(const croft::kube::Pod& message) {
  Said said;
  said.name_space = message.metadata().namespace_();
  said.name = message.metadata().name();
  said.uid = message.metadata().uid();
  if (said.name.empty() || said.name_space.empty() || message.metadata().resource_version().empty()) {
    return fail(ErrorCode::corrupt, "a pod in a list has no name, no namespace or no resourceVersion");
  }
  said.node = message.spec().node_name();
  said.host_network = message.spec().host_network();
  said.phase = message.status().phase();
  said.reason = message.status().reason();
  read_sandbox(message.status(), said);
  said.pod_ip = message.status().pod_ip();
  for (const auto& one : message.status().pod_ips()) said.pod_ips.push_back(one.ip());
  for (const auto& annotation : message.metadata().annotations()) {
    if (const auto name = noted(annotation.key())) said.annotations[*name] = annotation.value();
    said.is_mirror = said.is_mirror || annotation.key() == kMirror;
  }
  return fact_of(std::move(said));
}

}  // namespace

Result<PodFact> pod_fact(JsonRef object, const ApiMeta& meta) {
  Said said;
  said.name_space = meta.name_space;
  said.name = meta.name;
  said.uid = meta.uid;
  const auto spec = member_of(object, "spec");
  said.node = text_of(member_of(spec, "nodeName"));
  const auto host_network = member_of(spec, "hostNetwork");
  said.host_network = host_network && host_network->kind() == JsonKind::boolean && host_network->boolean();
  read_status(member_of(object, "status"), said);
  const auto annotations = member_of(member_of(object, "metadata"), "annotations");
  said.is_mirror = member_of(annotations, kMirror).has_value();
  for (const auto& names : {kCalicosAddresses, kNetworkStatuses}) {
    for (const std::string_view name : names) said.annotations[name] = text_of(member_of(annotations, name));
  }
  return fact_of(std::move(said));
}

Result<PodPage> decode_pods(std::string_view body, std::int64_t limit) {
  const ApiListOf of{"v1", "Pod", true, false, limit};
  PodPage page;
  if (!body.starts_with(kProtobufMark)) {
    TRY(const ApiListPage list, decode_list(body, of));
    page.resource_version = list.resource_version;
    page.continue_token = list.continue_token;
    for (const auto& item : list.items) {
      TRY(PodFact pod, pod_fact(item.value, item.meta));
      page.pods.push_back(std::move(pod));
    }
    return page;
  }
  TRY(ProtobufList list, open_protobuf_list("a list of pods", body, limit));
  TRY_VOID(check_list(list.kind, list.api_version, list.remaining, list.continue_token, of));
  page.resource_version = std::move(list.resource_version);
  page.continue_token = std::move(list.continue_token);
  page.pods.reserve(list.items.size());
  // One after the other: no more than one is in memory in all its fields.
  croft::kube::Pod message;
  for (const std::string_view item : list.items) {
    TRY_VOID(check_counts(of.kind, item, kPodBounds));
    if (!message.ParseFromArray(item.data(), static_cast<int>(item.size()))) {
      return fail(ErrorCode::corrupt, "a pod in a list of the API server is no protobuf, or it is cut off");
    }
    TRY(PodFact pod, fact_of(message));
    page.pods.push_back(std::move(pod));
  }
  return page;
}

}  // namespace croft::wire::kube
