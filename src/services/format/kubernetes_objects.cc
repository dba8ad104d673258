#include "services/format/kubernetes_objects.h"

#include <limits>
#include <memory>
#include <optional>
#include <utility>
#include <variant>

#include <nlohmann/json.hpp>

#include "base/json/writer.h"
#include "base/net/address.h"
#include "base/net/echo.h"
#include "base/net/lenient.h"
#include "base/text/base64.h"
#include "services/decide/service_words.h"
#include "services/format/kubernetes_frame.h"

// Kubernetes writes these objects back whole, and so does Croft: everything but `range` and `data` as it was read.

namespace croft::wire::kube {

namespace {

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

/// A new value: what Kubernetes writes for one with nothing but a range and bits.
std::string new_value(const core::RangeAllocation& range) {
  pb::RangeAllocation object;
  object.set_metadata(new_metadata().SerializeAsString());
  object.set_range(range.range);
  object.set_data(range.data);
  pb::Unknown envelope = new_envelope("v1", kRangeAllocation);
  envelope.set_raw(object.SerializeAsString());
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
  void take(const core::Words<Enum, N>& words, const std::string& text, std::string_view field, Enum& out) {
    if (text.empty()) return;
    const auto value = core::value_in(words, text);
    if (!value) return reject(field, net::echo(text) + " is not known");
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

/// A new IPAddress in the order and with the empty fields of Kubernetes' own writer.
pb::IPAddress message_of(const core::IpAddressObject& object, const std::string& uid, WallTime made) {
  pb::IPAddress message;
  pb::ObjectMeta& metadata = *message.mutable_metadata();
  metadata = new_metadata();
  metadata.set_name(object.address);
  metadata.set_uid(object.uid.empty() ? uid : object.uid);
  const auto created = std::chrono::floor<std::chrono::seconds>(object.created == WallTime{} ? made : object.created);
  metadata.mutable_creation_timestamp()->set_seconds(created.time_since_epoch().count());
  metadata.mutable_creation_timestamp()->set_nanos(0);
  for (const auto& [key, value] : object.labels) {
    pb::MapEntry& entry = *metadata.add_labels();
    entry.set_key(key);
    entry.set_value(value);
  }
  pb::ParentReference& parent = *message.mutable_spec()->mutable_parent_ref();
  parent.set_group(object.parent_group);
  parent.set_resource(object.parent_resource);
  parent.set_namespace_(object.parent.name_space);
  parent.set_name(object.parent.name);
  return message;
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

Result<core::IpAddressObject> decode_ip_address(std::string_view place, const std::string& address,
                                                const KubernetesSource& source) {
  TRY(const auto message, message_in<pb::IPAddress>(place, source, kIpAddress));
  const pb::ParentReference& parent = message.spec().parent_ref();
  core::IpAddressObject object;
  object.address = address;
  object.uid = message.metadata().uid();
  object.created = time_of(message.metadata().creation_timestamp());
  object.labels = map_of(message.metadata().labels());
  object.parent_group = parent.group();
  object.parent_resource = parent.resource();
  object.parent = {parent.namespace_(), parent.name()};
  return object;
}

Result<core::ServiceCidrObject> decode_service_cidr(std::string_view place, const std::string& name,
                                                    const KubernetesSource& source) {
  TRY(const auto message, message_in<pb::ServiceCIDR>(place, source, kServiceCidr));
  core::ServiceCidrObject object;
  object.name = name;
  object.uid = message.metadata().uid();
  object.created = time_of(message.metadata().creation_timestamp());
  object.deleting = is_set(message.metadata().deletion_timestamp());
  for (const std::string& text : message.spec().cidrs()) {
    const auto cidr = net::parse_prefix_leniently(text);
    if (!cidr) {
      return fail(damaged(place, fmt::format("spec.cidrs[{}]: {} is no CIDR", object.cidrs.size(), net::echo(text))));
    }
    object.cidrs.push_back(*cidr);
  }
  for (const pb::Condition& condition : message.status().conditions()) {
    if (condition.type() == "Ready") object.ready = condition.status() == "True";
  }
  return object;
}

std::string encode_ip_address(const core::IpAddressObject& object, const std::string& uid, WallTime made) {
  pb::Unknown envelope = new_envelope("networking.k8s.io/v1", kIpAddress);
  envelope.set_raw(message_of(object, uid, made).SerializeAsString());
  return print(envelope);
}

std::string encode_ip_address_json(const core::IpAddressObject& object) {
  using Json = nlohmann::ordered_json;
  Json metadata = {{"name", object.address}};
  if (!object.labels.empty()) metadata["labels"] = object.labels;
  const Json parent = {{"group", object.parent_group},
                       {"resource", object.parent_resource},
                       {"namespace", object.parent.name_space},
                       {"name", object.parent.name}};
  const Json json = {{"apiVersion", "networking.k8s.io/v1"},
                     {"kind", kIpAddress.kind},
                     {"metadata", std::move(metadata)},
                     {"spec", {{"parentRef", parent}}}};
  return json.dump(-1, ' ', false, Json::error_handler_t::replace);
}

}  // namespace croft::wire::kube
