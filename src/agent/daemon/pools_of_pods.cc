#include "agent/daemon/pools_of_pods.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/net/echo.h"

namespace croft::app {
namespace {

const char* flag_of(net::Family family) { return family == net::Family::v4 ? "--ipv4-pool" : "--ipv6-pool"; }

/// Those of a family, with what an ADD says of each.
std::string texts_of(const std::vector<core::PoolVerdict>& verdicts, net::Family family) {
  std::vector<std::string> texts;
  for (const core::PoolVerdict& one : verdicts) {
    if (one.cidr.family() != family) continue;
    texts.push_back(fmt::format("{} ({}): {}", net::echo(one.pool), one.cidr.to_string(), one.reason));
  }
  return fmt::format("{}", fmt::join(texts, "; "));
}

std::string names_of(const std::vector<const core::Pool*>& pools) {
  std::vector<std::string> names;
  for (const core::Pool* pool : pools) names.push_back(net::echo(pool->name));
  return names.empty() ? "none" : fmt::format("{}", fmt::join(names, ", "));
}

std::string names_of(const core::PoolTable& pools, net::Family family) {
  std::vector<const core::Pool*> of_family;
  for (const core::Pool* pool : pools.pools()) {
    if (pool->cidr.family() == family) of_family.push_back(pool);
  }
  return names_of(of_family);
}

/// Those that were named. Each has to be there: an ADD is refused for one that is not.
[[nodiscard]] Result<std::vector<std::string>> check_asked(const std::vector<core::AskedPool>& asked,
                                                           net::Family family, const core::PoolTable& pools) {
  std::vector<std::string> lines;
  bool has_one_for_pods = asked.empty();
  for (const core::AskedPool& one : asked) {
    const std::string said = fmt::format("{} {}", flag_of(family), net::echo(core::text_of(one)));
    const auto it = std::ranges::find_if(
        pools.pools(), [&](const core::Pool* pool) { return core::is_asked(one, pool->name, pool->cidr); });
    if (it == pools.pools().end()) {
      return fail(ErrorCode::refused_by_configuration,
                  fmt::format("{}: the register has no such pool, and no pod of this node would start. Its pools of "
                              "{}: {}. Give one of these, or make it first (croft pool create)",
                              said, net::name_of(family), names_of(pools, family)));
    }
    const core::Pool& pool = **it;
    if (pool.cidr.family() != family) {
      return fail(ErrorCode::refused_by_configuration,
                  fmt::format("{}: that pool is of {} ({}), and no pod of this node would start. Its pools of {}: {}",
                              said, net::name_of(pool.cidr.family()), pool.cidr.to_string(), net::name_of(family),
                              names_of(pools, family)));
    }
    if (!core::is_enabled(pool)) {
      lines.push_back(fmt::format("{}: no pod of this node starts as long as that pool is {}", said,
                                  pool.disabled ? fmt::format("disabled (croft pool enable {})", net::echo(pool.name))
                                                : "not allocatable: " + pool.unallocatable));
    }
    has_one_for_pods = has_one_for_pods || core::allows(pool, core::PoolUse::workload);
  }
  if (has_one_for_pods) return lines;
  return fail(
      ErrorCode::refused_by_configuration,
      fmt::format("{}: no such pool is for pods (its allowedUses have no Workload), and none of this node would "
                  "start. Give another one",
                  flag_of(family)));
}

/// Of the pools that may be used. Without a gateway a pod gets a /32 or /128, and no route of it.
[[nodiscard]] Result<std::vector<std::string>> check_gateways(const std::vector<const core::Pool*>& may,
                                                              net::Family family, const std::string& main_plugin) {
  std::vector<const core::Pool*> without;
  std::ranges::copy_if(may, std::back_inserter(without), [](const core::Pool* pool) { return !pool->gateway; });
  if (without.empty()) return std::vector<std::string>();
  constexpr const char* kRemedy =
      "A pool has its gateway from when it is made: `croft pool delete NAME` once nobody holds an address of it, then "
      "`croft pool defaults --gateways first` or `croft pool create`; or make another pool and `croft pool disable "
      "NAME`";
  if (without.size() < may.size()) {
    return std::vector{
        fmt::format("pods get their interfaces from {}, which fails with an address of a pool without a "
                    "gateway: {}. {}",
                    main_plugin, names_of(without), kRemedy)};
  }
  return fail(
      ErrorCode::refused_by_configuration,
      fmt::format("pods of this node are to get their interfaces from {}, which fails with an address of a pool "
                  "without a gateway, and no {} pool that they may use has one ({}), so none would start. {}",
                  main_plugin, net::name_of(family), names_of(without), kRemedy));
}

}  // namespace

Result<std::vector<std::string>> compare_pools(const PodNeeds& needs, const core::PoolTable& pools) {
  std::vector<std::string> lines;
  if (pools.pools().empty() || pools.damaged_pool()) return lines;
  for (const net::Family family : net::kFamilies) {
    if (!needs.families[family]) continue;
    TRY(std::vector<std::string> of_asked, check_asked(needs.asked[family], family, pools));
    const bool is_told = !of_asked.empty();
    std::ranges::move(of_asked, std::back_inserter(lines));
    core::PoolRequest request;
    request.family = family;
    request.node = needs.node;
    request.asked = needs.asked[family];
    request.node_labels = needs.node_labels.value_or(core::Labels());
    request.for_some_pod = true;
    const core::PoolChoice choice = core::choose_pools(pools, request);
    std::vector<const core::Pool*> may = choice.usable;
    for (const core::Pool* pool : pools.pools()) {
      const bool nobody_knows = !needs.node_labels && request.asked.empty() && !core::is_for_all_nodes(*pool) &&
                                pool->cidr.family() == family && core::is_enabled(*pool) &&
                                core::allows(*pool, core::PoolUse::workload);
      if (nobody_knows) may.push_back(pool);
    }
    if (may.empty() && choice.refusal && !is_told) {
      lines.push_back(fmt::format("no pod of this node starts as it is now: {}: {}", choice.refusal->summary,
                                  texts_of(choice.refusal->considered, family)));
    }
    if (needs.wants_gateways.empty()) continue;
    TRY(std::vector<std::string> of_gateways, check_gateways(may, family, needs.wants_gateways));
    std::ranges::move(of_gateways, std::back_inserter(lines));
  }
  return lines;
}

}  // namespace croft::app
