#include "store/kube/format/vpc_objects.h"

#include <algorithm>
#include <array>
#include <functional>
#include <utility>

#include <fmt/format.h>

#include "base/assert.h"
#include "base/json/decode.h"
#include "base/json/writer.h"
#include "base/net/echo.h"

namespace croft::wire::kube {
namespace {

constexpr std::size_t kVpcTextMax = 4096;
constexpr std::int64_t kVpcCountMax = INT32_MAX;
constexpr std::size_t kVpcDepthMax = 200;
constexpr ObjectRules kVpcRules{.names = ObjectRules::Names::exact};
constexpr std::string_view kAttachedLabel = "attached";
constexpr std::string_view kOwnerStatefulSetLabel = "owner-statefulset";

template <class T, std::string T::*Member>
MaybeFault text_into(const JsonAt& at, T& out) {
  return read_text(at, kVpcTextMax, out.*Member);
}
template <class T, std::int64_t T::*Member>
MaybeFault count_into(const JsonAt& at, T& out) {
  return read_integer(at, -kVpcCountMax, kVpcCountMax, out.*Member);
}

using Stock = IpamdRecord;
constexpr std::array<JsonMember<Stock>, 3> kStockSpec{{
    {"node", text_into<Stock, &Stock::node>},
    {"addr", text_into<Stock, &Stock::address>},
    {"subnet", text_into<Stock, &Stock::subnet>},
}};
constexpr std::array<JsonMember<Stock>, 4> kStockStatus{{
    {"current", count_into<Stock, &Stock::current>},
    {"high", count_into<Stock, &Stock::high>},
    {"low", count_into<Stock, &Stock::low>},
    {"status", text_into<Stock, &Stock::status>},
}};
constexpr std::array<JsonMember<Stock>, 2> kStockObject{{
    {"spec", [](const JsonAt& at, Stock& out) { return read_object<Stock>(at, kStockSpec, out, kVpcRules); }},
    {"status", [](const JsonAt& at, Stock& out) { return read_object<Stock>(at, kStockStatus, out, kVpcRules); }},
}};

using Claim = VpcIpClaimRecord;
constexpr std::array<JsonMember<Claim>, 5> kClaimSpec{{
    {"ip", text_into<Claim, &Claim::ip>},
    {"mask", text_into<Claim, &Claim::mask>},
    {"gateway", text_into<Claim, &Claim::gateway>},
    {"subnetId", text_into<Claim, &Claim::subnet>},
    {"vpcId", text_into<Claim, &Claim::vpc>},
}};
constexpr std::array<JsonMember<Claim>, 7> kClaimStatus{{
    {"attached", [](const JsonAt& at, Claim& out) { return read_boolean(at, out.attached); }},
    {"lastDetachtime", text_into<Claim, &Claim::last_detach_time>},
    {"releaseTime", text_into<Claim, &Claim::release_time>},
    {"sandboxId", text_into<Claim, &Claim::sandbox>},
    {"mac", text_into<Claim, &Claim::mac>},
    {"zone", text_into<Claim, &Claim::zone>},
    {"node", text_into<Claim, &Claim::node>},
}};
constexpr std::array<JsonMember<Claim>, 1> kClaimLabels{{
    {kOwnerStatefulSetLabel, text_into<Claim, &Claim::owner_stateful_set>},
}};
constexpr std::array<JsonMember<Claim>, 1> kClaimMeta{{
    {"labels", [](const JsonAt& at, Claim& out) { return read_object<Claim>(at, kClaimLabels, out, kVpcRules); }},
}};
constexpr std::array<JsonMember<Claim>, 3> kClaimObject{{
    {"metadata", [](const JsonAt& at, Claim& out) { return read_object<Claim>(at, kClaimMeta, out, kVpcRules); }},
    {"spec", [](const JsonAt& at, Claim& out) { return read_object<Claim>(at, kClaimSpec, out, kVpcRules); }},
    {"status", [](const JsonAt& at, Claim& out) { return read_object<Claim>(at, kClaimStatus, out, kVpcRules); }},
}};

template <class T, std::size_t N>
[[nodiscard]] Result<T> decode_vpc(JsonRef object, const std::array<JsonMember<T>, N>& members, std::string_view kind) {
  T record;
  if (const auto fault = read_object<T>(JsonAt{object, nullptr, {}, {}}, members, record, kVpcRules)) {
    return fail(ErrorCode::corrupt, fmt::format("an object {} of the API server: {}", kind, fault->to_string()));
  }
  return record;
}

void put(JsonWriter& out, std::string_view name, std::string_view text) {
  out.key(name);
  out.text(text);
}
void put(JsonWriter& out, std::string_view name, std::int64_t number) {
  out.key(name);
  out.integer(number);
}

template <class Members>
bool names(const Members& members, std::string_view name) {
  return std::any_of(members.begin(), members.end(), [&](const auto& member) { return member.name == name; });
}

/// Writes an object with what `write` adds, and the members it had that are not replaced. `before`: nothing was there.
void merge(JsonWriter& out, std::optional<JsonRef> before, const std::function<bool(std::string_view)>& is_replaced,
           const std::function<void()>& write) {
  out.begin_object();
  for (auto member = before ? before->first_child() : std::nullopt; member; member = member->next_sibling()) {
    if (is_replaced(member->key())) continue;
    out.key(member->key());
    copy_json(out, *member);
  }
  write();
  out.end_object();
}

/// Of members that come twice the last one, as Go reads them.
std::optional<JsonRef> last_member(std::optional<JsonRef> object, std::string_view name) {
  std::optional<JsonRef> found;
  for (auto member = object ? object->first_child() : std::nullopt; member; member = member->next_sibling()) {
    if (member->key() == name) found = member;
  }
  return found;
}

void write_stock_parts(JsonWriter& out, std::optional<JsonRef> before, const Stock& record) {
  out.key("spec");
  merge(
      out, last_member(before, "spec"), [](std::string_view name) { return names(kStockSpec, name); },
      [&] {
        put(out, "node", record.node);
        put(out, "addr", record.address);
        put(out, "subnet", record.subnet);
      });
  out.key("status");
  merge(
      out, last_member(before, "status"), [](std::string_view name) { return names(kStockStatus, name); },
      [&] {
        put(out, "current", record.current);
        put(out, "high", record.high);
        put(out, "low", record.low);
        put(out, "status", record.status);
      });
}

void write_claim_parts(JsonWriter& out, std::optional<JsonRef> before, const Claim& record) {
  out.key("spec");
  merge(
      out, last_member(before, "spec"), [](std::string_view name) { return names(kClaimSpec, name); },
      [&] {
        put(out, "ip", record.ip);
        put(out, "mask", record.mask);
        put(out, "gateway", record.gateway);
        put(out, "subnetId", record.subnet);
        put(out, "vpcId", record.vpc);
      });
  out.key("status");
  merge(
      out, last_member(before, "status"), [](std::string_view name) { return names(kClaimStatus, name); },
      [&] {
        out.key("attached");
        out.boolean(record.attached);
        put(out, "lastDetachtime", record.last_detach_time);
        put(out, "releaseTime", record.release_time);
        put(out, "sandboxId", record.sandbox);
        put(out, "mac", record.mac);
        put(out, "zone", record.zone);
        if (!record.node.empty()) put(out, "node", record.node);
      });
}

/// The labels and finalizers of a claim, with those of others.
void write_claim_meta(JsonWriter& out, std::optional<JsonRef> meta, const Claim& record) {
  out.key("labels");
  merge(
      out, last_member(meta, "labels"),
      [](std::string_view name) { return name == kAttachedLabel || name == kOwnerStatefulSetLabel; },
      [&] {
        put(out, kAttachedLabel, record.attached ? "true" : "false");
        if (!record.owner_stateful_set.empty()) put(out, kOwnerStatefulSetLabel, record.owner_stateful_set);
      });
  out.key("finalizers");
  out.begin_array();
  const auto before = last_member(meta, "finalizers");
  for (auto one = before ? before->first_child() : std::nullopt; one; one = one->next_sibling()) {
    if (one->text() != kClaimFinalizer) copy_json(out, *one);
  }
  if (record.attached) out.text(kClaimFinalizer);
  out.end_array();
}

void begin_new(JsonWriter& out, const ApiResource& resource, std::string_view kind, std::string_view name_space,
               std::string_view name) {
  out.begin_object();
  put(out, "apiVersion", fmt::format("{}/{}", resource.group, resource.version));
  put(out, "kind", kind);
  out.key("metadata");
  out.begin_object();
  put(out, "name", name);
  put(out, "namespace", name_space);
}

[[nodiscard]] Result<JsonDocument> reread(const std::string& json, std::string_view kind) {
  TRY(JsonDocument document, parse_json(json, {.bytes_max = kApiAnswerBytesMax, .depth_max = kVpcDepthMax}));
  if (document.root().kind() == JsonKind::object) return document;
  return fail(ErrorCode::corrupt, fmt::format("{}: it is no object", kind));
}

ApiObjectOf object_of(const ApiResource& resource, std::string_view kind, const std::string& name_space,
                      const std::string& name) {
  return {fmt::format("{}/{}", resource.group, resource.version), std::string(kind), name_space, name};
}

template <class Object, class Decode>
[[nodiscard]] Result<Object> decode_whole(std::string json, const ApiObjectOf& of, Decode decode) {
  TRY(ApiObject object, decode_object(json, of));
  Object out;
  TRY(out.record, decode(object.value));
  out.meta = std::move(object.meta);
  out.json = std::move(json);
  return out;
}

}  // namespace

Result<IpamdRecord> decode_ipamd_record(JsonRef object) { return decode_vpc(object, kStockObject, "Ipamd"); }

Result<Ipamd> decode_ipamd(std::string json, const std::string& name) {
  return decode_whole<Ipamd>(std::move(json), object_of(kIpamds, "Ipamd", std::string(kIpamdNamespace), name),
                             decode_ipamd_record);
}

std::string encode_new(std::string_view name, const IpamdRecord& record) {
  JsonWriter out(JsonWriter::Layout::compact);
  begin_new(out, kIpamds, "Ipamd", kIpamdNamespace, name);
  out.end_object();
  write_stock_parts(out, {}, record);
  out.end_object();
  return std::move(out).take();
}

Result<std::string> encode_changed(const Ipamd& before, const IpamdRecord& record) {
  TRY(const JsonDocument document, reread(before.json, "Ipamd"));
  JsonWriter out(JsonWriter::Layout::compact, before.json.size() + 64);
  merge(
      out, document.root(), [](std::string_view name) { return name == "spec" || name == "status"; },
      [&] { write_stock_parts(out, document.root(), record); });
  return std::move(out).take();
}

Result<VpcIpClaimRecord> decode_vpc_ip_claim_record(JsonRef object) {
  return decode_vpc(object, kClaimObject, "VpcIpClaim");
}

Result<VpcIpClaim> decode_vpc_ip_claim(std::string json, const std::string& name_space, const std::string& pod) {
  return decode_whole<VpcIpClaim>(std::move(json), object_of(kVpcIpClaims, "VpcIpClaim", name_space, pod),
                                  decode_vpc_ip_claim_record);
}

std::string encode_new(std::string_view name_space, std::string_view name, const VpcIpClaimRecord& record) {
  JsonWriter out(JsonWriter::Layout::compact);
  begin_new(out, kVpcIpClaims, "VpcIpClaim", name_space, name);
  write_claim_meta(out, {}, record);
  out.end_object();
  write_claim_parts(out, {}, record);
  out.end_object();
  return std::move(out).take();
}

Result<std::string> encode_changed(const VpcIpClaim& before, const VpcIpClaimRecord& record) {
  TRY(const JsonDocument document, reread(before.json, "VpcIpClaim"));
  const JsonRef root = document.root();
  JsonWriter out(JsonWriter::Layout::compact, before.json.size() + 64);
  merge(
      out, root, [](std::string_view name) { return name == "metadata" || name == "spec" || name == "status"; },
      [&] {
        const auto meta = last_member(root, "metadata");
        out.key("metadata");
        merge(
            out, meta, [](std::string_view name) { return name == "labels" || name == "finalizers"; },
            [&] { write_claim_meta(out, meta, record); });
        write_claim_parts(out, root, record);
      });
  return std::move(out).take();
}

Result<NotedPod> decode_noted_pod(std::string_view json, const std::string& name_space, const std::string& name) {
  TRY(ApiObject object, decode_object(json, {"v1", "Pod", name_space, name}));
  NotedPod pod;
  const auto annotations = last_member(last_member(object.value, "metadata"), "annotations");
  for (auto one = annotations ? annotations->first_child() : std::nullopt; one; one = one->next_sibling()) {
    if (one->kind() != JsonKind::string) {
      return fail(ErrorCode::corrupt, fmt::format("the annotation {} is no text", net::echo(one->key())));
    }
    pod.annotations.insert_or_assign(std::string(one->key()), std::string(one->text()));
  }
  pod.meta = std::move(object.meta);
  return pod;
}

std::string encode_pod_addresses_patch(std::string_view uid, const std::vector<net::Address>& addresses) {
  CROFT_ASSERT(!addresses.empty());
  std::vector<std::string> texts;
  for (const net::Address& address : addresses) {
    texts.push_back(fmt::format("{}/{}", address.to_string(), address.is_v4() ? 32 : 128));
  }
  JsonWriter out(JsonWriter::Layout::compact);
  out.begin_object();
  out.key("metadata");
  out.begin_object();
  put(out, "uid", uid);
  out.key("annotations");
  out.begin_object();
  put(out, "cni.projectcalico.org/podIP", texts.front());
  put(out, "cni.projectcalico.org/podIPs", fmt::format("{}", fmt::join(texts, ",")));
  out.end_object();
  out.end_object();
  out.end_object();
  return std::move(out).take();
}

}  // namespace croft::wire::kube
