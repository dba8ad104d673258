#include <limits>

#include "wire/records/fields.h"

namespace croft::wire {
namespace {

using core::Service;

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

void write_number(CanonicalWriter& out, std::uint16_t port) { out.number(std::uint64_t{port}); }

std::uint16_t read_number(CanonicalReader& in) {
  return static_cast<std::uint16_t>(in.small_number(std::numeric_limits<std::uint16_t>::max()));
}

/// The members that all objects of Kubernetes have.
template <class Object>
void write_object(CanonicalWriter& out, const Object& object) {
  out.raw(",\"uid\":").text(object.uid).raw(",\"created\":").time(object.created);
}

template <class Object>
void read_object(CanonicalReader& in, Object& object) {
  in.expect(",\"uid\":");
  object.uid = in.text();
  in.expect(",\"created\":");
  object.created = in.time();
}

void write_port(CanonicalWriter& out, const core::ServicePort& port) {
  out.raw("{\"name\":").text(port.name).raw(",\"protocol\":");
  write_enum(out, kProtocols, port.protocol);
  out.raw(",\"port\":");
  write_number(out, port.port);
  out.raw(",\"targetPort\":").text(port.target_port).raw(",\"nodePort\":");
  write_number(out, port.node_port);
  out.raw(",\"appProtocol\":").text(port.app_protocol).raw("}");
}

core::ServicePort read_port(CanonicalReader& in) {
  core::ServicePort port;
  in.expect("{\"name\":");
  port.name = in.text();
  in.expect(",\"protocol\":");
  port.protocol = read_enum(in, kProtocols);
  in.expect(",\"port\":");
  port.port = read_number(in);
  in.expect(",\"targetPort\":");
  port.target_port = in.text();
  in.expect(",\"nodePort\":");
  port.node_port = read_number(in);
  in.expect(",\"appProtocol\":");
  port.app_protocol = in.text();
  in.expect("}");
  return port;
}

void write_addresses(CanonicalWriter& out, const Service& service) {
  out.raw(",\"clusterIP\":").text(service.cluster_ip).raw(",\"clusterIPs\":");
  write_list(out, service.cluster_ips, [&](const std::string& address) { out.text(address); });
  out.raw(",\"ipFamilies\":");
  write_list(out, service.ip_families, [&](net::Family family) { write_enum(out, kFamilies, family); });
  if (!service.ip_family_policy) return;
  out.raw(",\"ipFamilyPolicy\":");
  write_enum(out, kFamilyPolicies, *service.ip_family_policy);
}

void read_addresses(CanonicalReader& in, Service& service) {
  in.expect(",\"clusterIP\":");
  service.cluster_ip = in.text();
  in.expect(",\"clusterIPs\":");
  service.cluster_ips = read_list(in, kListMax, [&] { return in.text(); });
  in.expect(",\"ipFamilies\":");
  service.ip_families = read_list(in, kListMax, [&] { return read_enum(in, kFamilies); });
  if (in.accept(",\"ipFamilyPolicy\":")) service.ip_family_policy = read_enum(in, kFamilyPolicies);
}

void write_outside(CanonicalWriter& out, const Service& service) {
  out.raw(",\"externalName\":").text(service.external_name).raw(",\"externalTrafficPolicy\":");
  write_enum(out, kTrafficPolicies, service.external_traffic_policy);
  out.raw(",\"externalTrafficPolicyGiven\":").boolean(service.external_traffic_policy_given);
  out.raw(",\"healthCheckNodePort\":");
  write_number(out, service.health_check_node_port);
  if (service.allocate_load_balancer_node_ports) {
    out.raw(",\"allocateLoadBalancerNodePorts\":").boolean(*service.allocate_load_balancer_node_ports);
  }
  if (service.load_balancer_class) out.raw(",\"loadBalancerClass\":").text(*service.load_balancer_class);
}

void read_outside(CanonicalReader& in, Service& service) {
  in.expect(",\"externalName\":");
  service.external_name = in.text();
  in.expect(",\"externalTrafficPolicy\":");
  service.external_traffic_policy = read_enum(in, kTrafficPolicies);
  in.expect(",\"externalTrafficPolicyGiven\":");
  service.external_traffic_policy_given = in.boolean();
  in.expect(",\"healthCheckNodePort\":");
  service.health_check_node_port = read_number(in);
  if (in.accept(",\"allocateLoadBalancerNodePorts\":")) service.allocate_load_balancer_node_ports = in.boolean();
  if (in.accept(",\"loadBalancerClass\":")) service.load_balancer_class = in.text();
}

}  // namespace

void write_service(CanonicalWriter& out, const Service& service) {
  out.raw("\"namespace\":").text(service.name.name_space).raw(",\"name\":").text(service.name.name);
  write_object(out, service);
  out.raw(",\"labels\":").texts(service.labels).raw(",\"selector\":").texts(service.selector).raw(",\"type\":");
  write_enum(out, kTypes, service.type);
  write_addresses(out, service);
  out.raw(",\"ports\":");
  write_list(out, service.ports, [&](const core::ServicePort& port) { write_port(out, port); });
  write_outside(out, service);
  out.raw(",\"deleting\":").boolean(service.deleting);
}

Service read_service(CanonicalReader& in) {
  Service service;
  in.expect("\"namespace\":");
  service.name.name_space = in.text();
  in.expect(",\"name\":");
  service.name.name = in.text();
  read_object(in, service);
  in.expect(",\"labels\":");
  service.labels = in.texts();
  in.expect(",\"selector\":");
  service.selector = in.texts();
  in.expect(",\"type\":");
  service.type = read_enum(in, kTypes);
  read_addresses(in, service);
  in.expect(",\"ports\":");
  service.ports = read_list(in, kListMax, [&] { return read_port(in); });
  read_outside(in, service);
  in.expect(",\"deleting\":");
  service.deleting = in.boolean();
  return service;
}

void write_ip_address(CanonicalWriter& out, const core::IpAddressObject& object) {
  out.raw("\"address\":").text(object.address);
  write_object(out, object);
  out.raw(",\"labels\":").texts(object.labels);
  out.raw(",\"parentGroup\":").text(object.parent_group).raw(",\"parentResource\":").text(object.parent_resource);
  out.raw(",\"parentNamespace\":").text(object.parent.name_space).raw(",\"parentName\":").text(object.parent.name);
}

core::IpAddressObject read_ip_address(CanonicalReader& in) {
  core::IpAddressObject object;
  in.expect("\"address\":");
  object.address = in.text();
  read_object(in, object);
  in.expect(",\"labels\":");
  object.labels = in.texts();
  in.expect(",\"parentGroup\":");
  object.parent_group = in.text();
  in.expect(",\"parentResource\":");
  object.parent_resource = in.text();
  in.expect(",\"parentNamespace\":");
  object.parent.name_space = in.text();
  in.expect(",\"parentName\":");
  object.parent.name = in.text();
  return object;
}

void write_service_cidr(CanonicalWriter& out, const core::ServiceCidrObject& object) {
  out.raw("\"name\":").text(object.name);
  write_object(out, object);
  out.raw(",\"cidrs\":");
  write_prefixes(out, object.cidrs);
  out.raw(",\"deleting\":").boolean(object.deleting);
  if (object.ready) out.raw(",\"ready\":").boolean(*object.ready);
}

core::ServiceCidrObject read_service_cidr(CanonicalReader& in) {
  core::ServiceCidrObject object;
  in.expect("\"name\":");
  object.name = in.text();
  read_object(in, object);
  in.expect(",\"cidrs\":");
  object.cidrs = read_prefixes(in);
  in.expect(",\"deleting\":");
  object.deleting = in.boolean();
  if (in.accept(",\"ready\":")) object.ready = in.boolean();
  return object;
}

}  // namespace croft::wire
