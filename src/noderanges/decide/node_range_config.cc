#include "noderanges/decide/node_range_config.h"

#include <algorithm>
#include <cstddef>
#include <utility>

#include <fmt/format.h>

#include "noderanges/decide/cidr_set.h"
#include "noderanges/decide/node_range_table.h"
#include "register/address_claims.h"

namespace croft::core {
namespace {

using node_range::CidrSet;

/// Checks cluster CIDRs by themselves.
[[nodiscard]] Result<void> check_spec(const NodeRangeSpec& spec, const std::vector<net::Prefix>& excluded) {
  if (spec.cluster_cidrs.empty() || spec.cluster_cidrs.size() > kClusterCidrsMax) {
    return fail(ErrorCode::invalid_argument,
                fmt::format("{} cluster CIDRs: 1 to {} are allowed", spec.cluster_cidrs.size(), kClusterCidrsMax));
  }
  if (spec.excluded.size() > kExcludedMax) {
    return fail(ErrorCode::invalid_argument,
                fmt::format("{} excluded ranges: at most {} are allowed", spec.excluded.size(), kExcludedMax));
  }
  for (auto cluster = spec.cluster_cidrs.begin(); cluster != spec.cluster_cidrs.end(); ++cluster) {
    TRY(CidrSet set, CidrSet::make(*cluster));
    if (is_v4_mapped(cluster->cidr)) {
      return fail(ErrorCode::invalid_argument,
                  fmt::format("cluster CIDR {} has IPv4-mapped addresses, a node would get IPv4 in two forms: give the "
                              "IPv4 CIDR",
                              cluster->cidr.to_string()));
    }
    for (auto other = spec.cluster_cidrs.begin(); other != cluster; ++other) {
      if (other->cidr.overlaps(cluster->cidr)) {
        return fail(ErrorCode::refused_by_configuration,
                    fmt::format("cluster CIDR {} overlaps cluster CIDR {}", cluster->cidr.to_string(),
                                other->cidr.to_string()));
      }
    }
    for (const net::Prefix& cidr : excluded) {
      set.exclude(cidr);
      if (set.is_full()) {
        return fail(ErrorCode::refused_by_configuration,
                    fmt::format("nothing is left of cluster CIDR {}: Service range {} takes the rest of it",
                                cluster->cidr.to_string(), cidr.to_string()));
      }
    }
  }
  return {};
}

[[nodiscard]] Result<void> check_claims(const NodeRangeSpec& spec, const AddressClaims& claims) {
  for (const ClusterCidr& cluster : spec.cluster_cidrs) {
    const auto claim = claims.against_cluster_cidr(cluster.cidr);
    if (!claim) continue;
    return fail(ErrorCode::refused_by_configuration,
                fmt::format("cluster CIDR {} overlaps {}", cluster.cidr.to_string(), *claim));
  }
  return {};
}

NodeRangeSet configured(const NodeRangeSpec& spec, const NodeRangeSet& before) {
  NodeRangeSet set{before.generation + 1, spec.cluster_cidrs, spec.excluded, {}};
  for (const ClusterCidr& cluster : spec.cluster_cidrs) {
    const auto same = std::ranges::find(before.cluster_cidrs, cluster);
    const auto place = static_cast<std::size_t>(same - before.cluster_cidrs.begin());
    set.cursors.push_back(place < before.cursors.size() ? before.cursors[place] : 0);
  }
  return set;
}

}  // namespace

Step<NodeRangesConfigured> plan_configure_node_ranges(const Snapshot& snapshot, const NodeRangeSpec& spec) {
  return decide(snapshot, [&](Reader& reader) -> Flow<Plan<NodeRangesConfigured>> {
    TRY_VOID(check_spec(spec, spec.excluded));
    // Both sets before the lists. The pools' set is written, so that a pool made meanwhile conflicts with this.
    PlannedWrite pool_set = next_pool_set(reader);
    const NodeRangeTable table(reader);
    TRY_VOID(table.check(reader));

    std::vector<net::Prefix> excluded = table.claims().not_for_nodes();
    excluded.insert(excluded.end(), spec.excluded.begin(), spec.excluded.end());
    TRY_VOID(check_claims(spec, table.claims()));
    TRY_VOID(check_spec(spec, excluded));
    const NodeRangeSet before = table.stored().value_or(NodeRangeSet());
    NodeRangesConfigured answer{before, false, {}};
    for (const NodeRange& range : table.ranges()) {
      if (!cluster_cidr_of(range.cidr, spec.cluster_cidrs)) answer.outside.push_back(range);
    }
    if (before.cluster_cidrs == spec.cluster_cidrs && before.excluded == spec.excluded) {
      return Plan<NodeRangesConfigured>{std::move(answer), {}};
    }
    answer.set = configured(spec, before);
    answer.changed = true;
    std::vector<PlannedWrite> writes;
    writes.push_back(std::move(pool_set));
    writes.push_back(to_put(node_range_set_key(), answer.set));
    return Plan<NodeRangesConfigured>{std::move(answer), std::move(writes)};
  });
}

}  // namespace croft::core
