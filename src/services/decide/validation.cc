#include "services/decide/validation.h"

#include <algorithm>
#include <charconv>
#include <set>
#include <utility>

#include <fmt/format.h>

#include "services/decide/names.h"
#include "services/decide/questions.h"

namespace croft::core {
namespace {

constexpr auto kIpsField = "spec.clusterIPs";
constexpr auto kFamiliesField = "spec.ipFamilies";
constexpr auto kHealthField = "spec.healthCheckNodePort";
constexpr auto kNoChange = "may not change once set";

[[nodiscard]] std::string at(const char* field, std::size_t index) { return fmt::format("{}[{}]", field, index); }

/// An address that Kubernetes' API takes: no IPv4 in IPv6, no zeros in front.
[[nodiscard]] const char* problem_of_address(const std::string& text) {
  const auto address = net::parse_address(text);
  if (!address) return "must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)";
  return address->is_v4_mapped() ? "must not be an IPv4-mapped IPv6 address" : nullptr;
}

/// False when an address can't be understood, so that nothing more can be said of them.
[[nodiscard]] bool check_addresses(const Service& service, FieldErrors& errors) {
  const auto& ips = service.cluster_ips;
  bool all_valid = true;
  for (std::size_t i = 0; i < ips.size(); ++i) {
    if (i == 0 && ips[i] == kHeadless) {
      if (ips.size() == 1) break;
      errors.push_back(invalid(kIpsField, printed(ips), "'None' must be the first and only value"));
      all_valid = false;
    } else if (const char* problem = problem_of_address(ips[i])) {
      errors.push_back(invalid(at(kIpsField, i), printed(ips[i]), problem));
      all_valid = false;
    }
  }
  if (ips.size() > 2) errors.push_back(invalid(kIpsField, printed(ips), "may only hold up to 2 values"));
  return all_valid;
}

/// Of valid addresses.
void check_families_of_addresses(const Service& service, FieldErrors& errors) {
  const std::vector<net::Address> addresses = addresses_of(service);
  std::set<net::Family> families;
  for (const net::Address& address : addresses) families.insert(address.family());
  if (addresses.size() > 1 && families.size() < 2) {
    errors.push_back(
        invalid(kIpsField, printed(service.cluster_ips), "may specify no more than one IP for each IP family"));
  }
  for (std::size_t i = 0; i < std::min(addresses.size(), service.ip_families.size()); ++i) {
    if (addresses[i].family() == service.ip_families[i]) continue;
    const auto text =
        fmt::format("expected an {} value as indicated by `ipFamilies[{}]`", word_of(service.ip_families[i]), i);
    errors.push_back(invalid(at(kIpsField, i), printed(service.cluster_ips[i]), text));
  }
}

void add_all(FieldErrors& errors, const std::string& field, std::string_view value,
             const service_names::Messages& messages) {
  for (const std::string& message : messages) errors.push_back(invalid(field, printed(value), message));
}

void check_labels(const std::map<std::string, std::string>& labels, const std::string& field, FieldErrors& errors) {
  if (labels.size() > kServiceLabelsMax) {
    errors.push_back(invalid(field, std::to_string(labels.size()), fmt::format("at most {}", kServiceLabelsMax)));
    return;
  }
  for (const auto& [key, value] : labels) {
    add_all(errors, field, key, service_names::problems_of_qualified_name(key));
    add_all(errors, field, value, service_names::problems_of_label_value(value));
  }
}

void check_external_name(const Service& service, FieldErrors& errors) {
  constexpr auto kNotHere = "may not be set for ExternalName services";
  const bool has_address = !service.cluster_ips.empty() || !service.cluster_ip.empty();
  if (has_address) errors.push_back(forbidden(kIpsField, kNotHere));
  if (!service.ip_families.empty()) errors.push_back(forbidden(kFamiliesField, kNotHere));
  if (service.ip_family_policy) errors.push_back(forbidden(kIpFamilyPolicyField, kNotHere));
  std::string_view name = service.external_name;
  if (name.ends_with('.')) name.remove_suffix(1);
  if (name.empty()) {
    errors.push_back(required("spec.externalName"));
  } else {
    add_all(errors, "spec.externalName", name, service_names::problems_of_domain(name));
  }
}

void check_target_port(const std::string& text, const std::string& field, FieldErrors& errors) {
  const bool is_number =
      !text.empty() && std::all_of(text.begin(), text.end(), [](char c) { return c >= '0' && c <= '9'; });
  if (!is_number) return add_all(errors, field, text, service_names::problems_of_port_name(text));
  int number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error == std::errc() && number >= 1 && number <= 65535) return;
  errors.push_back(invalid(field, text, "must be between 1 and 65535, inclusive"));
}

void check_port(const ServicePort& port, bool needs_name, const std::string& field, std::set<std::string>& names,
                FieldErrors& errors) {
  if (needs_name && port.name.empty()) {
    errors.push_back(required(field + ".name"));
  } else if (!port.name.empty()) {
    add_all(errors, field + ".name", port.name, service_names::problems_of_label(port.name));
    if (!names.insert(port.name).second) errors.push_back(duplicate(field + ".name", printed(port.name)));
  }
  if (port.port == 0) errors.push_back(invalid(field + ".port", "0", "must be between 1 and 65535, inclusive"));
  check_target_port(port.target_port, field + ".targetPort", errors);
  if (!port.app_protocol.empty()) {
    add_all(errors, field + ".appProtocol", port.app_protocol,
            service_names::problems_of_qualified_name(port.app_protocol));
  }
}

void check_ports(const Service& service, FieldErrors& errors) {
  if (service.ports.empty() && !is_headless(service) && !is_external_name(service)) {
    errors.push_back(required("spec.ports"));
  }
  std::set<std::string> names;
  for (std::size_t i = 0; i < service.ports.size(); ++i) {
    check_port(service.ports[i], service.ports.size() > 1, at("spec.ports", i), names, errors);
  }
}

/// Of one protocol each number once: as port, and as node port.
void check_numbers(const Service& service, FieldErrors& errors) {
  using Number = std::pair<ServiceProtocol, std::uint16_t>;
  if (service.type == ServiceType::cluster_ip) {
    for (std::size_t i = 0; i < service.ports.size(); ++i) {
      if (service.ports[i].node_port == 0) continue;
      errors.push_back(forbidden(at("spec.ports", i) + ".nodePort", "may not be used when `type` is 'ClusterIP'"));
    }
  }
  std::set<Number> node_ports;
  for (std::size_t i = 0; i < service.ports.size(); ++i) {
    const ServicePort& port = service.ports[i];
    if (port.node_port == 0 || node_ports.emplace(port.protocol, port.node_port).second) continue;
    errors.push_back(duplicate(at("spec.ports", i) + ".nodePort", std::to_string(port.node_port)));
  }
  std::set<Number> ports;
  for (std::size_t i = 0; i < service.ports.size(); ++i) {
    const ServicePort& port = service.ports[i];
    if (ports.emplace(port.protocol, port.port).second) continue;
    errors.push_back(duplicate(
        at("spec.ports", i),
        fmt::format(R"({{"Name":"","Protocol":"{}","AppProtocol":null,"Port":{},"TargetPort":0,"NodePort":0}})",
                    word_of(port.protocol), port.port)));
  }
}

void check_load_balancer_fields(const Service& service, FieldErrors& errors) {
  constexpr auto kOnlyThere = "may only be used when `type` is 'LoadBalancer'";
  const bool is_there = service.type == ServiceType::load_balancer;
  if (service.allocate_load_balancer_node_ports && !is_there) {
    errors.push_back(forbidden("spec.allocateLoadBalancerNodePorts", kOnlyThere));
  }
  if (!service.load_balancer_class) return;
  if (is_there) {
    add_all(errors, "spec.loadBalancerClass", *service.load_balancer_class,
            service_names::problems_of_qualified_name(*service.load_balancer_class));
  } else {
    errors.push_back(forbidden("spec.loadBalancerClass", kOnlyThere));
  }
}

void check_traffic_policy(const Service& service, FieldErrors& errors) {
  if (!may_have_node_ports(service) && service.external_traffic_policy_given) {
    errors.push_back(invalid("spec.externalTrafficPolicy", printed(word_of(service.external_traffic_policy)),
                             "may only be set for externally-accessible services"));
  }
  if (needs_health_check_port(service)) {
    if (service.health_check_node_port == 0) errors.push_back(required(kHealthField));
  } else if (service.health_check_node_port != 0) {
    errors.push_back(invalid(kHealthField, std::to_string(service.health_check_node_port),
                             "may only be set when `type` is 'LoadBalancer' and `externalTrafficPolicy` is 'Local'"));
  }
}

void check_service(const Service& service, FieldErrors& errors) {
  if (service.ports.size() > kServicePortsMax) {
    const std::string count = std::to_string(service.ports.size());
    errors.push_back(invalid("spec.ports", count, fmt::format("must have at most {} items", kServicePortsMax)));
    return;
  }
  check_labels(service.labels, "metadata.labels", errors);
  if (may_have_node_ports(service) && is_headless(service)) {
    errors.push_back(invalid(at(kIpsField, 0), printed(service.cluster_ips.front()),
                             fmt::format("may not be set to 'None' for {} services", word_of(service.type))));
  }
  if (is_external_name(service)) check_external_name(service, errors);
  check_ports(service, errors);
  check_labels(service.selector, "spec.selector", errors);
  for (FieldError& error : check_cluster_ip_fields(service)) errors.push_back(std::move(error));
  check_numbers(service, errors);
  check_load_balancer_fields(service, errors);
  check_traffic_policy(service, errors);
}

/// The first entry stays for ever, the second may come, or go when the policy says so.
template <class List>
void check_list_change(const List& before, const List& after, const char* field, const char* what,
                       const std::optional<IpFamilyPolicy>& policy, FieldErrors& errors) {
  if (before.size() == after.size()) {
    for (std::size_t i = 0; i < before.size(); ++i) {
      if (before[i] != after[i]) errors.push_back(invalid(at(field, i), printed(after), kNoChange));
    }
    return;
  }
  if (after.empty()) {
    errors.push_back(invalid(at(field, 0), printed(after), fmt::format("primary {} can not be unset", what)));
  } else if (!before.empty() && before.front() != after.front()) {
    errors.push_back(invalid(at(field, 0), printed(after), kNoChange));
  }
  if (before.size() > after.size() && after.size() == 1 && policy != IpFamilyPolicy::single_stack) {
    errors.push_back(invalid(kIpFamilyPolicyField, printed(policy),
                             fmt::format("must be set to 'SingleStack' when releasing the secondary {}", what)));
  }
}

void check_addresses_change(const Service& service, const Service& before, FieldErrors& errors) {
  if (is_external_name(service) || is_external_name(before)) return;
  const bool headless = is_headless(service);
  if (headless && is_headless(before)) return;
  check_list_change(before.cluster_ips, service.cluster_ips, kIpsField, "clusterIP", service.ip_family_policy, errors);
  if (headless != is_headless(before)) return;
  check_list_change(before.ip_families, service.ip_families, kFamiliesField, "ipFamily", service.ip_family_policy,
                    errors);
}

}  // namespace

FieldErrors check_cluster_ip_fields(const Service& service) {
  if (is_external_name(service)) return {};
  FieldErrors errors;
  const auto& ips = service.cluster_ips;
  if (service.cluster_ip.empty()) {
    if (!ips.empty()) {
      errors.push_back(invalid(kIpsField, printed(ips), "must be empty when `clusterIP` is not specified"));
    }
  } else if (ips.empty()) {
    errors.push_back(required(kIpsField));
  } else if (ips.front() != service.cluster_ip) {
    errors.push_back(invalid(kIpsField, printed(ips), "first value must match `clusterIP`"));
  }
  std::set<net::Family> seen;
  for (std::size_t i = 0; i < service.ip_families.size(); ++i) {
    if (seen.insert(service.ip_families[i]).second) continue;
    errors.push_back(duplicate(at(kFamiliesField, i), printed(service.ip_families[i])));
  }
  if (check_addresses(service, errors)) check_families_of_addresses(service, errors);
  return errors;
}

FieldErrors check_service_name(const ServiceName& name) {
  FieldErrors errors;
  if (name.name.empty()) {
    errors.push_back(required("metadata.name", "name or generateName is required"));
  } else {
    add_all(errors, "metadata.name", name.name, service_names::problems_of_service_name(name.name));
  }
  if (name.name_space.empty()) {
    errors.push_back(required("metadata.namespace"));
  } else {
    add_all(errors, "metadata.namespace", name.name_space, service_names::problems_of_label(name.name_space));
  }
  return errors;
}

FieldErrors check_new_service(const Service& service) {
  FieldErrors errors = check_service_name(service.name);
  check_service(service, errors);
  return errors;
}

FieldErrors check_changed_service(const Service& service, const Service& before) {
  FieldErrors errors;
  check_addresses_change(service, before, errors);
  if (service.type == ServiceType::load_balancer && before.type == ServiceType::load_balancer &&
      service.load_balancer_class != before.load_balancer_class) {
    const std::string value = service.load_balancer_class ? printed(*service.load_balancer_class) : "null";
    errors.push_back(invalid("spec.loadBalancerClass", value, kNoChange));
  }
  if (needs_health_check_port(before) && needs_health_check_port(service) &&
      before.health_check_node_port != service.health_check_node_port) {
    errors.push_back(forbidden(kHealthField, "field is immutable"));
  }
  check_service(service, errors);
  return errors;
}

}  // namespace croft::core
