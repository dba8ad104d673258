#include "store/kube/token_review.h"

#include <array>
#include <optional>
#include <utility>

#include <fmt/format.h>

#include "base/json/document.h"
#include "base/json/writer.h"
#include "store/kube/format/api.h"

namespace croft::store::kube {
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
  Request request;
  request.method = Request::Method::post;
  request.path = std::move(path);
  request.body = std::move(out).take();
  request.keeps_nothing = true;
  return request;
}

[[nodiscard]] Result<wire::JsonDocument> answer_to(Api& api, const Request& request, std::string_view what,
                                                   Deadline deadline) {
  const Answer answer = api.call(request, deadline);
  if (answer.outcome == Answer::Outcome::done) {
    return wire::parse_json(answer.body, {.bytes_max = wire::kube::kApiAnswerBytesMax});
  }
  Error error = Error(answer.error).in(what);
  if (lacks_right(answer)) error.message += "; the controller may not ask that: set controller.desk in the chart";
  return fail(std::move(error));
}

[[nodiscard]] bool is_true(std::optional<JsonRef> value) {
  return value && value->kind() == wire::JsonKind::boolean && value->boolean();
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
  const auto name = member_of(user, "username");
  if (!is_true(member_of(status, "authenticated")) || !name || name->text().empty()) return reviewed;
  reviewed.is_known = true;
  reviewed.user = name->text();
  for (const NeededRights& rights : needed) {
    for (const std::string_view verb : rights.verbs) {
      TRY(const auto may, answer_to(api, access_review(*user, rights, verb), "what its user may do", deadline));
      if (!is_true(member_of(member_of(may.root(), "status"), "allowed"))) return reviewed;
    }
  }
  reviewed.is_allowed = true;
  return reviewed;
}

}  // namespace croft::store::kube
