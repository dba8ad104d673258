#include "ipam/decide/pool_changes.h"

#include <algorithm>
#include <bit>

#include <fmt/format.h>

#include "base/net/prefix.h"
#include "base/printable.h"
#include "base/texts.h"
#include "ipam/decide/draft.h"
#include "register/address_claims.h"

namespace croft::core {
namespace {

std::vector<net::Prefix> block_cidrs_in(Reader& reader, const net::Prefix& cidr) {
  std::vector<net::Prefix> result;
  for (const Key& key : reader.keys({Kind::block, block_names_of(cidr.family())})) {
    if (const auto block = block_cidr_of(key); block && cidr.overlaps(*block)) result.push_back(*block);
  }
  return result;
}

Error no_such_pool(const std::string& name) {
  return {ErrorCode::not_found, fmt::format("there is no pool {}", echo(name)), {}};
}

/// Deletes the reservation of a pool that is gone. The set of pools keeps out whoever makes the pool meanwhile: it has
/// its reservation first.
[[nodiscard]] Flow<Plan<PoolDeleted>> delete_left_reservation(Reader& reader, const std::string& name) {
  PlannedWrite generation = next_pool_set(reader);
  const auto key = reservation_key(reservation_name_of(name));
  const Reservation* left = reader.get(key);
  TRY_VOID(reader.ready());
  if (left == nullptr || !pool_of_reservation(*left)) return fail(no_such_pool(name));
  return Plan<PoolDeleted>{{true}, {std::move(generation), to_delete(key)}};
}

void delete_block(const Block& block, std::vector<PlannedWrite>& writes) {
  if (block.affinity) {
    writes.push_back(to_delete(affinity_key(*block.affinity, block.cidr), Guard::none));
  }
  writes.push_back(to_delete(vacancy_key(block.affinity, block.cidr), Guard::none));
  const SequenceNumber last = with_next_sequence_number(block).sequence_number;
  writes.push_back(to_put(high_water_mark_key(block.cidr), HighWaterMark{last}, Guard::none));
  writes.push_back(to_delete(block_key(block.cidr)));
}

/// Claims in a pool on blocks that are not there: an interrupted deletion leaves them. A commit has room for these.
std::vector<Key> claims_on_nothing(Reader& reader, const net::Prefix& pool, const std::vector<net::Prefix>& blocks) {
  constexpr std::size_t kClaimsMax = 40;
  std::vector<Key> result;
  for (const Key& key : reader.keys({Kind::affinity, ""})) {
    const auto cidr = cidr_of(key);
    if (!cidr || !pool.contains(*cidr) || std::ranges::count(blocks, *cidr) != 0) continue;
    if (result.size() < kClaimsMax) result.push_back(key);
  }
  return result;
}

/// The write of a pool's reservation that is gone; none where the pool may be another program's, which made none.
std::vector<PlannedWrite> reservation_again(const Reader& reader, const Pool& pool) {
  Reservation reservation = reservation_for(pool);
  const auto key = reservation_key(reservation.name);
  if (reader.snapshot().has(key) || reservation.cidrs.empty() || (reader.foreign_writers() && !pool.gateway)) return {};
  return {to_put(key, std::move(reservation)), to_check(pool_key(pool.name))};
}

net::Prefix block_of_gateway(const Pool& pool) { return net::Prefix::containing(*pool.gateway, pool.block_length); }

/// Held, or cooling.
[[nodiscard]] Flow<bool> is_gateway_taken(Reader& reader, const Pool& pool) {
  const net::Prefix cidr = block_of_gateway(pool);
  const Block* block = reader.get(block_key(cidr));
  TRY_VOID(reader.ready());
  return block != nullptr && !block->deleted &&
         state_of(*block, *net::ordinal_of(cidr, *pool.gateway)) != AddressState::free;
}

/// The pool's reservation with the gateway that it gets. Its content stays: pods live by the gateway of before.
[[nodiscard]] Flow<PlannedWrite> keep_gateways_out(Reader& reader, const Pool& before, const Pool& pool) {
  const auto key = reservation_key(reservation_name_of(pool.name));
  const Reservation* const stored = reader.get(key);
  TRY(const bool is_taken, is_gateway_taken(reader, pool));
  if (is_taken) {
    return fail(ErrorCode::refused_by_configuration,
                "gateway {} of pool {} is in use; `croft ip show {}` tells who holds it", *pool.gateway, pool.name,
                *pool.gateway);
  }
  Reservation kept = stored != nullptr ? *stored : reservation_for(before);
  kept.name = reservation_name_of(pool.name);
  for (const net::Prefix& one : reservation_for(pool).cidrs) {
    if (std::ranges::count(kept.cidrs, one) == 0) kept.cidrs.push_back(one);
  }
  return to_put(key, std::move(kept));
}

/// Its making may have been cut short before it was known to overlap no other.
[[nodiscard]] Flow<void> check_overlaps_none(Reader& reader, const Pool& pool) {
  const PoolTable pools(reader);
  TRY_VOID(reader.ready());
  for (const Pool* other : pools.pools()) {
    if (other->name == pool.name || !other->cidr.overlaps(pool.cidr)) continue;
    return fail(ErrorCode::refused_by_configuration, "pool {} ({}) overlaps pool {} ({}); delete one of them",
                pool.name, pool.cidr, other->name, other->cidr);
  }
  return {};
}

/// Whether a deleted pool, with its blocks and all that lives in them left behind, may be made again. It may with the
/// same blocks, none of which has the gateway as somebody's address. Error: refused_by_configuration.
[[nodiscard]] Flow<void> check_leftover(Reader& reader, const Pool& pool, const std::vector<net::Prefix>& blocks) {
  const auto refused = [&](const net::Prefix& block, const std::string& why) {
    return fail(ErrorCode::refused_by_configuration,
                "cidr {} of pool {} has block {} of an earlier pool{}; `croft check` tells who holds its "
                "addresses",
                pool.cidr, pool.name, block, why);
  };
  for (const net::Prefix& block : blocks) {
    if (!pool.cidr.contains(block)) return refused(block, ", which it does not contain");
    if (block.length() != pool.block_length) {
      const bool serves = is_block_length(pool.cidr, block.length());
      return refused(block, serves
                                ? fmt::format(": with that length, blockSize {}, it can be made again", block.length())
                                : std::string(", which no pool can have any more"));
    }
  }
  if (!pool.gateway) return {};
  const net::Prefix of_gateway = block_of_gateway(pool);
  if (std::ranges::count(blocks, of_gateway) == 0) return {};
  TRY(const bool is_taken, is_gateway_taken(reader, pool));
  if (!is_taken) return {};
  return refused(of_gateway, fmt::format(", where the gateway {} is taken: give another one, or none", *pool.gateway));
}

[[nodiscard]] Result<void> check_range(const char* field, std::uint32_t value, std::uint32_t max) {
  if (value <= max) return {};
  return fail(ErrorCode::invalid_argument, "{} {} is out of range: 0 to {}", field, value, max);
}

template <class T>
void take(const std::optional<T>& wanted, T& value) {
  if (wanted) value = *wanted;
}

}  // namespace

bool is_to_be_completed(const Pool& pool, const PoolSpec& wanted) {
  return pool.disabled && pool.being_made && contradictions_between(pool, wanted).empty() &&
         !wanted.disabled.value_or(false);
}

std::optional<bool> are_pools_there(const Snapshot& snapshot, const std::vector<PoolSpec>& wanted) {
  const Listing listing{Kind::pool, ""};
  const auto* pools = snapshot.list(listing);
  if (pools == nullptr) return {};
  return std::all_of(wanted.begin(), wanted.end(), [&](const PoolSpec& spec) {
    const auto found = std::ranges::find(*pools, pool_key(spec.name), &KeyedValue::first);
    if (found != pools->end()) {
      const Pool& pool = std::get<Pool>(found->second);
      return contradictions_between(pool, spec).empty() && !is_to_be_completed(pool, spec);
    }
    return snapshot.unreadable(pool_key(spec.name)) != nullptr;
  });
}

Step<PoolCreated> plan_create_pool(const Snapshot& snapshot, const PoolSpec& spec) {
  return decide(snapshot, [&](Reader& reader) -> Flow<Plan<PoolCreated>> {
    TRY(auto pool, make_pool(spec));
    if (is_v4_mapped(spec.cidr)) {
      return fail(ErrorCode::invalid_argument, "cidr {} of pool {} has IPv4-mapped addresses: give the IPv4 CIDR",
                  spec.cidr, spec.name);
    }
    // Read before the lists: what changes after them then shows as a conflict on it.
    reader.ask(pool_set_key());
    TRY_VOID(reader.ready());
    const PoolTable pools(reader);
    const auto leftover = block_cidrs_in(reader, spec.cidr);
    // Looked up, so that creating them is guarded.
    static_cast<void>(reader.get(pool_key(spec.name)));
    reader.ask(reservation_key(reservation_name_of(pool.name)));
    TRY_VOID(reader.ready());

    const Pool* const existing = pools.named(spec.name);
    // Only what has never been enabled has no block.
    const bool completes = existing != nullptr && is_to_be_completed(*existing, spec) && leftover.empty();
    if (existing != nullptr && !completes) {
      const std::string text = contradictions_between(*existing, spec);
      if (text.empty()) return Plan<PoolCreated>{{*existing, true}, reservation_again(reader, *existing)};
      return fail(ErrorCode::already_exists, "pool {} exists and disagrees: {}", spec.name, text);
    }
    // Only now: a pool that is there needs nothing of these.
    PlannedWrite generation = next_pool_set(reader);
    const AddressClaims claims(reader);
    static_cast<void>(reader.get(reservation_key(reservation_name_of(pool.name))));
    TRY_VOID(reader.ready());
    if (const auto& damage = pools.damaged_pool()) {
      return fail(damage->in(fmt::format("whether pool {} overlaps a damaged one can't be told", spec.name)));
    }
    for (const Pool* other : pools.pools()) {
      if (other != existing && other->cidr.overlaps(spec.cidr)) {
        return fail(ErrorCode::refused_by_configuration, "cidr {} of pool {} overlaps pool {} ({}); give another CIDR",
                    spec.cidr, spec.name, other->name, other->cidr);
      }
    }
    if (const auto claim = claims.against_pool(spec.cidr)) {
      return fail(ErrorCode::refused_by_configuration, "cidr {} of pool {} overlaps {}", spec.cidr, spec.name, *claim);
    }
    TRY_VOID(check_leftover(reader, pool, leftover));
    std::vector<PlannedWrite> writes;
    if (completes) {
      Pool whole = *existing;
      whole.disabled = whole.being_made = false;
      writes = reservation_again(reader, whole);
      std::erase_if(writes, [](const PlannedWrite& write) { return write.only_check; });
      writes.push_back(std::move(generation));
      writes.push_back(to_put(pool_key(whole.name), whole));
      return Plan<PoolCreated>{{std::move(whole), true, true}, std::move(writes)};
    }
    const Reservation reservation = reservation_for(pool);
    writes.push_back(std::move(generation));
    if (!reservation.cidrs.empty()) writes.push_back(to_put(reservation_key(reservation.name), reservation));
    writes.push_back(to_put(pool_key(pool.name), pool));
    return Plan<PoolCreated>{{std::move(pool), false}, std::move(writes)};
  });
}

Step<Pool> plan_change_pool(const Snapshot& snapshot, const PoolSpec& change) {
  return decide(snapshot, [&](Reader& reader) -> Flow<Plan<Pool>> {
    const Pool* const stored = reader.get(pool_key(change.name));
    TRY_VOID(reader.ready());
    if (stored == nullptr) return fail(no_such_pool(change.name));
    TRY(Pool pool, with_settings(*stored, change));
    if (change.disabled) pool.being_made = pool.being_deleted = false;
    if (pool == *stored) return Plan<Pool>{std::move(pool), {}};
    if (change.disabled && !pool.disabled) TRY_VOID(check_overlaps_none(reader, pool));
    std::vector<PlannedWrite> writes;
    if (pool.gateway && pool.gateway != stored->gateway) {
      TRY(PlannedWrite reservation, keep_gateways_out(reader, *stored, pool));
      writes.push_back(std::move(reservation));
    }
    writes.push_back(to_put(pool_key(pool.name), pool));
    return Plan<Pool>{std::move(pool), std::move(writes)};
  });
}

Step<Pool> plan_begin_deletion(const Snapshot& snapshot, const std::string& name) {
  return decide(snapshot, [&](Reader& reader) -> Flow<Plan<Pool>> {
    const Pool* stored = reader.get(pool_key(name));
    TRY_VOID(reader.ready());
    if (stored == nullptr) return fail(no_such_pool(name));
    Pool pool = *stored;
    if (pool.disabled && pool.being_deleted) return Plan<Pool>{std::move(pool), {}};
    pool.disabled = pool.being_deleted = true;
    pool.being_made = false;
    return Plan<Pool>{pool, {to_put(pool_key(name), pool)}};
  });
}

Step<PoolDeleted> plan_delete_pool(const Snapshot& snapshot, const std::string& name, const Instant& now) {
  return decide(snapshot, [&](Reader& reader) -> Flow<Plan<PoolDeleted>> {
    const Pool* pool = reader.get(pool_key(name));
    TRY_VOID(reader.ready());
    if (pool == nullptr) return delete_left_reservation(reader, name);
    if (!pool->disabled) return fail(ErrorCode::refused_for_safety, "pool {} is not disabled", name);
    const auto cidrs = block_cidrs_in(reader, pool->cidr);
    const std::vector<Key> left = claims_on_nothing(reader, pool->cidr, cidrs);
    const auto* config = reader.get(ipam_config_key());
    TRY_VOID(reader.ready());
    const Cooldowns cooldowns(pool->cooldown,
                              std::chrono::seconds{config != nullptr ? config->ip_cooldown_seconds : 0});
    for (const net::Prefix& cidr : cidrs) static_cast<void>(reader.get(block_key(cidr)));
    PlannedWrite generation = next_pool_set(reader);
    static_cast<void>(reader.get(reservation_key(reservation_name_of(pool->name))));
    TRY_VOID(reader.ready());

    std::vector<PlannedWrite> writes;
    std::size_t deleted = 0;
    for (const net::Prefix& cidr : cidrs) {
      const Block* stored = reader.get(block_key(cidr));
      if (stored == nullptr) continue;
      TRY_VOID(check_writable(*stored));
      const Block current = with_cooled_freed(*stored, cooldowns, now);
      const std::uint32_t held = count_of(current, AddressState::held);
      const std::uint32_t cooling = count_of(current, AddressState::cooling);
      if (held + cooling > 0) {
        return fail(ErrorCode::refused_for_safety,
                    "pool {} is in use: block {} has {} held and {} cooling addresses; `croft pool disable` "
                    "keeps it from giving more, and `croft ip list` names the holders, which keep them until they "
                    "end",
                    name, cidr, held, cooling);
      }
      if (deleted++ < kDeleteBlocksMax) delete_block(*stored, writes);
    }
    // The pool goes by itself: as long as it is there, what an interrupted step has left is found.
    if (deleted > 0) return Plan<PoolDeleted>{{false}, std::move(writes)};
    for (const Key& key : left) writes.push_back(to_delete(key, Guard::none));
    const std::string reservation = reservation_name_of(pool->name);
    if (reader.get(reservation_key(reservation)) != nullptr) {
      writes.push_back(to_delete(reservation_key(reservation)));
    }
    writes.push_back(std::move(generation));
    writes.push_back(to_delete(pool_key(name)));
    return Plan<PoolDeleted>{{true}, std::move(writes)};
  });
}

Result<void> check_config(const IpamConfig& config) {
  TRY_VOID(check_range("maxBlocksPerHost", config.max_blocks_per_host, kMaxBlocksPerHostMax));
  TRY_VOID(check_range("ipCooldownSeconds", config.ip_cooldown_seconds, kIpCooldownSecondsMax));
  const std::string& persistence = config.kubevirt_vm_address_persistence;
  if (!persistence.empty() && persistence != "Enabled" && persistence != "Disabled") {
    return fail(ErrorCode::invalid_argument,
                "kubeVirtVMAddressPersistence {} is neither Enabled nor "
                "Disabled",
                echo(persistence));
  }
  if (!config.strict_affinity && !config.auto_allocate_blocks) {
    return fail(ErrorCode::refused_by_configuration,
                "autoAllocateBlocks false needs strictAffinity true: nodes that may not claim blocks would live on "
                "borrowed addresses alone");
  }
  if (config.max_blocks_per_host > 0 && !config.strict_affinity) {
    return fail(ErrorCode::refused_by_configuration,
                "maxBlocksPerHost {} needs strictAffinity true: a node at its limit would borrow instead; "
                "set both, or maxBlocksPerHost to 0",
                config.max_blocks_per_host);
  }
  return {};
}

Step<IpamConfig> plan_set_config(const Snapshot& snapshot, const ConfigChange& change) {
  return decide(snapshot, [&](Reader& reader) -> Flow<Plan<IpamConfig>> {
    const IpamConfig* stored = reader.get(ipam_config_key());
    TRY_VOID(reader.ready());
    IpamConfig config = stored != nullptr ? *stored : IpamConfig();
    take(change.strict_affinity, config.strict_affinity);
    take(change.auto_allocate_blocks, config.auto_allocate_blocks);
    take(change.max_blocks_per_host, config.max_blocks_per_host);
    take(change.kubevirt_vm_address_persistence, config.kubevirt_vm_address_persistence);
    take(change.ip_cooldown_seconds, config.ip_cooldown_seconds);
    TRY_VOID(check_config(config));
    if (stored != nullptr && *stored == config) return Plan<IpamConfig>{std::move(config), {}};
    return Plan<IpamConfig>{config, {to_put(ipam_config_key(), config)}};
  });
}

Step<ReservationMade> plan_reserve(const Snapshot& snapshot, const std::string& name,
                                   const std::vector<net::Prefix>& addresses) {
  return decide(snapshot, [&](Reader& reader) -> Flow<Plan<ReservationMade>> {
    const auto key = reservation_key(name);
    const Reservation* const there = reader.get(key);
    const PoolTable pools(reader);
    TRY_VOID(reader.ready());
    Plan<ReservationMade> plan;
    Reservation reservation = there != nullptr ? *there : Reservation{name, {}};
    for (const net::Prefix& prefix : addresses) {
      if (pools.reserved()->covers(prefix)) continue;
      plan.answer.added.push_back(prefix);
      reservation.cidrs.push_back(prefix);
    }
    if (!plan.answer.added.empty()) plan.writes.push_back(to_put(key, std::move(reservation)));
    return plan;
  });
}

std::string reservation_name_of_range(const net::Prefix& range) {
  std::string name = "host-local-" + range.to_string();
  std::ranges::replace_if(
      name, [](char c) { return c == '.' || c == ':' || c == '/'; }, '-');
  return name;
}

Step<bool> plan_create_reservation(const Snapshot& snapshot, const Reservation& wanted) {
  return decide(snapshot, [&](Reader& reader) -> Flow<Plan<bool>> {
    TRY_VOID(check_object_name("reservation", wanted.name));
    const std::string of_pools = reservation_name_of("");
    if (wanted.name.starts_with(of_pools)) {
      return fail(ErrorCode::invalid_argument,
                  "reservation {}: names that begin with {} are of pools; choose another name", wanted.name, of_pools);
    }
    if (wanted.cidrs.empty()) {
      return fail(ErrorCode::invalid_argument, "reservation {} keeps nothing: give a prefix", wanted.name);
    }
    const auto key = reservation_key(wanted.name);
    const Reservation* const there = reader.get(key);
    TRY_VOID(reader.ready());
    if (there == nullptr) return Plan<bool>{false, {to_put(key, wanted)}};
    auto has = there->cidrs, wants = wanted.cidrs;
    std::ranges::sort(has);
    std::ranges::sort(wants);
    if (has == wants) return Plan<bool>{true, {}};
    return fail(ErrorCode::already_exists, "reservation {} exists and keeps other addresses: {}", wanted.name,
                net::joined(there->cidrs));
  });
}

Step<ReservationDeleted> plan_delete_reservation(const Snapshot& snapshot, const std::string& name) {
  return decide(snapshot, [&](Reader& reader) -> Flow<Plan<ReservationDeleted>> {
    const auto key = reservation_key(name);
    const Reservation* const there = reader.get(key);
    const PoolTable pools(reader);
    TRY_VOID(reader.ready());
    if (there == nullptr) return fail(ErrorCode::not_found, "there is no reservation {}", echo(name));
    for (const Pool* pool : pools.pools()) {
      if (reservation_name_of(pool->name) != name) continue;
      return fail(ErrorCode::refused_for_safety,
                  "reservation {} keeps pods from the gateway and the ends of pool {}: it goes with the "
                  "pool",
                  name, pool->name);
    }
    return Plan<ReservationDeleted>{{}, {to_delete(key)}};
  });
}

namespace {

[[nodiscard]] Result<int> part_length(const Pool& pool, std::uint64_t parts) {
  if (parts < 2 || !std::has_single_bit(parts)) {
    return fail(ErrorCode::invalid_argument, "a pool is split into 2, 4, 8 … parts, not {}", parts);
  }
  if (parts > kSplitPartsMax) {
    return fail(invalid_argument(
        fmt::format("{} parts are too many for one commit: at most {}; split the parts again", parts, kSplitPartsMax)));
  }
  const int length = pool.cidr.length() + std::countr_zero(parts);
  if (length > pool.block_length) {
    return fail(ErrorCode::invalid_argument, "{} parts of pool {} ({}) would be smaller than its blocks of /{}", parts,
                pool.name, pool.cidr, pool.block_length);
  }
  return length;
}

/// The settings of the whole, for one part.
Pool part_of(const Pool& pool, std::uint64_t index, const net::Prefix& cidr, SplitGateways gateways) {
  Pool part = pool;
  part.name = fmt::format("split-{}-{}", pool.name, index);
  part.cidr = cidr;
  part.being_made = part.being_deleted = false;
  part.rest.reset();  // what a foreign format says of one object is not true of another
  if (gateways == SplitGateways::none) part.gateway.reset();
  if (part.gateway && !cidr.contains(*part.gateway)) part.gateway = cidr.first().next();
  return part;
}

/// The state of an address, in the block that contains it if there is one. May leave the reader incomplete.
[[nodiscard]] Result<AddressState> state_in(Draft& draft, const Pool& pool, const net::Address& address) {
  const net::Prefix cidr = net::Prefix::containing(address, pool.block_length);
  TRY(const std::optional<Block> block, draft.block(cidr));
  return block ? state_of(*block, *net::ordinal_of(cidr, address)) : AddressState::free;
}

/// A part's gateway that the whole did not have: nobody may hold it.
[[nodiscard]] Result<void> check_new_gateway(Draft& draft, const Pool& pool, const Pool& part) {
  if (!part.cidr.contains(*part.gateway) || part.cidr.length() + 2 > net::bit_length(part.cidr.family())) {
    return fail(ErrorCode::invalid_argument, "{} is too small to have a gateway", part.cidr);
  }
  TRY(const AddressState state, state_in(draft, pool, *part.gateway));
  if (state == AddressState::free) return {};
  return fail(ErrorCode::refused_for_safety, "{} would be the gateway of {}, and is {}", *part.gateway, part.cidr,
              name_of(state));
}

}  // namespace

Step<PoolsSplit> plan_split_pool(const Snapshot& snapshot, const PoolSplit& split, const Instant& now) {
  return decide(snapshot, [&](Reader& reader) -> Flow<Plan<PoolsSplit>> {
    // Read before the lists: what changes after them then shows as a conflict on it.
    PlannedWrite generation = next_pool_set(reader);
    const PoolTable pools(reader);
    TRY_VOID(reader.ready());
    const auto is_it = [&](const Pool* p) { return p->name == split.pool || p->cidr.to_string() == split.pool; };
    const auto found = std::ranges::find_if(pools.pools(), is_it);
    if (found == pools.pools().end()) return fail(no_such_pool(split.pool));
    const Pool& pool = **found;
    TRY(const int length, part_length(pool, split.parts));
    if (pool.gateway && split.gateways == SplitGateways::refuse) {
      return fail(ErrorCode::refused_by_configuration,
                  "pool {} has gateway {}, which lies in one part only: --gateways first gives each "
                  "part its first address, --gateways none gives none",
                  pool.name, *pool.gateway);
    }
    const Reservation* whole = reader.get(reservation_key(reservation_name_of(pool.name)));
    Draft draft(reader, pools, now);
    PoolsSplit answer{pool.name, {}, {}};
    std::vector<PlannedWrite> writes;
    std::set<net::Prefix> blocks;  ///< with new gateways: these must not be taken while the pool is split
    for (std::uint64_t i = 0; i < split.parts; ++i) {
      Pool part = part_of(pool, i, pool.cidr.subprefix(i, length), split.gateways);
      TRY_VOID(check_pool_name(part.name));
      if (reader.get(pool_key(part.name)) != nullptr) {
        return fail(ErrorCode::already_exists, "pool " + part.name + " exists already");
      }
      if (part.gateway && part.gateway != pool.gateway) {
        TRY_VOID(check_new_gateway(draft, pool, part));
        blocks.insert(block_of_gateway(part));
      }
      // Where the pool keeps its own addresses out of use, its parts do so too.
      Reservation reservation = whole != nullptr ? reservation_for(part) : Reservation();
      if (!reservation.cidrs.empty()) {
        const auto key = reservation_key(reservation.name);
        if (reader.get(key) != nullptr) {
          return fail(ErrorCode::already_exists, "reservation " + reservation.name + " exists already");
        }
        for (const net::Prefix& reserved : reservation.cidrs) {
          TRY(const AddressState state, state_in(draft, pool, reserved.first()));
          if (state == AddressState::held) answer.held_reserved.push_back(reserved.first());
        }
        writes.push_back(to_put(key, std::move(reservation)));
      }
      writes.push_back(to_put(pool_key(part.name), part));
      answer.parts.push_back(std::move(part));
    }
    TRY_VOID(reader.ready());
    for (const net::Prefix& block : blocks) writes.push_back(to_check(block_key(block)));
    if (whole != nullptr) writes.push_back(to_delete(reservation_key(whole->name)));
    writes.push_back(to_delete(pool_key(pool.name)));
    writes.push_back(std::move(generation));
    return Plan<PoolsSplit>{std::move(answer), std::move(writes)};
  });
}

}  // namespace croft::core
