#include "register/format/fields.h"

namespace croft::wire {
namespace {

using core::IpAddressObject;
using core::Service;
using core::ServiceCidrObject;
using core::ServiceName;
using core::ServicePort;

constexpr EnumTexts<core::ServiceType, 4> kTypes = {{
    {core::ServiceType::cluster_ip, "ClusterIP"},
    {core::ServiceType::node_port, "NodePort"},
    {core::ServiceType::load_balancer, "LoadBalancer"},
    {core::ServiceType::external_name, "ExternalName"},
}};
constexpr EnumTexts<core::IpFamilyPolicy, 3> kFamilyPolicies = {{
    {core::IpFamilyPolicy::single_stack, "SingleStack"},
    {core::IpFamilyPolicy::prefer_dual_stack, "PreferDualStack"},
    {core::IpFamilyPolicy::require_dual_stack, "RequireDualStack"},
}};
constexpr EnumTexts<core::ServiceProtocol, 3> kProtocols = {{
    {core::ServiceProtocol::tcp, "TCP"},
    {core::ServiceProtocol::udp, "UDP"},
    {core::ServiceProtocol::sctp, "SCTP"},
}};
constexpr EnumTexts<core::TrafficPolicy, 2> kTrafficPolicies = {{
    {core::TrafficPolicy::cluster, "Cluster"},
    {core::TrafficPolicy::local, "Local"},
}};
constexpr EnumTexts<net::Family, 2> kFamilies = {{
    {net::Family::v4, "IPv4"},
    {net::Family::v6, "IPv6"},
}};

// clang-format off: a member a line
constexpr auto kPort =
    fields(field("name", &ServicePort::name), field("protocol", &ServicePort::protocol, OneOf<kProtocols>{}),
           field("port", &ServicePort::port), field("targetPort", &ServicePort::target_port),
           field("nodePort", &ServicePort::node_port), field("appProtocol", &ServicePort::app_protocol));

constexpr auto kService = fields(
    field("namespace", Within{&Service::name, &ServiceName::name_space}),
    field("name", Within{&Service::name, &ServiceName::name}), field("uid", &Service::uid),
    field("created", &Service::created), field("labels", &Service::labels), field("selector", &Service::selector),
    field("type", &Service::type, OneOf<kTypes>{}), field("clusterIP", &Service::cluster_ip),
    field("clusterIPs", &Service::cluster_ips), field("ipFamilies", &Service::ip_families, ListOf<OneOf<kFamilies>>{}),
    maybe("ipFamilyPolicy", &Service::ip_family_policy, OneOf<kFamilyPolicies>{}),
    field("ports", &Service::ports, ListOf<Object<kPort>>{}), field("externalName", &Service::external_name),
    field("externalTrafficPolicy", &Service::external_traffic_policy, OneOf<kTrafficPolicies>{}),
    field("externalTrafficPolicyGiven", &Service::external_traffic_policy_given),
    field("healthCheckNodePort", &Service::health_check_node_port),
    maybe("allocateLoadBalancerNodePorts", &Service::allocate_load_balancer_node_ports),
    maybe("loadBalancerClass", &Service::load_balancer_class), field("deleting", &Service::deleting));

constexpr auto kIpAddress = fields(
    field("address", &IpAddressObject::address), field("uid", &IpAddressObject::uid),
    field("created", &IpAddressObject::created), field("labels", &IpAddressObject::labels),
    field("parentGroup", &IpAddressObject::parent_group), field("parentResource", &IpAddressObject::parent_resource),
    field("parentNamespace", Within{&IpAddressObject::parent, &ServiceName::name_space}),
    field("parentName", Within{&IpAddressObject::parent, &ServiceName::name}));

constexpr auto kServiceCidr =
    fields(field("name", &ServiceCidrObject::name), field("uid", &ServiceCidrObject::uid),
           field("created", &ServiceCidrObject::created), field("cidrs", &ServiceCidrObject::cidrs),
           field("deleting", &ServiceCidrObject::deleting), maybe("ready", &ServiceCidrObject::ready));
// clang-format on

}  // namespace

void write_members(CanonicalWriter& out, const Service& service) { kService.write(out, service); }
void read_members(CanonicalReader& in, Service& service) { kService.read(in, service); }
void write_members(CanonicalWriter& out, const core::ForeignService& foreign) { kService.write(out, foreign.service); }
void read_members(CanonicalReader& in, core::ForeignService& foreign) { kService.read(in, foreign.service); }
void write_members(CanonicalWriter& out, const IpAddressObject& object) { kIpAddress.write(out, object); }
void read_members(CanonicalReader& in, IpAddressObject& object) { kIpAddress.read(in, object); }
void write_members(CanonicalWriter& out, const ServiceCidrObject& object) { kServiceCidr.write(out, object); }
void read_members(CanonicalReader& in, ServiceCidrObject& object) { kServiceCidr.read(in, object); }

}  // namespace croft::wire
