#include "ipam/decide/family_search.h"

#include <algorithm>
#include <set>
#include <tuple>
#include <utility>

#include <fmt/format.h>

#include "base/time_text.h"
#include "ipam/decide/claim.h"

namespace croft::core {

namespace {

using net::Prefix;

/// The place of the pool that contains a block among the usable ones; nothing when none does.
std::optional<std::size_t> place_of(const Prefix& block, const std::vector<const Pool*>& usable) {
  const auto it = std::find_if(usable.begin(), usable.end(), [&](const Pool* p) { return p->cidr.contains(block); });
  if (it == usable.end()) return {};
  return static_cast<std::size_t>(it - usable.begin());
}

std::vector<Prefix> owned_in(Reader& reader, const AffinityOwner& node, net::Family family,
                             const std::vector<const Pool*>& usable) {
  std::vector<Prefix> result;
  for (const Key& key : reader.keys({Kind::affinity, owned_names_of(node, family)})) {
    if (const auto cidr = cidr_of(key); cidr && place_of(*cidr, usable)) result.push_back(*cidr);
  }
  return result;
}

}  // namespace

const Affinity* OwnBlocks::row(const Prefix& cidr) const {
  const auto it = rows.find(cidr);
  return it == rows.end() ? nullptr : it->second;
}

std::size_t OwnBlocks::count(Reader& reader, const AffinityOwner& node, net::Family family,
                             const std::vector<const Pool*>& usable) const {
  if (!reader.foreign_writers()) return owned_in(reader, node, family, usable).size();
  return static_cast<std::size_t>(std::count_if(rows.begin(), rows.end(), [&](const auto& row) {
    if (!place_of(row.first, usable)) return false;
    const auto key = block_key(row.first);
    if (reader.snapshot().find(key) == nullptr || reader.damage(key) != nullptr) return true;
    const Block* block = reader.find(key);
    return block != nullptr && !block->deleted && block->affinity == node;
  }));
}

Flow<std::optional<Prefix>> OwnBlocks::any(Reader& reader, const AffinityOwner& node, net::Family family,
                                           const std::vector<const Pool*>& usable) const {
  for (const Prefix& cidr : owned_in(reader, node, family, usable)) {
    const Block* block = reader.sound(block_key(cidr));
    TRY_VOID(reader.ready());
    if (block != nullptr && block->affinity == node) return std::optional(cidr);
  }
  TRY_VOID(reader.ready());
  return std::optional<Prefix>();
}

void prefetch_own_blocks(Reader& reader, const AffinityOwner& node, net::Family family) {
  if (!reader.lacks(Kind::vacancy)) static_cast<void>(reader.list({Kind::vacancy, owned_names_of(node, family)}));
  if (!reader.foreign_writers()) return;
  static_cast<void>(reader.sound({Kind::affinity, owned_names_of(node, family)}));
}

OwnBlocks find_own_blocks(Reader& reader, const AffinityOwner& node, net::Family family,
                          const std::vector<const Pool*>& usable, WallTime now) {
  OwnBlocks own;
  if (reader.foreign_writers()) {
    for (const auto& [key, value] : reader.sound({Kind::affinity, owned_names_of(node, family)})) {
      const auto* row = std::get_if<Affinity>(&value);
      if (row != nullptr && !row->deleted) own.rows[row->cidr] = row;
    }
  }
  // Without a vacancy last: then most likely there is nothing to find.
  std::set<std::tuple<bool, std::size_t, WallTime, Prefix>> ready, waiting;
  std::set<Prefix> outside, hinted;
  if (!reader.lacks(Kind::vacancy)) {
    for (const auto& [key, value] : reader.list({Kind::vacancy, owned_names_of(node, family)})) {
      const auto cidr = cidr_of(key);
      const auto* vacancy = std::get_if<Vacancy>(&value);
      if (!cidr || vacancy == nullptr) continue;  // a hint that can't be read is no hint
      if (reader.foreign_writers() && own.row(*cidr) == nullptr) continue;
      hinted.insert(*cidr);
      if (const auto place = place_of(*cidr, usable)) {
        (vacancy->ready_at <= now ? ready : waiting).emplace(false, *place, vacancy->ready_at, *cidr);
      } else {
        outside.insert(*cidr);
      }
    }
    // Only the name of a damaged vacancy is known.
    for (const auto& [key, value] : reader.damaged({Kind::vacancy, owned_names_of(node, family)})) {
      const auto cidr = cidr_of(key);
      const auto place = cidr ? place_of(*cidr, usable) : std::nullopt;
      if (place && hinted.insert(*cidr).second) ready.emplace(true, *place, WallTime{}, *cidr);
    }
  }
  for (const auto& [cidr, row] : own.rows) {
    if (hinted.contains(cidr)) continue;
    if (const auto place = place_of(cidr, usable)) {
      ready.emplace(true, *place, WallTime{}, cidr);
    } else {
      outside.insert(cidr);
    }
  }
  for (const auto& entry : ready) own.ready.push_back(std::get<3>(entry));
  for (const auto& entry : waiting) own.waiting.push_back(std::get<3>(entry));
  own.outside.assign(outside.begin(), outside.end());
  return own;
}

using net::Prefix;

namespace {

/// How many of its own blocks a node looks at together in a store that is shared, and therefore far away.
constexpr std::size_t kOwnBatch = 4;

}  // namespace

AssignFlow<void> FamilySearch::choose() {
  const AssignRequest& request = in_.request;
  const auto& pools = in_.pools.pools();
  const bool asks_for_labels =
      std::any_of(pools.begin(), pools.end(), [](const Pool* pool) { return !is_for_all_nodes(*pool); });
  const PoolRequest wanted{family_,
                           request.node.name,
                           request.use,
                           request.pools[family_],
                           asks_for_labels ? in_.node_labels() : Labels(),
                           namespace_labels_of(in_.reader, in_.pools, request.pod, request.namespace_labels),
                           in_.reader.damage(node_key(request.node.name)),
                           request.for_some_pod};
  PoolChoice choice = choose_pools(in_.pools, wanted);
  TRY_VOID(in_.reader.ready());
  considered_ = std::move(choice.rejected);
  if (choice.refusal) return refuse(*std::move(choice.refusal));
  usable_ = std::move(choice.usable);
  own_ = find_own_blocks(in_.reader, request.node, family_, usable_, in_.draft.now().wall);
  TRY_VOID(in_.reader.ready());
  return {};
}

AssignFlow<void> FamilySearch::take_from_own(const std::vector<Prefix>& blocks) {
  Reader& reader = in_.reader;
  const std::size_t batch = reader.foreign_writers() ? kOwnBatch : 1;
  for (std::size_t i = 0; i < blocks.size() && missing_ > 0 && !in_.unfinished(); ++i) {
    if (i % batch == 0) {
      for (std::size_t k = i; k < std::min(i + batch, blocks.size()); ++k) reader.ask(block_key(blocks[k]));
      TRY_VOID(reader.ready());
    }
    TRY_VOID(take_from_own(blocks[i]));
  }
  return {};
}

AssignFlow<void> FamilySearch::take_from_own(const Prefix& cidr) {
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

AssignFlow<void> FamilySearch::take_from_unlabelled() {
  Reader& reader = in_.reader;
  if (reader.atomic_commit()) return {};
  std::vector<Prefix> more;
  const Listing all{Kind::affinity, owned_names_of(in_.request.node, family_), true};
  for (const auto& [key, value] : reader.sound(all)) {
    const auto* row = std::get_if<Affinity>(&value);
    const bool is_usable =
        row != nullptr && !row->deleted &&
        std::any_of(usable_.begin(), usable_.end(), [&](const Pool* pool) { return pool->cidr.contains(row->cidr); });
    if (is_usable && own_.rows.emplace(row->cidr, row).second) more.push_back(row->cidr);
  }
  TRY_VOID(reader.ready());
  return take_from_own(more);
}

AssignFlow<void> FamilySearch::take_from_found(const Prefix& cidr) {
  claimed_.insert(cidr);
  if (is_claim_damaged(cidr)) return {};
  const Affinity* row = in_.reader.find(affinity_key(in_.request.node, cidr));
  if (row != nullptr && !row->deleted) own_.rows.emplace(cidr, row);
  return take_from_own(std::vector<Prefix>{cidr});
}

/// A claim without block: a crash in the middle of claiming, or of giving up.
AssignFlow<void> FamilySearch::complete_claim(const Prefix& cidr, bool has_row) {
  Reader& reader = in_.reader;
  const Pool* pool = pool_of(cidr);
  if (!has_row || pool->block_length != cidr.length() || wholly_reserved(cidr, in_.pools)) return {};
  reader.ask(high_water_mark_key(cidr));
  TRY(const auto other, block_in_the_way(reader, cidr));
  if (other) {
    reasons_[pool] = in_the_way_text(*other, cidr);
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

Flow<bool> FamilySearch::raise_number(Block& block, bool is_claimed) {
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

bool FamilySearch::is_at_limit() {
  const std::uint32_t limit = block_limit_of(in_.request, in_.pools.config());
  return limit > 0 && own_.count(in_.reader, in_.request.node, family_, usable_) + newly_owned_ >= limit;
}

AssignFlow<void> FamilySearch::check_may_claim() {
  const IpamConfig& config = in_.pools.config();
  const bool at_limit = is_at_limit();
  TRY_VOID(in_.reader.ready());
  if (!at_limit && config.auto_allocate_blocks) return {};
  TRY_VOID(take_from_own(own_.waiting));
  if (missing_ == 0) return {};
  bool has_block = false;
  for (const Pool* pool : usable_) {
    const bool has_here = own_.count(in_.reader, in_.request.node, family_, {pool}) > 0;
    has_block = has_block || has_here;
    if (!has_here) reasons_.try_emplace(pool, "the node has no block of it");
  }
  TRY_VOID(in_.reader.ready());
  Refusal refusal = exhaustion();
  if (at_limit) {
    refusal.code = ErrorCode::exhausted;
    refusal.cause = RefusalCause::block_limit;
    refusal.summary = fmt::format(
        "no {} address for node {}: its blocks are full, and it may have no more than {} (maxBlocksPerHost)",
        net::name_of(family_), in_.request.node.name, block_limit_of(in_.request, config));
  } else {
    refusal.cause = RefusalCause::no_block_to_claim;
    refusal.summary = fmt::format(
        "no {} address for node {}: {}, and claiming blocks is switched off (autoAllocateBlocks); `croft affinity "
        "claim` "
        "gives it one",
        net::name_of(family_), in_.request.node.name, has_block ? "its blocks are full" : "it has no block");
  }
  return refuse(std::move(refusal));
}

AssignFlow<void> FamilySearch::claim(const Prefix& cidr, const Pool& pool) {
  TRY(Block block, in_.make_block(cidr));
  claimed_.insert(cidr);
  // Wholly reserved blocks are passed over; in one that is made anew everything may rest still.
  static_cast<void>(take_all(std::move(block), &pool));
  return {};
}

bool FamilySearch::take_all(Block block, const Pool* claimed_in) {
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

void FamilySearch::note_cooling(const Block& block) {
  const auto end = first_cooldown_end(block, in_.pools.cooldowns_of(block.cidr), in_.draft.now());
  if (!end) return;
  in_.cooling.insert(block.cidr);
  const auto [it, is_first] = first_ends_.emplace(pool_of(block.cidr), *end);
  if (!is_first) it->second = std::min(it->second, *end);
}

AssignFlow<void> FamilySearch::claim_new(const Prefix& cidr, const Pool& pool) {
  const std::uint32_t before = missing_;
  TRY_VOID(claim(cidr, pool));
  if (missing_ < before) ++newly_owned_;
  return {};
}

bool FamilySearch::is_claim_damaged(const Prefix& cidr) {
  const Error* damage = in_.reader.damage(affinity_key(in_.request.node, cidr));
  if (damage == nullptr) return false;
  const Block* block = in_.reader.find(block_key(cidr));
  if (block != nullptr && free_count(*block, in_.pools.reservations()) == 0) return true;
  passed_over_ = *damage;
  reasons_[pool_of(cidr)] = damage->message;
  return true;
}

bool FamilySearch::take_over(Block block, const Pool& pool) {
  claimed_.insert(block.cidr);
  const bool any = take_all(std::move(block), &pool);
  newly_owned_ += any ? 1 : 0;
  return any;
}

void FamilySearch::note_claimless(const Pool& pool, const ClaimChoice& choice) {
  note_reason(pool, choice.reason);
  if (choice.others) shared_.insert(&pool);
}

void FamilySearch::note_borrowed_out(const Pool& pool) {
  if (shared_.contains(&pool)) reasons_[&pool] += " and without a free address too";
}

Refusal FamilySearch::exhaustion() const {
  const std::string& node = in_.request.node.name;
  std::vector<PoolVerdict> considered = considered_;
  for (const Pool* pool : usable_) {
    const auto known = reasons_.find(pool);
    std::string reason = known != reasons_.end() ? known->second : "its blocks are full";
    if (const auto end = first_ends_.find(pool); end != first_ends_.end()) {
      reason += "; the first cooling one is free again at " + rfc3339_rounded_up(end->second);
    }
    considered.push_back({pool->name, pool->cidr, std::move(reason), true});
  }
  if (passed_over_) {
    return {passed_over_->code,
            fmt::format("no {} address for node {}: {}", net::name_of(family_), node, passed_over_->message),
            std::move(considered)};
  }
  const bool strict = in_.pools.config().strict_affinity;
  return {ErrorCode::exhausted,
          fmt::format("no {} address for node {}: every usable pool is full{}", net::name_of(family_), node,
                      strict ? " (affinity is strict: addresses are not borrowed)" : ""),
          std::move(considered), strict ? RefusalCause::full_and_strict : RefusalCause::full};
}

}  // namespace croft::core
