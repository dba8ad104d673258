#include "ipam/audit/pool_status.h"

#include <map>
#include <utility>

#include <fmt/format.h>

#include "ipam/decide/assign.h"
#include "ipam/decide/draft.h"

namespace croft::core {
namespace {

Condition disabled(const Pool& pool) {
  if (pool.disabled) return {"Disabled", true, "DisabledInSpec", "the pool says disabled: it gives no new addresses"};
  return {"Disabled", false, "EnabledInSpec", ""};
}

Condition exhausted(const PoolFill& fill) {
  if (!fill.free().is_zero()) return {"Exhausted", false, "AddressesFree", ""};
  // Without numbers: they would change the text with every address that cools.
  return {"Exhausted", true, "NoFreeAddress", "every address is held, cooling or reserved"};
}

Condition overlaps(const Pool& pool, const Pool* other) {
  if (other == nullptr) return {"Overlaps", false, "Apart", ""};
  return {"Overlaps", true, "PoolsOverlap",
          fmt::format("{} overlaps pool {} ({}): `croft check` tells more", pool.cidr.to_string(), other->name,
                      other->cidr.to_string())};
}

Condition ready(const PoolFill& fill) {
  const auto not_ready = [](std::string reason, std::string message) {
    return Condition{"Ready", false, std::move(reason), std::move(message)};
  };
  if (fill.pool.disabled) return not_ready("Disabled", "the pool is disabled; `croft pool enable` takes that back");
  if (!fill.pool.unallocatable.empty()) {
    return not_ready("NotAllocatable", "nothing may be assigned from it: " + fill.pool.unallocatable);
  }
  if (fill.free().is_zero()) return not_ready("Exhausted", "no address is free");
  return {"Ready", true, "AddressesFree", ""};
}

/// A share of the addresses that may be used at all.
constexpr double kOpenShareMin = 0.1;

bool cools_down(const PoolFill& fill) {
  return fill.cools_until && mostly_cools(fill.cooling, fill.capacity - fill.reserved);
}

}  // namespace

Fullness fullness_of(const PoolFill& fill) {
  if (fill.pool.disabled || !fill.pool.unallocatable.empty()) return Fullness::room;
  const net::Count open = fill.open();
  if (open.is_zero()) return Fullness::full;
  const bool is_tight = open.as_double() < kOpenShareMin * (fill.capacity - fill.reserved).as_double();
  return is_tight ? Fullness::nearly_full : Fullness::room;
}

std::string fullness_text(const PoolFill& fill) {
  const Fullness fullness = fullness_of(fill);
  if (fullness == Fullness::room) return {};
  const bool cools = cools_down(fill);
  std::string text = fmt::format(
      "pool {} ({}) {}: {} of {} addresses are free for every node, {} held, {} cooling, "
      "{} reserved",
      fill.pool.name, fill.pool.cidr.to_string(),
      cools                        ? "cools down"
      : fullness == Fullness::full ? "is full"
                                   : "is over 90 % full",
      fill.open().to_string(), fill.capacity.to_string(), fill.held, fill.cooling, fill.reserved.to_string());
  if (!fill.stranded.is_zero()) {
    text += fmt::format(", {} free for the owner of their block alone (strict affinity)", fill.stranded.to_string());
  }
  if (cools) text += "; " + cooling_text(fill.cooling, fill.capacity - fill.reserved, *fill.cools_until);
  return text;
}

std::vector<audit::Finding> audit_fullness(const std::vector<PoolFill>& pools) {
  std::vector<audit::Finding> findings;
  for (const PoolFill& fill : pools) {
    const std::string text = fullness_text(fill);
    if (text.empty()) continue;
    findings.push_back(cools_down(fill) ? audit::found("pool_full.cooling", fill.pool.name, text)
                                        : audit::found("pool_full", fill.pool.name, text));
  }
  return findings;
}

std::vector<PoolStatus> status_of_pools(std::vector<PoolFill> pools) {
  std::vector<const Pool*> known;
  for (const PoolFill& fill : pools) known.push_back(&fill.pool);
  std::map<const Pool*, const Pool*> other;
  for (const auto& [inner, outer] : overlaps_among(known)) {
    other[inner] = outer;
    other.try_emplace(outer, inner);
  }
  std::vector<std::vector<Condition>> conditions;
  for (const PoolFill& fill : pools) {
    conditions.push_back({ready(fill), disabled(fill.pool), exhausted(fill), overlaps(fill.pool, other[&fill.pool])});
  }
  std::vector<PoolStatus> all;
  all.reserve(pools.size());
  for (std::size_t i = 0; i < pools.size(); ++i) all.push_back({std::move(pools[i]), std::move(conditions[i])});
  return all;
}

NodeRangeStatus status_of_node_ranges(const NodeRangeOverview& seen) {
  NodeRangeStatus status;
  status.nodes = seen.nodes;
  status.waiting = seen.bare.size();
  std::string full;
  for (const ClusterCidrUse& use : seen.use) {
    status.clusters.push_back({use.cluster.cidr.to_string(), use.size, use.taken - use.excluded, use.excluded});
    if (use.taken >= use.size) full += (full.empty() ? "" : ", ") + use.cluster.cidr.to_string();
  }
  const bool all_served = status.waiting == 0;
  status.conditions.push_back(
      all_served ? Condition{"Ready", true, "NodesHaveRanges", ""}
                 : Condition{"Ready", false, "NodesWait",
                             fmt::format(
                                 "{} a range; `croft node range list` names them",
                                 status.waiting == 1 ? "1 node lacks" : fmt::format("{} nodes lack", status.waiting))});
  status.conditions.push_back(full.empty()
                                  ? Condition{"Exhausted", false, "RangesFree", ""}
                                  : Condition{"Exhausted", true, "ClusterCIDRFull", fmt::format("{} is full", full)});
  if (seen.collisions.empty()) {
    status.conditions.push_back({"Overlaps", false, "Apart", ""});
  } else {
    const auto& [outer, inner] = seen.collisions.front();
    status.conditions.push_back({"Overlaps", true, "NodesOverlap",
                                 fmt::format("{} of node {} overlaps {} of node {}", outer.cidr.to_string(), outer.node,
                                             inner.cidr.to_string(), inner.node)});
  }
  return status;
}

}  // namespace croft::core
