#include "services/audit/service_use.h"

#include <algorithm>

namespace croft::core::audit {

ServiceUse use_of(const Service& service) {
  ServiceUse use{service.name, service.created, service.type, {}, {}, service.health_check_node_port,
                 false,        service.uid};
  if (!service.cluster_ips.empty() && !service.cluster_ips.front().empty() &&
      service.cluster_ips.front() != kHeadless) {
    use.cluster_ips = service.cluster_ips;
  }
  for (const ServicePort& port : service.ports) {
    if (port.node_port != 0) use.node_ports.push_back({port.protocol, port.node_port});
  }
  return use;
}

bool may_mean_one_of(net::Family family, const std::string& unreadable) {
  if (unreadable.empty() || unreadable == kHeadless) return false;
  const bool like_v4 = unreadable.find('.') != unreadable.npos;
  const bool like_v6 = unreadable.find(':') != unreadable.npos;
  return like_v4 == like_v6 || (family == net::Family::v4 ? like_v4 : like_v6);
}

std::vector<std::uint16_t> collect_node_ports(const ServiceUse& use) {
  std::vector<std::uint16_t> result;
  const auto& ports = use.node_ports;
  for (auto port = ports.begin(); port != ports.end(); ++port) {
    const auto has_number = [&](const auto& other) { return other.number == port->number; };
    const bool is_new = std::none_of(ports.begin(), port, has_number);
    const bool is_twice = std::any_of(
        ports.begin(), port, [&](const auto& other) { return has_number(other) && other.protocol == port->protocol; });
    if (is_new || is_twice) result.push_back(port->number);
  }
  const std::uint16_t health = use.health_check_node_port;
  if (health == 0) return result;
  const bool is_new = std::ranges::find(result, health) == result.end();
  const bool is_twice = std::ranges::any_of(
      ports, [&](const auto& port) { return port.number == health && port.protocol == ServiceProtocol::tcp; });
  if (is_new || is_twice) result.push_back(health);
  return result;
}

}  // namespace croft::core::audit
