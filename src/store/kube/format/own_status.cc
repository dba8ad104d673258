#include "store/kube/format/own_status.h"

#include <algorithm>
#include <map>
#include <optional>
#include <utility>

#include <fmt/format.h>

#include "base/json/writer.h"
#include "base/time_text.h"
#include "store/kube/format/own_kinds.h"

namespace croft::wire::kube {
namespace {

/// What an object may have of conditions, of which Croft writes four.
constexpr std::size_t kConditionsMax = 64;
constexpr std::size_t kDepthMax = 8;

/// Members by name, as the API server and Croft order them differently; nothing deeper than Croft writes.
void write_sorted(JsonWriter& out, JsonRef value, std::size_t depth) {
  if (depth > kDepthMax) return out.null();
  switch (value.kind()) {
    case JsonKind::object: {
      std::map<std::string_view, JsonRef> members;
      for (auto member = value.first_child(); member; member = member->next_sibling()) {
        members.insert_or_assign(member->key(), *member);
      }
      out.begin_object();
      for (const auto& [name, member] : members) {
        out.key(name);
        write_sorted(out, member, depth + 1);
      }
      return out.end_object();
    }
    case JsonKind::array:
      out.begin_array();
      for (auto element = value.first_child(); element; element = element->next_sibling()) {
        write_sorted(out, *element, depth + 1);
      }
      return out.end_array();
    default:
      return copy_json(out, value);
  }
}

std::string canonical(JsonRef value) {
  JsonWriter out(JsonWriter::Layout::compact);
  write_sorted(out, value, 0);
  return std::move(out).take();
}

std::string canonical(std::string written) {
  const auto document = parse_json(written, {.bytes_max = kApiAnswerBytesMax});
  return canonical(document.value().root());
}

std::string_view text_in(JsonRef object, std::string_view name) {
  const auto member = member_of(object, name);
  return member && member->kind() == JsonKind::string ? member->text() : std::string_view();
}

const StatusCondition* find(const StatusSeen& seen, std::string_view type) {
  const auto found = std::ranges::find(seen.conditions, type, &StatusCondition::type);
  return found == seen.conditions.end() ? nullptr : &*found;
}

std::string_view status_of(const core::Condition& condition) { return condition.holds ? "True" : "False"; }

class StatusWriter {
 public:
  StatusWriter() : out_(JsonWriter::Layout::compact) { out_.begin_object(); }
  void text(std::string_view name, std::string_view value) {
    out_.key(name);
    out_.text(value);
  }
  /// Of what is far below 2^63.
  void number(std::string_view name, std::uint64_t value) {
    out_.key(name);
    out_.integer(static_cast<std::int64_t>(value));
  }
  void conditions(const std::vector<core::Condition>& conditions, const StatusSeen& before, WallTime now) {
    out_.key("conditions");
    out_.begin_array();
    for (const core::Condition& one : conditions) {
      const StatusCondition* was = find(before, one.type);
      const bool stays = was != nullptr && was->status == status_of(one) && parse_rfc3339(was->last_transition_time);
      out_.begin_object();
      text("type", one.type);
      text("status", status_of(one));
      out_.key("observedGeneration");
      out_.integer(before.generation);
      text("lastTransitionTime", stays ? was->last_transition_time : rfc3339_rounded_up(now));
      text("reason", one.reason);
      text("message", one.message);
      out_.end_object();
    }
    out_.end_array();
  }
  [[nodiscard]] JsonWriter& out() { return out_; }
  [[nodiscard]] std::string take() && {
    out_.end_object();
    return canonical(std::move(out_).take());
  }

 private:
  JsonWriter out_;
};

}  // namespace

StatusSeen read_status(JsonRef object) {
  StatusSeen seen;
  if (const auto meta = member_of(object, "metadata")) {
    const auto generation = member_of(*meta, "generation");
    seen.generation = generation ? generation->integer().value_or(0) : 0;
  }
  const auto status = member_of(object, "status");
  if (!status) return seen;
  seen.status = canonical(*status);
  const auto conditions = member_of(*status, "conditions");
  for (auto one = conditions ? conditions->first_child() : std::nullopt; one && seen.conditions.size() < kConditionsMax;
       one = one->next_sibling()) {
    StatusCondition condition;
    condition.type = text_in(*one, "type");
    condition.status = text_in(*one, "status");
    condition.last_transition_time = text_in(*one, "lastTransitionTime");
    condition.reason = text_in(*one, "reason");
    condition.message = text_in(*one, "message");
    const auto generation = member_of(*one, "observedGeneration");
    condition.observed_generation = generation ? generation->integer().value_or(0) : 0;
    if (!condition.type.empty()) seen.conditions.push_back(std::move(condition));
  }
  return seen;
}

std::string encode_status(const core::PoolStatus& status, const StatusSeen& before, WallTime now) {
  StatusWriter writer;
  const core::PoolFill& fill = status.use;
  writer.text("cidr", fill.pool.cidr.to_string());
  writer.number("blockSize", static_cast<std::uint64_t>(fill.pool.block_length));
  writer.text("capacity", fill.capacity.to_string());
  writer.number("held", fill.held);
  writer.number("cooling", fill.cooling);
  writer.text("reserved", fill.reserved.to_string());
  writer.text("free", fill.free().to_string());
  writer.number("blocks", fill.blocks);
  writer.conditions(status.conditions, before, now);
  return std::move(writer).take();
}

std::string encode_status(const core::NodeRangeStatus& status, const StatusSeen& before, WallTime now) {
  StatusWriter writer;
  writer.number("nodes", status.nodes);
  writer.number("waiting", status.waiting);
  JsonWriter& out = writer.out();
  out.key("clusterCIDRs");
  out.begin_array();
  for (const auto& cluster : status.clusters) {
    out.begin_object();
    writer.text("cidr", cluster.cidr);
    writer.number("capacity", cluster.capacity);
    writer.number("taken", cluster.taken);
    writer.number("excluded", cluster.excluded);
    writer.number("free", cluster.capacity - std::min(cluster.capacity, cluster.taken + cluster.excluded));
    out.end_object();
  }
  out.end_array();
  writer.conditions(status.conditions, before, now);
  return std::move(writer).take();
}

bool is_turn(const std::vector<core::Condition>& conditions, const StatusSeen& before) {
  return conditions.size() != before.conditions.size() || std::ranges::any_of(conditions, [&](const auto& one) {
           const StatusCondition* was = find(before, one.type);
           return was == nullptr || was->status != status_of(one);
         });
}

std::string encode_status_patch(const ApiMeta& of, std::string_view status) {
  JsonWriter out(JsonWriter::Layout::compact, status.size() + 160);
  out.begin_object();
  out.key("metadata");
  out.begin_object();
  out.key("uid");
  out.text(of.uid);
  out.key("resourceVersion");
  out.text(of.resource_version);
  out.end_object();
  out.key("status");
  out.raw(status);
  out.end_object();
  return std::move(out).take();
}

std::string encode_own_pool(std::string_view pool) {
  JsonWriter out(JsonWriter::Layout::compact);
  const auto member = [&](std::string_view name, std::string_view value) {
    out.key(name);
    out.text(value);
  };
  out.begin_object();
  member("apiVersion", fmt::format("{}/{}", kOwnGroup, kOwnVersion));
  member("kind", own_pool_kind().kind);
  out.key("metadata");
  out.begin_object();
  member("name", pool);
  out.end_object();
  out.key("spec");
  out.begin_object();
  member("pool", pool);
  out.end_object();
  out.end_object();
  return std::move(out).take();
}

}  // namespace croft::wire::kube
