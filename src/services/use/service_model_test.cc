#include <rapidcheck.h>

#include <map>

#include "services/use/test_services.h"

// Random histories of Services against a dumb model: who holds what, and that the ranges say just that.

namespace croft::engine {
namespace {

using core::IpFamilyPolicy;
using core::Service;
using core::ServiceProtocol;
using core::ServiceType;

std::string any_of(std::initializer_list<const char*> texts) {
  return *rc::gen::elementOf(std::vector<std::string>(texts.begin(), texts.end()));
}

/// Small enough that values meet: 14 addresses a family, 12 ports.
Service any_service(const std::string& name) {
  Service service;
  service.name = {"default", name};
  service.type = *rc::gen::element(ServiceType::cluster_ip, ServiceType::node_port, ServiceType::load_balancer,
                                   ServiceType::external_name);
  if (*rc::gen::arbitrary<bool>()) service.selector = {{"app", name}};
  if (service.type == ServiceType::external_name) service.external_name = "db.example.com";
  const int ports = *rc::gen::inRange(0, 4);
  for (int i = 0; i < ports; ++i) {
    core::ServicePort port;
    port.name = "p" + std::to_string(*rc::gen::inRange(0, 4));
    port.protocol = *rc::gen::element(ServiceProtocol::tcp, ServiceProtocol::udp);
    port.port = *rc::gen::element<std::uint16_t>(53, 80, 443);
    port.node_port = *rc::gen::element<std::uint16_t>(0, 0, 0, 30001, 30002, 30005, 30011, 30012);
    service.ports.push_back(port);
  }
  const int ips = *rc::gen::inRange(0, 6);
  if (ips == 1) service.cluster_ips = {"None"};
  if (ips == 2) service.cluster_ips = {any_of({"10.0.0.1", "10.0.0.14", "10.0.0.15", "10.1.0.1"})};
  if (ips == 3) service.cluster_ips = {"10.0.0.2", any_of({"fd00::1", "fd00::2", "fd00::f"})};
  if (ips == 4) service.cluster_ips = {any_of({"fd00::3", "x", "fd00::1:1"})};
  if (!service.cluster_ips.empty()) service.cluster_ip = service.cluster_ips.front();
  service.ip_family_policy = *rc::gen::element<std::optional<IpFamilyPolicy>>(
      std::nullopt, IpFamilyPolicy::single_stack, IpFamilyPolicy::prefer_dual_stack,
      IpFamilyPolicy::require_dual_stack);
  if (service.type == ServiceType::load_balancer) {
    service.allocate_load_balancer_node_ports = *rc::gen::arbitrary<bool>();
    service.external_traffic_policy_given = true;
    if (*rc::gen::arbitrary<bool>()) service.external_traffic_policy = core::TrafficPolicy::local;
    if (*rc::gen::inRange(0, 3) == 0) service.health_check_node_port = 30003;
  }
  return service;
}

/// The values of one Service, said without the product's own words for it.
std::set<std::string> values_of(const Service& service) {
  std::set<std::string> values;
  if (service.type != ServiceType::external_name) {
    for (const std::string& ip : service.cluster_ips) {
      if (ip != "None") values.insert(ip);
    }
  }
  const bool has_ports = service.type == ServiceType::node_port || service.type == ServiceType::load_balancer;
  for (const core::ServicePort& port : service.ports) {
    if (has_ports && port.node_port != 0) values.insert(std::to_string(port.node_port));
  }
  if (service.health_check_node_port != 0) values.insert(std::to_string(service.health_check_node_port));
  return values;
}

/// What must be true of one Service, whatever was asked for.
void check_shape(const Service& service) {
  const bool headless = !service.cluster_ips.empty() && service.cluster_ips.front() == "None";
  const bool external = service.type == ServiceType::external_name;
  RC_ASSERT(external == service.ip_families.empty());
  RC_ASSERT(external == service.cluster_ips.empty());
  if (!external && !headless) RC_ASSERT(service.cluster_ips.size() == service.ip_families.size());
  if (!external) RC_ASSERT(service.cluster_ip == service.cluster_ips.front());
  const bool wants_port = service.type == ServiceType::node_port ||
                          (service.type == ServiceType::load_balancer && *service.allocate_load_balancer_node_ports);
  std::set<std::pair<ServiceProtocol, int>> seen;
  for (const core::ServicePort& port : service.ports) {
    if (wants_port) RC_ASSERT(port.node_port != 0);
    const bool is_new = port.node_port == 0 || seen.emplace(port.protocol, port.node_port).second;
    RC_ASSERT(is_new);
  }
  const bool local = service.external_traffic_policy_given &&
                     service.external_traffic_policy == core::TrafficPolicy::local &&
                     service.type == ServiceType::load_balancer;
  RC_ASSERT(local == (service.health_check_node_port != 0));
}

store::Fault any_fault() {
  return *rc::gen::element(store::Fault::lose_reply, store::Fault::lose_request, store::Fault::conflict,
                           store::Fault::unavailable, store::Fault::storage_full);
}

TEST(ServiceProperty, RangesSayWhatServicesHoldAfterAnyHistory) {
  EXPECT_TRUE(rc::check([] {
    Services world("10.0.0.0/28,fd00::/124", "30001-30012");
    std::map<std::string, Service> model;
    const int steps = *rc::gen::inRange(1, 50);
    for (int i = 0; i < steps; ++i) {
      const std::string name = "s" + std::to_string(*rc::gen::inRange(0, 8));
      const bool faulty = *rc::gen::inRange(0, 5) == 0;
      if (faulty) {
        world.store.set_faults(store::FaultScript().on_commit(world.store.counts().commit + 1, any_fault()));
      }
      world.dry_run = *rc::gen::inRange(0, 8) == 0;
      const int what = *rc::gen::inRange(0, 5);
      const bool existed = model.contains(name);
      std::string said;
      if (what == 0) {
        said = world.remove(name);
        if (said == "ok" && !world.dry_run) model.erase(name);
      } else {
        said = what < 3 ? world.create(any_service(name)) : world.update(any_service(name));
        if (said == "ok" && !world.dry_run) model[name] = world.last;
      }
      const bool is_kept = said != "ok" || (what != 1 && what != 2) || !existed;
      RC_ASSERT(is_kept);
      world.store.set_faults({});
      world.dry_run = false;
      if (faulty && said != "ok") {
        // A fault may have come after the decision was on disk: what is stored counts.
        model.clear();
        const auto stored = list_services(world.context).value();
        for (const StoredService& one : stored) model[one.service.name.name] = one.service;
      }
      std::set<std::string> held;
      for (const auto& [its_name, service] : model) {
        RC_ASSERT(world.stored(its_name) == service);
        check_shape(service);
        for (const std::string& value : values_of(service)) {
          const bool is_alone = held.insert(value).second;
          RC_ASSERT(is_alone);
        }
      }
      RC_ASSERT(list_services(world.context)->size() == model.size());
      RC_ASSERT(world.taken() == held);
    }
  }));
}

}  // namespace
}  // namespace croft::engine
