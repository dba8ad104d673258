#include "store/kube/object_list.h"

#include <algorithm>
#include <cstddef>
#include <utility>

#include <fmt/format.h>

#include "store/kube/format/requests.h"
#include "store/kube/list_walk.h"
#include "store/kube/missing_right.h"

namespace croft::store::kube {
namespace {

using Outcome = Answer::Outcome;

constexpr std::int64_t kPageObjects = 500;
constexpr int kListTries = 5;
constexpr std::size_t kNameBytesMax = 253;
/// A page each: a large cluster's list takes as long as it takes.
constexpr std::chrono::seconds kPageTime{15};

}  // namespace

Result<std::string> for_each_page(
    Api& api, const Clock& clock, const std::string& collection, std::string_view accept, std::string_view what,
    const std::function<void()>& begin,
    const std::function<Result<ListPage>(const std::string& body, std::int64_t limit)>& take,
    const ListLimits& limits) {
  wire::kube::ApiListQuery query;
  query.select = limits.select;
  query.limit = kPageObjects;
  ListWalk walk(query, clock, limits.bounds);
  begin();
  for (int tries = 1;;) {
    Request request;
    request.path = wire::kube::list_path(collection, query);
    request.accept = std::string(accept);
    const Instant now = clock.now();
    if (limits.deadline.passed(now)) {
      return fail(ErrorCode::deadline_exceeded, std::string(what) + ": the API server took longer than there was time");
    }
    const Deadline of_page{std::min(limits.deadline.at_since_boot, Deadline::after(now, kPageTime).at_since_boot)};
    const Answer answer = api.call(request, of_page);
    const bool is_lost = answer.outcome == Outcome::refused && answer.status.code == 410;
    if (is_lost && tries++ < kListTries) {
      query.continue_token.clear();
      begin();
      continue;
    }
    if (walk.asks_for_less(answer)) continue;
    if (answer.outcome != Outcome::done) {
      Error error = Error(answer.error).in(what);
      if (lacks_right(answer)) {
        error.message += "; " + std::string(limits.remedy);
      }
      return fail(std::move(error));
    }
    const auto page = take(answer.body, query.limit);
    if (!page && walk.asks_for_less(page.error())) continue;
    if (!page) return fail(page.error());
    if (const auto on = walk.go_on(*page, answer.body.size()); !on) return fail(Error(on.error()).in(what));
    if (query.continue_token.empty()) return page->resource_version;
  }
}

Result<void> for_each_object(
    Api& api, const Clock& clock, const std::string& collection, const wire::kube::ApiListOf& of, std::string_view what,
    const std::function<void()>& begin,
    const std::function<Result<void>(wire::JsonRef object, const wire::kube::ApiMeta& meta)>& take,
    const ListLimits& limits) {
  const auto take_page = [&](const std::string& body, std::int64_t limit) -> Result<ListPage> {
    wire::kube::ApiListOf of_page = of;
    of_page.limit = limit;
    TRY(const auto page, wire::kube::decode_list(body, of_page));
    for (const auto& item : page.items) {
      if (item.meta.name.size() > kNameBytesMax) {
        return fail(ErrorCode::corrupt,
                    fmt::format("{}: the API server tells of a name of {} bytes; look at the server", what,
                                item.meta.name.size()));
      }
      TRY_VOID(take(item.value, item.meta));
    }
    return said_by(page);
  };
  TRY_VOID(for_each_page(api, clock, collection, Request().accept, what, begin, take_page, limits));
  return {};
}

}  // namespace croft::store::kube
