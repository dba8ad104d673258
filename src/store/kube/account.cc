#include "store/kube/account.h"

#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/json/document.h"
#include "store/kube/format/requests.h"
#include "store/kube/format/token.h"

namespace croft::store::kube {
namespace {

[[nodiscard]] Request request_of(const NeededRights& rights, std::string_view verb) {
  Request request;
  request.method = Request::Method::post;
  request.path = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews";
  request.body = fmt::format(R"({{"apiVersion":"authorization.k8s.io/v1","kind":"SelfSubjectAccessReview","spec":{{)"
                             R"("resourceAttributes":{{"group":"{}","resource":"{}","verb":"{}"}}}}}})",
                             rights.group, rights.resource, verb);
  request.keeps_nothing = true;
  return request;
}

[[nodiscard]] Result<bool> is_allowed(const Answer& answer) {
  constexpr const char* kWhat = "what the account may do";
  if (answer.outcome != Answer::Outcome::done) {
    Error error = Error(answer.error).in(kWhat);
    // That it may not ask says nothing about what it asks for.
    if (error.code == ErrorCode::permission_denied) error.code = ErrorCode::refused_by_configuration;
    return fail(std::move(error));
  }
  TRY(const auto document, wire::parse_json(answer.body, {.bytes_max = wire::kube::kApiAnswerBytesMax}));
  const auto allowed = member_of(member_of(document.root(), "status"), "allowed");
  if (allowed && allowed->kind() == wire::JsonKind::boolean) return allowed->boolean();
  return fail(ErrorCode::corrupt, fmt::format("{}: status.allowed: it is missing", kWhat));
}

}  // namespace

Result<void> check_rights(Api& api, std::span<const NeededRights> needed, Deadline deadline) {
  std::vector<Request> requests;
  for (const NeededRights& rights : needed) {
    for (const std::string_view verb : rights.verbs) requests.push_back(request_of(rights, verb));
  }
  const auto answers = api.call_all(requests, deadline);
  std::vector<std::string> missing;
  auto answer = answers.begin();
  for (const NeededRights& rights : needed) {
    std::vector<std::string_view> verbs;
    for (const std::string_view verb : rights.verbs) {
      TRY(const bool is, is_allowed(*answer++));
      if (!is) verbs.push_back(verb);
    }
    if (verbs.empty()) continue;
    missing.push_back(fmt::format("{} of {}.{}", fmt::join(verbs, ", "), rights.resource, rights.group));
  }
  if (missing.empty()) return {};
  return fail(ErrorCode::permission_denied, fmt::format("the account may not {}", fmt::join(missing, "; ")));
}

Result<std::string> request_token(Api& api, const std::string& name_space, const std::string& service_account,
                                  std::chrono::seconds life, Deadline deadline) {
  TRY(const std::string path, wire::kube::object_path({"", "v1", "serviceaccounts"}, name_space, service_account));
  Request request;
  request.method = Request::Method::post;
  request.path = path + "/token";
  request.body = wire::kube::encode_token_request(life);
  request.keeps_nothing = true;
  const Answer answer = api.call(request, deadline);
  if (answer.outcome == Answer::Outcome::done) return wire::kube::decode_token_request(answer.body);
  Error error =
      Error(answer.error).in(fmt::format("a token of the service account {}/{}", name_space, service_account));
  if (lacks_right(answer)) {
    error.message += "; allow `create` of serviceaccounts/token there, as deploy/kubernetes/access.yaml does";
  }
  if (error.code == ErrorCode::not_found) error.message += "; kubectl apply -f deploy/kubernetes/access.yaml makes it";
  return fail(std::move(error));
}

std::optional<bool> is_token_refused(Api& api, Deadline deadline) {
  Request request;
  request.path = "/version";
  const Answer answer = api.call(request, deadline);
  if (answer.http_status == 401) return true;
  // A server that refuses for being asked too much has not looked at the token.
  const bool has_looked = answer.outcome == Answer::Outcome::done || answer.http_status == 403;
  return has_looked ? std::optional(false) : std::nullopt;
}

}  // namespace croft::store::kube
