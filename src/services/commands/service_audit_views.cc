#include "services/commands/service_audit_views.h"

#include <algorithm>
#include <map>
#include <tuple>
#include <utility>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "base/counted.h"
#include "base/net/echo.h"
#include "base/net/lenient.h"
#include "cli/croft/json_text.h"
#include "cli/croft/table.h"

namespace croft::app {
namespace {

namespace audit = core::audit;
using audit::BandUse;
using audit::RangeValue;
using audit::RepairFinding;
using Json = nlohmann::ordered_json;

/// One line of the table of ranges: a bitmap, or a prefix of a ServiceCIDR.
struct RangeLine {
  std::string name, range;
  BandUse in_static, in_dynamic;
  bool present = true;
  bool unseen = false;  ///< nothing is known of it
};

[[nodiscard]] std::vector<RangeLine> lines_of(const engine::RangeRepairReport& report) {
  std::vector<RangeLine> lines;
  for (const audit::RangeRepair& range : report.ranges) {
    lines.push_back({range.name, range.range, range.in_static, range.in_dynamic, range.present,
                     report.bitmaps_unseen && !range.present});
  }
  if (report.addresses) {
    for (const audit::ServiceCidrUse& use : report.addresses->cidrs) {
      lines.push_back({use.name, use.cidr.to_string(), use.in_static, use.in_dynamic, true});
    }
  }
  return lines;
}

/// A register that others write may hold anything.
[[nodiscard]] std::string shown(std::string text) {
  std::ranges::replace_if(
      text, [](unsigned char c) { return c < 0x20 || c == 0x7f; }, '?');
  return text;
}

[[nodiscard]] std::string use_text(const BandUse& use) { return fmt::format("{} of {}", use.used, use.size); }

[[nodiscard]] std::string table_of(const std::vector<RangeLine>& lines) {
  Table table({"NAME", "RANGE", "USED", "STATIC", "DYNAMIC"});
  for (const RangeLine& line : lines) {
    const BandUse all{line.in_static.size + line.in_dynamic.size, line.in_static.used + line.in_dynamic.used};
    if (line.unseen) {
      table.add({shown(line.name), "-", "not seen", "-", "-"});
      continue;
    }
    table.add({shown(line.name), shown(line.range), line.present ? use_text(all) : "no record",
               use_text(line.in_static), use_text(line.in_dynamic)});
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
                    shown(range.name), core::service::kServiceV6AddressesMax, cidr->to_string());
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
  const auto restored = core::service::range_from<M>({range.range, range.data});
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
    std::string text;
    for (const std::string& name : names) text += (text.empty() ? "" : ", ") + name;
    table.add({audit::text_of(value), names.empty() ? "nobody" : shown(text)});
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
    table.add({std::string(name_of(finding.type)), finding.range, shown(finding.value),
               finding.service ? shown(finding.service->to_string()) : "", shown(finding.message)});
  }
  return table.to_string();
}

[[nodiscard]] Json json_of(const RangeLine& line) {
  const auto use = [](const BandUse& band) { return Json{{"size", band.size}, {"used", band.used}}; };
  return {{"name", line.name},
          {"range", line.range},
          {"size", line.in_static.size + line.in_dynamic.size},
          {"used", line.in_static.used + line.in_dynamic.used},
          {"static", use(line.in_static)},
          {"dynamic", use(line.in_dynamic)},
          {"present", line.present}};
}

[[nodiscard]] Json json_of(const RepairFinding& finding) {
  Json json = {{"type", name_of(finding.type)},
               {"reason", finding.reason},
               {"range", finding.range},
               {"value", finding.value},
               {"service", finding.service ? Json(finding.service->to_string()) : Json()},
               {"message", finding.message}};
  if (finding.count > 1) json["count"] = finding.count;
  return json;
}

}  // namespace

std::vector<RepairFinding> merged(std::vector<RepairFinding> before, const std::vector<RepairFinding>& after) {
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
                                 report.objects ? "IPAddress objects" : "bitmaps");
  if (report.bitmaps_unseen) {
    text +=
        "Which node ports are taken is in the etcd of the kube-apiservers, and no API shows it: the Services were "
        "compared with each other and with --service-node-port-range. --etcd-servers looks at all.\n";
  }
  text += table_of(lines_of(report)) + cut_text(report);
  if (wide) text += "\n" + holders_text(report);
  if (!findings.empty()) text += "\n" + findings_text(findings);
  for (const std::string& name : report.changed_meanwhile) {
    text += fmt::format(
        "{} was changed by others during the look: what is said of it may be of Services in the "
        "making\n",
        shown(name));
  }
  const std::uint64_t count = count_of(findings);
  text += count == 0 ? "no findings\n" : counted(count, "finding") + "\n";
  return text;
}

Data json_of(const engine::RangeRepairReport& report, const std::vector<RepairFinding>& findings) {
  Json ranges = Json::array(), list = Json::array(), failures = Json::array();
  for (const RangeLine& line : lines_of(report)) ranges.push_back(json_of(line));
  for (const RepairFinding& finding : findings) list.push_back(json_of(finding));
  for (const engine::RangeFailure& failure : report.failures) {
    failures.push_back({{"range", failure.range}, {"message", failure.error.message}});
  }
  Json json = {{"form", report.objects ? "objects" : "bitmap"},
               {"ranges", std::move(ranges)},
               {"services", report.services.size()},
               {"findings", std::move(list)},
               {"applied", report.applied},
               {"changedMeanwhile", report.changed_meanwhile},
               {"failures", std::move(failures)},
               {"bitmapsUnseen", report.bitmaps_unseen}};
  return Data(std::move(json));
}

}  // namespace croft::app
