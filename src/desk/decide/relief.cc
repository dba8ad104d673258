#include "desk/decide/relief.h"

#include <algorithm>
#include <array>
#include <optional>
#include <string_view>

#include <fmt/format.h>

#include "base/net/ranges.h"
#include "base/printable.h"
#include "base/texts.h"

namespace croft::core::desk {
namespace {

using namespace net::literals;

/// Steps to the next free prefix.
constexpr int kNextMax = 4096;

double share_open(const PoolFill& fill) {
  const double usable = (fill.capacity - fill.reserved).as_double();
  return usable > 0 ? fill.open().as_double() / usable : 0;
}

std::string addresses(const net::Count& count) {
  return count.to_string() + (count == net::Count(1) ? " address" : " addresses");
}

/// A name that no pool has: "web-more", "web-more-2".
std::string free_name(const std::string& name, const std::vector<PoolFill>& pools) {
  const std::string first = name + "-more";
  std::string free = first;
  const auto is_taken = [&](const PoolFill& one) { return one.pool.name == free; };
  for (int i = 2; std::ranges::any_of(pools, is_taken); ++i) free = fmt::format("{}-{}", first, i);
  return free;
}

/// A pool that gives addresses to the same nodes and namespaces, to those who name none, and has room.
bool is_next(const PoolFill& other, const Pool& pool) {
  return other.pool.name != pool.name && is_enabled(other.pool) && fullness_of(other) == Fullness::room &&
         other.pool.cidr.family() == pool.cidr.family() && other.pool.assignment_mode == AssignmentMode::automatic &&
         other.pool.allowed_uses == pool.allowed_uses && other.pool.node_selector == pool.node_selector &&
         other.pool.namespace_selector == pool.namespace_selector;
}

/// The options that make another pool for the same nodes and pods.
std::string same_settings(const Pool& pool) {
  std::string options = pool.gateway ? "" : " --gateway none";
  if (pool.cooldown != Pool{}.cooldown) options += fmt::format(" --cooldown-seconds {}", pool.cooldown.count());
  if (pool.priority != 0) options += fmt::format(" --priority {}", pool.priority);
  const auto add = [&](const char* name, const std::string& value) {
    if (!value.empty() && value != "all()") options += fmt::format(" {} {}", name, in_shell_quotes_if_needed(value));
  };
  add("--node-selector", pool.node_selector);
  add("--namespace-selector", pool.namespace_selector);
  return options;
}

void add_for(const PoolFill& fill, const ReliefFacts& facts, std::vector<Relief>& reliefs) {
  const std::string& name = fill.pool.name;
  const auto add = [&](Risk risk, std::string title, std::string effect, std::string caution, std::string command) {
    reliefs.push_back({name, risk, std::move(title), std::move(effect), std::move(caution), std::move(command)});
  };
  const auto next_pool =
      std::ranges::find_if(facts.pools, [&](const PoolFill& other) { return is_next(other, fill.pool); });
  if (next_pool != facts.pools.end() && fill.pool.assignment_mode == AssignmentMode::automatic) {
    add(Risk::none, "Do nothing for networks that name no pools",
        fmt::format("Once it is full their pods get the {} of pool {}", addresses(next_pool->open()),
                    next_pool->pool.name),
        "A network that names its pools must name this one too.", "");
  }
  if (fill.cooling > 0) {
    add(Risk::none, "Wait for what cools",
        fmt::format("{} come back within {} s each", addresses(fill.cooling), fill.pool.cooldown.count()),
        "Nothing has to be done. A busy pool with a long cooldown stays full.", "");
  }
  const auto is_here = [&](const net::Address& address) { return fill.pool.cidr.contains(address); };
  if (const std::ptrdiff_t count = std::ranges::count_if(facts.gone, is_here); count > 0) {
    const net::Count gone(static_cast<std::uint64_t>(count));
    add(Risk::proven, "Release what nobody uses",
        fmt::format("{} come back; their pods or nodes are gone", addresses(gone)),
        "The controller frees them after its grace. The command asks for each holder again before it frees anything.",
        "croft check --wait 60s --report gone.json; croft ip release --from-report gone.json");
  }
  for (const PoolFill& other : facts.pools) {
    const bool helps = other.pool.disabled && !other.pool.being_deleted && !other.free().is_zero() &&
                       other.pool.cidr.family() == fill.pool.cidr.family();
    if (!helps) continue;
    add(Risk::intent, fmt::format("Use pool {} again", other.pool.name),
        fmt::format("{} of {} can be given out", addresses(other.free()), other.pool.cidr.to_string()),
        "Somebody disabled it. Ask why first.",
        fmt::format("croft pool enable {}", in_shell_quotes_if_needed(other.pool.name)));
  }
  std::vector<net::Prefix> taken = facts.taken;
  for (const PoolFill& other : facts.pools) taken.push_back(other.pool.cidr);
  const auto next = facts.are_all_taken_known ? next_private_prefix(fill.pool.cidr, taken) : std::nullopt;
  if (next) {
    add(Risk::routing, "Add a pool beside it",
        fmt::format("{} more for the same nodes, in {}", addresses(net::Count::of(*next)), next->to_string()),
        "No pod that runs is touched. The network must route the new prefix, and nothing else may use it. "
        "A network that names its pools must name this one too.",
        fmt::format("croft pool create {} --cidr {} --block-size {}{}",
                    in_shell_quotes_if_needed(free_name(name, facts.pools)), next->to_string(), fill.pool.block_length,
                    same_settings(fill.pool)));
  }
  if (!fill.stranded.is_zero()) {
    add(Risk::intent, "Let nodes borrow",
        fmt::format("{} that are free for one node become free for all", addresses(fill.stranded)),
        "Strict affinity is a promise to the network: routes must follow single addresses, not blocks.",
        "croft config set --strict-affinity false");
  }
}

}  // namespace

std::string_view name_of(Risk risk) {
  constexpr std::array<std::string_view, 4> kNames = {"none", "proven", "routing", "intent"};
  return kNames[static_cast<std::size_t>(risk)];
}

std::vector<Relief> reliefs_of(const ReliefFacts& facts) {
  std::vector<const PoolFill*> tight;
  for (const PoolFill& fill : facts.pools) {
    const bool is_tight = fullness_of(fill) != Fullness::room || facts.soon_full.contains(fill.pool.name);
    if (is_tight && is_enabled(fill.pool)) tight.push_back(&fill);
  }
  std::ranges::stable_sort(tight, {}, [](const PoolFill* fill) { return share_open(*fill); });
  std::vector<Relief> all;
  for (const PoolFill* fill : tight) {
    std::vector<Relief> reliefs;
    add_for(*fill, facts, reliefs);
    std::ranges::stable_sort(reliefs, {}, &Relief::risk);
    all.insert(all.end(), reliefs.begin(), reliefs.end());
  }
  return all;
}

std::optional<net::Prefix> next_private_prefix(const net::Prefix& cidr, const std::vector<net::Prefix>& taken) {
  constexpr std::array kPrivate = {"10.0.0.0/8"_prefix, "172.16.0.0/12"_prefix, "192.168.0.0/16"_prefix,
                                   "100.64.0.0/10"_prefix, "fc00::/7"_prefix};
  const auto space = std::ranges::find_if(kPrivate, [&](const net::Prefix& one) { return one.contains(cidr); });
  if (space == kPrivate.end()) return std::nullopt;
  const net::Intervals out(taken);
  net::Prefix next = cidr;
  for (int steps = 0; steps < kNextMax; ++steps) {
    const auto after = next.last().next();
    if (!after || !space->contains(*after)) return std::nullopt;
    next = net::Prefix::containing(*after, cidr.length());
    if (!out.overlaps(next)) return next;
  }
  return std::nullopt;
}

}  // namespace croft::core::desk
