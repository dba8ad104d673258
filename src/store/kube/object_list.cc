#include "store/kube/object_list.h"

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/json/reader.h"
#include "store/kube/format/api.h"
#include "store/kube/format/kubeconfig.h"

namespace croft::store::kube {
namespace {

using Outcome = Answer::Outcome;

constexpr int kListTries = 5;
/// Six times what Kubernetes is made for.
constexpr std::size_t kObjectsMax = 1'000'000;
/// A page each: a large cluster's list takes as long as it takes.
constexpr std::chrono::seconds kPageTime{15};
/// The objects without their specs; a server that cannot gives them whole.
constexpr std::string_view kAcceptMetadata =
    "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1, application/json";

[[nodiscard]] Request page_of(const ListAsked& asked, const wire::kube::ApiListQuery& query) {
  Request request;
  request.path = wire::kube::list_path(asked.collection, query);
  if (asked.of.may_be_metadata) request.accept = std::string(kAcceptMetadata);
  return request;
}

[[nodiscard]] wire::kube::ApiListQuery query_of(const ListAsked& asked) {
  return {asked.select, asked.page_objects, {}, asked.resource_version};
}

/// The server no longer knows the rest of this moment.
[[nodiscard]] bool is_lost(const Answer& answer) {
  return answer.outcome == Outcome::refused && answer.status.code == 410;
}
[[nodiscard]] bool is_too_long(const Answer& answer) {
  return answer.outcome == Outcome::not_done && answer.error.code == ErrorCode::invalid_argument;
}

}  // namespace

Request first_page(const ListAsked& asked) { return page_of(asked, query_of(asked)); }

Result<std::string> read_list(Api& api, const ListAsked& asked, const ListUse& use, std::optional<Answer> first) {
  wire::kube::ApiListQuery query = query_of(asked);
  std::size_t objects = 0;
  use.begin();
  for (int tries = 1;;) {
    const Answer answer = first ? *std::exchange(first, std::nullopt) : api.call(page_of(asked, query), use.until());
    if (is_lost(answer) && tries++ < kListTries) {
      query.continue_token.clear();
      objects = 0;
      use.begin();
      continue;
    }
    if (is_too_long(answer) && query.limit > 1) {
      query.limit = std::max<std::int64_t>(1, query.limit / 8);
      continue;
    }
    if (asked.may_be_unknown && is_unknown(answer)) return std::string();
    if (answer.outcome != Outcome::done) return fail(use.error_of(answer));
    TRY(const auto page, wire::kube::decode_list(answer.body, asked.of));
    if ((objects += page.items.size()) > kObjectsMax) {
      return fail(ErrorCode::corrupt,
                  fmt::format("the API server's list has more than {} objects of the kind {}: look at "
                              "the server",
                              kObjectsMax, asked.of.kind));
    }
    for (const std::string_view item : page.items) {
      TRY(const auto object, wire::kube::decode_item(item, asked.of));
      TRY_VOID(use.take(object));
    }
    if (page.continue_token.empty()) return page.resource_version;
    query.continue_token = page.continue_token;
    // A few large objects do not make the rest come few by few.
    query.limit = std::min(asked.page_objects, query.limit * 2);
  }
}

Result<std::string> for_each_object(Api& api, const Clock& clock, const ListAsked& asked, const ToSay& say,
                                    const std::function<void()>& begin,
                                    const std::function<Result<void>(const wire::kube::ApiObject&)>& take) {
  ListUse use{begin, take, {}, {}};
  use.error_of = [&](const Answer& answer) { return error_in(answer, say.what, say.remedy); };
  use.until = [&] {
    return Deadline{std::min(say.deadline.at_since_boot, Deadline::after(clock.now(), kPageTime).at_since_boot)};
  };
  auto read = read_list(api, asked, use);
  if (!read && read.error().code == ErrorCode::corrupt) return fail(read.error().in(say.what));
  return read;
}

Result<std::optional<wire::kube::ApiObject>> find_object(Api& api, const wire::kube::ApiResource& resource,
                                                         std::string_view name_space, std::string_view name,
                                                         Deadline deadline,
                                                         const std::function<Error(const Answer& answer)>& error_of) {
  TRY(const std::string path, wire::kube::object_path(resource, name_space, name));
  const Answer answer = api.get(path, deadline);
  if (is_absent(answer)) return std::nullopt;
  if (answer.outcome != Outcome::done) return fail(error_of(answer));
  TRY(auto object, wire::kube::decode_object(answer.body));
  return std::optional(std::move(object));
}

namespace {

[[nodiscard]] Request access_review_request(const NeededRights& rights, std::string_view verb) {
  return Request::question(
      "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews",
      fmt::format(R"({{"apiVersion":"authorization.k8s.io/v1","kind":"SelfSubjectAccessReview","spec":{{)"
                  R"("resourceAttributes":{{"group":"{}","resource":"{}","verb":"{}"}}}}}})",
                  rights.group, rights.resource, verb));
}

[[nodiscard]] Result<bool> is_allowed(const Answer& answer) {
  constexpr const char* kWhat = "what the account may do";
  if (answer.outcome != Answer::Outcome::done) {
    Error error = answer.error.in(kWhat);
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
    for (const std::string_view verb : rights.verbs) requests.push_back(access_review_request(rights, verb));
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
  const Answer answer = api.call(Request::question(path + "/token", wire::kube::encode_token_request(life)), deadline);
  if (answer.outcome == Answer::Outcome::done) return wire::kube::decode_token_request(answer.body);
  Error error = error_in(answer, fmt::format("a token of the service account {}/{}", name_space, service_account),
                         "allow `create` of serviceaccounts/token there, as deploy/kubernetes/access.yaml does");
  if (error.code == ErrorCode::not_found) error.message += "; kubectl apply -f deploy/kubernetes/access.yaml makes it";
  return fail(std::move(error));
}

std::optional<bool> is_token_refused(Api& api, Deadline deadline) {
  const Answer answer = api.get("/version", deadline);
  if (answer.http_status == 401) return true;
  // A server that refuses for being asked too much has not looked at the token.
  const bool has_looked = answer.outcome == Answer::Outcome::done || answer.http_status == 403;
  return has_looked ? std::optional(false) : std::nullopt;
}

}  // namespace croft::store::kube
