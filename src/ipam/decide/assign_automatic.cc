#include <algorithm>
#include <chrono>
#include <cstddef>
#include <functional>
#include <limits>
#include <optional>
#include <utility>

#include "base/planted.h"
#include "ipam/decide/assignment.h"
#include "ipam/decide/claim.h"
#include "ipam/decide/family_search.h"

namespace croft::core {
namespace {

using net::Prefix;

/// How many blocks are searched for an empty one while there may be others to borrow from. After these an ADD that may
/// borrow does so; one that may not searches all.
constexpr std::size_t kReclaimLookMax = 256;
constexpr std::size_t kReleaseOutsideMax = 4;
constexpr std::size_t kAllBlocks = std::numeric_limits<std::size_t>::max();
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

/// Calls `visit` for the first `look_max` blocks of a pool that may have a free address, until it returns false. Blocks
/// that contradict themselves are passed over.
[[nodiscard]] Flow<void> for_blocks_with_room(Assignment& assignment, const Pool& pool, std::size_t look_max,
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

/// An empty block that another node claimed a while ago, among the first `look_max`; as it would be the node's.
[[nodiscard]] Flow<std::optional<Block>> find_abandoned(Assignment& assignment, FamilySearch& search, const Pool& pool,
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

/// The four parts of one family.
class AutomaticAssignment {
 public:
  AutomaticAssignment(Assignment& assignment, net::Family family, std::uint32_t count)
      : in_(assignment), search_(assignment, family, count) {}

  [[nodiscard]] AssignFlow<void> run() {
    TRY_VOID(search_.choose());
    release_outside();
    TRY_VOID(search_.take_from_own(search_.own().ready));
    TRY_VOID(take_from_claims());
    TRY_VOID(search_.take_from_own(search_.own().waiting));
    const bool may_borrow = !in_.pools.config().strict_affinity || is_planted("strict_ignored");
    if (goes_on() && may_borrow) TRY_VOID(borrow());
    if (in_.unfinished()) {
      in_.answer.unfinished = search_.missing() > 0;
      return {};
    }
    if (search_.missing() == 0) return {};
    return refuse(search_.exhaustion());
  }

 private:
  [[nodiscard]] bool goes_on() const { return search_.missing() > 0 && !in_.unfinished(); }

  /// Part 1: what lies in pools that no longer select the node is given up once it is empty. May leave the reader
  /// incomplete, for part 2 asks for blocks as well.
  void release_outside() {
    for (const Prefix& cidr : search_.own().outside) {
      const Pool* pool = in_.pools.containing(cidr.first());
      if (pool == nullptr || !is_enabled(*pool) || in_.draft.size() >= kReleaseOutsideMax) continue;
      if (is_for_all_nodes(*pool)) continue;
      const auto selected = selects_node(*pool, in_.node_labels());
      if (!selected || *selected) continue;
      auto block = in_.draft.block(cidr);
      if (!block || !*block || (*block)->affinity != in_.request.node || !is_empty(**block)) continue;
      (*block)->affinity.reset();
      (*block)->affinity_claim_time.reset();
      in_.draft.put(*std::move(*block), {});
    }
  }

  /// Part 3 (part 2 are the node's own blocks): new blocks, then those that other nodes left empty.
  [[nodiscard]] AssignFlow<void> take_from_claims() {
    if (goes_on()) {
      const bool may_claim = in_.pools.config().auto_allocate_blocks && !search_.is_at_limit();
      if (may_claim && !in_.reader.atomic_commit() && !search_.usable().empty()) {
        prefetch_block_to_claim(in_.reader, in_.pools, *search_.usable().front(), in_.request.node, search_.claimed());
      }
      TRY_VOID(search_.take_from_unlabelled());
    }
    while (goes_on()) {
      TRY_VOID(search_.check_may_claim());
      if (search_.missing() == 0) return {};
      TRY(bool claimed, claim());
      if (!claimed) {
        TRY(claimed, reclaim());
      }
      if (!claimed) return {};
    }
    return {};
  }

  /// Claims a new block in the first pool that has one.
  [[nodiscard]] AssignFlow<bool> claim() {
    for (const Pool* pool : search_.usable()) {
      TRY(const ClaimChoice choice,
          choose_block_to_claim(in_.reader, in_.pools, *pool, in_.request.node, search_.claimed(),
                                in_.reader.atomic_commit() ? nullptr : &search_.own().rows));
      if (choice.own) {
        TRY_VOID(search_.take_from_found(*choice.own));
        return true;
      }
      if (choice.block) {
        TRY_VOID(search_.claim_new(*choice.block, *pool));
        return true;
      }
      search_.note_claimless(*pool, choice);
    }
    return false;
  }

  /// Takes over an empty block that another node claimed a while ago.
  [[nodiscard]] AssignFlow<bool> reclaim() {
    const std::size_t look_max = in_.pools.config().strict_affinity ? kAllBlocks : kReclaimLookMax;
    for (const Pool* pool : search_.usable()) {
      TRY(auto found, find_abandoned(in_, search_, *pool, look_max));
      if (found && search_.take_over(*std::move(found), *pool)) return true;
    }
    return false;
  }

  /// Part 4: any block with a free address.
  [[nodiscard]] AssignFlow<void> borrow() {
    for (const Pool* pool : search_.usable()) {
      TRY_VOID(for_blocks_with_room(in_, *pool, kAllBlocks, [&](Block& block) -> Flow<bool> {
        if (block.affinity == in_.request.node) return true;
        TRY(const bool is_numbered, search_.raise_number(block));
        if (is_numbered) search_.take_all(std::move(block));
        return goes_on();
      }));
      if (!goes_on()) return {};
      search_.note_borrowed_out(*pool);
    }
    return {};
  }

  Assignment& in_;
  FamilySearch search_;
};

}  // namespace

AssignFlow<void> assign_automatic(Assignment& assignment, net::Family family, std::uint32_t count) {
  return AutomaticAssignment(assignment, family, count).run();
}

}  // namespace croft::core
