#include "services/commands/service_views.h"

#include <algorithm>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "base/printable.h"
#include "base/time_text.h"
#include "cli/croft/json_text.h"
#include "cli/croft/table.h"
#include "services/decide/questions.h"
#include "services/decide/service_words.h"

namespace croft::app {
namespace {

using core::Service;
using Json = nlohmann::ordered_json;

template <class List, class Print>
[[nodiscard]] std::string joined(const List& list, Print print) {
  std::string text;
  for (const auto& item : list) text += (text.empty() ? "" : ",") + std::string(print(item));
  return text.empty() ? "<none>" : text;
}

[[nodiscard]] std::string pairs_text(const std::map<std::string, std::string>& pairs) {
  return joined(pairs, [](const auto& pair) { return pair.first + "=" + pair.second; });
}

[[nodiscard]] std::string ports_text(const Service& service) {
  return joined(service.ports, [](const core::ServicePort& port) {
    const std::string node_port = port.node_port != 0 ? fmt::format(":{}", port.node_port) : "";
    return fmt::format("{}{}/{}", port.port, node_port, core::word_of(port.protocol));
  });
}

[[nodiscard]] std::string addresses_text(const Service& service) {
  return joined(service.cluster_ips, [](const std::string& ip) { return ip; });
}

[[nodiscard]] std::string external_text(const Service& service) {
  if (core::is_external_name(service)) return service.external_name;
  return service.type == core::ServiceType::load_balancer ? "<pending>" : "<none>";
}

/// As kubectl tells it, in the unit that suits.
[[nodiscard]] std::string age_text(WallTime made, WallTime now) {
  if (made == WallTime{}) return "<unknown>";
  const auto seconds = std::max<std::int64_t>(std::chrono::duration_cast<std::chrono::seconds>(now - made).count(), 0);
  constexpr std::int64_t kMinute = 60, kHour = 3600, kDay = 86400;
  if (seconds < 2 * kMinute) return fmt::format("{}s", seconds);
  if (seconds < 120 * kMinute) return fmt::format("{}m", seconds / kMinute);
  if (seconds < 2 * kDay) return fmt::format("{}h", seconds / kHour);
  return fmt::format("{}d", seconds / kDay);
}

[[nodiscard]] Json json_of_map(const std::map<std::string, std::string>& map) {
  Json json = Json::object();
  for (const auto& [key, value] : map) json[key] = value;
  return json;
}

[[nodiscard]] Json json_of_port(const core::ServicePort& port) {
  Json json = Json::object();
  if (!port.name.empty()) json["name"] = port.name;
  json["protocol"] = core::word_of(port.protocol);
  json["port"] = port.port;
  const auto& target = port.target_port;
  const bool is_number =
      !target.empty() && target.size() <= 5 && target.find_first_not_of("0123456789") == std::string::npos;
  json["targetPort"] = is_number ? Json(std::stoi(target)) : Json(target);
  if (port.node_port != 0) json["nodePort"] = port.node_port;
  if (!port.app_protocol.empty()) json["appProtocol"] = port.app_protocol;
  return json;
}

[[nodiscard]] Json spec_json(const Service& service) {
  Json spec = Json::object();
  spec["type"] = core::word_of(service.type);
  if (!service.cluster_ip.empty()) spec["clusterIP"] = service.cluster_ip;
  if (!service.cluster_ips.empty()) spec["clusterIPs"] = service.cluster_ips;
  for (const net::Family family : service.ip_families) spec["ipFamilies"].push_back(core::word_of(family));
  if (service.ip_family_policy) spec["ipFamilyPolicy"] = core::word_of(*service.ip_family_policy);
  for (const core::ServicePort& port : service.ports) spec["ports"].push_back(json_of_port(port));
  if (!service.selector.empty()) spec["selector"] = json_of_map(service.selector);
  if (!service.external_name.empty()) spec["externalName"] = service.external_name;
  if (service.external_traffic_policy_given)
    spec["externalTrafficPolicy"] = core::word_of(service.external_traffic_policy);
  if (service.health_check_node_port != 0) spec["healthCheckNodePort"] = service.health_check_node_port;
  if (service.allocate_load_balancer_node_ports) {
    spec["allocateLoadBalancerNodePorts"] = *service.allocate_load_balancer_node_ports;
  }
  if (service.load_balancer_class) spec["loadBalancerClass"] = *service.load_balancer_class;
  return spec;
}

[[nodiscard]] Json object_of(const engine::StoredService& stored) {
  const Service& service = stored.service;
  Json metadata = {{"name", service.name.name}, {"namespace", service.name.name_space}};
  if (!service.uid.empty()) metadata["uid"] = service.uid;
  if (stored.revision.value != 0) metadata["resourceVersion"] = std::to_string(stored.revision.value);
  if (service.created != WallTime{}) {
    metadata["creationTimestamp"] = rfc3339_rounded_up(std::chrono::floor<std::chrono::seconds>(service.created));
  }
  if (!service.labels.empty()) metadata["labels"] = json_of_map(service.labels);
  return {{"apiVersion", "v1"}, {"kind", "Service"}, {"metadata", std::move(metadata)}, {"spec", spec_json(service)}};
}

}  // namespace

Table service_table(const std::vector<engine::StoredService>& services, bool with_namespace, bool wide, WallTime now) {
  std::vector<std::string> headings{"NAME", "TYPE", "CLUSTER-IP", "EXTERNAL-IP", "PORT(S)", "AGE"};
  if (with_namespace) headings.insert(headings.begin(), "NAMESPACE");
  if (wide) headings.insert(headings.end(), {"SELECTOR", "LABELS"});
  Table table(std::move(headings));
  for (const engine::StoredService& stored : services) {
    const Service& service = stored.service;
    std::vector<std::string> cells{service.name.name,       std::string(core::word_of(service.type)),
                                   addresses_text(service), external_text(service),
                                   ports_text(service),     age_text(service.created, now)};
    if (with_namespace) cells.insert(cells.begin(), service.name.name_space);
    if (wide) cells.insert(cells.end(), {pairs_text(service.selector), pairs_text(service.labels)});
    table.add(std::move(cells));
  }
  return table;
}

std::string service_text(const engine::StoredService& stored) {
  const Service& service = stored.service;
  std::string text;
  const auto line = [&](std::string_view name, const std::string& value) {
    text += fmt::format("{:<25}{}\n", fmt::format("{}:", name), printable(value, Printed::line));
  };
  line("Name", service.name.name);
  line("Namespace", service.name.name_space);
  line("Labels", pairs_text(service.labels));
  line("Selector", pairs_text(service.selector));
  line("Type", std::string(core::word_of(service.type)));
  if (!core::is_external_name(service)) {
    line("IP Family Policy",
         service.ip_family_policy ? std::string(core::word_of(*service.ip_family_policy)) : "<none>");
    line("IP Families", joined(service.ip_families, [](net::Family family) { return core::word_of(family); }));
    line("IPs", addresses_text(service));
  } else {
    line("External Name", service.external_name);
  }
  for (const core::ServicePort& port : service.ports) {
    line("Port",
         fmt::format("{} {}/{}", port.name.empty() ? "<unset>" : port.name, port.port, core::word_of(port.protocol)));
    line("TargetPort", port.target_port);
    if (port.node_port != 0) line("NodePort", std::to_string(port.node_port));
  }
  if (service.external_traffic_policy_given) {
    line("External Traffic Policy", std::string(core::word_of(service.external_traffic_policy)));
  }
  if (service.health_check_node_port != 0) line("HealthCheck NodePort", std::to_string(service.health_check_node_port));
  return text;
}

Data json_of(const engine::StoredService& stored) { return Data(object_of(stored)); }

Data json_of(const std::vector<engine::StoredService>& services) {
  Json items = Json::array();
  for (const engine::StoredService& stored : services) items.push_back(object_of(stored));
  const Json list = {{"apiVersion", "v1"}, {"kind", "List"}, {"items", std::move(items)}};
  return Data(list);
}

}  // namespace croft::app
