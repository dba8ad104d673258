#include "store/kube/cluster_facts.h"

#include <algorithm>
#include <array>
#include <optional>
#include <string_view>
#include <utility>

#include <fmt/format.h>

#include "base/json/reader.h"
#include "base/json/writer.h"
#include "base/net/prefix.h"
#include "base/printable.h"
#include "base/time_text.h"
#include "store/kube/format/api.h"
#include "store/kube/object_list.h"
#include "store/kube/object_mapping.h"

namespace croft::store::kube {
namespace {

using Outcome = Answer::Outcome;
using wire::kube::is_true_in;
using wire::kube::text_in;

constexpr wire::kube::ApiResource kNodes{"", "v1", "nodes"};

/// Calls `take` for each element of an array, where there is one.
template <class Take>
void each(const std::optional<wire::JsonRef>& array, Take take) {
  for (auto one = array ? array->first_child() : std::nullopt; one; one = one->next_sibling()) take(*one);
}

void take_cidr(NodeObject& node, std::string_view text) {
  const auto cidr = net::parse_prefix_leniently(text);
  if (!cidr) {
    node.damage =
        net::Prefix::parse(text).error().in(fmt::format("node {} says the range {}", echo(node.name), echo(text)));
  } else if (std::ranges::find(node.cidrs, *cidr) == node.cidrs.end()) {
    node.cidrs.push_back(*cidr);
  }
}

NodeObject node_in(wire::JsonRef object, const wire::kube::ApiMeta& meta) {
  NodeObject node;
  node.name = meta.name;
  node.being_deleted = meta.deletion_timestamp.has_value();
  // All that is there: what is left out here would be given to another.
  each(member_of(member_of(object, "spec"), "podCIDRs"), [&](wire::JsonRef one) { take_cidr(node, one.text()); });
  const auto single = member_of(member_of(object, "spec"), "podCIDR");
  if (single && !single->text().empty()) take_cidr(node, single->text());
  each(member_of(member_of(object, "metadata"), "managedFields"), [&](wire::JsonRef entry) {
    const auto spec = member_of(member_of(entry, "fieldsV1"), "f:spec");
    const bool wrote = spec && (member_of(*spec, "f:podCIDR") || member_of(*spec, "f:podCIDRs"));
    if (wrote && node.written_by.empty()) node.written_by = text_in(entry, "manager");
  });
  each(member_of(member_of(object, "status"), "addresses"), [&](wire::JsonRef one) {
    const std::string_view type = text_in(one, "type");
    if (type != "InternalIP" && type != "ExternalIP") return;
    if (const auto address = net::parse_address_leniently(text_in(one, "address"))) node.addresses.push_back(*address);
  });
  return node;
}

Answer patch(Api& api, std::string path, std::string body, Deadline deadline) {
  return api.call({Request::Method::patch, std::move(path), std::move(body), "application/strategic-merge-patch+json"},
                  deadline);
}

Error condition_error(const Answer& answer, const std::string& node) {
  return error_in(answer, fmt::format("NetworkUnavailable of node {}", echo(node)),
                  "kubectl apply -f deploy/kubernetes/network-unavailable.yaml allows it");
}

}  // namespace

Result<std::vector<NodeObject>> list_nodes(Api& api, const Clock& clock, Deadline deadline) {
  std::vector<NodeObject> all;
  const auto take = [&](const wire::kube::ApiObject& object) -> Result<void> {
    all.push_back(node_in(object.value, object.meta));
    return {};
  };
  TRY_VOID(for_each_object(
      api, clock, {"/api/v1/nodes", list_of_nodes()}, {"list nodes", deadline}, [&] { all.clear(); }, take));
  return all;
}

Result<NodeObject> find_node(Api& api, const std::string& node, Deadline deadline) {
  TRY(const std::string path, wire::kube::object_path(kNodes, {}, node));
  const Answer answer = api.get(path, deadline);
  if (answer.outcome != Outcome::done) return fail(answer.error.in(fmt::format("node {}", echo(node))));
  TRY(const auto object, wire::kube::decode_object(answer.body));
  return node_in(object.value, object.meta);
}

Result<void> say_node_cidrs(Api& api, const std::string& node, const std::vector<net::Prefix>& cidrs,
                            Deadline deadline) {
  TRY(const std::string path, wire::kube::object_path(kNodes, {}, node));
  Answer answer = patch(api, path,
                        fmt::format(R"({{"spec":{{"podCIDR":"{}","podCIDRs":["{}"]}}}})", cidrs.front().to_string(),
                                    net::joined(cidrs, R"(",")")),
                        deadline);
  const ErrorCode code = answer.error.code;
  const bool is_settled = code == ErrorCode::not_found || code == ErrorCode::permission_denied;
  Error why = answer.error.in(fmt::format("say the ranges of node {}", echo(node)));
  // Refused, since it says some already; or nobody knows.
  if (answer.outcome != Outcome::done && !is_settled) answer = api.get(path, deadline);
  if (answer.outcome != Outcome::done) return fail(std::move(why));
  TRY(const auto object, wire::kube::decode_object(answer.body));
  const NodeObject said = node_in(object.value, object.meta);
  if (!said.damage && said.cidrs == cidrs) return {};
  if (said.cidrs.empty() && !said.damage) return fail(std::move(why));
  return fail(ErrorCode::conflict, fmt::format("node {} says the ranges {}, and its record says {}", echo(node),
                                               net::joined(said.cidrs), net::joined(cidrs)));
}

Result<bool> clear_network_unavailable(Api& api, const std::string& node, WallTime now, Deadline deadline) {
  TRY(const std::string path, wire::kube::object_path(kNodes, {}, node));
  const Answer is = api.get(path, deadline);
  if (is.outcome != Outcome::done) return fail(condition_error(is, node));
  TRY(const auto object, wire::kube::decode_object(is.body));
  bool is_unavailable = false;
  each(member_of(member_of(object.value, "status"), "conditions"), [&](wire::JsonRef one) {
    if (text_in(one, "type") == "NetworkUnavailable") is_unavailable = text_in(one, "status") != "False";
  });
  if (!is_unavailable) return false;
  const std::string body =
      fmt::format(R"({{"status":{{"conditions":[{{"type":"NetworkUnavailable","status":"False","reason":"CroftIsUp",)"
                  R"("message":"Croft gives addresses to the pods of this node","lastHeartbeatTime":"{0}",)"
                  R"("lastTransitionTime":"{0}"}}]}}}})",
                  rfc3339_rounded_up(now));
  const Answer answer = patch(api, path + "/status", body, deadline);
  if (answer.outcome != Outcome::done) return fail(condition_error(answer, node));
  return true;
}

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

/// An address, or one with a prefix length behind it.
void add(std::string_view text, PodFact& pod) {
  if (const auto address = net::parse_address_leniently(text.substr(0, text.find('/')))) {
    pod.addresses.push_back(*address);
  } else {
    pod.has_unreadable_address = true;
  }
}

bool has_no_sandbox(const std::optional<wire::JsonRef>& status) {
  bool has_none = false;
  each(member_of(status, "conditions"), [&](wire::JsonRef one) {
    if (text_in(one, "type") == kHasSandbox) has_none = text_in(one, "status") == "False";
  });
  return has_none;
}

void add_of_status(const std::optional<wire::JsonRef>& status, PodFact& pod) {
  if (const std::string_view address = text_in(status, "podIP"); !address.empty()) add(address, pod);
  const auto all = member_of(status, "podIPs");
  if (!all || all->is_null()) return;
  if (all->kind() != wire::JsonKind::array) pod.has_unreadable_address = true;
  each(all, [&](wire::JsonRef entry) { add(text_in(entry, "ip"), pod); });
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
void add_of_networks(std::string_view text, PodFact& pod) {
  if (text.empty()) return;
  const auto document = wire::parse_json(text, {.bytes_max = wire::kube::kApiAnswerBytesMax});
  if (!document || document->root().kind() != wire::JsonKind::array) {
    pod.has_unreadable_address = true;
    return;
  }
  each(document->root(), [&](wire::JsonRef network) {
    const auto addresses = member_of(network, "ips");
    if (!addresses || addresses->is_null()) return;
    if (addresses->kind() != wire::JsonKind::array) pod.has_unreadable_address = true;
    each(addresses, [&](wire::JsonRef one) { add(one.text(), pod); });
  });
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
  pod.node = text_in(spec, "nodeName");
  pod.is_in_node_network = is_true_in(spec, "hostNetwork");
  pod.phase = text_in(status, "phase");
  pod.reason = text_in(status, "reason");
  pod.is_mirror = member_of(annotations, kMirror).has_value();
  pod.has_no_sandbox = has_no_sandbox(status);
  add_of_status(status, pod);
  for (const std::string_view name : kCalicosAddresses) add_of_list(text_in(annotations, name), pod);
  for (const std::string_view name : kNetworkStatuses) add_of_networks(text_in(annotations, name), pod);
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
        return error_in(answer, "get a pod", fmt::format("{}: `get` and `list` of pods", ToSay{}.remedy));
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

namespace {

using wire::JsonRef;
using wire::JsonWriter;

/// A review: an object that the server answers at once and does not keep. `write` writes its spec.
template <class Write>
[[nodiscard]] Request review(std::string_view group, std::string_view kind, std::string path, Write write) {
  JsonWriter out(JsonWriter::Layout::compact);
  out.begin_object();
  out.text("apiVersion", fmt::format("{}/v1", group));
  out.text("kind", kind);
  out.begin_object("spec");
  write(out);
  out.end_object();
  out.end_object();
  return Request::question(std::move(path), std::move(out).take());
}

[[nodiscard]] Result<wire::JsonDocument> answer_to(Api& api, const Request& request, std::string_view what,
                                                   Deadline deadline) {
  const Answer answer = api.call(request, deadline);
  if (answer.outcome == Answer::Outcome::done) {
    return wire::parse_json(answer.body, {.bytes_max = wire::kube::kApiAnswerBytesMax});
  }
  return fail(error_in(answer, what, "the controller may not ask that: set controller.desk in the chart"));
}

/// A right of somebody, asked as he is described: name, groups and the rest as TokenReview has them.
[[nodiscard]] Request access_review(JsonRef user, const NeededRights& needed, std::string_view verb) {
  return review("authorization.k8s.io", "SubjectAccessReview", "/apis/authorization.k8s.io/v1/subjectaccessreviews",
                [&](JsonWriter& out) {
                  constexpr std::array<std::pair<std::string_view, std::string_view>, 4> kMembers = {
                      {{"username", "user"}, {"uid", "uid"}, {"groups", "groups"}, {"extra", "extra"}}};
                  for (const auto& [theirs, name] : kMembers) {
                    const auto value = member_of(user, theirs);
                    if (value && !value->is_null()) wire::copy_json(out, name, *value);
                  }
                  out.begin_object("resourceAttributes");
                  out.text("group", needed.group);
                  out.text("resource", needed.resource);
                  out.text("verb", verb);
                  out.end_object();
                });
}

}  // namespace

Result<TokenReviewed> review_token(Api& api, std::string_view token, std::span<const NeededRights> needed,
                                   Deadline deadline) {
  const Request asked = review("authentication.k8s.io", "TokenReview", "/apis/authentication.k8s.io/v1/tokenreviews",
                               [&](JsonWriter& out) { out.text("token", token); });
  TRY(const auto whose, answer_to(api, asked, "whose the token is", deadline));
  TokenReviewed reviewed;
  const auto status = member_of(whose.root(), "status");
  const auto user = member_of(status, "user");
  const std::string_view name = text_in(user, "username");
  if (!is_true_in(status, "authenticated") || name.empty()) return reviewed;
  reviewed.is_known = true;
  reviewed.user = name;
  for (const NeededRights& rights : needed) {
    for (const std::string_view verb : rights.verbs) {
      TRY(const auto may, answer_to(api, access_review(*user, rights, verb), "what its user may do", deadline));
      if (!is_true_in(member_of(may.root(), "status"), "allowed")) return reviewed;
    }
  }
  reviewed.is_allowed = true;
  return reviewed;
}

}  // namespace croft::store::kube
