#include "ipam/decide/claim.h"

#include <algorithm>
#include <iterator>
#include <map>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "base/net/intervals.h"
#include "ipam/decide/assign.h"
#include "ipam/decide/block_overlap.h"
#include "ipam/decide/crowded_pool.h"

namespace croft::core {
namespace {

/// Smaller pools are searched block after block.
constexpr std::uint64_t kStepwiseMin = 64;
/// In a store where each look is a request: 1, then 3, then 12.
constexpr std::uint64_t kGuessesOneByOne = 16;
/// How many candidates may turn out reserved before the pool is searched in order, which passes over any number at
/// once.
constexpr std::uint64_t kLooksAmongReserved = 1024;

/// Independent of rotation_start (FNV-1a where that is FNV-1).
std::uint64_t second_hash(const AffinityOwner& owner) {
  std::uint64_t hash = 14695981039346656037U;
  for (const char c : owner.name) {
    hash ^= static_cast<unsigned char>(c);
    hash *= 1099511628211U;
  }
  return hash >> 7;
}

/// Blocks of one pool as indexes 0..count-1, counted past the last one round from the first. Their number is a power
/// of two, up to 2^128.
class BlockIndex {
 public:
  explicit BlockIndex(const Pool& pool)
      : pool_(pool), last_(net::U128::low_bits(pool.cidr.subprefix_count_log2(pool.block_length))) {}

  /// The index of the last one, which is the mask of all.
  [[nodiscard]] const net::U128& last() const { return last_; }
  [[nodiscard]] net::Prefix at(const net::U128& index) const {
    return pool_.cidr.subprefix(index & last_, pool_.block_length);
  }
  /// How many there are, but no more than `most`.
  [[nodiscard]] std::uint64_t count_up_to(std::uint64_t most) const {
    return last_ < net::U128(most) ? last_.lo + 1 : most;
  }
  /// How far apart the owner looks where the blocks next to each other are taken: every owner in another order, for in
  /// a crowded pool all who look for the next free one meet at the same. Odd, so that every block comes up.
  [[nodiscard]] std::uint64_t step(const AffinityOwner& owner) const {
    return last_ < net::U128(kStepwiseMin) ? 1 : second_hash(owner) | 1;
  }
  /// Where the owner goes on looking: after its last claim, else at its own place of the rotation.
  [[nodiscard]] net::U128 start(const AffinityOwner& owner, const ClaimCursor* cursor) const {
    const bool usable = cursor != nullptr && cursor->last_claimed.length() == pool_.block_length &&
                        pool_.cidr.contains(cursor->last_claimed.first());
    if (!usable) return rotation_of(owner);
    return (pool_.cidr.subprefix_index(cursor->last_claimed) + 1) & last_;
  }
  [[nodiscard]] net::U128 rotation_of(const AffinityOwner& owner) const {
    return net::U128(rotation_start(owner)) & last_;
  }

 private:
  const Pool& pool_;
  net::U128 last_;
};

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

ClaimChoice all_claimed(Reader& reader, const Pool& pool, const AffinityOwner& owner, std::uint64_t claimed) {
  std::uint64_t own = 0;
  for (const Key& key : reader.keys({Kind::affinity, owned_names_of(owner, pool.cidr.family())})) {
    if (const auto cidr = block_cidr_of(key); cidr && pool.cidr.contains(cidr->first())) ++own;
  }
  return {std::nullopt, all_claimed_text(claimed, std::min(own, claimed)), own < claimed};
}

/// Where the owner claimed last: a hint, so that the list of its cursors that may have been read will do.
const ClaimCursor* cursor_of(Reader& reader, const Pool& pool, const AffinityOwner& owner) {
  if (!reader.keeps_hints()) return nullptr;
  const auto key = claim_cursor_key(owner, pool.name);
  return reader.foreign_writers() ? reader.find(key) : reader.get(key);
}

/// The block whose record of what rests there is damaged, if one is: its own, or one of another length.
std::optional<net::Prefix> damaged_beside(Reader& reader, const net::Prefix& candidate) {
  if (!reader.foreign_writers()) return {};
  if (reader.damage(block_beside_key(candidate)) != nullptr) return candidate;
  return damaged_rest(reader, candidate);
}

/// Asks for the block of a candidate and for all that a claim of it looks at. True when there is no such block and
/// nothing of it is damaged.
bool may_be_claimed(Reader& reader, const net::Prefix& candidate, const AffinityOwner& owner) {
  const auto stored = block_key(candidate);
  const Key keys[] = {high_water_mark_key(candidate), affinity_key(owner, candidate), stored};
  for (const Key& key : keys) reader.ask(key);
  if (reader.foreign_writers()) reader.ask(block_beside_key(candidate));
  if (damaged_beside(reader, candidate)) return false;
  const auto is_damaged = [&](const Key& key) { return reader.damage(key) != nullptr; };
  if (std::any_of(std::begin(keys), std::end(keys), is_damaged)) return false;
  const auto* block = reader.find(stored);
  return block == nullptr || (block->deleted && check_writable(*block));
}

/// The indexes of existing blocks in the order of a rotation that begins at `start`.
void rotate(std::vector<net::Prefix>& blocks, const Pool& pool, const net::U128& start) {
  const auto first = std::partition_point(
      blocks.begin(), blocks.end(), [&](const net::Prefix& block) { return pool.cidr.subprefix_index(block) < start; });
  std::rotate(blocks.begin(), first, blocks.end());
}

}  // namespace

bool wholly_reserved(const net::Prefix& block, const PoolTable& pools) { return pools.reserved().covers(block); }

std::vector<net::Prefix> blocks_with_room(Reader& reader, const PoolTable& pools, const Pool& pool,
                                          const AffinityOwner& owner) {
  const bool by_vacancy = !reader.foreign_writers();
  const auto& keys =
      reader.keys(by_vacancy ? Listing{Kind::vacancy, ""} : Listing{Kind::block, block_names_of(pool.cidr.family())});
  // A vacancy is of a block in Croft's own store, where there are no others.
  const net::Intervals others =
      by_vacancy ? net::Intervals() : blocks_of_other_lengths(keys, pool.cidr, pool.block_length).taken;
  std::set<net::Prefix> found;
  for (const Key& key : keys) {
    if (!reader.step()) break;
    const auto cidr = cidr_of(key);
    if (cidr && pool.cidr.contains(cidr->first()) && cidr->length() == pool.block_length &&
        !wholly_reserved(*cidr, pools) && !others.overlaps(*cidr)) {
      found.insert(*cidr);
    }
  }
  std::vector<net::Prefix> blocks(found.begin(), found.end());
  rotate(blocks, pool, BlockIndex(pool).rotation_of(owner));
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

namespace {

/// One search for a block to claim.
class Claiming {
 public:
  Claiming(Reader& reader, const PoolTable& pools, const Pool& pool, const AffinityOwner& owner,
           const std::set<net::Prefix>& taken, const std::map<net::Prefix, const Affinity*>* own)
      : reader_(reader), pools_(pools), pool_(pool), owner_(owner), taken_(taken), own_(own), blocks_(pool) {}

  [[nodiscard]] Flow<ClaimChoice> run() {
    ask_for_rivals(reader_, pools_, pool_);
    const auto* cursor = cursor_of(reader_, pool_, owner_);
    TRY_VOID(reader_.ready());
    start_ = blocks_.start(owner_, cursor);
    TRY(const bool is_guessed, guess());
    if (is_guessed) return choice_;
    TRY_VOID(reader_.ready());
    find_keys();
    TRY_VOID(reader_.ready());
    auto [others, example] = blocks_of_other_lengths(*keys_, pool_.cidr, pool_.block_length);
    others_ = std::move(others);
    TRY(bool is_over, look_scattered());
    if (!is_over) {
      TRY(is_over, look_in_order());
    }
    if (is_over) return choice_;
    ClaimChoice none = all_claimed(reader_, pool_, owner_, claimed_in_pool() + made_meanwhile_);
    if (!unclear_.empty()) {
      none.damage = *reader_.damage(block_beside_key(*unclear_.begin()));
      none.reason = none.damage->message;
      return none;
    }
    if (example) {
      none.reason += fmt::format(" (block {} is not of /{}: it keeps those out that it overlaps)", example->to_string(),
                                 pool_.block_length);
    }
    return none;
  }

 private:
  /// The list at hand, where there is one, until a candidate that it shows as free turned out not to be: then the
  /// store's own, once, instead of one look for each of what may be many.
  void find_keys() {
    const net::Family family = pool_.cidr.family();
    const Listing stored = stored_blocks(reader_, family);
    sees_all_ = !stored.as_stored || reader_.snapshot().keys(stored) != nullptr;
    keys_ = &reader_.keys(sees_all_ ? stored : Listing{Kind::block, stored.name_prefix});
  }
  [[nodiscard]] bool is_out(const net::Prefix& candidate) const {
    return taken_.contains(candidate) || wholly_reserved(candidate, pools_) || unclear_from(candidate.first()) ||
           unclear_from(candidate.last());
  }
  /// The last address of those of a damaged record that this one is in.
  [[nodiscard]] std::optional<net::Address> unclear_from(const net::Address& address) const {
    for (const net::Prefix& block : unclear_) {
      if (block.contains(address)) return block.last();
    }
    return {};
  }
  /// A mark above which no block can be made keeps its block out; the others don't suffer from it.
  [[nodiscard]] bool is_free(const net::Prefix& candidate) {
    if (!may_be_claimed(reader_, candidate, owner_)) {
      // All of a large block at once, not one candidate after the other.
      if (const auto block = damaged_beside(reader_, candidate)) unclear_.insert(*block);
      return false;
    }
    const auto* mark = reader_.find(high_water_mark_key(candidate));
    return mark == nullptr || is_credible(*mark);
  }
  /// Whether no block of another length has addresses of the candidate, as the store itself tells. Its list tells as
  /// well (others_).
  [[nodiscard]] bool is_apart(const net::Prefix& candidate) {
    // What lies in a store of Croft's own has moved there while nobody wrote: the list at hand has it.
    if (keys_ != nullptr && (sees_all_ || !reader_.foreign_writers())) return true;
    const Newness newness = pools_.has_rival(pool_) ? Newness::as_new_as_can_be : Newness::may_lag;
    return glance_at_overlap(reader_, candidate, newness).none();
  }
  bool chosen(const net::Prefix& candidate) {
    choice_ = {candidate, {}, false};
    return true;
  }
  bool give_up() {
    choice_ = {
        std::nullopt,
        fmt::format("the search for a block to claim was given up after {} steps", reader_.snapshot().steps_max()),
        true};
    return true;
  }

  [[nodiscard]] bool is_unknown_own(const net::Prefix& candidate) const {
    if (own_ == nullptr || own_->contains(candidate) || taken_.contains(candidate)) return false;
    const auto* block = reader_.find(block_key(candidate));
    return block != nullptr && !block->deleted && block->affinity == owner_;
  }

  void ask_for(std::uint64_t from, std::uint64_t to) {
    for (std::uint64_t i = from; i < to; ++i) {
      static_cast<void>(may_be_claimed(reader_, guessed(i), owner_));
      static_cast<void>(is_apart(guessed(i)));
    }
  }
  /// Nodes of like names begin side by side; where few guesses are to do, those behind the first are far apart.
  [[nodiscard]] net::Prefix guessed(std::uint64_t i) const {
    net::U128 index = start_;
    const std::uint64_t step = reader_.reads_one_by_one() ? blocks_.step(owner_) : 1;
    for (std::uint64_t k = 0; k < i; ++k) index += step;
    return blocks_.at(index);
  }
  [[nodiscard]] Flow<bool> take_of(std::uint64_t from, std::uint64_t to) {
    for (std::uint64_t i = from; i < to; ++i) {
      const net::Prefix candidate = guessed(i);
      if (is_unknown_own(candidate)) {
        choice_.own = candidate;
        return true;
      }
      if (!is_free(candidate) || is_out(candidate)) continue;
      const bool apart = is_apart(candidate);
      TRY_VOID(reader_.ready());
      if (apart) return chosen(candidate);
    }
    return false;
  }

  /// The few blocks after the last claim, then what the counts of a crowded pool show, before anything is listed.
  [[nodiscard]] Flow<bool> guess() {
    const bool is_wide = reader_.foreign_writers() && is_wide_look(blocks_.at(start_));
    const bool is_one_by_one = reader_.reads_one_by_one();
    const std::uint64_t guesses =
        reader_.keys_at_hand() || is_wide ? 0 : blocks_.count_up_to(is_one_by_one ? kGuessesOneByOne : kClaimGuesses);
    // Where each costs requests of its own, the first by itself: most likely it is free. Then more and more of them,
    // for the list of all blocks costs most.
    std::uint64_t to = is_one_by_one ? std::min<std::uint64_t>(guesses, 1) : guesses;
    ask_for(0, to);
    std::optional<CrowdedPool> crowd;
    if (guesses > 0 && reader_.cheap_counts()) {
      crowd.emplace(pool_, (start_ + second_hash(owner_)).lo);
      crowd->count(reader_);
    }
    TRY_VOID(reader_.ready());
    for (std::uint64_t from = 0; from < to; from = std::exchange(to, std::min(guesses, 4 * to))) {
      if (from > 0) ask_for(from, to);
      TRY_VOID(reader_.ready());
      TRY(const bool is_found, take_of(from, to));
      if (is_found) return true;
    }
    if (!crowd) return false;
    for (const net::Prefix& candidate : crowd->free_blocks(reader_)) {
      if (!reader_.step()) return give_up();
      if (is_out(candidate)) continue;
      const bool free = is_free(candidate);
      const bool apart = is_apart(candidate);
      TRY_VOID(reader_.ready());
      if (free && apart) return chosen(candidate);
    }
    return false;
  }

  /// By name, as the list is ordered: most of a full pool need not be looked at.
  [[nodiscard]] bool is_listed(const net::Prefix& candidate) const {
    return std::binary_search(keys_->begin(), keys_->end(), block_key(candidate));
  }

  /// True when the search is over: the candidate is free, or it took too long.
  [[nodiscard]] Flow<bool> is_last_look(const net::Prefix& candidate) {
    if (!reader_.step()) return give_up();
    if (is_out(candidate) || is_listed(candidate) || others_.overlaps(candidate)) return false;
    // The list may be older than the block: only the record itself says that there is none.
    const bool free = is_free(candidate);
    const bool apart = is_apart(candidate);
    TRY_VOID(reader_.ready());
    if (free && apart) return chosen(candidate);
    if (!sees_all_ && reader_.foreign_writers()) {
      ask_for_lists(reader_, pool_.cidr.family());
      TRY_VOID(reader_.ready());
    }
    ++made_meanwhile_;
    return false;
  }

  /// The owner's own order. Of the blocks that are listed each comes up once, so that in a pool without reservations as
  /// many looks find a free one if there is any; reservations of any size get some looks more.
  [[nodiscard]] Flow<bool> look_scattered() {
    const std::uint64_t looks =
        blocks_.count_up_to(kClaimGuesses + keys_->size() + taken_.size() + kLooksAmongReserved);
    const std::uint64_t step = blocks_.step(owner_);
    net::U128 far;
    for (std::uint64_t i = 0; i < kClaimGuesses + looks; ++i, far += i <= kClaimGuesses ? 1 : step) {
      if (i >= kClaimGuesses && (far & blocks_.last()) < net::U128(kClaimGuesses)) continue;  // had its turn
      TRY(const bool is_over, is_last_look(blocks_.at(start_ + far)));
      if (is_over) return true;
    }
    return false;
  }

  /// One block after the other, what is reserved, or in blocks of other lengths, passed over in one step however large
  /// it is: after as many looks as blocks are listed there is a free one, or none.
  [[nodiscard]] Flow<bool> look_in_order() {
    if (blocks_.count_up_to(kLooksAmongReserved) < kLooksAmongReserved) return false;  // all had their turn
    const net::Address start = blocks_.at(start_).first();
    TRY(const bool is_over, look_between(start, pool_.cidr.last()));
    if (is_over || start == pool_.cidr.first()) return is_over;
    return look_between(pool_.cidr.first(), *start.previous());
  }

  /// `first` is the first address of a block, `last` the last of one.
  [[nodiscard]] Flow<bool> look_between(net::Address first, const net::Address& last) {
    for (;;) {
      const net::Prefix candidate = net::Prefix::containing(first, pool_.block_length);
      net::Address end = candidate.last();
      if (const auto kept = kept_out_from(candidate.first()); kept && end <= *kept) {
        // Where that ends within a block, that block is next.
        const auto after = kept->next();
        if (!reader_.step()) return give_up();
        if (!after || *after > last) return false;
        end = *net::Prefix::containing(*after, pool_.block_length).first().previous();
      } else {
        TRY(const bool is_over, is_last_look(candidate));
        if (is_over) return true;
      }
      if (end >= last) return false;
      first = *end.next();
    }
  }

  /// The last address of the reservation, or of the blocks of other lengths, that an address is in.
  [[nodiscard]] std::optional<net::Address> kept_out_from(const net::Address& address) const {
    return std::max({pools_.reserved().last_from(address), others_.last_from(address), unclear_from(address)});
  }

  [[nodiscard]] std::uint64_t claimed_in_pool() const {
    return static_cast<std::uint64_t>(std::count_if(keys_->begin(), keys_->end(), [&](const Key& key) {
      const auto cidr = block_cidr_of(key);
      return cidr && pool_.cidr.contains(cidr->first());
    }));
  }

  Reader& reader_;
  const PoolTable& pools_;
  const Pool& pool_;
  const AffinityOwner& owner_;
  const std::set<net::Prefix>& taken_;
  const std::map<net::Prefix, const Affinity*>* const own_;
  const BlockIndex blocks_;
  net::U128 start_;
  const std::vector<Key>* keys_ = nullptr;
  bool sees_all_ = false;  ///< keys_ are the store's
  net::Intervals others_;  ///< blocks of other lengths, once the keys are read
  /// Damaged records of what rests in blocks of any length, by block.
  std::set<net::Prefix> unclear_;
  std::uint64_t made_meanwhile_ = 0;
  ClaimChoice choice_;
};

}  // namespace

Flow<ClaimChoice> choose_block_to_claim(Reader& reader, const PoolTable& pools, const Pool& pool,
                                        const AffinityOwner& owner, const std::set<net::Prefix>& taken,
                                        const std::map<net::Prefix, const Affinity*>* own) {
  TRY(ClaimChoice choice, Claiming(reader, pools, pool, owner, taken, own).run());
  TRY_VOID(reader.ready());
  return choice;
}

}  // namespace croft::core
