#include "store/kube/status_board.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "base/json/writer.h"
#include "base/time_text.h"
#include "store/kube/form.h"
#include "store/kube/format/own_kinds.h"
#include "store/kube/format/requests.h"
#include "store/kube/object_list.h"

namespace croft::store::kube {
namespace {

using Method = Request::Method;
using wire::JsonRef;
using wire::JsonWriter;

constexpr std::chrono::seconds kRequestTime{15};

std::string_view text_in(JsonRef object, std::string_view name) {
  const auto found = member_of(object, name);
  return found ? found->text() : std::string_view();
}

void write(JsonWriter& out, std::string_view name, std::string_view value) {
  out.key(name);
  out.text(value);
}

void write(JsonWriter& out, std::string_view name, std::uint64_t value) {
  out.key(name);
  out.unsigned_integer(value);
}

/// Since when a condition is as it is: `now`, unless the object has it as such already.
std::string since(const core::Condition& condition, std::string_view status, JsonRef object, WallTime now) {
  const auto conditions = member_of(member_of(object, "status"), "conditions");
  for (auto one = conditions ? conditions->first_child() : std::nullopt; one; one = one->next_sibling()) {
    const std::string_view time = text_in(*one, "lastTransitionTime");
    const bool is_same = text_in(*one, "type") == condition.type && text_in(*one, "status") == status;
    if (is_same && parse_rfc3339(time)) return std::string(time);
  }
  return rfc3339_rounded_up(now);
}

void write_conditions(JsonWriter& out, const std::vector<core::Condition>& conditions, JsonRef object, WallTime now) {
  const auto generation = member_of(member_of(object, "metadata"), "generation");
  out.key("conditions");
  out.begin_array();
  for (const core::Condition& one : conditions) {
    const std::string_view status = one.holds ? "True" : "False";
    out.begin_object();
    write(out, "lastTransitionTime", since(one, status, object, now));
    write(out, "message", one.message);
    out.key("observedGeneration");
    out.integer(generation ? generation->integer().value_or(0) : 0);
    write(out, "reason", one.reason);
    write(out, "status", status);
    write(out, "type", one.type);
    out.end_object();
  }
  out.end_array();
}

/// Nothing where the object has that status.
std::optional<Request> status_patch(std::string path, JsonRef object, const wire::kube::ApiMeta& meta,
                                    const std::string& status) {
  if (const auto before = member_of(object, "status")) {
    JsonWriter out(JsonWriter::Layout::compact);
    copy_json(out, *before);
    if (std::move(out).take() == status) return std::nullopt;
  }
  Request request;
  request.method = Method::patch;
  request.path = std::move(path) + "/status";
  request.content_type = "application/merge-patch+json";
  request.body = fmt::format(R"({{"metadata":{{"uid":"{}","resourceVersion":"{}"}},"status":{}}})", meta.uid,
                             meta.resource_version, status);
  return request;
}

Error without_kind(Error error) {
  if (error.code == ErrorCode::not_found) {
    error.message +=
        ": the CustomResourceDefinition is missing or older: kubectl apply -f deploy/kubernetes/crds-croft.yaml";
  }
  return error;
}

}  // namespace

// ---------------------------------------------------------------- the bytes

std::string encode_status(const core::PoolStatus& status, JsonRef object, WallTime now) {
  const core::PoolFill& fill = status.use;
  JsonWriter out(JsonWriter::Layout::compact);
  out.begin_object();
  write(out, "blockSize", static_cast<std::uint64_t>(fill.pool.block_length));
  write(out, "blocks", fill.blocks);
  write(out, "capacity", fill.capacity.to_string());
  write(out, "cidr", fill.pool.cidr.to_string());
  write_conditions(out, status.conditions, object, now);
  write(out, "cooling", fill.cooling);
  write(out, "free", fill.free().to_string());
  write(out, "held", fill.held);
  write(out, "reserved", fill.reserved.to_string());
  out.end_object();
  return std::move(out).take();
}

std::string encode_status(const core::NodeRangeStatus& status, JsonRef object, WallTime now) {
  JsonWriter out(JsonWriter::Layout::compact);
  out.begin_object();
  out.key("clusterCIDRs");
  out.begin_array();
  for (const auto& cluster : status.clusters) {
    out.begin_object();
    write(out, "capacity", std::uint64_t{cluster.capacity});
    write(out, "cidr", cluster.cidr);
    write(out, "excluded", std::uint64_t{cluster.excluded});
    write(out, "free", std::uint64_t{cluster.capacity - std::min(cluster.capacity, cluster.taken + cluster.excluded)});
    write(out, "taken", std::uint64_t{cluster.taken});
    out.end_object();
  }
  out.end_array();
  write_conditions(out, status.conditions, object, now);
  write(out, "nodes", status.nodes);
  write(out, "waiting", status.waiting);
  out.end_object();
  return std::move(out).take();
}

// ---------------------------------------------------------------- the rounds

Result<std::optional<std::string>> StatusBoard::ask(const Request& request) {
  Answer answer = api_->call(request, Deadline::after(clock_.now(), kRequestTime));
  if (answer.outcome == Answer::Outcome::done) return std::optional(std::move(answer.body));
  const ErrorCode code = answer.error.code;
  if (is_absent(answer) || code == ErrorCode::conflict || code == ErrorCode::already_exists) {
    return std::optional<std::string>();
  }
  Error error = without_kind(answer.error.in(request.path));
  if (lacks_right(answer)) {
    error.message += ": the controller needs the rights of deploy/kubernetes/access.yaml, or --status-interval 0s";
  }
  return fail(std::move(error));
}

Result<StatusBoard::Shown> StatusBoard::show(const std::vector<core::PoolStatus>& pools) {
  const wire::kube::OwnKind& kind = wire::kube::own_pool_kind();
  TRY(const std::string collection, wire::kube::collection_path(kind.resource()));
  const WallTime now = clock_.now().wall;
  Shown shown;
  std::vector<Request> patches;
  std::map<std::string, const core::PoolStatus*> missing;
  std::vector<wire::kube::ApiMeta> without_pool;
  const auto compare = [&](const core::PoolStatus& pool, JsonRef object, const wire::kube::ApiMeta& meta) {
    shown.uids[meta.name] = meta.uid;
    auto patch = status_patch(collection + "/" + meta.name, object, meta, encode_status(pool, object, now));
    if (patch) patches.push_back(*std::move(patch));
  };
  const auto begin = [&] {
    shown = {};
    patches.clear();
    without_pool.clear();
    for (const core::PoolStatus& pool : pools) missing[pool.use.pool.name] = &pool;
  };
  const auto take = [&](const wire::kube::ApiObject& object) -> Result<void> {
    if (const auto pool = missing.extract(object.meta.name)) {
      compare(*pool.mapped(), object.value, object.meta);
    } else if (!object.meta.deletion_timestamp) {  // else its finalizers hold it
      without_pool.push_back(object.meta);
    }
    return {};
  };
  const wire::kube::ApiListOf of{std::string(wire::kube::kOwnApiVersion), std::string(kind.kind)};
  if (const auto listed = for_each_object(*api_, clock_, {collection, of}, {"croftpools"}, begin, take); !listed) {
    return fail(without_kind(listed.error()));
  }
  for (const wire::kube::ApiMeta& meta : without_pool) {
    Request request;
    request.method = Method::delete_object;
    request.path = collection + "/" + meta.name;
    request.body = wire::kube::encode_delete_options({meta.uid, meta.resource_version});
    TRY(const auto done, ask(request));
    if (done) shown.deleted.push_back(meta.name);
  }
  for (const auto& [name, pool] : missing) {
    Request request;
    request.method = Method::post;
    request.path = collection;
    request.body = fmt::format(R"({{"apiVersion":"{}","kind":"{}","metadata":{{"name":"{}"}},"spec":{{"pool":"{}"}}}})",
                               of.api_version, of.kind, name, name);
    TRY(const auto made, ask(request));
    if (!made) continue;
    TRY(const auto object, wire::kube::decode_object(*made));
    compare(*pool, object.value, object.meta);
  }
  for (const Request& patch : patches) TRY_VOID(ask(patch));
  return shown;
}

Result<void> StatusBoard::show(const core::NodeRangeStatus& ranges) {
  const wire::kube::OwnKind& kind = *wire::kube::own_kind_of(core::Kind::node_range_set);
  Request request;
  // As core::node_range_set_key() is called.
  TRY(request.path, wire::kube::object_path(kind.resource(), {}, "default"));
  TRY(const auto answer, ask(request));
  if (!answer) return {};
  TRY(const auto object, wire::kube::decode_object(*answer));
  const std::string status = encode_status(ranges, object.value, clock_.now().wall);
  if (const auto patch = status_patch(request.path, object.value, object.meta, status)) TRY_VOID(ask(*patch));
  return {};
}

}  // namespace croft::store::kube
