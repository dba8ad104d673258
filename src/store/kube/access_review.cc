#include "store/kube/access_review.h"

#include <string>
#include <utility>

#include <fmt/format.h>

#include "base/json/document.h"
#include "base/json/writer.h"
#include "store/kube/form.h"

namespace croft::store::kube {
namespace {

[[nodiscard]] Request request_of(const NeededRights& rights, std::string_view verb) {
  wire::JsonWriter out(wire::JsonWriter::Layout::compact);
  const auto put = [&](std::string_view name, std::string_view text) {
    out.key(name);
    out.text(text);
  };
  out.begin_object();
  put("apiVersion", "authorization.k8s.io/v1");
  put("kind", "SelfSubjectAccessReview");
  out.key("spec");
  out.begin_object();
  out.key("resourceAttributes");
  out.begin_object();
  put("group", rights.group);
  put("resource", rights.resource);
  put("verb", verb);
  out.end_object();
  out.end_object();
  out.end_object();
  Request request;
  request.method = Request::Method::post;
  request.path = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews";
  request.body = std::move(out).take();
  request.keeps_nothing = true;
  return request;
}

[[nodiscard]] Result<bool> is_allowed(const Answer& answer) {
  if (answer.outcome != Answer::Outcome::done) {
    Error error = Error(answer.error).in("what the account may do");
    // That it may not ask says nothing about what it asks for.
    if (error.code == ErrorCode::permission_denied) error.code = ErrorCode::refused_by_configuration;
    return fail(std::move(error));
  }
  TRY(const auto document, wire::parse_json(answer.body, {.bytes_max = wire::kube::kApiAnswerBytesMax}));
  const auto status = member_of(document.root(), "status");
  const auto allowed = status ? member_of(*status, "allowed") : std::nullopt;
  if (!allowed || allowed->kind() != wire::JsonKind::boolean) {
    return fail(ErrorCode::corrupt, "what the account may do: status.allowed: it is missing");
  }
  return allowed->boolean();
}

}  // namespace

Result<void> check_rights(Api& api, std::span<const NeededRights> needed, Deadline deadline) {
  std::vector<Request> requests;
  for (const NeededRights& rights : needed) {
    for (const std::string_view verb : rights.verbs) requests.push_back(request_of(rights, verb));
  }
  const auto answers = api.call_all(requests, deadline);
  std::string missing;
  auto answer = answers.begin();
  for (const NeededRights& rights : needed) {
    std::string verbs;
    for (const std::string_view verb : rights.verbs) {
      TRY(const bool is, is_allowed(*answer++));
      if (!is) verbs += fmt::format("{}{}", verbs.empty() ? "" : ", ", verb);
    }
    if (verbs.empty()) continue;
    missing += fmt::format("{}{} of {}.{}", missing.empty() ? "" : "; ", verbs, rights.resource, rights.group);
  }
  if (missing.empty()) return {};
  return fail(ErrorCode::permission_denied, fmt::format("the account may not {}", missing));
}

}  // namespace croft::store::kube
