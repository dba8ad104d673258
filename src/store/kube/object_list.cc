#include "store/kube/object_list.h"

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <utility>

#include <fmt/format.h>

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
  use.error_of = [&](const Answer& answer) {
    Error error = Error(answer.error).in(say.what);
    if (lacks_right(answer)) error.message += "; " + std::string(say.remedy);
    return error;
  };
  use.until = [&] {
    return Deadline{std::min(say.deadline.at_since_boot, Deadline::after(clock.now(), kPageTime).at_since_boot)};
  };
  auto read = read_list(api, asked, use);
  if (!read && read.error().code == ErrorCode::corrupt) return fail(Error(read.error()).in(say.what));
  return read;
}

Result<std::optional<wire::kube::ApiObject>> find_object(Api& api, const wire::kube::ApiResource& resource,
                                                         std::string_view name_space, std::string_view name,
                                                         Deadline deadline,
                                                         const std::function<Error(const Answer& answer)>& error_of) {
  Request request;
  TRY(request.path, wire::kube::object_path(resource, name_space, name));
  const Answer answer = api.call(request, deadline);
  if (is_absent(answer)) return std::nullopt;
  if (answer.outcome != Outcome::done) return fail(error_of(answer));
  TRY(auto object, wire::kube::decode_object(answer.body));
  return std::optional(std::move(object));
}

}  // namespace croft::store::kube
