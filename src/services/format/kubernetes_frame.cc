#include "services/format/kubernetes_frame.h"

#include <array>
#include <chrono>
#include <limits>

#include "base/json/decode.h"
#include "base/net/echo.h"
#include "base/text/base64.h"
#include "base/time_text.h"

namespace croft::wire::kube {
namespace {

constexpr std::string_view kProtobufStart{"k8s\0", 4};
constexpr std::string_view kEncryptedStart = "k8s:enc:";

/// Known members need 5; what is deeper in an unknown one (managedFields) is as deep as the object it describes, and
/// passing it on goes as deep as it is.
constexpr std::size_t kJsonDepthMaxOfObjects = 200;

// ---------------------------------------------------------------- members

using Type = Field::Type;

constexpr std::array kMeta = {Field{"name", 1},
                              Field{"namespace", 3},
                              Field{"uid", 5},
                              Field{"resourceVersion", 6},
                              Field{"creationTimestamp", 8, Type::time},
                              Field{"deletionTimestamp", 9, Type::time},
                              Field{"labels", 11, Type::map}};
constexpr Field kMetadata{"metadata", 1, Type::object, kMeta};

constexpr std::array kRange = {kMetadata, Field{"range", 2}, Field{"data", 3, Type::base64}};

constexpr std::array kPort = {Field{"name", 1},
                              Field{"protocol", 2},
                              Field{"port", 3, Type::int32},
                              Field{"targetPort", 4, Type::int_or_text},
                              Field{"nodePort", 5, Type::int32},
                              Field{"appProtocol", 6}};
constexpr std::array kServiceSpec = {Field{"ports", 1, Type::objects, kPort},
                                     Field{"selector", 2, Type::map},
                                     Field{"clusterIP", 3},
                                     Field{"type", 4},
                                     Field{"externalName", 10},
                                     Field{"externalTrafficPolicy", 11},
                                     Field{"healthCheckNodePort", 12, Type::int32},
                                     Field{"ipFamilyPolicy", 17},
                                     Field{"clusterIPs", 18, Type::texts},
                                     Field{"ipFamilies", 19, Type::texts},
                                     Field{"allocateLoadBalancerNodePorts", 20, Type::boolean},
                                     Field{"loadBalancerClass", 21}};
constexpr std::array kServiceFields = {kMetadata, Field{"spec", 2, Type::object, kServiceSpec}};

constexpr std::array kParent = {Field{"group", 1}, Field{"resource", 2}, Field{"namespace", 3}, Field{"name", 4}};
constexpr std::array kAddressSpec = {Field{"parentRef", 1, Type::object, kParent}};
constexpr std::array kAddress = {kMetadata, Field{"spec", 2, Type::object, kAddressSpec}};

constexpr std::array kCidrSpec = {Field{"cidrs", 1, Type::texts}};
constexpr std::array kCondition = {Field{"type", 1}, Field{"status", 2}};
constexpr std::array kCidrStatus = {Field{"conditions", 1, Type::objects, kCondition}};
constexpr std::array kCidr = {kMetadata, Field{"spec", 2, Type::object, kCidrSpec},
                              Field{"status", 3, Type::object, kCidrStatus}};

// ---------------------------------------------------------------- JSON to protobuf

void put_varint(std::string& out, std::uint64_t value) {
  for (; value >= 0x80; value >>= 7) out += static_cast<char>(value | 0x80);
  out += static_cast<char>(value);
}
void put_number(std::string& out, int field, std::int64_t value) {
  put_varint(out, static_cast<std::uint64_t>(field) << 3);
  put_varint(out, static_cast<std::uint64_t>(value));
}
void put_bytes(std::string& out, int field, std::string_view bytes) {
  put_varint(out, static_cast<std::uint64_t>(field) << 3 | 2);
  put_varint(out, bytes.size());
  out += bytes;
}

[[nodiscard]] MaybeFault put_text(std::string& out, int field, const JsonAt& at) {
  if (at.value.kind() != JsonKind::string) return at.wrong_type("a string");
  put_bytes(out, field, at.value.text());
  return {};
}

[[nodiscard]] MaybeFault put_int32(std::string& out, int field, const JsonAt& at) {
  using Limits = std::numeric_limits<std::int32_t>;
  std::int64_t number = 0;
  if (auto fault = read_integer(at, Limits::min(), Limits::max(), number)) return fault;
  put_number(out, field, number);
  return {};
}

[[nodiscard]] MaybeFault put_fields(std::string& out, std::span<const Field> fields, const JsonAt& object);

/// A value that is not null.
[[nodiscard]] MaybeFault put_value(std::string& out, const Field& field, const JsonAt& at) {
  const JsonRef value = at.value;
  std::string inner;
  MaybeFault fault;
  switch (field.type) {
    case Type::text:
      return put_text(out, field.number, at);
    case Type::int32:
      return put_int32(out, field.number, at);
    case Type::boolean:
      if (value.kind() != JsonKind::boolean) return at.wrong_type("a boolean");
      put_number(out, field.number, value.boolean() ? 1 : 0);
      return {};
    case Type::base64: {
      if (value.kind() != JsonKind::string) return at.wrong_type("a string");
      const auto bytes = decode_base64(value.text());
      if (!bytes) return at.bad_value("it is no base64");
      put_bytes(out, field.number, *bytes);
      return {};
    }
    case Type::time: {
      const auto time = parse_rfc3339(value.text());
      if (!time) return at.bad_value(net::echo(value.text()) + " is no RFC 3339 time");
      put_number(inner, 1, std::chrono::floor<std::chrono::seconds>(*time).time_since_epoch().count());
      break;
    }
    case Type::int_or_text: {
      const bool is_text = value.kind() == JsonKind::string;
      put_number(inner, 1, is_text ? 1 : 0);
      fault = is_text ? put_text(inner, 3, at) : put_int32(inner, 2, at);
      break;
    }
    case Type::texts:
      return each_element(at, kObjectBytesMax,
                          [&](const JsonAt& element) { return put_text(out, field.number, element); });
    case Type::map:
      return each_member(at, [&](const JsonAt& member) {
        std::string entry;
        put_bytes(entry, 1, member.name);
        auto wrong = put_text(entry, 2, member);
        put_bytes(out, field.number, entry);
        return wrong;
      });
    case Type::objects:
      return each_element(at, kObjectBytesMax, [&](const JsonAt& element) {
        std::string object;
        auto wrong = put_fields(object, field.parts, element);
        put_bytes(out, field.number, object);
        return wrong;
      });
    case Type::object:
      fault = put_fields(inner, field.parts, at);
      break;
  }
  put_bytes(out, field.number, inner);
  return fault;
}

/// By the exact names of members, each at most once; what is null is absent.
[[nodiscard]] MaybeFault put_fields(std::string& out, std::span<const Field> fields, const JsonAt& object) {
  std::uint64_t seen = 0;
  return each_member(object, [&](const JsonAt& member) -> MaybeFault {
    for (const Field& field : fields) {
      if (field.name != member.name) continue;
      const std::uint64_t bit = std::uint64_t{1} << field.number;
      if ((seen & bit) != 0) return member.bad_value("it is there twice");
      seen |= bit;
      return member.value.is_null() ? MaybeFault() : put_value(out, field, member);
    }
    return {};
  });
}

// ---------------------------------------------------------------- the forms

/// Error: corrupt, where an object is another than the key says.
[[nodiscard]] Result<void> check_type(std::string_view place, const pb::TypeMeta& meta, const ObjectType& type) {
  if (meta.kind() != type.kind) {
    return fail(damaged(place, fmt::format("kind: it is {}, not {}", net::echo(meta.kind()), type.kind)));
  }
  const bool is_right =
      type.group.empty() ? meta.api_version() == "v1" : meta.api_version().starts_with(std::string(type.group) + "/");
  if (is_right) return {};
  return fail(damaged(place, fmt::format("apiVersion: {} is none of a {}", net::echo(meta.api_version()), type.kind)));
}

[[nodiscard]] Result<Opened> open_envelope(std::string_view place, std::string_view bytes, const ObjectType& type) {
  pb::Unknown envelope;
  if (!envelope.ParseFromArray(bytes.data(), static_cast<int>(bytes.size()))) {
    return fail(damaged(place, "its envelope is no protobuf, or it is cut off"));
  }
  TRY_VOID(check_type(place, envelope.type_meta(), type));
  if (!envelope.has_raw()) return fail(damaged(place, "raw: there is no object"));
  if (!envelope.content_encoding().empty()) {
    return fail(damaged(place, "contentEncoding: " + net::echo(envelope.content_encoding()) + " is not known"));
  }
  return Opened(std::move(envelope));
}

constexpr std::array kTypeMeta = {Field{"apiVersion", 1}, Field{"kind", 2}};
constexpr ObjectType kTyped{"TypeMeta", "", kTypeMeta};

[[nodiscard]] Result<Opened> open_json(std::string_view place, std::string_view bytes, const ObjectType& type) {
  auto document = parse_json(bytes, {kObjectBytesMax, kJsonDepthMaxOfObjects});
  if (!document) {
    return fail(damaged(place, "it is neither Kubernetes' protobuf nor JSON: " + document.error().message));
  }
  TRY(const auto meta, message_in<pb::TypeMeta>(place, document->root(), kTyped));
  TRY_VOID(check_type(place, meta, type));
  return Opened(*std::move(document));
}

}  // namespace

const ObjectType kRangeAllocation{"RangeAllocation", "", kRange};
const ObjectType kService{"Service", "", kServiceFields};
const ObjectType kIpAddress{"IPAddress", "networking.k8s.io", kAddress};
const ObjectType kServiceCidr{"ServiceCIDR", "networking.k8s.io", kCidr};

Error damaged(std::string_view place, std::string_view why) {
  return {ErrorCode::corrupt,
          fmt::format("Kubernetes' record {} is damaged: {}; it was left as it is", net::echo(place), why),
          {}};
}

Result<Opened> open(std::string_view place, std::string_view bytes, const ObjectType& type) {
  if (bytes.size() > kObjectBytesMax) {
    return fail(damaged(place, fmt::format("{} bytes are more than {}", bytes.size(), kObjectBytesMax)));
  }
  if (bytes.starts_with(kEncryptedStart)) {
    return fail(ErrorCode::refused_by_configuration,
                fmt::format("Kubernetes' record {} is encrypted at rest (the kube-apiserver has an "
                            "--encryption-provider-config that covers services): Croft can't read it; add the identity "
                            "provider in front for services and write them again",
                            net::echo(place)));
  }
  if (!bytes.starts_with(kProtobufStart)) return open_json(place, bytes, type);
  return open_envelope(place, bytes.substr(kProtobufStart.size()), type);
}

Result<std::string> protobuf_of(JsonRef object, const ObjectType& type) {
  std::string bytes;
  const auto fault = put_fields(bytes, type.fields, {object, nullptr, {}, {}});
  if (fault) return fail(ErrorCode::invalid_argument, fault->to_string());
  return bytes;
}

std::string print(const pb::Unknown& envelope) { return std::string(kProtobufStart) + envelope.SerializeAsString(); }

pb::Unknown new_envelope(std::string_view api_version, const ObjectType& type) {
  pb::Unknown envelope;
  envelope.mutable_type_meta()->set_api_version(std::string(api_version));
  envelope.mutable_type_meta()->set_kind(std::string(type.kind));
  envelope.set_content_encoding("");
  envelope.set_content_type("");
  return envelope;
}

pb::ObjectMeta new_metadata() {
  pb::ObjectMeta metadata;
  metadata.set_name("");
  metadata.set_generate_name("");
  metadata.set_namespace_("");
  metadata.set_self_link("");
  metadata.set_uid("");
  metadata.set_resource_version("");
  metadata.set_generation(0);
  metadata.mutable_creation_timestamp();
  return metadata;
}

}  // namespace croft::wire::kube
