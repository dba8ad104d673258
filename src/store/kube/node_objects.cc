#include "store/kube/node_objects.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "base/net/echo.h"
#include "base/net/lenient.h"
#include "base/net/prefix.h"
#include "base/time_text.h"
#include "store/kube/form.h"
#include "store/kube/format/api.h"
#include "store/kube/object_list.h"

namespace croft::store::kube {
namespace {

using Outcome = Answer::Outcome;

constexpr wire::kube::ApiResource kNodes{"", "v1", "nodes"};

std::string_view text_in(wire::JsonRef object, std::string_view name) {
  const auto found = member_of(object, name);
  return found ? found->text() : std::string_view();
}

/// Calls `take` for each element of an array, where there is one.
template <class Take>
void each(const std::optional<wire::JsonRef>& array, Take take) {
  for (auto one = array ? array->first_child() : std::nullopt; one; one = one->next_sibling()) take(*one);
}

void take_cidr(NodeObject& node, std::string_view text) {
  const auto cidr = net::parse_prefix_leniently(text);
  if (!cidr) {
    node.damage = Error(net::Prefix::parse(text).error())
                      .in(fmt::format("node {} says the range {}", net::echo(node.name), net::echo(text)));
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
  Error error = Error(answer.error).in(fmt::format("NetworkUnavailable of node {}", net::echo(node)));
  if (lacks_right(answer)) {
    error.message += "; kubectl apply -f deploy/kubernetes/network-unavailable.yaml allows it";
  }
  return error;
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
  if (answer.outcome != Outcome::done) return fail(Error(answer.error).in(fmt::format("node {}", net::echo(node))));
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
  Error why = Error(answer.error).in(fmt::format("say the ranges of node {}", net::echo(node)));
  // Refused, since it says some already; or nobody knows.
  if (answer.outcome != Outcome::done && !is_settled) answer = api.get(path, deadline);
  if (answer.outcome != Outcome::done) return fail(std::move(why));
  TRY(const auto object, wire::kube::decode_object(answer.body));
  const NodeObject said = node_in(object.value, object.meta);
  if (!said.damage && said.cidrs == cidrs) return {};
  if (said.cidrs.empty() && !said.damage) return fail(std::move(why));
  return fail(ErrorCode::conflict, fmt::format("node {} says the ranges {}, and its record says {}", net::echo(node),
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

}  // namespace croft::store::kube
