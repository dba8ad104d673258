#include "cli/croft/top.h"

#include <algorithm>

#include <fmt/format.h>

#include "base/printable.h"
#include "base/texts.h"
#include "base/time_text.h"
#include "cli/croft/table.h"

namespace croft::app {
namespace {

constexpr std::size_t kNodesMax = 20;

double used_of(const engine::Usage& usage) { return static_cast<double>(usage.held + usage.cooling); }

double part_of(const engine::Usage& usage) {
  const double room = (usage.size - usage.reserved).as_double();
  return room > 0 ? used_of(usage) / room : 1;
}

struct NodeUse {
  std::uint64_t blocks = 0, held = 0, cooling = 0;
};

std::string nodes_text(const engine::Overview& overview) {
  std::map<std::string, NodeUse> nodes;
  const auto add = [&](const engine::BlockView& block) {
    NodeUse& use = nodes[block.block.affinity ? block.block.affinity->name : "(nobody)"];
    ++use.blocks;
    use.held += block.usage.held;
    use.cooling += block.usage.cooling;
  };
  for (const auto& pool : overview.pools) std::ranges::for_each(pool.blocks, add);
  std::ranges::for_each(overview.stray_blocks, add);
  std::vector<std::pair<std::string, NodeUse>> sorted(nodes.begin(), nodes.end());
  std::ranges::stable_sort(sorted, std::greater{}, [](const auto& one) { return one.second.held; });
  Table table({"NODE", "BLOCKS", "HELD IN THEM", "COOLING"});
  for (std::size_t i = 0; i < std::min(sorted.size(), kNodesMax); ++i) {
    const auto& [node, use] = sorted[i];
    table.add({node, std::to_string(use.blocks), std::to_string(use.held), std::to_string(use.cooling)});
  }
  std::string text = sorted.empty() ? "no block is claimed yet\n" : table.to_string();
  if (sorted.size() > kNodesMax) text += fmt::format("… and {}\n", counted(sorted.size() - kNodesMax, "more node"));
  return text;
}

}  // namespace

void TopRates::add(const engine::Overview& overview, const Instant& now) {
  Look& look = looks_.emplace_back(Look{now.since_boot, {}});
  for (const auto& pool : overview.pools) look.used[pool.pool.name] = used_of(pool.usage);
  while (looks_.size() > 2 && now.since_boot - looks_[1].at >= kPast) looks_.pop_front();
}

std::optional<double> TopRates::of(const std::string& pool) const {
  if (looks_.size() < 2 || !looks_.front().used.contains(pool) || !looks_.back().used.contains(pool)) return {};
  const double minutes = std::chrono::duration<double, std::ratio<60>>(looks_.back().at - looks_.front().at).count();
  if (minutes <= 0) return {};
  return (looks_.back().used.at(pool) - looks_.front().used.at(pool)) / minutes;
}

void TopView::see(engine::Overview overview, const TopRates& rates, const Instant& now) {
  seen_ = std::move(overview);
  at_ = now.wall;
  std::ranges::stable_sort(seen_.pools, std::greater{}, [](const auto& one) { return part_of(one.usage); });
  rates_.clear();
  for (const auto& shown : seen_.pools) rates_[shown.pool.name] = rates.of(shown.pool.name);
}

void TopView::next_pool() {
  if (seen_.pools.empty()) return;
  const auto now = std::ranges::find(seen_.pools, pool, [](const auto& one) { return one.pool.name; });
  const auto next =
      now == seen_.pools.end() ? seen_.pools.begin() + (pool.empty() && seen_.pools.size() > 1 ? 1 : 0) : now + 1;
  pool = next == seen_.pools.end() ? seen_.pools.front().pool.name : next->pool.name;
  map = true;
}

std::string TopView::text() const {
  std::uint64_t held = 0, blocks = 0;
  Table table({"POOL", "CIDR", "USED", "", "HELD", "COOLING", "FREE", "A MINUTE", "FULL IN"});
  for (const auto& one : seen_.pools) {
    const std::string& name = one.pool.name;
    held += one.usage.held;
    blocks += one.blocks.size();
    const auto forecast = forecasts.find(name);
    const bool is_known = forecast != forecasts.end() && forecast->second.is_known;
    const auto rate = rates_.find(name);
    const bool has_rate = rate != rates_.end() && rate->second;
    const double part = part_of(one.usage);
    table.add({name, one.pool.cidr.to_string(), bar_of(part), fmt::format("{:.1f}%", 100 * part),
               std::to_string(one.usage.held), std::to_string(one.usage.cooling), one.usage.free().to_string(),
               has_rate ? fmt::format("{:+.1f}", *rate->second) : "",
               part >= 1 ? "now" : (is_known ? core::history::full_text(forecast->second.full_in) : "")});
  }
  std::string text = fmt::format("{}   {}   {}, {}, {} held\n\n", rfc3339_rounded_up(at_), store,
                                 counted(seen_.pools.size(), "pool"), counted(blocks, "block"), held);
  text += seen_.pools.empty() ? "no pool is there\n" : table.to_string();
  text += "\n";
  const auto shown =
      std::ranges::find_if(seen_.pools, [&](const auto& one) { return pool.empty() || one.pool.name == pool; });
  if (!map || shown == seen_.pools.end()) return text + nodes_text(seen_);
  return text + printable(shown->pool.name, Printed::line) + "\n" + draw(*shown, colour);
}

std::string bar_of(double part) {
  constexpr std::size_t kSigns = 10;
  const auto filled = static_cast<std::size_t>(std::clamp(part, 0.0, 1.0) * kSigns + 0.5);
  return "[" + std::string(filled, '#') + std::string(kSigns - filled, '.') + "]";
}

}  // namespace croft::app
