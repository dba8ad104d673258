#include "store/kube/format/json.h"

#include <array>
#include <chrono>
#include <limits>
#include <span>
#include <vector>

#include "base/net/echo.h"
#include "base/text/base64.h"
#include "base/time_text.h"
#include "store/kube/format/objects.h"

namespace croft::wire::kube {
namespace {

namespace pb = croft::kube;

/// No text but a bitmap is near it.
constexpr std::size_t kTextBytesMax = std::size_t{256} << 10;
constexpr std::size_t kElementsMax = 100'000;

/// Takes an object by the exact names of members; unknown ones are passed over. Null leaves `out`.
template <class T>
[[nodiscard]] MaybeFault read_members(const JsonAt& at, std::span<const JsonMember<T>> members, T& out) {
  return read_object<T>(at, members, out,
                        {.names = ObjectRules::Names::exact, .repeated = ObjectRules::Repeated::fault});
}

[[nodiscard]] MaybeFault read_words(const JsonAt& at, std::string& out) { return read_text(at, kTextBytesMax, out); }

[[nodiscard]] MaybeFault read_int32(const JsonAt& at, std::int32_t& out) {
  std::int64_t value = 0;
  using Limits = std::numeric_limits<std::int32_t>;
  if (auto fault = read_integer(at, Limits::min(), Limits::max(), value)) return fault;
  out = static_cast<std::int32_t>(value);
  return {};
}

/// Takes an array; `read_one(element, message)` takes an element into a new message or text of `out`.
template <class Repeated, class ReadOne>
[[nodiscard]] MaybeFault read_each(const JsonAt& at, Repeated& out, ReadOne read_one) {
  return each_element(at, kElementsMax, [&](const JsonAt& element) { return read_one(element, *out.Add()); });
}

using Entries = google::protobuf::RepeatedPtrField<pb::MapEntry>;

[[nodiscard]] MaybeFault read_map(const JsonAt& at, Entries& out) {
  return each_member(at, [&](const JsonAt& member) {
    pb::MapEntry& entry = *out.Add();
    entry.set_key(std::string(member.name));
    return read_words(member, *entry.mutable_value());
  });
}

[[nodiscard]] MaybeFault read_time(const JsonAt& at, pb::Time& out) {
  if (at.value.is_null()) return {};
  std::string text;
  if (auto fault = read_words(at, text)) return fault;
  const auto time = parse_rfc3339(text);
  if (!time) return at.bad_value(net::echo(text) + " is no RFC 3339 time");
  out.set_seconds(std::chrono::floor<std::chrono::seconds>(*time).time_since_epoch().count());
  return {};
}

/// A number, or a text.
[[nodiscard]] MaybeFault read_int_or_string(const JsonAt& at, pb::IntOrString& out) {
  const bool is_text = at.value.kind() == JsonKind::string;
  out.set_type(is_text ? 1 : 0);
  if (is_text) return read_words(at, *out.mutable_str_val());
  std::int32_t number = 0;
  if (auto fault = read_int32(at, number)) return fault;
  out.set_int_val(number);
  return {};
}

// Tables of members. Each entry takes one member into its message.

template <class T, std::string* (T::*kMutable)()>
[[nodiscard]] MaybeFault text_into(const JsonAt& at, T& out) {
  if (at.value.is_null()) return {};
  return read_words(at, *(out.*kMutable)());
}

template <class T, void (T::*kSet)(std::int32_t)>
[[nodiscard]] MaybeFault number_into(const JsonAt& at, T& out) {
  if (at.value.is_null()) return {};
  std::int32_t number = 0;
  if (auto fault = read_int32(at, number)) return fault;
  (out.*kSet)(number);
  return {};
}

constexpr std::array<JsonMember<pb::TypeMeta>, 2> kTypeMembers = {{
    {"kind", text_into<pb::TypeMeta, &pb::TypeMeta::mutable_kind>},
    {"apiVersion", text_into<pb::TypeMeta, &pb::TypeMeta::mutable_api_version>},
}};

using Meta = pb::ObjectMeta;
constexpr std::array<JsonMember<Meta>, 6> kMetaMembers = {{
    {"name", text_into<Meta, &Meta::mutable_name>},
    {"namespace", text_into<Meta, &Meta::mutable_namespace_>},
    {"uid", text_into<Meta, &Meta::mutable_uid>},
    {"creationTimestamp",
     [](const JsonAt& at, Meta& out) {
       return at.value.is_null() ? MaybeFault() : read_time(at, *out.mutable_creation_timestamp());
     }},
    {"deletionTimestamp",
     [](const JsonAt& at, Meta& out) {
       return at.value.is_null() ? MaybeFault() : read_time(at, *out.mutable_deletion_timestamp());
     }},
    {"labels", [](const JsonAt& at, Meta& out) { return read_map(at, *out.mutable_labels()); }},
}};

template <class T>
[[nodiscard]] MaybeFault metadata_into(const JsonAt& at, T& out) {
  return read_members<Meta>(at, kMetaMembers, *out.mutable_metadata());
}

using Range = pb::RangeAllocation;
constexpr std::array<JsonMember<Range>, 3> kRangeMembers = {{
    {"metadata",
     [](const JsonAt& at, Range&) {
       Meta checked;
       return read_members<Meta>(at, kMetaMembers, checked);
     }},
    {"range", text_into<Range, &Range::mutable_range>},
    {"data",
     [](const JsonAt& at, Range& out) -> MaybeFault {
       if (at.value.is_null()) return {};
       if (at.value.kind() != JsonKind::string) return at.wrong_type("a string");
       auto data = decode_base64(at.value.text());
       if (!data) return at.bad_value("it is no base64");
       out.set_data(*std::move(data));
       return {};
     }},
}};

using Port = pb::ServicePort;
constexpr std::array<JsonMember<Port>, 6> kPortMembers = {{
    {"name", text_into<Port, &Port::mutable_name>},
    {"protocol", text_into<Port, &Port::mutable_protocol>},
    {"port", number_into<Port, &Port::set_port>},
    {"targetPort",
     [](const JsonAt& at, Port& out) {
       return at.value.is_null() ? MaybeFault() : read_int_or_string(at, *out.mutable_target_port());
     }},
    {"nodePort", number_into<Port, &Port::set_node_port>},
    {"appProtocol", text_into<Port, &Port::mutable_app_protocol>},
}};

using Spec = pb::ServiceSpec;
constexpr std::array<JsonMember<Spec>, 12> kSpecMembers = {{
    {"ports",
     [](const JsonAt& at, Spec& out) {
       return read_each(at, *out.mutable_ports(), [](const JsonAt& element, Port& port) {
         return read_members<Port>(element, kPortMembers, port);
       });
     }},
    {"selector", [](const JsonAt& at, Spec& out) { return read_map(at, *out.mutable_selector()); }},
    {"clusterIP", text_into<Spec, &Spec::mutable_cluster_ip>},
    {"type", text_into<Spec, &Spec::mutable_type>},
    {"externalName", text_into<Spec, &Spec::mutable_external_name>},
    {"externalTrafficPolicy", text_into<Spec, &Spec::mutable_external_traffic_policy>},
    {"healthCheckNodePort", number_into<Spec, &Spec::set_health_check_node_port>},
    {"ipFamilyPolicy", text_into<Spec, &Spec::mutable_ip_family_policy>},
    {"clusterIPs", [](const JsonAt& at, Spec& out) { return read_each(at, *out.mutable_cluster_ips(), read_words); }},
    {"ipFamilies", [](const JsonAt& at, Spec& out) { return read_each(at, *out.mutable_ip_families(), read_words); }},
    {"allocateLoadBalancerNodePorts",
     [](const JsonAt& at, Spec& out) -> MaybeFault {
       if (at.value.is_null()) return {};
       bool value = false;
       if (auto fault = read_boolean(at, value)) return fault;
       out.set_allocate_load_balancer_node_ports(value);
       return {};
     }},
    {"loadBalancerClass", text_into<Spec, &Spec::mutable_load_balancer_class>},
}};

constexpr std::array<JsonMember<pb::Service>, 2> kServiceMembers = {{
    {"metadata", metadata_into<pb::Service>},
    {"spec",
     [](const JsonAt& at, pb::Service& out) { return read_members<Spec>(at, kSpecMembers, *out.mutable_spec()); }},
}};

using Parent = pb::ParentReference;
constexpr std::array<JsonMember<Parent>, 4> kParentMembers = {{
    {"group", text_into<Parent, &Parent::mutable_group>},
    {"resource", text_into<Parent, &Parent::mutable_resource>},
    {"namespace", text_into<Parent, &Parent::mutable_namespace_>},
    {"name", text_into<Parent, &Parent::mutable_name>},
}};
constexpr std::array<JsonMember<pb::IPAddressSpec>, 1> kIpAddressSpecMembers = {{
    {"parentRef",
     [](const JsonAt& at, pb::IPAddressSpec& out) {
       return read_members<Parent>(at, kParentMembers, *out.mutable_parent_ref());
     }},
}};
constexpr std::array<JsonMember<pb::IPAddress>, 2> kIpAddressMembers = {{
    {"metadata", metadata_into<pb::IPAddress>},
    {"spec",
     [](const JsonAt& at, pb::IPAddress& out) {
       return read_members<pb::IPAddressSpec>(at, kIpAddressSpecMembers, *out.mutable_spec());
     }},
}};

using Condition = pb::Condition;
constexpr std::array<JsonMember<Condition>, 2> kConditionMembers = {{
    {"type", text_into<Condition, &Condition::mutable_type>},
    {"status", text_into<Condition, &Condition::mutable_status>},
}};
constexpr std::array<JsonMember<pb::ServiceCIDRSpec>, 1> kCidrSpecMembers = {{
    {"cidrs",
     [](const JsonAt& at, pb::ServiceCIDRSpec& out) { return read_each(at, *out.mutable_cidrs(), read_words); }},
}};
constexpr std::array<JsonMember<pb::ServiceCIDRStatus>, 1> kCidrStatusMembers = {{
    {"conditions",
     [](const JsonAt& at, pb::ServiceCIDRStatus& out) {
       return read_each(at, *out.mutable_conditions(), [](const JsonAt& element, Condition& condition) {
         return read_members<Condition>(element, kConditionMembers, condition);
       });
     }},
}};
constexpr std::array<JsonMember<pb::ServiceCIDR>, 3> kCidrMembers = {{
    {"metadata", metadata_into<pb::ServiceCIDR>},
    {"spec",
     [](const JsonAt& at, pb::ServiceCIDR& out) {
       return read_members<pb::ServiceCIDRSpec>(at, kCidrSpecMembers, *out.mutable_spec());
     }},
    {"status",
     [](const JsonAt& at, pb::ServiceCIDR& out) {
       return read_members<pb::ServiceCIDRStatus>(at, kCidrStatusMembers, *out.mutable_status());
     }},
}};

}  // namespace

MaybeFault read_type_meta(const JsonAt& at, pb::TypeMeta& out) {
  return read_members<pb::TypeMeta>(at, kTypeMembers, out);
}
MaybeFault read_range_allocation(const JsonAt& at, Range& out) { return read_members<Range>(at, kRangeMembers, out); }
MaybeFault read_service(const JsonAt& at, pb::Service& out) {
  return read_members<pb::Service>(at, kServiceMembers, out);
}
MaybeFault read_ip_address(const JsonAt& at, pb::IPAddress& out) {
  return read_members<pb::IPAddress>(at, kIpAddressMembers, out);
}
MaybeFault read_service_cidr(const JsonAt& at, pb::ServiceCIDR& out) {
  return read_members<pb::ServiceCIDR>(at, kCidrMembers, out);
}

}  // namespace croft::wire::kube
