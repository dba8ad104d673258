#include "vpc/commands/vpc_views.h"

#include <algorithm>
#include <map>
#include <tuple>
#include <utility>

#include <fmt/format.h>

#include "base/net/address.h"

namespace croft::app {
namespace {

using wire::vpc::PodNetwork;

constexpr const char* kNone = "<none>";

/// The age of a time that may be unknown.
std::string age_or_none(std::int64_t now, std::int64_t then) { return then == 0 ? kNone : vpc_age(now, then); }

/// A name or an address in the order of lists: addresses by their number and before names, names by their bytes.
std::tuple<bool, net::Address, std::string> order_of(const std::string& text) {
  const auto address = net::Address::parse(text);
  return {!address, address.value_or(net::Address()), text};
}

std::vector<std::string> cells_of(VpcKind kind, const VpcRow& row, bool wide) {
  std::vector<std::string> cells = row.cells;
  if (wide && kind != VpcKind::node) cells.push_back(row.node);
  return cells;
}

}  // namespace

VpcRow vpc_node_row(const std::string& node, const std::string& address, const std::string& subnet, std::int64_t pool) {
  VpcRow row{node, "", "", {node, subnet.empty() ? kNone : subnet, std::to_string(pool)}, {}};
  row.object = {{"name", node}, {"addr", address}, {"subnet", subnet}, {"pool", pool}};
  return row;
}

VpcRow vpc_pool_row(const std::string& node, const PodNetwork& network, bool cooldown, std::int64_t now) {
  const std::string recycled = network.recycled ? age_or_none(now, network.recycle_time) : kNone;
  VpcRow row{node, network.ip, network.ip, {}, {}};
  row.cells = {network.ip, recycled, cooldown ? "true" : "false", age_or_none(now, network.create_time)};
  row.object = {{"ip", network.ip},
                {"node", node},
                {"create_time", network.create_time},
                {"recycled", network.recycled},
                {"recycled_time", network.recycle_time},
                {"cooldown", cooldown}};
  return row;
}

VpcRow vpc_pod_row(const std::string& node, const PodNetwork& network, std::int64_t now) {
  VpcRow row{node, network.pod_name, network.ip, {}, {}};
  row.cells = {network.pod_namespace, network.pod_name, network.ip, age_or_none(now, network.create_time)};
  row.object = {{"node", node},
                {"pod_ns", network.pod_namespace},
                {"pod_name", network.pod_name},
                {"pod_uid", network.pod_uid},
                {"sandbox_id", network.sandbox_id},
                {"net_ns", network.netns},
                {"vpcip", network.ip},
                {"vpcid", network.vpc},
                {"subnet_id", network.subnet},
                {"gateway", network.gateway},
                {"mask", network.mask},
                {"mac_address", network.mac},
                {"dedicated_uni", network.dedicated_uni},
                {"interface_id", network.interface_id},
                {"eipid", network.eip_id},
                {"create_time", network.create_time}};
  return row;
}

VpcRow vpc_unuse_row(const std::string& node, const PodNetwork& network) {
  VpcRow row{node, network.ip, network.ip, {network.ip, network.subnet}, {}};
  row.object = {{"Node", node}, {"IP", network.ip}, {"SubnetID", network.subnet}};
  if (!network.why.empty()) row.object["Why"] = row.why = network.why;
  return row;
}

void sort_vpc_rows(std::vector<VpcRow>& rows) {
  std::ranges::stable_sort(
      rows, std::less{}, [](const VpcRow& row) { return std::tuple(order_of(row.node), order_of(row.id), row.cells); });
}

void filter_vpc_rows(std::vector<VpcRow>& rows, const std::string& part) {
  std::erase_if(rows, [&](const VpcRow& row) {
    return row.node.find(part) == std::string::npos && row.ip.find(part) == std::string::npos;
  });
}

std::vector<std::string> vpc_headings(VpcKind kind, bool wide) {
  static const std::map<VpcKind, std::vector<std::string>> kHeadings = {
      {VpcKind::node, {"NODE", "SUBNET", "POOL"}},
      {VpcKind::pool, {"IP", "RECYCLED", "COOLDOWN", "AGE"}},
      {VpcKind::pod, {"NAMESPACE", "NAME", "IP", "AGE"}},
      {VpcKind::unuse, {"IP", "SUBNET"}},
  };
  std::vector<std::string> headings = kHeadings.at(kind);
  if (wide && kind != VpcKind::node) headings.emplace_back("NODE");
  return headings;
}

Table vpc_table(VpcKind kind, const std::vector<VpcRow>& rows, bool wide) {
  std::vector<std::string> headings = vpc_headings(kind, wide);
  if (kind == VpcKind::unuse) headings.emplace_back("WHY");
  Table table(std::move(headings));
  for (const VpcRow& row : rows) {
    std::vector<std::string> cells = cells_of(kind, row, wide);
    if (kind == VpcKind::unuse) cells.push_back(row.why);
    table.add(std::move(cells));
  }
  return table;
}

std::string cnivpctl_table(VpcKind kind, const std::vector<VpcRow>& rows, bool wide) {
  std::vector<std::vector<std::string>> lines{vpc_headings(kind, wide)};
  for (const VpcRow& row : rows) lines.push_back(cells_of(kind, row, wide));
  std::vector<std::size_t> widths(lines.front().size());
  for (const auto& line : lines) {
    for (std::size_t i = 0; i < line.size(); ++i) widths[i] = std::max(widths[i], width_of(line[i]) + 2);
  }
  std::string text;
  for (const auto& line : lines) {
    for (std::size_t i = 0; i < line.size(); ++i) text += line[i] + std::string(widths[i] - width_of(line[i]), ' ');
    text += '\n';
  }
  return text;
}

Data cnivpctl_data(const std::vector<VpcRow>& rows) {
  return rows.size() == 1 ? Data(rows.front().object) : vpc_data(rows);
}

Data vpc_data(const std::vector<VpcRow>& rows) {
  nlohmann::ordered_json array = nlohmann::ordered_json::array();
  for (const VpcRow& row : rows) array.push_back(row.object);
  return Data(std::move(array));
}

std::string vpc_age(std::int64_t now, std::int64_t then) {
  constexpr std::int64_t kMinute = 60, kHour = 60 * kMinute, kDay = 24 * kHour, kYear = 365 * kDay;
  const std::int64_t age = now > then ? now - then : 0;
  if (age > kYear) return fmt::format("{}y", age / kYear);
  if (age > 5 * kDay) return fmt::format("{}d", age / kDay);
  if (age > 5 * kHour) return fmt::format("{}h", age / kHour);
  if (age > 5 * kMinute) return fmt::format("{}m", age / kMinute);
  return fmt::format("{}s", age);
}

}  // namespace croft::app
