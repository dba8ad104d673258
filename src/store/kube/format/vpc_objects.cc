#include "store/kube/format/vpc_objects.h"

#include <algorithm>
#include <array>
#include <functional>
#include <span>
#include <utility>
#include <variant>

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

/// A member of an object, read into a record and written from it.
template <class T>
struct VpcField {
  std::string_view name;
  std::variant<std::string T::*, std::int64_t T::*, bool T::*> member;
  bool unless_empty = false;  ///< a text: written only where there is one
};
template <class T>
using VpcFields = std::span<const VpcField<T>>;

MaybeFault read_value(const JsonAt& at, std::string& out) { return read_text(at, kVpcTextMax, out); }
MaybeFault read_value(const JsonAt& at, bool& out) { return read_boolean(at, out); }
MaybeFault read_value(const JsonAt& at, std::int64_t& out) {
  return read_integer(at, -kVpcCountMax, kVpcCountMax, out);
}
template <class T>
MaybeFault read_fields(const JsonAt& at, VpcFields<T> fields, T& out) {
  return each_member(at, [&](const JsonAt& member) -> MaybeFault {
    const auto field = std::ranges::find(fields, member.name, &VpcField<T>::name);
    if (field == fields.end() || member.value.is_null()) return {};
    return std::visit([&](auto pointer) { return read_value(member, out.*pointer); }, field->member);
  });
}

void write_value(JsonWriter& out, const std::string& text) { out.text(text); }
void write_value(JsonWriter& out, bool value) { out.boolean(value); }
void write_value(JsonWriter& out, std::int64_t number) { out.integer(number); }

using Stock = IpamdRecord;
constexpr std::array kStockSpec = {VpcField<Stock>{"node", &Stock::node}, VpcField<Stock>{"addr", &Stock::address},
                                   VpcField<Stock>{"subnet", &Stock::subnet}};
constexpr std::array kStockStatus = {VpcField<Stock>{"current", &Stock::current}, VpcField<Stock>{"high", &Stock::high},
                                     VpcField<Stock>{"low", &Stock::low}, VpcField<Stock>{"status", &Stock::status}};
constexpr std::array<JsonMember<Stock>, 2> kStockObject{{
    {"spec", [](const JsonAt& at, Stock& out) { return read_fields<Stock>(at, kStockSpec, out); }},
    {"status", [](const JsonAt& at, Stock& out) { return read_fields<Stock>(at, kStockStatus, out); }},
}};

using Claim = VpcIpClaimRecord;
constexpr std::array kClaimSpec = {VpcField<Claim>{"ip", &Claim::ip}, VpcField<Claim>{"mask", &Claim::mask},
                                   VpcField<Claim>{"gateway", &Claim::gateway},
                                   VpcField<Claim>{"subnetId", &Claim::subnet}, VpcField<Claim>{"vpcId", &Claim::vpc}};
constexpr std::array kClaimStatus = {VpcField<Claim>{"attached", &Claim::attached},
                                     VpcField<Claim>{"lastDetachtime", &Claim::last_detach_time},
                                     VpcField<Claim>{"releaseTime", &Claim::release_time},
                                     VpcField<Claim>{"sandboxId", &Claim::sandbox},
                                     VpcField<Claim>{"mac", &Claim::mac},
                                     VpcField<Claim>{"zone", &Claim::zone},
                                     VpcField<Claim>{"node", &Claim::node, true}};
constexpr std::array kClaimLabels = {VpcField<Claim>{kOwnerStatefulSetLabel, &Claim::owner_stateful_set, true}};
constexpr std::array<JsonMember<Claim>, 1> kClaimMeta{{
    {"labels", [](const JsonAt& at, Claim& out) { return read_fields<Claim>(at, kClaimLabels, out); }},
}};
constexpr std::array<JsonMember<Claim>, 3> kClaimObject{{
    {"metadata", [](const JsonAt& at, Claim& out) { return read_object<Claim>(at, kClaimMeta, out, kVpcRules); }},
    {"spec", [](const JsonAt& at, Claim& out) { return read_fields<Claim>(at, kClaimSpec, out); }},
    {"status", [](const JsonAt& at, Claim& out) { return read_fields<Claim>(at, kClaimStatus, out); }},
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

/// A member of the object, with what others have in it.
template <class T>
void write_part(JsonWriter& out, std::optional<JsonRef> before, std::string_view part, VpcFields<T> fields,
                const T& record) {
  out.key(part);
  merge(
      out, last_member(before, part),
      [&](std::string_view name) { return std::ranges::find(fields, name, &VpcField<T>::name) != fields.end(); },
      [&] {
        for (const VpcField<T>& field : fields) {
          const auto* text = std::get_if<std::string T::*>(&field.member);
          if (field.unless_empty && text != nullptr && (record.**text).empty()) continue;
          out.key(field.name);
          std::visit([&](auto pointer) { write_value(out, record.*pointer); }, field.member);
        }
      });
}

void write_parts(JsonWriter& out, std::optional<JsonRef> before, const Stock& record) {
  write_part<Stock>(out, before, "spec", kStockSpec, record);
  write_part<Stock>(out, before, "status", kStockStatus, record);
}
void write_parts(JsonWriter& out, std::optional<JsonRef> before, const Claim& record) {
  write_part<Claim>(out, before, "spec", kClaimSpec, record);
  write_part<Claim>(out, before, "status", kClaimStatus, record);
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
  write_parts(out, {}, record);
  out.end_object();
  return std::move(out).take();
}

Result<std::string> encode_changed(const Ipamd& before, const IpamdRecord& record) {
  TRY(const JsonDocument document, reread(before.json, "Ipamd"));
  JsonWriter out(JsonWriter::Layout::compact, before.json.size() + 64);
  merge(
      out, document.root(), [](std::string_view name) { return name == "spec" || name == "status"; },
      [&] { write_parts(out, document.root(), record); });
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
  write_parts(out, {}, record);
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
        write_parts(out, root, record);
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
