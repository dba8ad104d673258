#include "store/kube/node_condition.h"

#include <optional>

#include <fmt/format.h>

#include "base/json/writer.h"
#include "base/net/echo.h"
#include "base/time_text.h"
#include "store/kube/form.h"
#include "store/kube/format/requests.h"
#include "store/kube/refusals.h"

namespace croft::store::kube {
namespace {

using Outcome = Answer::Outcome;

constexpr std::string_view kCondition = "NetworkUnavailable";

[[nodiscard]] bool says_unavailable(wire::JsonRef node) {
  const auto status = member_of(node, "status");
  const auto conditions = status ? member_of(*status, "conditions") : std::nullopt;
  for (auto one = conditions ? conditions->first_child() : std::nullopt; one; one = one->next_sibling()) {
    const auto type = member_of(*one, "type");
    const auto value = member_of(*one, "status");
    if (type && type->text() == kCondition) return !value || value->text() != "False";
  }
  return false;
}

std::string body_at(WallTime now) {
  const std::string time = rfc3339_rounded_up(now);
  wire::JsonWriter out(wire::JsonWriter::Layout::compact);
  const auto member = [&](std::string_view name, std::string_view value) {
    out.key(name);
    out.text(value);
  };
  out.begin_object();
  out.key("status");
  out.begin_object();
  out.key("conditions");
  out.begin_array();
  out.begin_object();
  member("type", kCondition);
  member("status", "False");
  member("reason", "CroftIsUp");
  member("message", "Croft gives addresses to the pods of this node");
  member("lastHeartbeatTime", time);
  member("lastTransitionTime", time);
  out.end_object();
  out.end_array();
  out.end_object();
  out.end_object();
  return std::move(out).take();
}

Error error_of(const Answer& answer, const std::string& node) {
  Error error = Error(answer.error).in(fmt::format("{} of node {}", kCondition, net::echo(node)));
  if (lacks_right(answer)) {
    error.message += "; kubectl apply -f deploy/kubernetes/network-unavailable.yaml allows it";
  }
  return error;
}

}  // namespace

Result<bool> clear_network_unavailable(Api& api, const std::string& node, WallTime now, Deadline deadline) {
  Request look;
  TRY(look.path, wire::kube::object_path({"", "v1", "nodes"}, {}, node));
  const Answer is = api.call(look, deadline);
  if (is.outcome != Outcome::done) return fail(error_of(is, node));
  TRY(const auto object, wire::kube::decode_object(is.body, {"v1", "Node", {}, node}));
  if (!says_unavailable(object.value)) return false;
  Request patch;
  patch.method = Request::Method::patch;
  patch.path = look.path + "/status";
  patch.content_type = "application/strategic-merge-patch+json";
  patch.body = body_at(now);
  const Answer answer = api.call(patch, deadline);
  if (answer.outcome != Outcome::done) return fail(error_of(answer, node));
  return true;
}

}  // namespace croft::store::kube
