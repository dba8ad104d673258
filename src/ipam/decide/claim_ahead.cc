#include "ipam/decide/claim_ahead.h"

#include <algorithm>
#include <utility>

#include "ipam/decide/assignment.h"
#include "ipam/decide/claim.h"
#include "ipam/decide/family_search.h"

namespace croft::core {
namespace {

/// Whether so many addresses of the node's own blocks are free, or a whole block.
[[nodiscard]] Flow<bool> has_free(Assignment& in, const FamilySearch& search, std::uint32_t least_free) {
  std::uint64_t free = 0;
  for (const net::Prefix& cidr : search.own().ready) in.reader.ask(block_key(cidr));
  TRY_VOID(in.reader.ready());
  for (const net::Prefix& cidr : search.own().ready) {
    if (free >= least_free) break;
    TRY(const auto block, in.draft.block(cidr));
    if (!block || block->affinity != in.request.node) continue;
    if (is_empty(*block)) return true;  // one is ahead already
    free += free_count(*block, in.pools.reservations());
  }
  return free >= least_free;
}

/// Whether a pool has blocks for who has none yet: sixteen are nobody's, and one in eight.
[[nodiscard]] bool is_roomy(Reader& reader, const Pool& pool) {
  const std::vector<Key>& keys = reader.keys({Kind::block, block_names_of(pool.cidr.family())});
  const int length = pool.block_length - pool.cidr.length();
  const std::uint64_t all = length < 32 ? std::uint64_t{1} << length : std::uint64_t{1} << 32;
  constexpr std::uint64_t kForOthers = 16;
  const std::uint64_t for_others = std::max((all + 7) / 8, kForOthers);
  const auto leaves_enough = [&](std::uint64_t there) { return all > for_others && there < all - for_others; };
  if (leaves_enough(keys.size())) return true;
  std::uint64_t there = 0;
  for (const Key& key : keys) {
    const auto cidr = cidr_of(key);
    if (cidr && pool.cidr.contains(*cidr)) ++there;
  }
  return leaves_enough(there);
}

/// The block that is claimed.
[[nodiscard]] AssignFlow<std::optional<net::Prefix>> claim_ahead(Assignment& in, net::Family family,
                                                                 std::uint32_t least_free) {
  const AffinityOwner& node = in.request.node;
  static_cast<void>(in.node_labels());
  prefetch_own_blocks(in.reader, node, family);
  TRY_VOID(in.reader.ready());
  const IpamConfig& config = in.pools.config();
  if (in.request.block_limit != 0 || config.max_blocks_per_host != 0 || !config.auto_allocate_blocks) {
    return std::optional<net::Prefix>();
  }
  FamilySearch search(in, family, 1);
  TRY_VOID(search.choose());
  TRY(const auto own, search.own().any(in.reader, node, family, search.usable()));
  if (!own) return std::optional<net::Prefix>();
  TRY(const bool is_enough, has_free(in, search, least_free));
  if (is_enough) return std::optional<net::Prefix>();
  const std::uint32_t limit = block_limit_of(in.request, in.pools.config());
  const std::size_t owned = search.own().count(in.reader, node, family, search.usable());
  TRY_VOID(in.reader.ready());
  if (limit != 0 && owned >= limit) return std::optional<net::Prefix>();
  for (const Pool* pool : search.usable()) {
    if (!is_roomy(in.reader, *pool)) continue;
    TRY_VOID(in.reader.ready());
    TRY(const ClaimChoice choice, choose_block_to_claim(in.reader, in.pools, *pool, node));
    if (!choice.block) continue;
    TRY(Block made, in.make_block(*choice.block));
    in.draft.put_claimed(std::move(made), *pool, {});
    return choice.block;
  }
  return std::optional<net::Prefix>();
}

/// As the plan writes it.
ClaimedAhead as_planned(const net::Prefix& cidr, const std::vector<PlannedWrite>& writes) {
  ClaimedAhead ahead{cidr, {}};
  for (const PlannedWrite& write : writes) {
    const auto* block = write.value ? std::get_if<Block>(&*write.value) : nullptr;
    if (block != nullptr && block->cidr == cidr) ahead.sequence_number = block->sequence_number;
  }
  return ahead;
}

}  // namespace

Step<std::optional<ClaimedAhead>> plan_claim_ahead(const Snapshot& snapshot, const AssignRequest& like,
                                                   net::Family family, std::uint32_t least_free, const Instant& now) {
  using Answer = std::optional<ClaimedAhead>;
  return decide(snapshot, [&](Reader& reader) -> Flow<Plan<Answer>> {
    Assignment in(reader, like, now);
    auto claimed = claim_ahead(in, family, least_free);
    if (claimed && *claimed) {
      Plan<Answer> plan{Answer(), in.draft.writes()};
      plan.answer = as_planned(**claimed, plan.writes);
      return plan;
    }
    // A refusal says why there is no block; nobody asked for one.
    if (claimed || claimed.error().refusal() != nullptr) return Plan<Answer>{Answer(), {}};
    if (Error* error = claimed.error().error()) return fail(std::move(*error));
    return fail(Stop<>(*claimed.error().not_read()));
  });
}

}  // namespace croft::core
