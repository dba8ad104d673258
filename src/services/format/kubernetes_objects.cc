#include "services/format/kubernetes_objects.h"

#include <array>
#include <chrono>
#include <cstdint>
#include <limits>
#include <memory>
#include <optional>
#include <span>
#include <utility>

#include <fmt/format.h>
#include <kube/kube.pb.h>
#include <nlohmann/json.hpp>

#include "base/json/reader.h"
#include "base/json/writer.h"
#include "base/net/address.h"
#include "base/net/prefix.h"
#include "base/printable.h"
#include "base/text/base64.h"
#include "base/texts.h"
#include "base/time_text.h"
#include "register/service.h"

namespace croft::wire::kube {
namespace {

namespace pb = croft::kube;

// All of Kubernetes' objects in etcd have two forms, an envelope and metadata.

/// A member of the JSON form, and where it stands in the protobuf form. Others are passed over.
struct Field {
  enum class Type : std::uint8_t { text, int32, boolean, base64, time, int_or_text, texts, map, object, objects };
  std::string_view name;
  int number;
  Type type = Type::text;
  std::span<const Field> parts{};  ///< of an object
};

/// A kind, as its objects tell it. An API group has several versions with the same members.
struct ObjectType {
  std::string_view kind;
  std::string_view group;  ///< "": the core group, whose only version is v1
  std::span<const Field> fields;
};
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

constexpr std::array kCidrSpec = {Field{"cidrs", 1, Type::texts}};
constexpr std::array kCidr = {kMetadata, Field{"spec", 2, Type::object, kCidrSpec}};

constexpr ObjectType kRangeAllocation{"RangeAllocation", "", kRange};
constexpr ObjectType kService{"Service", "", kServiceFields};
constexpr ObjectType kServiceCidr{"ServiceCIDR", "networking.k8s.io", kCidr};

[[nodiscard]] Error damaged(std::string_view place, std::string_view why) {
  return make_error(ErrorCode::corrupt, "Kubernetes' record {} is damaged: {}; it was left as it is", echo(place), why);
}

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
      if (!time) return at.bad_value(echo(value.text()) + " is no RFC 3339 time");
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

/// An object of the JSON form in the protobuf form, without envelope. Error: invalid_argument, naming the member.
[[nodiscard]] Result<std::string> protobuf_of(JsonRef object, const ObjectType& type) {
  std::string bytes;
  const auto fault = put_fields(bytes, type.fields, {object, nullptr, {}, {}});
  if (fault) return fail(ErrorCode::invalid_argument, fault->to_string());
  return bytes;
}

// ---------------------------------------------------------------- the forms

/// A value in its form: the protobuf's envelope or the JSON's members.
using Opened = std::variant<pb::Unknown, JsonDocument>;

template <class Message>
[[nodiscard]] Result<Message> parse_message(std::string_view place, const std::string& bytes, const ObjectType& type) {
  Message message;
  if (message.ParseFromString(bytes)) return message;
  return fail(damaged(place, fmt::format("raw: it is no {} in protobuf, or it is cut off", type.kind)));
}
/// An object of the JSON form.
template <class Message>
[[nodiscard]] Result<Message> message_of(std::string_view place, JsonRef object, const ObjectType& type) {
  const auto bytes = protobuf_of(object, type);
  if (!bytes) return fail(damaged(place, bytes.error().message));
  return parse_message<Message>(place, *bytes, type);
}

/// Error: corrupt, where an object is another than the key says.
[[nodiscard]] Result<void> check_type(std::string_view place, const pb::TypeMeta& meta, const ObjectType& type) {
  if (meta.kind() != type.kind) {
    return fail(damaged(place, fmt::format("kind: it is {}, not {}", echo(meta.kind()), type.kind)));
  }
  const bool is_right =
      type.group.empty() ? meta.api_version() == "v1" : meta.api_version().starts_with(std::string(type.group) + "/");
  if (is_right) return {};
  return fail(damaged(place, fmt::format("apiVersion: {} is none of a {}", echo(meta.api_version()), type.kind)));
}

[[nodiscard]] Result<Opened> open_envelope(std::string_view place, std::string_view bytes, const ObjectType& type) {
  pb::Unknown envelope;
  if (!envelope.ParseFromArray(bytes.data(), static_cast<int>(bytes.size()))) {
    return fail(damaged(place, "its envelope is no protobuf, or it is cut off"));
  }
  TRY_VOID(check_type(place, envelope.type_meta(), type));
  if (!envelope.has_raw()) return fail(damaged(place, "raw: there is no object"));
  if (!envelope.content_encoding().empty()) {
    return fail(damaged(place, "contentEncoding: " + echo(envelope.content_encoding()) + " is not known"));
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
  TRY(const auto meta, message_of<pb::TypeMeta>(place, document->root(), kTyped));
  TRY_VOID(check_type(place, meta, type));
  return Opened(*std::move(document));
}

/// Errors as those of kubernetes_objects.h, also for another kind of object.
[[nodiscard]] Result<Opened> open(std::string_view place, std::string_view bytes, const ObjectType& type) {
  if (bytes.size() > kObjectBytesMax) {
    return fail(damaged(place, fmt::format("{} bytes are more than {}", bytes.size(), kObjectBytesMax)));
  }
  if (bytes.starts_with(kEncryptedStart)) {
    return fail(
        ErrorCode::refused_by_configuration,
        "Kubernetes' record {} is encrypted at rest (the kube-apiserver has an --encryption-provider-config that "
        "covers services): Croft can't read it; add the identity provider in front for services and write them again",
        echo(place));
  }
  if (!bytes.starts_with(kProtobufStart)) return open_json(place, bytes, type);
  return open_envelope(place, bytes.substr(kProtobufStart.size()), type);
}

/// The object of a source in any form.
template <class Message>
[[nodiscard]] Result<Message> message_in(std::string_view place, const KubernetesSource& source,
                                         const ObjectType& type) {
  if (const auto* object = std::get_if<JsonRef>(&source)) return message_of<Message>(place, *object, type);
  TRY(const Opened opened, open(place, std::get<std::string_view>(source), type));
  if (const auto* json = std::get_if<JsonDocument>(&opened)) return message_of<Message>(place, json->root(), type);
  return parse_message<Message>(place, std::get<pb::Unknown>(opened).raw(), type);
}

/// The bytes of a value in protobuf.
[[nodiscard]] std::string print(const pb::Unknown& envelope) {
  return std::string(kProtobufStart) + envelope.SerializeAsString();
}

// Kubernetes writes these objects back whole, and so does Croft: everything but `range` and `data` as it was read.

/// The value as it was read.
class RangeRest final : public core::ForeignRest {
 public:
  explicit RangeRest(std::string_view read) : bytes(read) {}
  const std::string bytes;
};

std::string to_json(const core::RangeAllocation& range, JsonRef object) {
  bool has_range = false, has_data = false;
  JsonWriter out(JsonWriter::Layout::compact, range.data.size() / 3 * 4 + 256);
  const auto write_data = [&] {
    out.key("data");
    out.raw("\"" + encode_base64(range.data) + "\"");
  };
  out.begin_object();
  for (auto member = object.first_child(); member; member = member->next_sibling()) {
    const bool is_range = member->key() == "range", is_data = member->key() == "data";
    has_range |= is_range;
    has_data |= is_data;
    if (is_data && !(member->is_null() && range.data.empty())) {
      write_data();
      continue;
    }
    out.key(member->key());
    is_range ? out.text(range.range) : copy_json(out, *member);
  }
  if (!has_range) {
    out.key("range");
    out.text(range.range);
  }
  if (!has_data && !range.data.empty()) write_data();
  out.end_object();
  return std::move(out).take();
}

/// A new value: what Kubernetes writes for one with nothing but a range and bits, empty fields included.
std::string new_value(const core::RangeAllocation& range) {
  pb::ObjectMeta metadata;
  metadata.set_name("");
  metadata.set_generate_name("");
  metadata.set_namespace_("");
  metadata.set_self_link("");
  metadata.set_uid("");
  metadata.set_resource_version("");
  metadata.set_generation(0);
  metadata.mutable_creation_timestamp();
  pb::RangeAllocation object;
  object.set_metadata(metadata.SerializeAsString());
  object.set_range(range.range);
  object.set_data(range.data);
  pb::Unknown envelope;
  envelope.mutable_type_meta()->set_api_version("v1");
  envelope.mutable_type_meta()->set_kind(std::string(kRangeAllocation.kind));
  envelope.set_raw(object.SerializeAsString());
  envelope.set_content_encoding("");
  envelope.set_content_type("");
  return print(envelope);
}

}  // namespace

Result<core::RangeAllocation> decode_range_allocation(std::string_view place, std::string_view bytes) {
  TRY(const auto object, message_in<pb::RangeAllocation>(place, bytes, kRangeAllocation));
  if (pb::ObjectMeta metadata; !metadata.ParseFromString(object.metadata())) {
    return fail(damaged(place, "metadata: no protobuf, or it is cut off"));
  }
  return core::RangeAllocation{object.range(), object.data(), std::make_shared<RangeRest>(bytes)};
}

std::string encode_range_allocation(const core::RangeAllocation& range) {
  const auto* rest = dynamic_cast<const RangeRest*>(range.rest.get());
  if (rest == nullptr) return new_value(range);
  Opened opened = open({}, rest->bytes, kRangeAllocation).value();  // it was read
  if (const auto* json = std::get_if<JsonDocument>(&opened)) {
    return to_json(range, json->root()) + (rest->bytes.ends_with('\n') ? "\n" : "");
  }
  auto& envelope = std::get<pb::Unknown>(opened);
  auto object = parse_message<pb::RangeAllocation>({}, envelope.raw(), kRangeAllocation).value();
  if (!range.range.empty() || object.has_range()) object.set_range(range.range);
  if (!range.data.empty() || object.has_data()) object.set_data(range.data);
  envelope.set_raw(object.SerializeAsString());
  return print(envelope);
}

namespace {

/// The seconds of a WallTime's range, which is 292 years to both sides.
constexpr std::int64_t kSecondsMax = std::int64_t{1} << 33;

/// Kubernetes writes an absent time as null or empty; both are absent.
[[nodiscard]] bool is_set(const pb::Time& time) { return time.seconds() != 0; }
[[nodiscard]] WallTime time_of(const pb::Time& time) {
  if (time.seconds() < -kSecondsMax || time.seconds() > kSecondsMax) return {};
  return WallTime(std::chrono::seconds{time.seconds()});
}

[[nodiscard]] std::map<std::string, std::string> map_of(
    const google::protobuf::RepeatedPtrField<pb::MapEntry>& entries) {
  std::map<std::string, std::string> map;
  for (const pb::MapEntry& entry : entries) map[entry.key()] = entry.value();
  return map;
}

/// Takes the fields of one object. The first that can't be used is the error.
class Taker {
 public:
  /// No text leaves the default.
  template <class Enum, std::size_t N>
  void take(const Words<Enum, N>& words, const std::string& text, std::string_view field, Enum& out) {
    if (text.empty()) return;
    const auto value = value_in(words, text);
    if (!value) return reject(field, echo(text) + " is not known");
    out = *value;
  }

  void take(std::int32_t number, std::string_view field, std::uint16_t& out) {
    if (number < 0 || number > std::numeric_limits<std::uint16_t>::max()) {
      return reject(field, fmt::format("{} is no port", number));
    }
    out = static_cast<std::uint16_t>(number);
  }

  void reject(std::string_view field, const std::string& why) {
    if (!error_) error_ = invalid_argument(fmt::format("{}: {}", field, why));
  }

  template <class Object>
  [[nodiscard]] Result<Object> finish(Object object) {
    if (error_) return fail(*std::move(error_));
    return object;
  }

 private:
  std::optional<Error> error_;
};

/// `80`, `http`, or nothing.
std::string text_of(const pb::IntOrString& target) {
  if (target.type() == 1) return target.str_val();
  return target.int_val() == 0 ? "" : std::to_string(target.int_val());
}

core::ServicePort port_of(Taker& taker, const pb::ServicePort& port, int index) {
  const auto field = [&](std::string_view name) { return fmt::format("spec.ports[{}].{}", index, name); };
  core::ServicePort taken;
  taken.name = port.name();
  taker.take(core::kProtocols, port.protocol(), field("protocol"), taken.protocol);
  taker.take(port.port(), field("port"), taken.port);
  taken.target_port = text_of(port.target_port());
  taker.take(port.node_port(), field("nodePort"), taken.node_port);
  taken.app_protocol = port.app_protocol();
  return taken;
}

/// As a kube-apiserver on reading: of one who was written before there were lists.
void complete_addresses(core::Service& service) {
  if (service.cluster_ips.empty() && !service.cluster_ip.empty()) service.cluster_ips = {service.cluster_ip};
  if (service.type == core::ServiceType::external_name || !service.ip_families.empty()) return;
  const auto address = net::parse_address_leniently(service.cluster_ip);
  if (!address) return;
  service.ip_families = {address->family()};
  service.ip_family_policy = core::IpFamilyPolicy::single_stack;
}

/// Error: invalid_argument, naming the field.
[[nodiscard]] Result<core::Service> service_of(const pb::Service& message) {
  const pb::ServiceSpec& spec = message.spec();
  Taker taker;
  core::Service service;
  service.name = {message.metadata().namespace_(), message.metadata().name()};
  service.uid = message.metadata().uid();
  service.created = time_of(message.metadata().creation_timestamp());
  service.deleting = is_set(message.metadata().deletion_timestamp());
  service.labels = map_of(message.metadata().labels());
  service.selector = map_of(spec.selector());
  taker.take(core::kServiceTypes, spec.type(), "spec.type", service.type);
  service.cluster_ip = spec.cluster_ip();
  service.cluster_ips.assign(spec.cluster_ips().begin(), spec.cluster_ips().end());
  for (const std::string& family : spec.ip_families()) {
    if (family.empty()) taker.reject("spec.ipFamilies", "\"\" is not known");
    taker.take(core::kFamilies, family, "spec.ipFamilies", service.ip_families.emplace_back());
  }
  if (!spec.ip_family_policy().empty()) {
    taker.take(core::kFamilyPolicies, spec.ip_family_policy(), "spec.ipFamilyPolicy",
               service.ip_family_policy.emplace());
  }
  for (int i = 0; i < spec.ports_size(); ++i) service.ports.push_back(port_of(taker, spec.ports(i), i));
  taker.take(spec.health_check_node_port(), "spec.healthCheckNodePort", service.health_check_node_port);
  service.external_name = spec.external_name();
  taker.take(core::kTrafficPolicies, spec.external_traffic_policy(), "spec.externalTrafficPolicy",
             service.external_traffic_policy);
  service.external_traffic_policy_given = !spec.external_traffic_policy().empty();
  if (spec.has_allocate_load_balancer_node_ports()) {
    service.allocate_load_balancer_node_ports = spec.allocate_load_balancer_node_ports();
  }
  if (spec.has_load_balancer_class()) service.load_balancer_class = spec.load_balancer_class();
  return taker.finish(std::move(service));
}

}  // namespace

Result<core::Service> decode_service(std::string_view place, const core::ServiceName& name,
                                     const KubernetesSource& source) {
  TRY(const auto message, message_in<pb::Service>(place, source, kService));
  auto service = service_of(message);
  if (!service) return fail(damaged(place, service.error().message));
  service->name = name;
  complete_addresses(*service);
  return service;
}

Result<core::Service> decode_service_manifest(JsonRef object, std::string& resource_version) {
  TRY(const std::string bytes, protobuf_of(object, kService));
  TRY(const auto message, parse_message<pb::Service>("manifest", bytes, kService));
  resource_version = message.metadata().resource_version();
  return service_of(message);
}

Result<core::ServiceCidrObject> decode_service_cidr(std::string_view place, const std::string& name,
                                                    const KubernetesSource& source) {
  TRY(const auto message, message_in<pb::ServiceCIDR>(place, source, kServiceCidr));
  core::ServiceCidrObject object;
  object.name = name;
  for (const std::string& text : message.spec().cidrs()) {
    const auto cidr = net::parse_prefix_leniently(text);
    if (!cidr) {
      return fail(damaged(place, fmt::format("spec.cidrs[{}]: {} is no CIDR", object.cidrs.size(), echo(text))));
    }
    object.cidrs.push_back(*cidr);
  }
  return object;
}

}  // namespace croft::wire::kube
