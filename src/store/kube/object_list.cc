#include "store/kube/object_list.h"

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <utility>

#include <fmt/format.h>

#include "store/kube/refusals.h"

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
  wire::kube::ApiListQuery query;
  query.select = asked.select;
  query.limit = asked.page_objects;
  query.resource_version = asked.resource_version;
  return query;
}

/// The server no longer knows the rest of this moment.
[[nodiscard]] bool is_lost(const Answer& answer) {
  return answer.outcome == Outcome::refused && answer.status.code == 410;
}
[[nodiscard]] bool is_too_long(const Answer& answer) {
  return answer.outcome == Outcome::not_done && answer.error.code == ErrorCode::invalid_argument;
}

/// How many objects a page is asked for with: fewer where that was too much for one answer, and more again behind it,
/// so that a few large ones do not make the rest come few by few.
class PageSize {
 public:
  explicit PageSize(std::int64_t most) : most_(most), now_(most) {}
  [[nodiscard]] std::int64_t now() const { return now_; }
  [[nodiscard]] bool shrinks() {
    if (now_ == 1) return false;
    now_ = std::max<std::int64_t>(1, now_ / (is_raised_ ? 2 : 8));
    is_raised_ = false;
    return true;
  }
  void grow() {
    is_raised_ = now_ < most_;
    now_ = std::min(most_, now_ * 2);
  }

 private:
  const std::int64_t most_;
  std::int64_t now_;
  bool is_raised_ = false;
};

}  // namespace

Request first_page(const ListAsked& asked) { return page_of(asked, query_of(asked)); }

Result<std::string> read_list(Api& api, const ListAsked& asked, const ListUse& use, std::optional<Answer> first) {
  wire::kube::ApiListQuery query = query_of(asked);
  PageSize size(asked.page_objects);
  std::size_t objects = 0;
  use.begin();
  for (int tries = 1;;) {
    query.limit = size.now();
    const Answer answer = first ? *std::exchange(first, std::nullopt) : api.call(page_of(asked, query), use.until());
    if (is_lost(answer) && tries++ < kListTries) {
      query.continue_token.clear();
      objects = 0;
      use.begin();
      continue;
    }
    if (is_too_long(answer) && size.shrinks()) continue;
    if (asked.may_be_unknown && is_unknown(answer)) return std::string();
    if (answer.outcome != Outcome::done) return fail(use.error_of(answer));
    TRY(const auto page, wire::kube::decode_list(answer.body, asked.of));
    objects += page.items.size();
    if (objects > kObjectsMax) {
      return fail(ErrorCode::corrupt,
                  fmt::format("the API server's list has more than {} objects of the kind {}: look at the server",
                              kObjectsMax, asked.of.kind));
    }
    TRY(const bool goes_on, use.take(page));
    if (!goes_on || page.continue_token.empty()) return page.resource_version;
    query.continue_token = page.continue_token;
    size.grow();
  }
}

Result<std::string> for_each_object(Api& api, const Clock& clock, const ListAsked& asked, const ObjectUse& use) {
  ListUse pages;
  pages.begin = use.begin;
  pages.take = [&](const wire::kube::ApiListPage& page) -> Result<bool> {
    for (const std::string_view item : page.items) {
      TRY(const auto object, wire::kube::decode_item(item, asked.of));
      TRY_VOID(use.take(object.value, object.meta));
    }
    return true;
  };
  pages.error_of = [&](const Answer& answer) {
    Error error = Error(answer.error).in(use.what);
    if (lacks_right(answer)) error.message += "; " + std::string(use.remedy);
    return error;
  };
  pages.until = [&] {
    return Deadline{std::min(use.deadline.at_since_boot, Deadline::after(clock.now(), kPageTime).at_since_boot)};
  };
  auto read = read_list(api, asked, pages);
  if (!read && read.error().code == ErrorCode::corrupt) return fail(Error(read.error()).in(use.what));
  return read;
}

}  // namespace croft::store::kube
