#include <algorithm>
#include <chrono>
#include <cstddef>
#include <functional>
#include <limits>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "base/planted.h"
#include "ipam/decide/assign.h"
#include "ipam/decide/claim_choice.h"
#include "ipam/decide/family_search.h"

namespace croft::core {
namespace {

using net::Prefix;

/// How many of its own blocks a node looks at together in a store that is shared, and therefore far away.
constexpr std::size_t kOwnBatch = 4;
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

/// The four parts of one family.
class AutomaticAssignment : FamilyPools {
 public:
  AutomaticAssignment(Assignment& assignment, net::Family family, std::uint32_t count)
      : FamilyPools(assignment, family), missing_(count) {}

  [[nodiscard]] AssignFlow<void> run() {
    TRY_VOID(choose());
    release_outside();
    TRY_VOID(take_from_own(own_.ready));
    TRY_VOID(take_from_claims());
    TRY_VOID(take_from_own(own_.waiting));
    const bool may_borrow = !in_.pools.config().strict_affinity || is_planted("strict_ignored");
    if (missing_ > 0 && may_borrow) TRY_VOID(borrow());
    if (missing_ == 0) return {};
    return refuse(exhaustion());
  }

 private:
  /// Part 1: what lies in pools that no longer select the node is given up once it is empty. May leave the reader
  /// incomplete, for part 2 asks for blocks as well.
  void release_outside() {
    for (const Prefix& cidr : own_.outside) {
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
    if (missing_ > 0) {
      const bool may_claim = in_.pools.config().auto_allocate_blocks && !is_at_limit();
      if (may_claim && !in_.reader.atomic_commit() && !usable_.empty()) {
        prefetch_block_to_claim(in_.reader, in_.pools, *usable_.front(), in_.request.node, claimed_);
      }
      TRY(const std::vector<Prefix> more, add_unlabelled());
      TRY_VOID(take_from_own(more));
    }
    while (missing_ > 0) {
      TRY_VOID(check_may_claim());
      if (missing_ == 0) return {};
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
    for (const Pool* pool : usable_) {
      TRY(const ClaimChoice choice, choose_block_to_claim(in_.reader, in_.pools, *pool, in_.request.node, claimed_,
                                                          in_.reader.atomic_commit() ? nullptr : &own_.rows));
      if (choice.own) {
        TRY_VOID(take_from_found(*choice.own));
        return true;
      }
      if (choice.block) {
        TRY_VOID(claim_new(*choice.block, *pool));
        return true;
      }
      reasons_.emplace(pool, choice.reason);  // what is known already stays
      if (choice.others) shared_.insert(pool);
    }
    return false;
  }

  /// Takes over an empty block that another node claimed a while ago.
  [[nodiscard]] AssignFlow<bool> reclaim() {
    const std::size_t look_max = in_.pools.config().strict_affinity ? kAllBlocks : kReclaimLookMax;
    for (const Pool* pool : usable_) {
      TRY(auto found, find_abandoned(*pool, look_max));
      if (found && take_over(*std::move(found), *pool)) return true;
    }
    return false;
  }

  /// Part 4: any block with a free address.
  [[nodiscard]] AssignFlow<void> borrow() {
    for (const Pool* pool : usable_) {
      TRY_VOID(for_blocks_with_room(in_, *pool, kAllBlocks, [&](Block& block) -> Flow<bool> {
        if (block.affinity == in_.request.node) return true;
        TRY(const bool is_numbered, raise_number(block));
        if (is_numbered) take_all(std::move(block));
        return missing_ > 0;
      }));
      if (missing_ == 0) return {};
      if (shared_.contains(pool)) reasons_[pool] += " and without a free address too";
    }
    return {};
  }

  /// An empty block that another node claimed a while ago, among the first `look_max`; as it would be the node's.
  [[nodiscard]] Flow<std::optional<Block>> find_abandoned(const Pool& pool, std::size_t look_max) {
    const AffinityOwner& node = in_.request.node;
    std::optional<Block> found;
    const auto is_left = [&](const Block& block) {
      return is_empty(block) && free_count(block, in_.pools.reservations()) > 0;
    };
    TRY_VOID(for_blocks_with_room(in_, pool, look_max, [&](Block& block) -> Flow<bool> {
      const bool is_old =
          !block.affinity_claim_time || *block.affinity_claim_time + kReclaimAgeMin <= in_.draft.now().wall;
      const bool is_others =
          block.affinity != node && (!block.affinity || block.affinity->type == AffinityOwner::Type::host);
      if (!is_others || !is_old || !is_left(block)) return true;
      TRY(const bool is_numbered, raise_number(block));
      if (!is_numbered || !is_left(block)) return true;
      in_.reader.ask(affinity_key(node, block.cidr));
      TRY_VOID(in_.reader.ready());
      if (!is_claim_damaged(block.cidr)) found = taken_over(in_, block);
      return !found;
    }));
    return found;
  }

  // --- the node's own blocks, and those that become so ---

  /// Takes from the node's own blocks, in the order given.
  [[nodiscard]] AssignFlow<void> take_from_own(const std::vector<Prefix>& blocks) {
    Reader& reader = in_.reader;
    const std::size_t batch = reader.foreign_writers() ? kOwnBatch : 1;
    for (std::size_t i = 0; i < blocks.size() && missing_ > 0; ++i) {
      if (i % batch == 0) {
        for (std::size_t k = i; k < std::min(i + batch, blocks.size()); ++k) reader.ask(block_key(blocks[k]));
        TRY_VOID(reader.ready());
      }
      TRY_VOID(take_from_own(blocks[i]));
    }
    return {};
  }

  [[nodiscard]] AssignFlow<void> take_from_own(const Prefix& cidr) {
    const Affinity* row = own_.row(cidr);
    auto block = in_.draft.block(cidr);
    if (!block) {
      reasons_[pool_of(cidr)] = block.error().message;
      return {};
    }
    if (!*block) return complete_claim(cidr, row != nullptr);
    if ((*block)->affinity != in_.request.node) {
      if (row != nullptr) in_.draft.drop_affinity(*row);
      return {};
    }
    // A program that knows only the pool's length of today may have made blocks over this one.
    if (const Pool* pool = pool_of(cidr); pool->block_length != cidr.length()) {
      reasons_[pool] = fmt::format("block {} is not of /{}, and out of use", cidr.to_string(), pool->block_length);
      return {};
    }
    const bool is_claimed = row != nullptr && row->state == AffinityState::confirmed;
    TRY(const bool is_numbered, raise_number(**block, is_claimed));
    if (!is_numbered) return {};
    // Met by itself, and nobody's claim: it gets its row.
    const Pool* claimed_in = !in_.reader.atomic_commit() && row == nullptr ? pool_of(cidr) : nullptr;
    if (take_all(*std::move(*block), claimed_in) && row != nullptr && row->state != AffinityState::confirmed) {
      in_.draft.confirm_affinity(*row);
    }
    return {};
  }

  /// The same from one that was met by itself.
  [[nodiscard]] AssignFlow<void> take_from_found(const Prefix& cidr) {
    claimed_.insert(cidr);
    if (is_claim_damaged(cidr)) return {};
    const Affinity* row = in_.reader.find(affinity_key(in_.request.node, cidr));
    if (row != nullptr && !row->deleted) own_.rows.emplace(cidr, row);
    return take_from_own(std::vector<Prefix>{cidr});
  }

  /// A claim without block: a crash in the middle of claiming, or of giving up.
  [[nodiscard]] AssignFlow<void> complete_claim(const Prefix& cidr, bool has_row) {
    Reader& reader = in_.reader;
    const Pool* pool = pool_of(cidr);
    if (!has_row || pool->block_length != cidr.length() || in_.pools.reserved()->covers(cidr)) return {};
    reader.ask(high_water_mark_key(cidr));
    TRY(const auto obstacle, obstacle_of(reader, cidr));
    if (obstacle) {
      reasons_[pool] = *obstacle;
      return {};
    }
    if (const Error* error = reader.damage(high_water_mark_key(cidr))) {
      reasons_[pool] = error->message;
      return {};
    }
    // The row alone does not count: what a claim that failed left must not keep a node from its blocks.
    if (is_at_limit()) return {};
    return claim_new(cidr, *pool);
  }

  /// A block that may have nobody's claim may have come late, where a commit writes one record. The request was given
  /// up long ago, and a successor came and went. Its number is raised above the mark which that one left, before
  /// anything is taken. False when that can't be read.
  [[nodiscard]] Flow<bool> raise_number(Block& block, bool is_claimed = false) {
    // Elsewhere a commit depends on the mark.
    if (is_claimed || in_.reader.atomic_commit() || block.unallocated.free_count() == 0) return true;
    const HighWaterMark* mark = in_.reader.sound(high_water_mark_key(block.cidr));
    TRY_VOID(in_.reader.ready());
    if (const Error* damage = in_.reader.damage(high_water_mark_key(block.cidr))) {
      passed_over_ = *damage;
      reasons_[pool_of(block.cidr)] = damage->message;
      return false;
    }
    if (mark != nullptr) {
      block.sequence_number = std::max(block.sequence_number, SequenceNumber(mark->sequence_number.value + 1));
    }
    return true;
  }

  /// Whether the node has as many blocks as it may. May leave the reader incomplete.
  [[nodiscard]] bool is_at_limit() const {
    const std::uint32_t limit = block_limit_of(in_.request, in_.pools.config());
    return limit > 0 && owned() + newly_owned_ >= limit;
  }

  /// Refuses when the node may have no further block, unless its waiting ones have what is missing after all.
  [[nodiscard]] AssignFlow<void> check_may_claim() {
    const IpamConfig& config = in_.pools.config();
    const bool at_limit = is_at_limit();
    TRY_VOID(in_.reader.ready());
    if (!at_limit && config.auto_allocate_blocks) return {};
    TRY_VOID(take_from_own(own_.waiting));
    if (missing_ == 0) return {};
    bool has_block = false;
    for (const Pool* pool : usable_) {
      const bool has_here = owned_in({pool}) > 0;
      has_block = has_block || has_here;
      if (!has_here) reasons_.try_emplace(pool, "the node has no block of it");
    }
    TRY_VOID(in_.reader.ready());
    Refusal refusal = exhaustion();
    if (at_limit) {
      refusal.code = ErrorCode::exhausted;
      refusal.cause = RefusalCause::block_limit;
      refusal.summary = none(fmt::format("its blocks are full, and it may have no more than {} (maxBlocksPerHost)",
                                         block_limit_of(in_.request, config)));
    } else {
      refusal.cause = RefusalCause::no_block_to_claim;
      refusal.summary = none(fmt::format(
          "{}, and claiming blocks is switched off (autoAllocateBlocks); `croft affinity claim` gives it one",
          has_block ? "its blocks are full" : "it has no block"));
    }
    return refuse(std::move(refusal));
  }

  /// Takes as much as is missing and there; true when that was something.
  bool take_all(Block block, const Pool* claimed_in = nullptr) {
    bool any = false;
    while (missing_ > 0) {
      auto taken = take_next(block, in_.attribute(), in_.pools.reservations());
      if (!taken) break;
      block = taken->block;
      in_.accept(*std::move(taken), claimed_in);
      any = true;
      --missing_;
    }
    if (missing_ > 0) note_cooling(block);
    return any;
  }

  void note_cooling(const Block& block) {
    const auto end = first_cooldown_end(block, in_.pools.cooldowns_of(block.cidr), in_.draft.now());
    if (!end) return;
    in_.cooling.insert(block.cidr);
    resting_.insert_or_assign(block.cidr, Resting{count_of(block, AddressState::cooling), *end});
  }

  /// Makes a block that the node has no claim on yet, and takes from it.
  [[nodiscard]] AssignFlow<void> claim_new(const Prefix& cidr, const Pool& pool) {
    TRY(Block block, in_.make_block(cidr));
    // Wholly reserved blocks are passed over; in one that is made anew everything may rest still.
    take_over(std::move(block), pool);
    return {};
  }

  /// The record of the node's claim on a block is damaged: the block is passed over, and noted. The record must have
  /// been asked for.
  [[nodiscard]] bool is_claim_damaged(const Prefix& cidr) {
    const Error* damage = in_.reader.damage(affinity_key(in_.request.node, cidr));
    if (damage == nullptr) return false;
    const Block* block = in_.reader.find(block_key(cidr));
    if (block != nullptr && free_count(*block, in_.pools.reservations()) == 0) return true;
    passed_over_ = *damage;
    reasons_[pool_of(cidr)] = damage->message;
    return true;
  }

  /// Takes from a block that is new, or that another node left, and is the node's from now on. False: nothing was to be
  /// had of it.
  bool take_over(Block block, const Pool& pool) {
    claimed_.insert(block.cidr);
    const bool any = take_all(std::move(block), &pool);
    newly_owned_ += any ? 1 : 0;
    return any;
  }

  [[nodiscard]] std::string none(std::string_view why) const { return no_address(in_.request, family_, why); }

  /// Every usable pool and why it has nothing.
  [[nodiscard]] Refusal exhaustion() const {
    std::vector<PoolVerdict> considered = considered_;
    bool all_cool = true;
    for (const Pool* pool : usable_) {
      const auto known = reasons_.find(pool);
      std::string reason = known != reasons_.end() ? known->second : "its blocks are full";
      const Resting resting = resting_in(*pool);
      const net::Count usable = net::Count::of(pool->cidr) - in_.pools.reserved()->count_in(pool->cidr);
      if (resting.count > 0) reason += "; " + cooling_text(resting.count, usable, resting.first_end);
      all_cool = all_cool && mostly_cools(resting.count, usable);
      considered.push_back({pool->name, pool->cidr, std::move(reason), true});
    }
    if (passed_over_) return {passed_over_->code, none(passed_over_->message), std::move(considered)};
    const bool strict = in_.pools.config().strict_affinity;
    return {ErrorCode::exhausted,
            none(fmt::format("every usable pool {}{}", all_cool ? "cools down" : "is full",
                             strict ? " (affinity is strict: addresses are not borrowed)" : "")),
            std::move(considered), strict ? RefusalCause::full_and_strict : RefusalCause::full};
  }

  /// How many addresses cool, and when the first of them is free again.
  struct Resting {
    std::uint64_t count = 0;
    WallTime first_end = WallTime::max();
  };
  [[nodiscard]] Resting resting_in(const Pool& pool) const {
    Resting all;
    for (const auto& [cidr, one] : resting_) {
      if (pool_of(cidr) != &pool) continue;
      all.count += one.count;
      all.first_end = std::min(all.first_end, one.first_end);
    }
    return all;
  }

  [[nodiscard]] const Pool* pool_of(const Prefix& cidr) const { return in_.pools.containing(cidr.first()); }

  std::uint32_t missing_;
  std::set<Prefix> claimed_;           ///< blocks that this decision has claimed, or met as the node's own meanwhile
  std::size_t newly_owned_ = 0;        ///< of these, those that the node had no claim on
  std::map<Prefix, Resting> resting_;  ///< in blocks that were looked at
  std::map<const Pool*, std::string> reasons_;
  std::set<const Pool*> shared_;  ///< pools in which other nodes have blocks too
  /// Why addresses that may be free were not taken: what rests there is in a record that can't be read.
  std::optional<Error> passed_over_;
};

}  // namespace

AssignFlow<void> assign_automatic(Assignment& assignment, net::Family family, std::uint32_t count) {
  return AutomaticAssignment(assignment, family, count).run();
}

}  // namespace croft::core
