#include "store/kube/status_board.h"

#include <algorithm>
#include <map>
#include <utility>

#include <fmt/format.h>

#include "base/net/echo.h"
#include "store/kube/format/own_kinds.h"
#include "store/kube/format/own_status.h"
#include "store/kube/format/requests.h"
#include "store/kube/object_list.h"
#include "store/kube/refusals.h"

namespace croft::store::kube {
namespace {

using Method = Request::Method;
using Outcome = Answer::Outcome;

/// As core::node_range_set_key() is called.
constexpr std::string_view kOnlyNodeRangeSet = "default";

struct SeenObject {
  wire::kube::ApiMeta meta;
  wire::kube::StatusSeen seen;
};

struct ToWrite {
  const core::PoolStatus* pool = nullptr;
  const SeenObject* object = nullptr;  ///< null: there is none yet
  std::string status;
  bool is_turn = false;
};

Error without_kind(Error error) {
  if (error.code == ErrorCode::not_found) {
    error.message +=
        ": the CustomResourceDefinition is missing or older: kubectl apply -f deploy/kubernetes/crds-croft.yaml";
  }
  return error;
}

Error with_remedy(const Answer& answer, std::string_view what) {
  Error error = without_kind(Error(answer.error).in(what));
  if (lacks_right(answer)) {
    error.message += ": the controller needs the rights of deploy/kubernetes/access.yaml, or --status-interval 0s";
  }
  return error;
}

Request status_patch(std::string path, const wire::kube::ApiMeta& of, std::string_view status) {
  Request request;
  request.method = Method::patch;
  request.path = std::move(path) + "/status";
  request.content_type = "application/merge-patch+json";
  request.body = wire::kube::encode_status_patch(of, status);
  return request;
}

}  // namespace

wire::kube::Regarding pool_shown(std::string pool, std::string uid) {
  return {wire::kube::kOwnApiVersion, wire::kube::own_pool_kind().kind, {}, std::move(pool), std::move(uid)};
}

StatusBoard::StatusBoard(std::unique_ptr<Api> api, const Clock& clock, Options options)
    : api_(std::move(api)), clock_(clock), options_(options) {}

Answer StatusBoard::ask(const Request& request) {
  return api_->call(request, Deadline::after(clock_.now(), options_.request_time));
}

Result<bool> StatusBoard::change(const Request& request, std::string_view what) {
  const Answer answer = ask(request);
  if (answer.outcome == Outcome::done) return true;
  // Whatever it is now, the next round reads it. An object that is gone has a name in the answer, a kind has none.
  const bool is_gone = answer.error.code == ErrorCode::not_found && !answer.status.name.empty();
  if (answer.error.code == ErrorCode::conflict || answer.error.code == ErrorCode::already_exists || is_gone) {
    return false;
  }
  return fail(with_remedy(answer, what));
}

Result<StatusBoard::Shown> StatusBoard::show(const std::vector<core::PoolStatus>& pools) {
  const wire::kube::ApiResource resource = wire::kube::own_pool_kind().resource();
  TRY(const std::string collection, wire::kube::collection_path(resource));
  const wire::kube::ApiListOf of{fmt::format("{}/{}", resource.group, resource.version),
                                 std::string(wire::kube::own_pool_kind().kind)};
  std::map<std::string, SeenObject> seen;
  ObjectUse use;
  use.what = "croftpools";
  use.begin = [&] { seen.clear(); };
  use.take = [&](wire::JsonRef object, const wire::kube::ApiMeta& meta) -> Result<void> {
    seen.insert_or_assign(meta.name, SeenObject{meta, wire::kube::read_status(object)});
    return {};
  };
  const auto listed = for_each_object(*api_, clock_, {collection, of}, use);
  if (!listed) return fail(without_kind(listed.error()));

  const WallTime now = clock_.now().wall;
  std::vector<ToWrite> to_write;
  std::map<std::string, SeenObject> without_pool = seen;
  for (const core::PoolStatus& pool : pools) {
    without_pool.erase(pool.use.pool.name);
    const auto found = seen.find(pool.use.pool.name);
    if (found == seen.end()) {
      to_write.push_back({&pool, nullptr, {}, true});
      continue;
    }
    const SeenObject& object = found->second;
    std::string status = wire::kube::encode_status(pool, object.seen, now);
    if (status == object.seen.status) continue;
    to_write.push_back({&pool, &object, std::move(status), wire::kube::is_turn(pool.conditions, object.seen)});
  }
  // The order of names, beginning where the last round ended; what has turned before it.
  const auto after = std::find_if(to_write.begin(), to_write.end(),
                                  [&](const ToWrite& one) { return one.pool->use.pool.name >= next_; });
  std::rotate(to_write.begin(), after, to_write.end());
  std::stable_partition(to_write.begin(), to_write.end(), [](const ToWrite& one) { return one.is_turn; });

  Shown shown;
  for (const auto& [name, object] : seen) shown.uids[name] = object.meta.uid;
  // Counted by themselves: anybody's objects, however many, do not keep the pools from being shown.
  std::size_t deletions = 0;
  for (const auto& [name, object] : without_pool) {
    if (object.meta.deletion_timestamp) continue;  // who has put a finalizer there takes it away
    if (deletions++ == options_.writes_max) break;
    Request request;
    request.method = Method::delete_object;
    TRY(request.path, wire::kube::object_path(resource, {}, name));
    request.body = wire::kube::encode_delete_options({object.meta.uid, object.meta.resource_version});
    TRY(const bool done, change(request, fmt::format("croftpools {}", net::echo(name))));
    if (done) shown.deleted.push_back(name);
  }
  std::size_t writes = 0;
  for (const ToWrite& one : to_write) {
    if (writes >= options_.writes_max) {
      ++shown.left;
      continue;
    }
    const std::string& name = one.pool->use.pool.name;
    const std::string what = fmt::format("croftpools {}", net::echo(name));
    if (!one.is_turn) next_ = name + '\x01';
    TRY(const std::string path, wire::kube::object_path(resource, {}, name));
    ++writes;
    if (one.object != nullptr) {
      TRY(const bool done, change(status_patch(path, one.object->meta, one.status), what));
      shown.written += done ? 1 : 0;
      continue;
    }
    Request make;
    make.method = Method::post;
    make.path = collection;
    make.body = wire::kube::encode_own_pool(name);
    const Answer answer = ask(make);
    if (answer.error.code == ErrorCode::already_exists && answer.outcome != Outcome::done) continue;
    if (answer.outcome != Outcome::done) return fail(with_remedy(answer, what));
    ++shown.made;
    ++writes;
    TRY(const auto made, wire::kube::decode_object(answer.body, {of.api_version, of.kind, {}, name}));
    const std::string status = wire::kube::encode_status(*one.pool, wire::kube::read_status(made.value), now);
    TRY(const bool done, change(status_patch(path, made.meta, status), what));
    shown.written += done ? 1 : 0;
  }
  if (shown.left == 0) next_.clear();
  return shown;
}

Result<bool> StatusBoard::show(const core::NodeRangeStatus& ranges) {
  const wire::kube::ApiResource resource = wire::kube::own_kind_of(core::Kind::node_range_set)->resource();
  constexpr std::string_view kWhat = "croftnoderangesets default";
  Request look;
  TRY(look.path, wire::kube::object_path(resource, {}, kOnlyNodeRangeSet));
  const Answer answer = ask(look);
  if (answer.outcome == Outcome::refused && answer.error.code == ErrorCode::not_found && !answer.status.name.empty()) {
    return false;
  }
  if (answer.outcome != Outcome::done) return fail(with_remedy(answer, kWhat));
  TRY(const auto object,
      wire::kube::decode_object(answer.body, {fmt::format("{}/{}", resource.group, resource.version),
                                              std::string(wire::kube::own_kind_of(core::Kind::node_range_set)->kind),
                                              {},
                                              std::string(kOnlyNodeRangeSet)}));
  const auto before = wire::kube::read_status(object.value);
  const std::string status = wire::kube::encode_status(ranges, before, clock_.now().wall);
  if (status == before.status) return false;
  return change(status_patch(look.path, object.meta, status), kWhat);
}

}  // namespace croft::store::kube
