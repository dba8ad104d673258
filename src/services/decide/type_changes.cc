#include "services/decide/type_changes.h"

#include <algorithm>
#include <map>
#include <set>

#include "services/decide/questions.h"

namespace croft::core {
namespace {

[[nodiscard]] std::set<std::uint16_t> numbers_of(const Service& service) {
  const std::vector<std::uint16_t> numbers = node_ports_of(service);
  return {numbers.begin(), numbers.end()};
}

[[nodiscard]] bool is_load_balancer(const Service& service) { return service.type == ServiceType::load_balancer; }

/// By the names of the ports, except numbers that both name: those have found their place already.
void keep_node_ports(Service& service, const Service& before) {
  const std::set<std::uint16_t> had = numbers_of(before);
  const std::set<std::uint16_t> has = numbers_of(service);
  std::map<std::string, std::uint16_t> by_name;
  for (const ServicePort& port : before.ports) by_name[port.name] = port.node_port;
  for (ServicePort& port : service.ports) {
    const auto old = by_name.find(port.name);
    if (port.node_port != 0 || old == by_name.end()) continue;
    if (!had.contains(old->second) || !has.contains(old->second)) port.node_port = old->second;
  }
}

}  // namespace

void apply_defaults(Service& service) {
  for (ServicePort& port : service.ports) {
    if (port.target_port.empty() || port.target_port == "0") port.target_port = std::to_string(port.port);
  }
  if (may_have_node_ports(service)) service.external_traffic_policy_given = true;
  if (is_load_balancer(service) && !service.allocate_load_balancer_node_ports) {
    service.allocate_load_balancer_node_ports = true;
  }
}

void keep_allocated_values(Service& service, const Service& before) {
  if (needs_cluster_ip(before) && needs_cluster_ip(service)) {
    if (service.cluster_ip.empty()) service.cluster_ip = before.cluster_ip;
    if (service.cluster_ips.empty()) service.cluster_ips = before.cluster_ips;
  }
  if (wants_node_ports(before) && wants_node_ports(service)) keep_node_ports(service, before);
  if (needs_health_check_port(before) && needs_health_check_port(service) && service.health_check_node_port == 0) {
    service.health_check_node_port = before.health_check_node_port;
  }
}

void drop_values_of_type(Service& service, const Service& before) {
  if (needs_cluster_ip(before) && !needs_cluster_ip(service)) {
    if (service.cluster_ip == before.cluster_ip && service.cluster_ips == before.cluster_ips) {
      service.cluster_ip.clear();
      service.cluster_ips.clear();
    }
    if (service.ip_families == before.ip_families) service.ip_families.clear();
    if (service.ip_family_policy == before.ip_family_policy) service.ip_family_policy.reset();
  }
  if (may_have_node_ports(before) && !may_have_node_ports(service)) {
    const std::set<std::uint16_t> had = numbers_of(before);
    const std::set<std::uint16_t> has = numbers_of(service);
    if (std::includes(had.begin(), had.end(), has.begin(), has.end())) {
      for (ServicePort& port : service.ports) port.node_port = 0;
    }
    if (service.external_traffic_policy_given && before.external_traffic_policy_given &&
        service.external_traffic_policy == before.external_traffic_policy) {
      service.external_traffic_policy_given = false;
      service.external_traffic_policy = TrafficPolicy::cluster;
    }
  }
  if (needs_health_check_port(before) && !needs_health_check_port(service) &&
      service.health_check_node_port == before.health_check_node_port) {
    service.health_check_node_port = 0;
  }
  if (is_load_balancer(before) && !is_load_balancer(service)) {
    if (service.allocate_load_balancer_node_ports == before.allocate_load_balancer_node_ports) {
      service.allocate_load_balancer_node_ports.reset();
    }
    if (service.load_balancer_class == before.load_balancer_class) service.load_balancer_class.reset();
  }
}

}  // namespace croft::core
