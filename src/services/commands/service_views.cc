#include "services/commands/service_views.h"

#include <algorithm>
#include <map>
#include <tuple>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <nlohmann/json.hpp>

#include "base/net/prefix.h"
#include "base/printable.h"
#include "base/texts.h"
#include "base/time_text.h"
#include "cli/croft/json_output.h"
#include "register/service.h"

namespace croft::app {

namespace {

using core::Service;
using Json = nlohmann::ordered_json;

template <class List, class Print>
[[nodiscard]] std::string list_text(const List& list, Print print) {
  std::string text;
  for (const auto& item : list) text += (text.empty() ? "" : ",") + std::string(print(item));
  return text.empty() ? "<none>" : text;
}

[[nodiscard]] std::string pairs_text(const std::map<std::string, std::string>& pairs) {
  return list_text(pairs, [](const auto& pair) { return pair.first + "=" + pair.second; });
}

[[nodiscard]] std::string ports_text(const Service& service) {
  return list_text(service.ports, [](const core::ServicePort& port) {
    const std::string node_port = port.node_port != 0 ? fmt::format(":{}", port.node_port) : "";
    return fmt::format("{}{}/{}", port.port, node_port, core::word_of(port.protocol));
  });
}

[[nodiscard]] std::string addresses_text(const Service& service) {
  return list_text(service.cluster_ips, [](const std::string& ip) { return ip; });
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
  if (!service.selector.empty()) spec["selector"] = service.selector;
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
  if (!service.labels.empty()) metadata["labels"] = service.labels;
  return {{"apiVersion", "v1"}, {"kind", "Service"}, {"metadata", std::move(metadata)}, {"spec", spec_json(service)}};
}

}  // namespace

Table service_table(const std::vector<engine::StoredService>& services, bool with_namespace, bool wide, WallTime now) {
  std::vector<std::string> headings{"NAME", "TYPE", "CLUSTER-IP", "EXTERNAL-IP", "PORT(S)", "AGE"};
  if (with_namespace) headings.insert(headings.begin(), "NAMESPACE");
  Table table(std::move(headings), {"SELECTOR", "LABELS"}, wide);
  for (const engine::StoredService& stored : services) {
    const Service& service = stored.service;
    std::vector<std::string> cells{service.name.name,
                                   std::string(core::word_of(service.type)),
                                   addresses_text(service),
                                   external_text(service),
                                   ports_text(service),
                                   age_text(service.created, now),
                                   pairs_text(service.selector),
                                   pairs_text(service.labels)};
    if (with_namespace) cells.insert(cells.begin(), service.name.name_space);
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
    line("IP Families", list_text(service.ip_families, [](net::Family family) { return core::word_of(family); }));
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
  return Data(Json{{"apiVersion", "v1"}, {"kind", "List"}, {"items", array_json(services, object_of)}});
}

namespace {

namespace audit = core::audit;
using audit::BandUse;
using audit::RangeValue;
using audit::RepairFinding;

[[nodiscard]] std::string use_text(const BandUse& use) { return fmt::format("{} of {}", use.used, use.size); }

[[nodiscard]] std::string table_of(const std::vector<audit::RangeRepair>& ranges) {
  Table table({"NAME", "RANGE", "USED", "STATIC", "DYNAMIC"});
  for (const audit::RangeRepair& range : ranges) {
    const BandUse all{range.in_static.size + range.in_dynamic.size, range.in_static.used + range.in_dynamic.used};
    table.add({range.name, range.range, range.present ? use_text(all) : "no record", use_text(range.in_static),
               use_text(range.in_dynamic)});
  }
  return table.to_string();
}

/// Which bitmaps cover only the beginning of their range.
[[nodiscard]] std::string cut_text(const engine::RangeRepairReport& report) {
  std::string text;
  for (const audit::RangeRepair& range : report.ranges) {
    const auto cidr = net::parse_prefix_leniently(range.range);
    if (!cidr || !core::service::exceeds_service_bitmap(*cidr)) continue;
    text +=
        fmt::format("{} covers the first {} addresses of {}, as each bitmap does: no Service gets one beyond them\n",
                    range.name, core::service::kServiceV6AddressesMax, *cidr);
  }
  return text;
}

/// The holders of each value by the Services, ascending.
using Holders = std::map<RangeValue, std::vector<std::string>>;

[[nodiscard]] Holders holders_of(const engine::RangeRepairReport& report) {
  Holders holders;
  for (const audit::ServiceUse& service : report.services) {
    for (const std::string& text : service.cluster_ips) {
      if (const auto address = net::parse_address_leniently(text))
        holders[*address].push_back(service.name.to_string());
    }
    for (const std::uint16_t port : audit::collect_node_ports(service)) {
      holders[static_cast<int>(port)].push_back(service.name.to_string());
    }
  }
  return holders;
}

/// Calls f(value) for each value that the record says is taken.
template <core::service::RangeMap M, class F>
void for_each_taken(const core::RangeAllocation& range, F f) {
  const auto restored = core::service::range_from<M>(range);
  if (restored) restored->range.for_each_taken([&](const auto& value) { f(RangeValue(value)); });
}

[[nodiscard]] std::string holders_text(const engine::RangeRepairReport& report) {
  Holders holders = holders_of(report);
  std::uint64_t unheld = 0;
  const auto add = [&](const RangeValue& value) {
    if (holders.contains(value)) return;
    if (++unheld <= audit::kLeakFindingsMax) holders[value];
  };
  for (const auto& [name, range] : report.stored) {
    if (name == core::kServiceNodePorts) {
      for_each_taken<core::service::NodePortRange>(range, add);
    } else {
      for_each_taken<core::service::ServiceCidr>(range, add);
    }
  }
  Table table({"VALUE", "HELD BY"});
  for (const auto& [value, names] : holders) {
    table.add({audit::text_of(value), names.empty() ? "nobody" : fmt::format("{}", fmt::join(names, ", "))});
  }
  std::string text = table.to_string();
  if (unheld > audit::kLeakFindingsMax) {
    text += counted_as(unheld - audit::kLeakFindingsMax, "more is", "more are") + " held by nobody\n";
  }
  return text;
}

/// A finding may stand for many.
[[nodiscard]] std::uint64_t count_of(const std::vector<RepairFinding>& findings) {
  std::uint64_t count = 0;
  for (const RepairFinding& finding : findings) count += finding.count;
  return count;
}

[[nodiscard]] std::string findings_text(const std::vector<RepairFinding>& findings) {
  Table table({"TYPE", "RANGE", "VALUE", "SERVICE", "MESSAGE"});
  for (const RepairFinding& finding : findings) {
    table.add({std::string(name_of(finding.type)), finding.range, finding.value,
               finding.service ? finding.service->to_string() : "", finding.message});
  }
  return table.to_string();
}

}  // namespace

std::vector<RepairFinding> merged_findings(std::vector<RepairFinding> before, const std::vector<RepairFinding>& after) {
  const auto identity = [](const RepairFinding& one) { return std::tie(one.type, one.range, one.value, one.service); };
  std::map<std::tuple<RepairFinding::Type, std::string, std::string, std::optional<core::ServiceName>>, std::size_t>
      places;
  for (std::size_t i = 0; i < before.size(); ++i) places.emplace(identity(before[i]), i);
  for (const RepairFinding& finding : after) {
    if (const auto found = places.find(identity(finding)); found != places.end()) {
      before[found->second] = finding;
    } else {
      before.push_back(finding);
    }
  }
  return before;
}

std::string text_of(const engine::RangeRepairReport& report, const std::vector<RepairFinding>& findings, bool wide) {
  std::string text = fmt::format("{}; addresses are kept as {}\n", counted(report.services.size(), "service"),
                                 report.objects ? "IPAddress objects, which the kube-apiservers mend" : "bitmaps");
  text += table_of(report.ranges) + cut_text(report);
  if (wide) text += "\n" + holders_text(report);
  if (!findings.empty()) text += "\n" + findings_text(findings);
  for (const std::string& name : report.changed_meanwhile) {
    text += fmt::format(
        "{} was changed by others during the look: what is said of it may be of Services in the making\n", name);
  }
  const std::uint64_t count = count_of(findings);
  text += count == 0 ? "no findings\n" : counted(count, "finding") + "\n";
  return text;
}

Data json_of(const engine::RangeRepairReport& report, const std::vector<RepairFinding>& findings) {
  const auto range_json = [](const audit::RangeRepair& range) -> Json {
    const auto use = [](const BandUse& band) { return Json{{"size", band.size}, {"used", band.used}}; };
    return {{"name", range.name},
            {"range", range.range},
            {"size", range.in_static.size + range.in_dynamic.size},
            {"used", range.in_static.used + range.in_dynamic.used},
            {"static", use(range.in_static)},
            {"dynamic", use(range.in_dynamic)},
            {"present", range.present}};
  };
  const auto finding_json = [](const RepairFinding& finding) {
    Json json = {{"type", name_of(finding.type)},
                 {"reason", finding.reason},
                 {"range", finding.range},
                 {"value", finding.value},
                 {"service", finding.service ? Json(finding.service->to_string()) : Json()},
                 {"message", finding.message}};
    if (finding.count > 1) json["count"] = finding.count;
    return json;
  };
  const auto failure_json = [](const engine::RangeFailure& failure) -> Json {
    return {{"range", failure.range}, {"message", failure.error.message}};
  };
  Json json = {{"form", report.objects ? "objects" : "bitmap"},
               {"ranges", array_json(report.ranges, range_json)},
               {"services", report.services.size()},
               {"findings", array_json(findings, finding_json)},
               {"applied", report.applied},
               {"changedMeanwhile", report.changed_meanwhile},
               {"failures", array_json(report.failures, failure_json)}};
  return Data(std::move(json));
}

}  // namespace croft::app
