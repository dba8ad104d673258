#include "store/kube/format/lease.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <string_view>
#include <utility>

#include <fmt/format.h>

#include "base/json/decode.h"
#include "base/json/writer.h"
#include "base/time_text.h"

namespace croft::wire::kube {
namespace {

constexpr std::size_t kIdentityBytesMax = 4096;
constexpr std::size_t kTimeBytesMax = 64;
constexpr std::size_t kDepthMax = 200;
constexpr ObjectRules kRules{.names = ObjectRules::Names::exact};

/// One that is longer than any of ours is another's all the same, and ends as others do.
MaybeFault read_holder(const JsonAt& at, LeaseRecord& out) {
  if (at.value.kind() != JsonKind::string) return read_text(at, kIdentityBytesMax, out.holder);
  std::string_view text = at.value.text();
  if (text.size() > kIdentityBytesMax) {
    std::size_t end = kIdentityBytesMax;
    while (end > 0 && (static_cast<unsigned char>(text[end]) & 0xC0U) == 0x80U) --end;  // within a character
    text = text.substr(0, end);
  }
  out.holder = text;
  return {};
}

constexpr std::array<JsonMember<LeaseRecord>, 5> kSpecMembers{{
    {"holderIdentity", read_holder},
    {"leaseDurationSeconds",
     [](const JsonAt& at, LeaseRecord& out) { return read_integer(at, 0, INT32_MAX, out.duration_s); }},
    {"acquireTime", [](const JsonAt& at, LeaseRecord& out) { return read_text(at, kTimeBytesMax, out.acquired); }},
    {"renewTime", [](const JsonAt& at, LeaseRecord& out) { return read_text(at, kTimeBytesMax, out.renewed); }},
    {"leaseTransitions",
     [](const JsonAt& at, LeaseRecord& out) { return read_integer(at, 0, INT32_MAX, out.transitions); }},
}};

constexpr std::array<JsonMember<LeaseRecord>, 1> kLeaseMembers{{
    {"spec",
     [](const JsonAt& at, LeaseRecord& out) { return read_object<LeaseRecord>(at, kSpecMembers, out, kRules); }},
}};

void write_record(JsonWriter& out, const LeaseRecord& record) {
  out.key("holderIdentity");
  out.text(record.holder);
  out.key("leaseDurationSeconds");
  out.integer(record.duration_s);
  out.key("acquireTime");
  out.text(record.acquired);
  out.key("renewTime");
  out.text(record.renewed);
  out.key("leaseTransitions");
  out.integer(record.transitions);
}

bool is_of_record(std::string_view name) {
  return std::ranges::find(kSpecMembers, name, &JsonMember<LeaseRecord>::name) != kSpecMembers.end();
}

/// The members of an object that are not to be replaced, as they are.
template <class Replaced>
void copy_others(JsonWriter& out, JsonRef object, Replaced is_replaced) {
  for (auto member = object.first_child(); member; member = member->next_sibling()) {
    if (is_replaced(member->key())) continue;
    out.key(member->key());
    copy_json(out, *member);
  }
}

}  // namespace

std::string micro_time(WallTime time) {
  const auto whole = std::chrono::floor<std::chrono::seconds>(time);
  const auto fraction = std::chrono::floor<std::chrono::microseconds>(time - whole).count();
  std::string text = rfc3339_exact(whole);
  text.insert(text.size() - 1, fmt::format(".{:06}", fraction));
  return text;
}

Result<LeaseRecord> decode_lease_record(JsonRef lease) {
  LeaseRecord record;
  if (const auto fault = read_object<LeaseRecord>(JsonAt{lease, nullptr, {}, {}}, kLeaseMembers, record, kRules)) {
    return fail(ErrorCode::corrupt, "a Lease of the API server: " + fault->to_string());
  }
  return record;
}

ApiObjectOf lease_of(const std::string& name_space, const std::string& name) {
  return {fmt::format("{}/{}", kLeases.group, kLeases.version), "Lease", name_space, name};
}

Result<Lease> decode_lease(std::string json, const ApiObjectOf& of) {
  TRY(ApiObject object, decode_object(json, of));
  Lease lease;
  TRY(lease.record, decode_lease_record(object.value));
  lease.meta = std::move(object.meta);
  lease.json = std::move(json);
  return lease;
}

std::string encode_new_lease(std::string_view name_space, std::string_view name, const LeaseRecord& record) {
  JsonWriter out(JsonWriter::Layout::compact);
  out.begin_object();
  out.key("apiVersion");
  out.text(fmt::format("{}/{}", kLeases.group, kLeases.version));
  out.key("kind");
  out.text("Lease");
  out.key("metadata");
  out.begin_object();
  out.key("name");
  out.text(name);
  out.key("namespace");
  out.text(name_space);
  out.end_object();
  out.key("spec");
  out.begin_object();
  write_record(out, record);
  out.end_object();
  out.end_object();
  return std::move(out).take();
}

Result<std::string> encode_changed_lease(const Lease& before, const LeaseRecord& record) {
  TRY(const JsonDocument document, parse_json(before.json, {.bytes_max = kApiAnswerBytesMax, .depth_max = kDepthMax}));
  const JsonRef root = document.root();
  if (root.kind() != JsonKind::object) return fail(ErrorCode::corrupt, "a Lease: it is no object");
  JsonWriter out(JsonWriter::Layout::compact, before.json.size() + 64);
  out.begin_object();
  copy_others(out, root, [](std::string_view name) { return name == "spec"; });
  out.key("spec");
  out.begin_object();
  for (auto member = root.first_child(); member; member = member->next_sibling()) {
    if (member->key() == "spec") copy_others(out, *member, is_of_record);
  }
  write_record(out, record);
  out.end_object();
  out.end_object();
  return std::move(out).take();
}

}  // namespace croft::wire::kube
