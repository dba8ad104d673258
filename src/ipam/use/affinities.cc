#include "ipam/use/affinities.h"

#include <algorithm>
#include <variant>

#include <fmt/format.h>

#include "ipam/use/inspect.h"

namespace croft::engine {

using core::AffinityOutcome;

Result<AffinityOutcome> release_affinity(const Context& context, const core::AffinityRelease& release, bool apply) {
  return transact(context, TurnTaking::before_writing, [&](const core::Snapshot& snapshot, const Instant& now) {
    auto step = core::plan_release_affinity(snapshot, release, now);
    if (auto* plan = std::get_if<core::Plan<AffinityOutcome>>(&step); plan != nullptr && !apply) plan->writes.clear();
    return step;
  });
}

Result<AffinitiesReleased> release_host_affinities(const Context& context, const core::AffinityOwner& owner,
                                                   bool must_be_empty, bool apply) {
  TRY_VOID(core::check_node_name(owner.name));
  std::vector<core::Affinity> rows;
  TRY_VOID(
      for_each_affinity(context, core::owned_names_of(owner), [&](const core::Affinity& row) { rows.push_back(row); }));
  AffinitiesReleased result;
  for (const core::Affinity& row : rows) {
    const auto outcome = release_affinity(context, {row.owner, row.cidr, must_be_empty, {}}, apply);
    if (!outcome) {
      result.failure = outcome.error();
    } else if (*outcome == AffinityOutcome::not_empty) {
      result.not_empty.push_back(row.cidr);
    } else {
      result.released.push_back(row.cidr);
    }
  }
  return result;
}

Result<AffinitiesClaimed> claim_affinity(const Context& context, const core::AffinityOwner& owner,
                                         const net::Prefix& cidr) {
  TRY_VOID(core::check_node_name(owner.name));
  TRY(const std::vector<core::Pool> pools, list_pools(context));
  const auto pool = std::find_if(pools.begin(), pools.end(), [&](const core::Pool& p) {
    return core::is_enabled(p) && p.cidr.contains(cidr) && p.cidr.family() == cidr.family();
  });
  if (pool == pools.end()) {
    return fail(ErrorCode::invalid_argument,
                fmt::format("The requested CIDR ({}) is not within any configured pools.", cidr.to_string()));
  }
  if (cidr.length() > pool->block_length) {
    return fail(ErrorCode::invalid_argument,
                fmt::format("The requested CIDR ({}) is smaller than the minimum.", cidr.to_string()));
  }
  if (pool->block_length - cidr.length() > 12) {
    return fail(ErrorCode::invalid_argument,
                fmt::format("{} has more than {} blocks; claim it in parts", cidr.to_string(), kClaimBlocksMax));
  }
  AffinitiesClaimed result;
  const std::uint64_t blocks = std::uint64_t{1} << (pool->block_length - cidr.length());
  for (std::uint64_t i = 0; i < blocks; ++i) {
    const net::Prefix block = cidr.subprefix(i, pool->block_length);
    TRY(const core::ClaimOutcome outcome,
        transact(context, TurnTaking::before_writing, [&](const core::Snapshot& snapshot, const Instant& now) {
          return core::plan_claim_affinity(snapshot, owner, block, now);
        }));
    (outcome == core::ClaimOutcome::belongs_to_others ? result.others : result.claimed).push_back(block);
  }
  return result;
}

}  // namespace croft::engine
