#include "ipam/decide/blocks_of_others.h"

#include <algorithm>
#include <chrono>
#include <utility>

#include "ipam/decide/claim.h"

namespace croft::core {
namespace {

using net::Prefix;

/// How long a block must have been empty before another node takes it over
/// (docs/notes/calico-ipam.md#new-block-search).
constexpr std::chrono::minutes kReclaimAgeMin{1};
/// Blocks of others are read together in growing batches: the first ones often do, and a full pool has thousands.
constexpr std::size_t kWalkBatchMin = 16;
constexpr std::size_t kWalkBatchMax = 256;

/// A new block in the place of an abandoned one; its sequence numbers go on above the old one's.
Block taken_over(const Assignment& in, const Block& abandoned) {
  Block block = new_block(abandoned.cidr, in.request.node, in.draft.now(), abandoned.sequence_number);
  // Addresses reserved for Windows stay out of use.
  block.allocations = abandoned.allocations;
  block.attributes = abandoned.attributes;
  block.unallocated = abandoned.unallocated;
  block.rest = abandoned.rest;
  return block;
}

}  // namespace

Flow<void> for_blocks_with_room(Assignment& assignment, const Pool& pool, std::size_t look_max,
                                const std::function<Flow<bool>(Block&)>& visit) {
  Reader& reader = assignment.reader;
  const auto blocks = blocks_with_room(reader, assignment.pools, pool, assignment.request.node);
  TRY_VOID(reader.ready());
  const std::size_t count = std::min(blocks.size(), look_max);
  std::size_t read = 0;
  for (std::size_t i = 0; i < count && reader.step(); ++i) {
    if (i == read) {
      read = std::min(i + std::clamp(i, kWalkBatchMin, kWalkBatchMax), count);
      for (std::size_t k = i; k < read; ++k) reader.ask(block_key(blocks[k]));
      TRY_VOID(reader.ready());
    }
    auto block = assignment.draft.block(blocks[i]);
    if (!block || !*block) continue;
    TRY(const bool goes_on, visit(**block));
    if (!goes_on) break;
  }
  return {};
}

Flow<std::optional<Block>> find_abandoned(Assignment& assignment, FamilySearch& search, const Pool& pool,
                                          std::size_t look_max) {
  const AffinityOwner& node = assignment.request.node;
  std::optional<Block> found;
  const auto is_left = [&](const Block& block) {
    return is_empty(block) && free_count(block, assignment.pools.reservations()) > 0;
  };
  TRY_VOID(for_blocks_with_room(assignment, pool, look_max, [&](Block& block) -> Flow<bool> {
    const bool is_old =
        !block.affinity_claim_time || *block.affinity_claim_time + kReclaimAgeMin <= assignment.draft.now().wall;
    const bool is_others =
        block.affinity != node && (!block.affinity || block.affinity->type == AffinityOwner::Type::host);
    if (!is_others || !is_old || !is_left(block)) return true;
    TRY(const bool is_numbered, search.raise_number(block));
    if (!is_numbered || !is_left(block)) return true;
    assignment.reader.ask(affinity_key(node, block.cidr));
    TRY_VOID(assignment.reader.ready());
    if (!search.is_claim_damaged(block.cidr)) found = taken_over(assignment, block);
    return !found;
  }));
  return found;
}

}  // namespace croft::core
