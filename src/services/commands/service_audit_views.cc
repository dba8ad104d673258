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

constexpr std::size_t kMapColumns = 64;
constexpr std::size_t kCellsMax = kMapColumns * 8;

/// One line of the table of ranges: a bitmap, or a prefix of a ServiceCIDR.
struct RangeLine {
  std::string name, range;
  BandUse in_static, in_dynamic;
  bool present = true;
  bool unseen = false;  ///< nothing is known of it
};

[[nodiscard]] std::vector<RangeLine> lines_of(const engine::RangeRepairReport& report, const std::string& name = {}) {
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
  if (!name.empty()) std::erase_if(lines, [&](const RangeLine& line) { return line.name != name; });
  return lines;
}

/// What is in a register that others write may hold anything.
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
[[nodiscard]] std::string cut_text(const engine::RangeRepairReport& report, const std::string& name = {}) {
  std::string text;
  for (const audit::RangeRepair& range : report.ranges) {
    const auto cidr = net::parse_prefix_leniently(range.range);
    if ((!name.empty() && range.name != name) || !cidr || !core::service::exceeds_service_bitmap(*cidr)) continue;
    text +=
        fmt::format("{} covers the first {} addresses of {}, as each bitmap does: no Service gets one beyond them\n",
                    shown(range.name), core::service::kServiceV6AddressesMax, cidr->to_string());
  }
  return text;
}

/// Who holds each value by what the Services say, ascending.
using Holders = std::map<RangeValue, std::vector<std::string>>;

[[nodiscard]] Holders holders_of(const engine::RangeRepairReport& report) {
  Holders holders;
  for (const audit::ServiceUse& service : report.services) {
    for (const std::string& text : service.cluster_ips) {
      if (const auto address = net::parse_address_leniently(text))
        holders[*address].push_back(service.name.to_string());
    }
    if (service.type == core::ServiceType::external_name) continue;
    for (const std::uint16_t port : audit::collect_node_ports(service)) {
      holders[static_cast<int>(port)].push_back(service.name.to_string());
    }
  }
  return holders;
}

/// Calls f(value, ordinal) for each value that the record says is taken.
template <core::service::RangeMap M, class F>
void for_each_taken(const core::RangeAllocation& range, F f) {
  const auto restored = core::service::range_from<M>({range.range, range.data});
  if (!restored) return;
  const M& map = restored->range.map();
  restored->range.for_each_taken([&](const auto& value) { f(RangeValue(value), map.ordinal_of(value)->value); });
}

template <class F>
void for_each_taken(const std::string& name, const core::RangeAllocation& range, F f) {
  if (name == core::kServiceNodePorts) return for_each_taken<core::service::NodePortRange>(range, f);
  for_each_taken<core::service::ServiceCidr>(range, f);
}

[[nodiscard]] std::string holders_text(const engine::RangeRepairReport& report) {
  Holders holders = holders_of(report);
  std::uint64_t unheld = 0;
  for (const auto& [name, range] : report.stored) {
    for_each_taken(name, range, [&](const RangeValue& value, std::uint32_t) {
      if (holders.contains(value)) return;
      if (++unheld <= audit::kLeakFindingsMax) holders[value];
    });
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

/// A picture of `size` places, `taken` ascending: a place a character, or several, then by how many are taken.
[[nodiscard]] std::string strip(const std::vector<std::uint32_t>& taken, std::uint32_t first, std::uint32_t size,
                                bool colour) {
  const std::size_t cells = std::min<std::size_t>(size, kCellsMax);
  std::vector<std::uint64_t> count(cells);
  const auto cell_of = [&](std::uint64_t place) { return static_cast<std::size_t>(place * cells / size); };
  for (const std::uint32_t place : taken) {
    if (place >= first && place - first < size) ++count[cell_of(place - first)];
  }
  std::string text;
  for (std::size_t i = 0; i < cells; ++i) {
    if (i % kMapColumns == 0) text += i == 0 ? "  " : "\n  ";
    const std::uint64_t places = std::max<std::uint64_t>(size / cells, 1);
    const char* sign = count[i] == 0                ? "·"
                       : count[i] >= places         ? "█"
                       : count[i] * 3 >= places * 2 ? "▓"
                       : count[i] * 3 >= places     ? "▒"
                                                    : "░";
    text += colour && count[i] > 0 ? fmt::format("\x1b[38;5;34m{}\x1b[0m", sign) : sign;
  }
  return text + "\n";
}

[[nodiscard]] std::string band_text(const char* name, const BandUse& use, const std::vector<std::uint32_t>& taken,
                                    std::uint32_t first, bool colour) {
  if (use.size == 0) return {};
  const auto size = static_cast<std::uint32_t>(use.size);
  const std::uint64_t places = size / std::min<std::uint64_t>(size, kCellsMax);
  std::string text = fmt::format(" {} band, {} taken", name, use_text(use));
  if (places > 1) text += fmt::format(", about {} a character", places);
  return text + "\n" + strip(taken, first, size, colour);
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

[[nodiscard]] Json ranges_json(const engine::RangeRepairReport& report, const std::string& name) {
  Json ranges = Json::array();
  for (const RangeLine& line : lines_of(report, name)) ranges.push_back(json_of(line));
  return ranges;
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
  if (report.bitmap_beside) {
    text +=
        "There is a bitmap of addresses beside the objects. It is looked at but never written; an API server of "
        "1.34 or newer does not use it: --cluster-ip-form objects leaves it out.\n";
  }
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

std::string picture_of(const engine::RangeRepairReport& report, const std::string& name, bool wide, bool colour) {
  std::string text = table_of(lines_of(report, name)) + cut_text(report, name);
  for (const audit::RangeRepair& range : report.ranges) {
    const auto stored = report.stored.find(range.name);
    if (stored == report.stored.end() || (!name.empty() && range.name != name)) continue;
    std::vector<std::uint32_t> taken;
    for_each_taken(range.name, stored->second,
                   [&](const RangeValue&, std::uint32_t ordinal) { taken.push_back(ordinal); });
    text += fmt::format("\n{} {}\n", shown(range.name), shown(range.range));
    text += band_text("static", range.in_static, taken, 0, colour);
    text += band_text("dynamic", range.in_dynamic, taken, static_cast<std::uint32_t>(range.in_static.size), colour);
  }
  if (wide) text += "\n" + holders_text(report);
  return text;
}

Data json_of(const engine::RangeRepairReport& report, const std::vector<RepairFinding>& findings) {
  Json list = Json::array(), failures = Json::array();
  for (const RepairFinding& finding : findings) list.push_back(json_of(finding));
  for (const engine::RangeFailure& failure : report.failures) {
    failures.push_back({{"range", failure.range}, {"message", failure.error.message}});
  }
  Json json = {{"form", report.objects ? "objects" : "bitmap"},
               {"ranges", ranges_json(report, "")},
               {"services", report.services.size()},
               {"findings", std::move(list)},
               {"applied", report.applied},
               {"changedMeanwhile", report.changed_meanwhile},
               {"failures", std::move(failures)},
               {"bitmapsUnseen", report.bitmaps_unseen}};
  return Data(std::move(json));
}

Data ranges_json_of(const engine::RangeRepairReport& report, const std::string& name) {
  return Data(ranges_json(report, name));
}

}  // namespace croft::app
