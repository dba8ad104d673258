#include "core/block/assign.h"

#include <algorithm>
#include <cstddef>
#include <limits>
#include <map>
#include <set>

#include <fmt/format.h>

#include "base/time_text.h"
#include "core/block/block_overlap.h"
#include "core/block/claim.h"
#include "core/block/draft.h"
#include "core/block/own_blocks.h"
#include "core/block/pool_choice.h"
#include "core/register/stored_size.h"

namespace croft::core {
namespace {

using net::Address;
using net::Family;
using net::Prefix;

/// How long a block must have been empty before another node takes it over
/// (docs/reference/calico-ipam.md#new-block-search).
constexpr std::chrono::minutes kReclaimAgeMin{1};
/// Blocks of others are read together in growing batches: the first ones often do, and a full pool has thousands.
constexpr std::size_t kWalkBatchMin = 16;
constexpr std::size_t kWalkBatchMax = 256;
/// How many blocks are searched for one that was left empty while there may be others to borrow from: whoever finds
/// none so soon borrows, and whoever may not borrow searches all.
constexpr std::size_t kReclaimLookMax = 256;

/// One decision in the making. Every step returns false when the snapshot was incomplete, the request refused or the
/// data at fault; `run` then says which.
class Assignment {
 public:
  Assignment(const Snapshot& snapshot, const AssignRequest& request, const Instant& now)
      : reader_(snapshot), request_(request), pools_(reader_), draft_(reader_, pools_, now) {}

  Step<AssignAnswer> run() {
    const bool done = decide();
    if (error_) return *std::move(error_);
    std::vector<PlannedWrite> writes;
    if (done && fresh_) writes = draft_.writes();
    if (!fresh_ || !done) writes = marks();
    if (!reader_.complete()) return reader_.missing();
    if (refusal_) return Plan<AssignAnswer>{*std::move(refusal_), std::move(writes)};
    return Plan<AssignAnswer>{std::move(answer_), std::move(writes)};
  }

  Step<EnsureAnswer> run_ensure(Family family) {
    const auto block = ensure(family);
    if (error_) return *std::move(error_);
    std::vector<PlannedWrite> writes;
    if (block && fresh_) writes = draft_.writes();
    if (!reader_.complete()) return reader_.missing();
    if (refusal_) return Plan<EnsureAnswer>{*std::move(refusal_), {}};
    return Plan<EnsureAnswer>{*block, std::move(writes)};
  }

 private:
  /// What one family's search has found so far.
  struct Search {
    Family family = Family::v4;
    std::uint32_t missing = 0;
    std::vector<const Pool*> usable;
    std::vector<PoolVerdict> considered;
    OwnBlocks own;
    std::set<Prefix> claimed;
    std::size_t newly_owned = 0;  ///< of these, those that the node had no claim on
    /// The first end of a cooldown in blocks that were looked at, by pool.
    std::map<const Pool*, WallTime> first_ends;
    std::map<const Pool*, std::string> reasons;
    /// A block with free addresses whose record has no room for one more holder, by pool.
    std::map<const Pool*, Prefix> too_large;
    std::set<const Pool*> shared;  ///< pools in which other nodes have blocks too
    /// Why addresses that may be free were not taken: what rests there is in a record that can't be read.
    std::optional<Error> passed_over;
  };

  bool decide() {
    const Handle* handle = reader_.get<Handle>(handle_key(handle_id_));
    const std::vector<Address> wanted_v4 = wanted(Family::v4);
    const std::vector<Address> wanted_v6 = wanted(Family::v6);
    // Asked for together, so that a store far away is asked once.
    static_cast<void>(node_labels());
    if (request_.ipv4 > 0 && wanted_v4.empty()) prefetch_own_blocks(reader_, request_.node, Family::v4);
    if (request_.ipv6 > 0 && wanted_v6.empty()) prefetch_own_blocks(reader_, request_.node, Family::v6);
    if (!reader_.complete() || !collect_held(handle)) return false;
    return serve(Family::v4, wanted_v4, request_.ipv4) && serve(Family::v6, wanted_v6, request_.ipv6);
  }

  [[nodiscard]] std::vector<Address> wanted(Family family) const {
    std::vector<Address> result;
    std::copy_if(request_.addresses.begin(), request_.addresses.end(), std::back_inserter(result),
                 [&](const Address& a) { return a.family() == family; });
    return result;
  }

  bool fail_with(Error error) {
    error_ = std::move(error);
    return false;
  }
  bool refuse(Refusal refusal) {
    refusal_ = std::move(refusal);
    return false;
  }

  /// The labels of the node; none when it has no record, or a damaged one (then choose_pools is told).
  Labels node_labels() {
    const Node* node = reader_.sound<Node>(node_key(request_.node.name));
    return node != nullptr && request_.node.type == AffinityOwner::Type::host ? node->labels : Labels();
  }

  /// Fills held_ with what the owner holds already, in every block its handle names.
  bool collect_held(const Handle* handle) {
    if (handle == nullptr) return true;
    std::vector<Prefix> cidrs;
    for (const auto& [text, count] : handle->blocks) {
      const auto cidr = Prefix::parse(text);
      if (!cidr) return fail_with(Error{ErrorCode::corrupt, "handle " + handle->id + ": " + cidr.error().message, {}});
      cidrs.push_back(*cidr);
      reader_.ask(block_key(*cidr));
    }
    if (!reader_.complete()) return false;
    for (const Prefix& cidr : cidrs) {
      const auto block = draft_.block(cidr);
      if (!block) return fail_with(block.error());
      if (!*block) continue;  // over-counted: a handle may name a block that is gone
      for (const net::Ordinal ordinal : held_by(**block, request_.owner)) {
        held_.push_back(described(**block, net::address_at(cidr, ordinal), true));
      }
    }
    return true;
  }

  bool serve(Family family, const std::vector<Address>& wanted, std::uint32_t count) {
    std::vector<AssignedAddress> held;
    std::copy_if(held_.begin(), held_.end(), std::back_inserter(held),
                 [&](const AssignedAddress& a) { return a.address.family() == family; });
    if (!wanted.empty()) return serve_explicit(wanted, held);
    if (count == 0) return true;
    answer_.addresses.insert(answer_.addresses.end(), held.begin(), held.end());
    if (held.size() >= count) return true;
    return serve_automatic(family, count - static_cast<std::uint32_t>(held.size()));
  }

  bool serve_explicit(const std::vector<Address>& wanted, const std::vector<AssignedAddress>& held) {
    for (const AssignedAddress& other : held) {
      if (std::find(wanted.begin(), wanted.end(), other.address) == wanted.end()) {
        return refuse({ErrorCode::refused_by_configuration,
                       fmt::format("container {} interface {} already holds {} and now asks for {}: delete it first",
                                   request_.owner.container_id, request_.owner.interface_name,
                                   other.address.to_string(), wanted.front().to_string()),
                       {}});
      }
    }
    for (const Address& address : wanted) {
      const auto before = std::find_if(held.begin(), held.end(), [&](const auto& h) { return h.address == address; });
      if (before != held.end()) {
        answer_.addresses.push_back(*before);
      } else if (!assign_explicit(address)) {
        return false;
      }
    }
    return true;
  }

  bool refuse_explicit(const Address& address, const Pool& pool, ErrorCode code, std::string reason,
                       RefusalCause cause) {
    return refuse({code,
                   fmt::format("requested address {} cannot be assigned", address.to_string()),
                   {{pool.name, pool.cidr, std::move(reason)}},
                   cause});
  }

  /// docs/reference/calico-ipam.md#assign-ip.
  bool assign_explicit(const Address& address) {
    const Pool* pool = pools_.containing(address);
    if (pool == nullptr) {
      std::vector<PoolVerdict> considered;
      for (const Pool* p : pools_.pools()) considered.push_back({p->name, p->cidr, "does not contain it"});
      return refuse({considered.empty() ? ErrorCode::no_pool : ErrorCode::refused_by_configuration,
                     fmt::format("requested address {} cannot be assigned: it is in no pool", address.to_string()),
                     std::move(considered), RefusalCause::address_in_no_pool});
    }
    const auto refuse_pool = [&](ErrorCode code, std::string reason, RefusalCause cause = RefusalCause::other) {
      return refuse_explicit(address, *pool, code, std::move(reason), cause);
    };
    if (!is_enabled(*pool)) {
      return refuse_pool(ErrorCode::refused_by_configuration, "the pool is disabled", RefusalCause::address_in_no_pool);
    }
    if (!allows(*pool, request_.use)) {
      return refuse_pool(ErrorCode::refused_by_configuration, "the pool is not for this use (allowedUses)");
    }
    if (const Error* damage = pools_.damaged_reservation(*pool); damage != nullptr && !request_.reserved_addresses) {
      return refuse_pool(damage->code, damage->message);
    }
    if (!request_.reserved_addresses && pools_.is_reserved(address)) {
      return refuse_pool(ErrorCode::refused_by_configuration,
                         "the address is reserved (the pool's network, gateway or broadcast, or a reservation's)");
    }
    const Prefix cidr = Prefix::containing(address, pool->block_length);
    ask_for_rivals(reader_, pools_, *pool);
    auto block = draft_.block(cidr);
    const Overlap overlap = overlap_of(reader_, cidr);
    if (reader_.foreign_writers()) static_cast<void>(damaged_rest(reader_, cidr));
    if (!block) return fail_with(block.error());
    if (!reader_.complete()) return false;
    if (!overlap.none()) return refuse_pool(ErrorCode::refused_by_configuration, overlap_text(cidr, overlap));
    const bool is_new = !block->has_value();
    if (is_new && !make_block(cidr, block->emplace())) return false;
    if (pools_.config().strict_affinity && (*block)->affinity != request_.node) {
      return refuse_pool(ErrorCode::refused_by_configuration,
                         fmt::format("block {} belongs to {} and affinity is strict", cidr.to_string(),
                                     (*block)->affinity ? to_string(*(*block)->affinity) : "nobody"),
                         RefusalCause::address_out_of_bounds);
    }
    auto settled = draft_.settled(**block);
    if (!settled) return fail_with(settled.error());
    if (!reader_.complete()) return false;
    *block = *std::move(settled);
    const net::Ordinal ordinal = *net::ordinal_of(cidr, address);
    if (const Attribute* holder = attribute_of(**block, ordinal);
        request_.cooling_addresses && holder != nullptr && holder->cooling) {
      **block = without_unused_attributes(with_freed(**block, ordinal));
    }
    auto taken = take_address(**block, address, attribute());
    if (!taken) {
      cooling_.insert(cidr);
      return refuse_pool(ErrorCode::exhausted, "the address is " + state_text(**block, ordinal),
                         RefusalCause::address_taken);
    }
    if (accept(*std::move(taken), is_new ? pool : nullptr)) return true;
    if (!crowded_) return refuse_pool(ErrorCode::exhausted, too_large_text(cidr), RefusalCause::full);
    answer_.unfinished = true;
    return true;
  }

  [[nodiscard]] std::string too_large_text(const Prefix& cidr) const {
    return fmt::format(
        "block {} has free addresses, but its record no room for another holder: the store takes {} bytes; "
        "a pool with smaller blocks has room for all",
        cidr.to_string(), reader_.commit_bytes_max());
  }

  [[nodiscard]] std::string state_text(const Block& block, net::Ordinal ordinal) const {
    const Attribute& holder = *attribute_of(block, ordinal);
    if (!holder.cooling) return "held by " + holder.handle_id.value_or("an unknown handle");
    const auto cooldown = pools_.cooldowns_of(block.cidr).of(*holder.cooling);
    return "cooling until " + rfc3339_rounded_up(cooldown_end(*holder.cooling, cooldown, draft_.now()));
  }

  /// docs/reference/calico-ipam.md#auto-assign.
  bool serve_automatic(Family family, std::uint32_t count) {
    Search search;
    search.family = family;
    search.missing = count;
    if (!choose(search)) return end_short();
    release_outside(search.own);
    if (!take_from_own(search, search.own.ready) || !take_from_claims(search)) return end_short();
    if (!take_from_own(search, search.own.waiting)) return end_short();
    if (search.missing > 0 && !unfinished() && !pools_.config().strict_affinity && !borrow(search)) return false;
    if (unfinished()) {
      answer_.unfinished = search.missing > 0;
      return true;
    }
    if (search.missing == 0) return true;
    refusal_ = exhaustion(search);
    return end_short();
  }

  /// A refusal of a part is one of all, unless a part is welcome.
  bool end_short() {
    if (!refusal_ || !request_.partial) return false;
    answer_.shortage = std::move(refusal_);
    refusal_.reset();
    return true;
  }

  [[nodiscard]] bool unfinished() const { return crowded_ || draft_.size() >= kAssignBlocksMax; }

  /// The pools to use and the node's blocks in them.
  bool choose(Search& search) {
    PoolRequest wanted{search.family,
                       request_.node.name,
                       request_.use,
                       search.family == Family::v4 ? request_.ipv4_pools : request_.ipv6_pools,
                       node_labels(),
                       request_.namespace_labels,
                       reader_.damage(node_key(request_.node.name))};
    PoolChoice choice = choose_pools(pools_, wanted);
    if (!reader_.complete()) return false;
    search.considered = std::move(choice.rejected);
    if (choice.refusal) return refuse(*std::move(choice.refusal));
    search.usable = std::move(choice.usable);
    search.own = find_own_blocks(reader_, request_.node, search.family, search.usable, draft_.now().wall);
    return reader_.complete();
  }

  /// Part 1: what lies in pools that no longer select the node is given up once it is empty.
  void release_outside(const OwnBlocks& own) {
    for (const Prefix& cidr : own.outside) {
      const Pool* pool = pools_.containing(cidr.first());
      if (pool == nullptr || !is_enabled(*pool) || draft_.size() >= kReleaseOutsideMax) continue;
      const auto selected = selects_node(*pool, node_labels());
      if (!selected || *selected) continue;
      auto block = draft_.block(cidr);
      if (!block || !*block || (*block)->affinity != request_.node || !is_empty(**block)) continue;
      (*block)->affinity.reset();
      (*block)->affinity_claim_time.reset();
      draft_.put(*std::move(*block), {});
    }
  }
  static constexpr std::size_t kReleaseOutsideMax = 4;

  /// Part 2: the node's own blocks, in the order given.
  bool take_from_own(Search& search, const std::vector<Prefix>& blocks) {
    const std::size_t batch = reader_.foreign_writers() ? kOwnBatch : 1;
    for (std::size_t i = 0; i < blocks.size() && search.missing > 0 && !unfinished(); ++i) {
      if (i % batch == 0) {
        for (std::size_t k = i; k < std::min(i + batch, blocks.size()); ++k) {
          reader_.ask(block_key(blocks[k]));
        }
        // Most likely the first one serves; what is asked before it gives an address comes along (settle).
        const bool is_far = reader_.foreign_writers() && !reader_.keys_at_hand();
        if (is_far) {
          static_cast<void>(glance_at_overlap(reader_, blocks[i]));
          static_cast<void>(damaged_rest(reader_, blocks[i]));
        }
        if (!reader_.complete()) return false;
      }
      if (!take_from_own(search, blocks[i])) return false;
    }
    return true;
  }
  static constexpr std::size_t kOwnBatch = 4;

  bool take_from_own(Search& search, const Prefix& cidr) {
    const Affinity* row = search.own.row(cidr);
    auto block = draft_.block(cidr);
    if (!block) {
      search.reasons[pools_.containing(cidr.first())] = block.error().message;
      return true;
    }
    if (!*block) {
      // A claim without block: a crash in the middle of claiming, or of giving up.
      const Pool* pool = pools_.containing(cidr.first());
      if (row == nullptr || pool->block_length != cidr.length() || wholly_reserved(cidr, pools_)) return true;
      reader_.ask(high_water_mark_key(cidr));
      if (reader_.foreign_writers()) reader_.ask(block_beside_key(cidr));
      ask_for_rivals(reader_, pools_, *pool);
      if (is_beside_others(search, cidr)) return true;
      if (!reader_.complete()) return false;
      if (const Error* error = reader_.damage(high_water_mark_key(cidr))) {
        search.reasons[pool] = error->message;
        return true;
      }
      return claim(search, cidr, *pool);
    }
    if ((*block)->affinity != request_.node) {
      if (row != nullptr) draft_.drop_affinity(*row);
      return true;
    }
    // The pool's length has changed: then somebody who knows only the new one may have made blocks over this one. Or
    // made this one, over others. A settled one of the pool's length has been looked at.
    const bool is_of_pools_length = pools_.containing(cidr.first())->block_length == cidr.length();
    const bool has_room = free_count(**block, pools_.reservations()) > 0;
    if ((!is_of_pools_length || (has_room && !(*block)->is_settled)) && is_beside_others(search, cidr)) return true;
    const bool is_settled = settle(search, **block);
    if (!reader_.complete()) return false;
    if (!is_settled) return true;
    if (take_all(search, *std::move(*block)) && row != nullptr && row->state != AffinityState::confirmed) {
      draft_.confirm_affinity(*row);
    }
    return true;
  }

  /// True when the block overlaps one of another length: its addresses may have another holder. May leave the reader
  /// incomplete.
  bool is_beside_others(Search& search, const Prefix& cidr) {
    const Overlap overlap = overlap_of(reader_, cidr);
    if (!overlap.none()) search.reasons[pools_.containing(cidr.first())] = overlap_text(cidr, overlap);
    return !overlap.none();
  }

  /// Takes in what rests beside blocks of other lengths, before anything is taken (Draft::settled). False when that is
  /// not known. May leave the reader incomplete.
  bool settle(Search& search, Block& block) {
    if (free_count(block, pools_.reservations()) == 0) return true;
    auto settled = draft_.settled(block);
    if (!settled) {
      search.reasons[pools_.containing(block.cidr.first())] = settled.error().message;
      search.passed_over = settled.error();
      return false;
    }
    block = *std::move(settled);
    return true;
  }

  /// Takes as much as is missing and there; true when that was something.
  bool take_all(Search& search, Block block, const Pool* claimed_in = nullptr) {
    bool any = false;
    while (search.missing > 0) {
      auto taken = take_next(block, attribute(), pools_.reservations());
      if (!taken) break;
      block = taken->block;
      if (!accept(*std::move(taken), claimed_in)) {
        search.too_large[pools_.containing(block.cidr.first())] = block.cidr;
        break;
      }
      any = true;
      --search.missing;
    }
    if (search.missing > 0) note_cooling(search, block);
    return any;
  }

  void note_cooling(Search& search, const Block& block) {
    const auto end = first_cooldown_end(block, pools_.cooldowns_of(block.cidr), draft_.now());
    if (!end) return;
    cooling_.insert(block.cidr);
    const Pool* pool = pools_.containing(block.cidr.first());
    const auto [it, is_first] = search.first_ends.emplace(pool, *end);
    if (!is_first) it->second = std::min(it->second, *end);
  }

  /// What is written when nothing could be assigned: marks on the cooling addresses that were in the way and whose
  /// cooldown this boot does not count yet, so that whoever asks again finds it ended.
  std::vector<PlannedWrite> marks() {
    Draft marked(reader_, pools_, draft_.now());
    std::size_t room = reader_.commit_bytes_max();
    for (const Prefix& cidr : cooling_) {
      if (marked.size() == kAssignBlocksMax) break;
      const Block* stored = reader_.find<Block>(block_key(cidr));
      if (stored == nullptr || stored->deleted) {  // everything rests in what would have been made here
        marked.mark_rest_of_predecessor(cidr);
        continue;
      }
      const auto block = marked.block(cidr);
      if (!block || !*block) continue;
      auto settled = marked.settled(**block);
      if (!settled) continue;
      Block same = *settled;
      same.is_settled = (*block)->is_settled;
      if (same == **block && with_clock_marks(*stored, draft_.now()) == *stored) continue;
      Block seen = fitted(*std::move(settled), room);
      if (with_clock_marks(seen, draft_.now()) != seen) continue;  // no room for them
      if (room != kNoBytesMax) room -= std::min(room, bytes_of(seen, Bound::close));
      marked.put(std::move(seen), {});
    }
    return marked.writes();
  }

  /// Part 3: new blocks, then those that other nodes left empty.
  bool take_from_claims(Search& search) {
    while (search.missing > 0 && !unfinished()) {
      if (!may_claim(search)) return false;
      if (search.missing == 0) return true;
      bool claimed = false;
      for (const Pool* pool : search.usable) {
        if (is_too_large_anew(search, pool)) continue;
        const ClaimChoice choice = choose_block_to_claim(reader_, pools_, *pool, request_.node, search.claimed);
        if (!reader_.complete()) return false;
        if (choice.block) {
          const std::size_t missing = search.missing;
          if (!claim(search, *choice.block, *pool)) return false;
          if (search.missing < missing) ++search.newly_owned;
          claimed = true;
          break;
        }
        search.reasons.emplace(pool, choice.reason);
        if (choice.damage) search.passed_over = choice.damage;
        if (choice.others) search.shared.insert(pool);
      }
      if (!claimed && !reclaim(search, claimed)) return false;
      if (!claimed) return true;
    }
    return true;
  }

  /// A block of the pool that was just made had no room for this holder: none has.
  static bool is_too_large_anew(const Search& search, const Pool* pool) {
    const auto block = search.too_large.find(pool);
    return block != search.too_large.end() && search.claimed.contains(block->second);
  }

  /// False with a refusal when the node may have no further block.
  bool may_claim(Search& search) {
    const std::uint32_t limit = block_limit_of(request_, pools_.config());
    if (limit > 0) {
      const std::size_t owned =
          search.own.count(reader_, request_.node, search.family, search.usable) + search.newly_owned;
      if (!reader_.complete()) return false;
      if (owned >= limit) {
        if (!take_from_own(search, search.own.waiting)) return false;
        if (search.missing == 0) return true;
        refusal_ = exhaustion(search);
        refusal_->code = ErrorCode::exhausted;
        refusal_->cause = RefusalCause::block_limit;
        refusal_->summary = fmt::format(
            "no {} address for node {}: its blocks are full, and it may have no more than {} "
            "(maxBlocksPerHost)",
            net::name_of(search.family), request_.node.name, limit);
        return false;
      }
    }
    if (pools_.config().auto_allocate_blocks) return true;
    if (!take_from_own(search, search.own.waiting)) return false;
    if (search.missing == 0) return true;
    refusal_ = exhaustion(search);
    refusal_->cause = RefusalCause::no_block_to_claim;
    refusal_->summary = fmt::format(
        "no {} address for node {}: its blocks are full, and claiming blocks is switched "
        "off (autoAllocateBlocks)",
        net::name_of(search.family), request_.node.name);
    return false;
  }

  bool claim(Search& search, const Prefix& cidr, const Pool& pool) {
    Block block;
    if (!make_block(cidr, block)) return false;
    search.claimed.insert(cidr);
    // Wholly reserved blocks are passed over; in one that is made anew everything may rest still.
    static_cast<void>(take_all(search, std::move(block), &pool));
    return true;
  }

  /// Takes over an empty block that another node claimed a while ago.
  bool reclaim(Search& search, bool& claimed) {
    const std::size_t look_max =
        pools_.config().strict_affinity ? std::numeric_limits<std::size_t>::max() : kReclaimLookMax;
    for (const Pool* pool : search.usable) {
      const auto found = find_abandoned(search, *pool, look_max);
      if (!reader_.complete()) return false;
      if (!found) continue;
      Block block = taken_over(*found);
      search.claimed.insert(block.cidr);
      claimed = take_all(search, std::move(block), pool);
      search.newly_owned += claimed ? 1 : 0;
      if (claimed) return true;
    }
    return true;
  }

  std::optional<Block> find_abandoned(Search& search, const Pool& pool, std::size_t look_max) {
    std::optional<Block> found;
    for_blocks_with_room(pool, look_max, [&](Block& block) {
      const bool is_old =
          !block.affinity_claim_time || *block.affinity_claim_time + kReclaimAgeMin <= draft_.now().wall;
      const bool is_others =
          block.affinity != request_.node && (!block.affinity || block.affinity->type == AffinityOwner::Type::host);
      const auto is_left = [&] { return is_empty(block) && free_count(block, pools_.reservations()) > 0; };
      if (!is_others || !is_old || !is_left() || !is_known_apart(pool, block)) return true;
      if (settle(search, block) && is_left()) found = block;
      return !found;
    });
    return found;
  }

  /// A new block in the place of an abandoned one; its sequence numbers go on above the old one's.
  [[nodiscard]] Block taken_over(const Block& abandoned) const {
    Block block = new_block(abandoned.cidr, request_.node, draft_.now(), abandoned.sequence_number);
    // Addresses reserved for Windows stay out of use.
    block.allocations = abandoned.allocations;
    block.attributes = abandoned.attributes;
    block.unallocated = abandoned.unallocated;
    block.rest = abandoned.rest;
    block.is_settled = abandoned.is_settled;
    return block;
  }

  /// Part 4: any block with a free address.
  bool borrow(Search& search) {
    for (const Pool* pool : search.usable) {
      for_blocks_with_room(*pool, std::numeric_limits<std::size_t>::max(), [&](Block& block) {
        if (block.affinity != request_.node && is_known_apart(*pool, block) && settle(search, block)) {
          take_all(search, std::move(block));
        }
        return search.missing > 0 && !unfinished();
      });
      if (!reader_.complete()) return false;
      if (search.missing == 0 || unfinished()) return true;
      if (search.shared.contains(pool)) search.reasons[pool] += " and without a free address too";
    }
    return true;
  }

  /// Calls `visit` for the first `look_max` blocks of a pool that may have a free address, until it returns false.
  /// Blocks that contradict themselves are passed over.
  template <class Visit>
  void for_blocks_with_room(const Pool& pool, std::size_t look_max, Visit visit) {
    const auto blocks = blocks_with_room(reader_, pools_, pool, request_.node);
    const std::size_t count = std::min(blocks.size(), look_max);
    std::size_t read = 0;
    for (std::size_t i = 0; i < count && reader_.complete() && reader_.step(); ++i) {
      if (i == read) {
        read = std::min(i + std::clamp(i, kWalkBatchMin, kWalkBatchMax), count);
        for (std::size_t k = i; k < read; ++k) reader_.ask(block_key(blocks[k]));
        if (!reader_.complete()) return;
      }
      auto block = draft_.block(blocks[i]);
      if (!block || !*block) continue;
      if (!visit(**block) || !reader_.complete()) return;
    }
  }

  /// The store's list has told. One at hand has only the blocks that somebody claims: then one look at the store does
  /// for the first block, mostly, and its list for all where it does not. May leave the reader incomplete.
  [[nodiscard]] bool is_known_apart(const Pool& pool, const Block& block) {
    if (!reader_.keys_at_hand() || !reader_.foreign_writers()) return true;
    if (free_count(block, pools_.reservations()) == 0) return true;
    const Listing stored = stored_blocks(reader_, pool.cidr.family());
    const std::vector<Key>* all = reader_.snapshot().keys(stored);
    if (all == nullptr && (!glanced_at_ || *glanced_at_ == block.cidr)) {
      glanced_at_ = block.cidr;
      const Overlap overlap = glance_at_overlap(reader_, block.cidr);
      if (!reader_.complete()) return false;
      if (overlap.none()) return true;
    }
    if (all == nullptr) {
      static_cast<void>(reader_.keys(stored));
      return false;
    }
    const auto [others, is_first] = others_.try_emplace(&pool);
    if (is_first) others->second = blocks_of_other_lengths(*all, pool.cidr, pool.block_length).taken;
    return !others->second.overlaps(block.cidr);
  }

  [[nodiscard]] Refusal exhaustion(const Search& search) const {
    std::vector<PoolVerdict> considered = search.considered;
    for (const Pool* pool : search.usable) {
      const auto known = search.reasons.find(pool);
      std::string reason = known != search.reasons.end() ? known->second : "its blocks are full";
      if (const auto end = search.first_ends.find(pool); end != search.first_ends.end()) {
        reason += "; the first cooling one is free again at " + rfc3339_rounded_up(end->second);
      }
      if (const auto large = search.too_large.find(pool); large != search.too_large.end()) {
        reason += "; " + too_large_text(large->second);
      }
      considered.push_back({pool->name, pool->cidr, std::move(reason), true});
    }
    if (search.passed_over) {
      return {search.passed_over->code,
              fmt::format("no {} address for node {}: {}", net::name_of(search.family), request_.node.name,
                          search.passed_over->message),
              std::move(considered)};
    }
    const bool strict = pools_.config().strict_affinity;
    return {ErrorCode::exhausted,
            fmt::format("no {} address for node {}: every usable pool is full{}", net::name_of(search.family),
                        request_.node.name, strict ? " (affinity is strict: addresses are not borrowed)" : ""),
            std::move(considered), strict ? RefusalCause::full_and_strict : RefusalCause::full};
  }

  std::optional<Prefix> ensure(Family family) {
    static_cast<void>(node_labels());
    prefetch_own_blocks(reader_, request_.node, family);
    Search search;
    search.family = family;
    if (!reader_.complete() || !choose(search)) return {};
    if (const auto own = search.own.any(reader_, request_.node, family, search.usable)) return own;
    if (!reader_.complete()) return {};
    search.missing = 1;
    if (!may_claim(search)) return {};
    for (const Pool* pool : search.usable) {
      const ClaimChoice choice = choose_block_to_claim(reader_, pools_, *pool, request_.node);
      if (!reader_.complete()) return {};
      Block block;
      if (!choice.block || !make_block(*choice.block, block)) {
        search.reasons.emplace(pool, choice.reason);
        continue;
      }
      fresh_ = true;
      draft_.put_claimed(std::move(block), *pool, {});
      return choice.block;
    }
    for (const Pool* pool : search.usable) {
      const auto found = find_abandoned(search, *pool, std::numeric_limits<std::size_t>::max());
      if (!reader_.complete()) return {};
      if (!found) continue;
      fresh_ = true;
      draft_.put_claimed(taken_over(*found), *pool, {});
      return found->cidr;
    }
    refusal_ = exhaustion(search);
    return {};
  }

  bool make_block(const Prefix& cidr, Block& block) {
    const auto* mark = reader_.get<HighWaterMark>(high_water_mark_key(cidr));
    if (!reader_.complete()) return false;
    if (mark != nullptr && !is_credible(*mark)) return fail_with(damaged_mark(cidr, *mark));
    block = draft_.with_rest_of_predecessor(new_block(cidr, request_.node, draft_.now(), number_before(reader_, cidr)));
    return reader_.complete();
  }

  /// False when the commit has no room for the block as it would be. Where something goes into it already that goes
  /// first: the decision is unfinished then, and the next one begins with an empty commit.
  bool accept(Taken taken, const Pool* claimed_in) {
    AssignedAddress assigned = described(taken.block, taken.address, false);
    if (!draft_.put_if_it_fits(std::move(taken.block), claimed_in, {handle_id_})) {
      crowded_ = fresh_;
      return false;
    }
    fresh_ = true;
    answer_.addresses.push_back(std::move(assigned));
    return true;
  }

  [[nodiscard]] AssignedAddress described(const Block& block, const Address& address, bool held_before) const {
    const Pool* pool = pools_.containing(address);
    AssignedAddress result;
    result.address = address;
    result.pool = pool != nullptr ? pool->name : "";
    result.pool_cidr = pool != nullptr ? pool->cidr : block.cidr;
    result.gateway = pool != nullptr ? pool->gateway : std::nullopt;
    result.block = block.cidr;
    result.sequence_number = sequence_of(block, *net::ordinal_of(block.cidr, address));
    result.held_before = held_before;
    return result;
  }

  /// Handle and owner metadata as in docs/reference/calico-ipam.md#plugin-add, and the interface.
  [[nodiscard]] Attribute attribute() const {
    Attribute result;
    result.handle_id = handle_id_;
    result.secondary[kNodeKey] = request_.node.name;
    result.secondary[kTimestampKey] = go_utc_text(draft_.now().wall);
    result.secondary[kInterfaceKey] = request_.owner.interface_name;
    if (!request_.pod.name.empty()) result.secondary[kPodKey] = request_.pod.name;
    if (!request_.pod.namespace_name.empty()) result.secondary[kNamespaceKey] = request_.pod.namespace_name;
    if (!request_.pod.uid.empty()) result.secondary[kPodUidKey] = request_.pod.uid;
    if (request_.owner.network.find('.') != std::string::npos) result.secondary[kNetworkKey] = request_.owner.network;
    return result;
  }

  Reader reader_;
  const AssignRequest& request_;
  const std::string handle_id_ = handle_of(request_.owner);
  PoolTable pools_;
  Draft draft_;
  std::vector<AssignedAddress> held_;
  /// Blocks without a free address in which some cool.
  std::set<Prefix> cooling_;
  /// The block for which the store was asked whether it overlaps, before its list was; of what is in the list, the
  /// blocks of other lengths by pool.
  std::optional<Prefix> glanced_at_;
  std::map<const Pool*, net::Intervals> others_;
  Assigned answer_;
  bool fresh_ = false;
  bool crowded_ = false;  ///< the next block does not fit into the commit beside what goes into it already
  std::optional<Refusal> refusal_;
  std::optional<Error> error_;
};

}  // namespace

Step<AssignAnswer> plan_assign(const Snapshot& snapshot, const AssignRequest& request, const Instant& now) {
  return Assignment(snapshot, request, now).run();
}

Step<EnsureAnswer> plan_ensure_block(const Snapshot& snapshot, const AssignRequest& request, net::Family family,
                                     const Instant& now) {
  return Assignment(snapshot, request, now).run_ensure(family);
}

std::uint32_t block_limit_of(const AssignRequest& request, const IpamConfig& config) {
  const std::uint32_t configured = config.max_blocks_per_host;
  if (request.block_limit == 0) return configured > 0 ? configured : request.default_block_limit;
  return configured > 0 ? std::min(configured, request.block_limit) : request.block_limit;
}

std::uint32_t rotation_start(const AffinityOwner& owner) {
  std::uint32_t hash = 2166136261U;
  for (const char c : owner.name) {
    hash *= 16777619U;
    hash ^= static_cast<unsigned char>(c);
  }
  return hash;
}

}  // namespace croft::core
