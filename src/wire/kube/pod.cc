#include "wire/kube/pod.h"

#include <algorithm>
#include <array>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include <fmt/format.h>

#include "net/echo.h"

namespace croft::wire::kube {
namespace {

using core::collect::PodFact;

constexpr std::array<std::string_view, 2> kNetworkStatuses = {"k8s.v1.cni.cncf.io/network-status",
                                                              "k8s.v1.cni.cncf.io/networks-status"};
constexpr std::array<std::string_view, 2> kCalicosAddresses = {"cni.projectcalico.org/podIP",
                                                               "cni.projectcalico.org/podIPs"};

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
  const auto address = net::Address::parse(std::string(text.substr(0, slash)));
  if (address) {
    pod.addresses.push_back(*address);
  } else {
    pod.has_unreadable_address = true;
  }
}

void add_of_status(const std::optional<JsonRef>& status, PodFact& pod) {
  if (const std::string one = text_of(member_of(status, "podIP")); !one.empty()) add(one, pod);
  const auto all = member_of(status, "podIPs");
  if (!all || all->is_null()) return;
  if (all->kind() != JsonKind::array) pod.has_unreadable_address = true;
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

}  // namespace

Result<PodFact> pod_fact(JsonRef object, const ApiMeta& meta) {
  using core::collect::kPodAddressesMax;
  using core::collect::kPodNameBytesMax;
  if (meta.name.size() > kPodNameBytesMax || meta.name_space.size() > kPodNameBytesMax) {
    return fail(ErrorCode::corrupt, fmt::format("a pod's name or namespace has more than {} bytes", kPodNameBytesMax));
  }
  PodFact pod;
  pod.namespace_name = meta.name_space;
  pod.name = meta.name;
  pod.uid = meta.uid;
  pod.node = text_of(member_of(member_of(object, "spec"), "nodeName"));
  const auto status = member_of(object, "status");
  pod.phase = text_of(member_of(status, "phase"));
  pod.reason = text_of(member_of(status, "reason"));
  add_of_status(status, pod);
  const auto annotations = member_of(member_of(object, "metadata"), "annotations");
  for (const std::string_view name : kCalicosAddresses) add_of_list(text_of(member_of(annotations, name)), pod);
  for (const std::string_view name : kNetworkStatuses) add_of_networks(text_of(member_of(annotations, name)), pod);
  std::ranges::sort(pod.addresses);
  const auto again = std::ranges::unique(pod.addresses);
  pod.addresses.erase(again.begin(), again.end());
  if (pod.addresses.size() > kPodAddressesMax) {
    return fail(ErrorCode::corrupt, fmt::format("pod {}/{} reports more than {} addresses",
                                                net::echo(pod.namespace_name), net::echo(pod.name), kPodAddressesMax));
  }
  return pod;
}

}  // namespace croft::wire::kube
