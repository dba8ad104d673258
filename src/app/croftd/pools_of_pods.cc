#include "app/croftd/pools_of_pods.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "net/echo.h"

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

std::string names_of(const core::PoolTable& pools, net::Family family) {
  std::vector<std::string> names;
  for (const core::Pool* pool : pools.pools()) {
    if (pool->cidr.family() == family) names.push_back(net::echo(pool->name));
  }
  return names.empty() ? "none" : fmt::format("{}", fmt::join(names, ", "));
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
                                                : "not allocatable (its status says so, or it is being deleted)"));
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
    const bool may_serve = !needs.node_labels && std::ranges::any_of(pools.pools(), [&](const core::Pool* pool) {
      return pool->cidr.family() == family && core::is_enabled(*pool) && !core::is_for_all_nodes(*pool);
    });
    if (choice.refusal && !is_told && !may_serve) {
      lines.push_back(fmt::format("no pod of this node starts as it is now: {}: {}", choice.refusal->summary,
                                  texts_of(choice.refusal->considered, family)));
    }
  }
  return lines;
}

}  // namespace croft::app
