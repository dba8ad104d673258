#include "ipam/decide/claim_choice.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "base/net/ranges.h"
#include "ipam/decide/assign.h"

namespace croft::core {
namespace {

/// Where an owner begins to look: every one at its own place, so that nodes seldom meet.
net::Prefix start_of(const Pool& pool, const AffinityOwner& owner) {
  const net::U128 last = net::U128::low_bits(pool.cidr.subprefix_count_log2(pool.block_length));
  return pool.cidr.subprefix(net::U128(rotation_start(owner)) & last, pool.block_length);
}

/// Where it goes on: nodes of like names begin side by side, and go on far apart. Four blocks are searched in order.
std::uint64_t step_of(const Pool& pool, const AffinityOwner& owner) {
  if (pool.cidr.subprefix_count_log2(pool.block_length) <= 2) return 1;
  return (std::uint64_t{rotation_start(owner)} * 0x9E3779B97F4A7C15U >> 32) | 1U;
}

std::string all_claimed_text(std::uint64_t claimed, std::uint64_t own) {
  if (claimed == 0) return "no block of it can be claimed";
  if (own == claimed) {
    return fmt::format("{} block{} claimed, {}by this node and without a free address", claimed,
                       claimed == 1 ? " is" : "s are", claimed == 1 ? "" : "all ");
  }
  if (claimed == 1) return "1 block is claimed, by another node";
  return fmt::format("all {} blocks are claimed: {} by this node and without a free address, {} by other nodes",
                     claimed, own, claimed - own);
}

ClaimChoice none_left(Reader& reader, const Pool& pool, const AffinityOwner& owner, const FoundBlock& found) {
  std::uint64_t own = 0;
  for (const Key& key : reader.keys({Kind::affinity, owned_names_of(owner, pool.cidr.family())})) {
    if (const auto cidr = block_cidr_of(key); cidr && pool.cidr.contains(cidr->first())) ++own;
  }
  ClaimChoice none{std::nullopt, all_claimed_text(found.there, std::min(own, found.there)), own < found.there};
  if (found.other) {
    none.reason += fmt::format(" (block {} is not of /{}: it keeps those out that it overlaps)",
                               found.other->to_string(), pool.block_length);
  }
  return none;
}

FreeBlock first_wanted(const PoolTable& pools, const Pool& pool, const AffinityOwner& owner,
                       const std::set<net::Prefix>& taken) {
  return {pool.cidr, pool.block_length, start_of(pool, owner), taken, false, pools.reserved(), step_of(pool, owner)};
}

/// This block or none, by the register itself.
FreeBlock only(const net::Prefix& block) { return {block, block.length(), block, {}, true, nullptr}; }

/// All that a claim of a block looks at.
void ask_for(Reader& reader, const net::Prefix& candidate, const AffinityOwner& owner) {
  reader.ask(block_key(candidate));
  reader.ask(high_water_mark_key(candidate));
  reader.ask(affinity_key(owner, candidate));
}

/// Whether there is no such block, and nothing of it is damaged.
bool may_be_claimed(const Reader& reader, const net::Prefix& candidate, const AffinityOwner& owner) {
  const auto stored = block_key(candidate);
  for (const Key& key : {Key(high_water_mark_key(candidate)), Key(affinity_key(owner, candidate)), Key(stored)}) {
    if (reader.damage(key) != nullptr) return false;
  }
  const auto* block = reader.find(stored);
  return block == nullptr || (block->deleted && check_writable(*block));
}

/// Whether a block is there that the store's answer did not count. A block that this commit makes itself does not
/// count.
bool is_unknown(const Reader& reader, const net::Prefix& block) {
  const auto key = block_key(block);
  return reader.snapshot().has(key) && !reader.snapshot().is_planned(key);
}

/// The blocks within `cidr` that are not of this length.
net::Intervals blocks_of_other_lengths(const std::vector<Key>& keys, const net::Prefix& cidr, int length) {
  const std::string ending = fmt::format("/{}", length);
  std::vector<net::Prefix> others;
  for (const Key& key : keys) {
    if (key.name.ends_with(ending)) continue;
    const auto block = block_cidr_of(key);
    if (block && block->length() != length && block->overlaps(cidr)) others.push_back(*block);
  }
  return net::Intervals(std::move(others));
}

}  // namespace

Flow<std::optional<std::string>> obstacle_of(Reader& reader, const net::Prefix& block) {
  const FoundBlock* found = reader.free_block(only(block));
  TRY_VOID(reader.ready());
  if (!found->other) return std::optional<std::string>();
  return fmt::format(
      "block {0} is there and shares addresses with block {1}, which would be made: its addresses are out "
      "of use until that block is gone (`croft block show {0}`)",
      found->other->to_string(), block.to_string());
}

std::vector<net::Prefix> blocks_with_room(Reader& reader, const PoolTable& pools, const Pool& pool,
                                          const AffinityOwner& owner) {
  const bool by_vacancy = !reader.foreign_writers();
  const auto& keys =
      reader.keys(by_vacancy ? Listing{Kind::vacancy, ""} : Listing{Kind::block, block_names_of(pool.cidr.family())});
  // A vacancy is of a block in Croft's own store, where there are no others.
  const net::Intervals others =
      by_vacancy ? net::Intervals() : blocks_of_other_lengths(keys, pool.cidr, pool.block_length);
  std::set<net::Prefix> found;
  for (const Key& key : keys) {
    if (!reader.step()) break;
    const auto cidr = cidr_of(key);
    if (cidr && pool.cidr.contains(cidr->first()) && cidr->length() == pool.block_length &&
        !pools.reserved()->covers(*cidr) && !others.overlaps(*cidr)) {
      found.insert(*cidr);
    }
  }
  std::vector<net::Prefix> blocks(found.begin(), found.end());
  std::ranges::rotate(blocks, std::ranges::lower_bound(blocks, start_of(pool, owner)));
  return blocks;
}

std::optional<SequenceNumber> number_before(const Reader& reader, const net::Prefix& block) {
  std::optional<SequenceNumber> number;
  if (const auto* mark = reader.find(high_water_mark_key(block))) number = mark->sequence_number;
  if (const auto* deleted = reader.find(block_key(block))) {
    number = std::max(number, std::optional(deleted->sequence_number));
  }
  return number;
}

void prefetch_block_to_claim(Reader& reader, const PoolTable& pools, const Pool& pool, const AffinityOwner& owner,
                             const std::set<net::Prefix>& taken) {
  const FreeBlock wanted = first_wanted(pools, pool, owner, taken);
  ask_for(reader, wanted.start, owner);
  static_cast<void>(reader.free_block(wanted));
}

Flow<ClaimChoice> choose_block_to_claim(Reader& reader, const PoolTable& pools, const Pool& pool,
                                        const AffinityOwner& owner, const std::set<net::Prefix>& taken,
                                        const std::map<net::Prefix, const Affinity*>* own) {
  FreeBlock wanted = first_wanted(pools, pool, owner, taken);
  ask_for(reader, wanted.start, owner);  // most likely it is free
  while (reader.step()) {
    const FoundBlock* found = reader.free_block(wanted);
    TRY_VOID(reader.ready());
    if (own != nullptr) {
      for (const net::Prefix& block : found->passed) reader.ask(block_key(block));
    }
    // A block of another length that nobody claims is in no memory.
    const bool is_to_look_around = found->block && found->is_from_memory && reader.foreign_writers();
    if (found->block) ask_for(reader, *found->block, owner);
    if (is_to_look_around) static_cast<void>(reader.free_block(only(*found->block)));
    TRY_VOID(reader.ready());
    if (own != nullptr) {
      std::vector<net::Prefix> met = found->passed;
      met.push_back(wanted.start);
      const auto is_unknown_own = [&](const net::Prefix& cidr) {
        const auto* block = reader.find(block_key(cidr));
        return block != nullptr && !block->deleted && block->affinity == owner && !own->contains(cidr) &&
               !taken.contains(cidr);
      };
      const auto one = std::ranges::find_if(met, is_unknown_own);
      if (one != met.end()) return ClaimChoice{{}, {}, false, *one};
    }
    if (!found->block) {
      ClaimChoice none = none_left(reader, pool, owner, *found);
      TRY_VOID(reader.ready());
      return none;
    }
    const net::Prefix candidate = *found->block;
    bool is_free = may_be_claimed(reader, candidate, owner);
    if (is_free && is_to_look_around) {
      TRY(const auto obstacle, obstacle_of(reader, candidate));
      is_free = !obstacle;
    }
    if (is_free) return ClaimChoice{candidate, {}, false};
    wanted.as_stored = wanted.as_stored || is_unknown(reader, candidate);
    wanted.out.insert(candidate);
  }
  const std::uint64_t steps = reader.snapshot().steps_max;
  return ClaimChoice{{}, fmt::format("the search for a block to claim was given up after {} steps", steps), true};
}

}  // namespace croft::core
