#include "store/kube/status_board.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "base/json/writer.h"
#include "base/time_text.h"
#include "store/kube/format/api.h"
#include "store/kube/format/croft_kinds.h"
#include "store/kube/object_list.h"
#include "store/kube/object_mapping.h"

namespace croft::store::kube {
namespace {

using Method = Request::Method;
using wire::JsonRef;
using wire::JsonWriter;
using wire::kube::text_in;

constexpr std::chrono::seconds kRequestTime{15};

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
  out.begin_array("conditions");
  for (const core::Condition& one : conditions) {
    const std::string_view status = one.holds ? "True" : "False";
    out.begin_object();
    out.text("lastTransitionTime", since(one, status, object, now));
    out.text("message", one.message);
    out.integer("observedGeneration", generation ? generation->integer().value_or(0) : 0);
    out.text("reason", one.reason);
    out.text("status", status);
    out.text("type", one.type);
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
  return Request{Method::patch, std::move(path) + "/status",
                 fmt::format(R"({{"metadata":{{"uid":"{}","resourceVersion":"{}"}},"status":{}}})", meta.uid,
                             meta.resource_version, status),
                 "application/merge-patch+json"};
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
  out.unsigned_integer("blockSize", static_cast<std::uint64_t>(fill.pool.block_length));
  out.unsigned_integer("blocks", fill.blocks);
  out.text("capacity", fill.capacity.to_string());
  out.text("cidr", fill.pool.cidr.to_string());
  write_conditions(out, status.conditions, object, now);
  out.unsigned_integer("cooling", fill.cooling);
  out.text("free", fill.free().to_string());
  out.unsigned_integer("held", fill.held);
  out.text("reserved", fill.reserved.to_string());
  out.end_object();
  return std::move(out).take();
}

std::string encode_status(const core::NodeRangeStatus& status, JsonRef object, WallTime now) {
  JsonWriter out(JsonWriter::Layout::compact);
  out.begin_object();
  out.begin_array("clusterCIDRs");
  for (const auto& cluster : status.clusters) {
    out.begin_object();
    out.unsigned_integer("capacity", std::uint64_t{cluster.capacity});
    out.text("cidr", cluster.cidr);
    out.unsigned_integer("excluded", std::uint64_t{cluster.excluded});
    out.unsigned_integer(
        "free", std::uint64_t{cluster.capacity - std::min(cluster.capacity, cluster.taken + cluster.excluded)});
    out.unsigned_integer("taken", std::uint64_t{cluster.taken});
    out.end_object();
  }
  out.end_array();
  write_conditions(out, status.conditions, object, now);
  out.unsigned_integer("nodes", status.nodes);
  out.unsigned_integer("waiting", status.waiting);
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
  const wire::kube::OwnKind& kind = wire::kube::croft_pool_kind();
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
    const std::string options = wire::kube::encode_delete_options({meta.uid, meta.resource_version});
    TRY(const auto done, ask({Method::delete_object, collection + "/" + meta.name, options}));
    if (done) shown.deleted.push_back(meta.name);
  }
  for (const auto& [name, pool] : missing) {
    const std::string body =
        fmt::format(R"({{"apiVersion":"{}","kind":"{}","metadata":{{"name":"{}"}},"spec":{{"pool":"{}"}}}})",
                    of.api_version, of.kind, name, name);
    TRY(const auto made, ask({Method::post, collection, body}));
    if (!made) continue;
    TRY(const auto object, wire::kube::decode_object(*made));
    compare(*pool, object.value, object.meta);
  }
  for (const Request& patch : patches) TRY_VOID(ask(patch));
  return shown;
}

Result<void> StatusBoard::show(const core::NodeRangeStatus& ranges) {
  const wire::kube::OwnKind& kind = *wire::kube::croft_kind_of(core::Kind::node_range_set);
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
