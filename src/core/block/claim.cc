#include "core/block/claim.h"

#include <algorithm>
#include <iterator>
#include <vector>

#include <fmt/format.h>

#include "core/block/assign.h"
#include "core/block/crowded_pool.h"

namespace croft::core {
namespace {

/// Smaller pools are searched block after block.
constexpr std::uint64_t kStepwiseMin = 64;

/// Independent of rotation_start (FNV-1a where that is FNV-1).
std::uint64_t second_hash(const AffinityOwner& owner) {
  std::uint64_t hash = 14695981039346656037U;
  for (const char c : owner.name) {
    hash ^= static_cast<unsigned char>(c);
    hash *= 1099511628211U;
  }
  return hash >> 7;
}

/// Blocks of one pool as indexes 0..count-1. Pools of more than 2^62 blocks use their first 2^62.
class BlockIndex {
 public:
  explicit BlockIndex(const Pool& pool)
      : pool_(pool), count_(std::uint64_t{1} << std::min(pool.block_length - pool.cidr.length(), 62)) {}

  [[nodiscard]] std::uint64_t count() const { return count_; }
  [[nodiscard]] net::Prefix at(std::uint64_t index) const {
    return pool_.cidr.subprefix(index % count_, pool_.block_length);
  }
  /// How far apart the owner looks where the blocks next to each other are taken: every owner in another order, for in
  /// a crowded pool all who look for the next free one meet at the same. Odd, so that every block comes up.
  [[nodiscard]] std::uint64_t step(const AffinityOwner& owner) const {
    return count_ <= kStepwiseMin ? 1 : second_hash(owner) | 1;
  }
  /// Where the owner goes on looking: after its last claim, else at its own place of the rotation.
  [[nodiscard]] std::uint64_t start(const AffinityOwner& owner, const ClaimCursor* cursor) const {
    const bool usable = cursor != nullptr && cursor->last_claimed.length() == pool_.block_length &&
                        pool_.cidr.contains(cursor->last_claimed.first());
    if (!usable) return rotation_start(owner, count_);
    const std::uint64_t last = pool_.cidr.subprefix_index(cursor->last_claimed);
    return last >= count_ ? 0 : (last + 1) % count_;
  }

 private:
  const Pool& pool_;
  std::uint64_t count_;
};

std::string all_claimed_text(std::uint64_t claimed, std::uint64_t own) {
  if (own == claimed) {
    return fmt::format("{} block{} claimed, {}by this node and without a free address", claimed,
                       claimed == 1 ? " is" : "s are", claimed == 1 ? "" : "all ");
  }
  return fmt::format("all {} blocks are claimed: {} by this node and without a free address, {} by other nodes",
                     claimed, own, claimed - own);
}

ClaimChoice all_claimed(Reader& reader, const Pool& pool, const AffinityOwner& owner, std::uint64_t claimed) {
  std::uint64_t own = 0;
  for (const Key& key : reader.keys({Kind::affinity, owned_names_of(owner, pool.cidr.family())})) {
    if (const auto cidr = cidr_of(key); cidr && pool.cidr.contains(cidr->first())) ++own;
  }
  return {std::nullopt, all_claimed_text(claimed, std::min(own, claimed)), own < claimed};
}

/// Where the owner claimed last: a hint, so that the list of its cursors that may have been read will do.
const ClaimCursor* cursor_of(Reader& reader, const Pool& pool, const AffinityOwner& owner) {
  const Key key = claim_cursor_key(owner, pool.name);
  return reader.foreign_writers() ? reader.find<ClaimCursor>(key) : reader.get<ClaimCursor>(key);
}

/// Asks for the block of a candidate and for all that a claim of it looks at. True when there is no such block and
/// nothing of it is damaged.
bool may_be_claimed(Reader& reader, const net::Prefix& candidate, const AffinityOwner& owner) {
  const Key keys[] = {high_water_mark_key(candidate), affinity_key(owner, candidate), block_key(candidate)};
  for (const Key& key : keys) reader.ask(key);
  const auto is_damaged = [&](const Key& key) { return reader.damage(key) != nullptr; };
  return std::none_of(std::begin(keys), std::end(keys), is_damaged) && reader.find<Block>(keys[2]) == nullptr;
}

/// The indexes of existing blocks in the order of a rotation that begins at `start`.
void rotate(std::vector<net::Prefix>& blocks, const Pool& pool, std::uint64_t start) {
  const auto first = std::partition_point(
      blocks.begin(), blocks.end(), [&](const net::Prefix& block) { return pool.cidr.subprefix_index(block) < start; });
  std::rotate(blocks.begin(), first, blocks.end());
}

}  // namespace

bool wholly_reserved(const net::Prefix& block, const PoolTable& pools) {
  if (!pools.has_reservations_in(block)) return false;
  const std::uint32_t size = block_size(block);
  for (std::uint32_t ordinal = 0; ordinal < size; ++ordinal) {
    if (!pools.is_reserved(net::address_at(block, net::Ordinal(ordinal)))) return false;
  }
  return true;
}

std::vector<net::Prefix> blocks_with_room(Reader& reader, const PoolTable& pools, const Pool& pool,
                                          const AffinityOwner& owner) {
  const bool by_vacancy = !reader.foreign_writers();
  const auto& keys =
      reader.keys(by_vacancy ? Listing{Kind::vacancy, ""} : Listing{Kind::block, block_names_of(pool.cidr.family())});
  std::set<net::Prefix> found;
  for (const Key& key : keys) {
    const auto cidr = cidr_of(key);
    if (cidr && pool.cidr.contains(cidr->first()) && cidr->length() == pool.block_length &&
        !wholly_reserved(*cidr, pools)) {
      found.insert(*cidr);
    }
  }
  std::vector<net::Prefix> blocks(found.begin(), found.end());
  rotate(blocks, pool, rotation_start(owner, BlockIndex(pool).count()));
  return blocks;
}

ClaimChoice choose_block_to_claim(Reader& reader, const PoolTable& pools, const Pool& pool, const AffinityOwner& owner,
                                  const std::set<net::Prefix>& taken) {
  const auto* cursor = cursor_of(reader, pool, owner);
  if (!reader.complete()) return {};
  const BlockIndex blocks(pool);
  const std::uint64_t start = blocks.start(owner, cursor);
  const std::uint64_t guesses = reader.keys_at_hand() ? 0 : std::min(kClaimGuesses, blocks.count());
  for (std::uint64_t i = 0; i < guesses; ++i) {
    static_cast<void>(may_be_claimed(reader, blocks.at(start + i), owner));
  }
  std::optional<CrowdedPool> crowd;
  if (guesses > 0 && reader.cheap_counts()) {
    crowd.emplace(pool, blocks.count(), start + second_hash(owner));
    crowd->count(reader);
  }
  if (!reader.complete()) return {};
  const auto is_out = [&](const net::Prefix& candidate) {
    return taken.contains(candidate) || wholly_reserved(candidate, pools);
  };
  for (std::uint64_t i = 0; i < guesses; ++i) {
    const net::Prefix candidate = blocks.at(start + i);
    if (may_be_claimed(reader, candidate, owner) && !is_out(candidate)) return {candidate, {}, false};
  }
  if (crowd) {
    for (const net::Prefix& candidate : crowd->free_blocks(reader)) {
      if (is_out(candidate)) continue;
      const bool is_free = may_be_claimed(reader, candidate, owner);
      if (!reader.complete()) return {};
      if (is_free) return {candidate, {}, false};
    }
    if (!reader.complete()) return {};
  }
  const auto& keys = reader.keys({Kind::block, block_names_of(pool.cidr.family())});
  if (!reader.complete()) return {};
  // By name, as the list is ordered: most of a full pool need not be looked at.
  const auto is_listed = [&](const net::Prefix& candidate) {
    return std::binary_search(keys.begin(), keys.end(), block_key(candidate));
  };
  std::uint64_t made_meanwhile = 0;
  const std::uint64_t step = blocks.step(owner);
  for (std::uint64_t i = 0; i < kClaimGuesses + blocks.count(); ++i) {
    const std::uint64_t far = i < kClaimGuesses ? i : kClaimGuesses + (i - kClaimGuesses) * step;
    if (i >= kClaimGuesses && far % blocks.count() < kClaimGuesses) continue;  // had its turn
    const net::Prefix candidate = blocks.at(start + far);
    if (is_listed(candidate) || is_out(candidate)) continue;
    // The list may be older than the block: only the record itself says that there is none.
    const bool is_free = may_be_claimed(reader, candidate, owner);
    if (!reader.complete()) return {};
    if (is_free) return {candidate, {}, false};
    ++made_meanwhile;
  }
  const auto in_pool = static_cast<std::uint64_t>(std::count_if(keys.begin(), keys.end(), [&](const Key& key) {
    const auto cidr = cidr_of(key);
    return cidr && pool.cidr.contains(cidr->first());
  }));
  return all_claimed(reader, pool, owner, in_pool + made_meanwhile);
}

}  // namespace croft::core
