#include "ipam/decide/draft.h"

#include <algorithm>
#include <iterator>

#include "base/planted.h"

namespace croft::core {
namespace {

/// In the place of a configuration that cannot be read: it may be strict, and may let addresses rest.
IpamConfig unknown_config() {
  IpamConfig config;
  config.strict_affinity = true;
  config.ip_cooldown_seconds = static_cast<std::uint32_t>(kUnknownCooldown.count());
  return config;
}

}  // namespace

PoolTable::PoolTable(Reader& reader) : foreign_writers_(reader.foreign_writers()) {
  const Listing all_pools{Kind::pool, ""}, all_reservations{Kind::reservation, ""};
  for (const auto& [key, value] : reader.sound(all_pools)) {
    pools_.push_back(&std::get<Pool>(value));
  }
  for (const auto& [key, why] : reader.damaged(all_pools)) damaged_pool_ = why;
  reserved_ = reader.snapshot().reserved();
  if (reserved_ == nullptr) {
    reserved_ = std::make_shared<const net::Intervals>(reserved_by(reader, pools_));
    // While a list is still to be read there is nothing to keep.
    const bool has_all =
        reader.snapshot().list(all_reservations) != nullptr && reader.snapshot().list(all_pools) != nullptr;
    if (has_all) reader.snapshot().set_reserved(reserved_);
  }
  for (const auto& [key, why] : reader.damaged(all_reservations)) damaged_reservations_.emplace_back(key.name, why);
  if (const auto* config = reader.sound(ipam_config_key())) config_ = *config;
  if (reader.damage(ipam_config_key()) != nullptr) config_ = unknown_config();
}

const Error* PoolTable::damaged_reservation(const Pool& pool) const {
  for (const auto& [name, error] : damaged_reservations_) {
    const auto is_of = [&, &reserved_for = name](const Pool* p) {
      return reservation_name_of(p->name) == reserved_for;
    };
    const bool is_of_another = !foreign_writers_ && !is_of(&pool) && std::any_of(pools_.begin(), pools_.end(), is_of);
    if (!is_of_another) return &error;
  }
  return nullptr;
}

const Pool* PoolTable::containing(const net::Address& address) const {
  const auto it = std::find_if(pools_.begin(), pools_.end(), [&](const Pool* p) { return p->cidr.contains(address); });
  return it == pools_.end() ? nullptr : *it;
}

const Pool* PoolTable::named(const std::string& name) const {
  const auto it = std::find_if(pools_.begin(), pools_.end(), [&](const Pool* p) { return p->name == name; });
  return it == pools_.end() ? nullptr : *it;
}

std::vector<std::pair<const Pool*, const Pool*>> overlaps_among(std::vector<const Pool*> pools) {
  // A CIDR that contains another comes before it; of equal ones the first name.
  std::ranges::stable_sort(pools, {}, &Pool::cidr);
  std::vector<std::pair<const Pool*, const Pool*>> found;
  std::vector<const Pool*> around;
  for (const Pool* pool : pools) {
    while (!around.empty() && !around.back()->cidr.contains(pool->cidr)) around.pop_back();
    if (!around.empty()) found.emplace_back(pool, around.back());
    around.push_back(pool);
  }
  std::ranges::sort(found, {}, [](const auto& pair) { return std::string_view(pair.first->name); });
  return found;
}

bool PoolTable::is_reserved(const net::Address& address) const {
  return reserved_->contains(address) && !is_planted("reservation_ignored");
}

IsReserved PoolTable::reservations() const {
  return [this](const net::Address& address) {
    return is_reserved(address) || (living_ != nullptr && living_->contains(address));
  };
}

Cooldowns PoolTable::cooldowns_of(const net::Prefix& block) const {
  const Pool* pool = containing(block.first());
  // A pool that is gone may come back, and with it its cooldown: no sooner than the longest.
  const auto when_gone = damaged_pool_ ? kUnknownCooldown : kCooldownMax;
  return {pool != nullptr ? pool->cooldown : when_gone, std::chrono::seconds{config_.ip_cooldown_seconds}};
}

std::vector<net::Prefix> reserved_by(Reader& reader, const std::vector<const Pool*>& pools) {
  std::vector<net::Prefix> reserved;
  for (const Pool* pool : pools) {
    if (pool->gateway) std::ranges::copy(reservation_for(*pool).cidrs, std::back_inserter(reserved));
  }
  for (const auto& [key, value] : reader.sound({Kind::reservation, ""})) {
    std::ranges::copy(std::get<Reservation>(value).cidrs, std::back_inserter(reserved));
  }
  return reserved;
}

std::optional<Vacancy> vacancy_of(const Block& block, const PoolTable& pools, const Instant& now) {
  // A living address is free for the register, which keeps this longer than it is alive.
  const auto is_reserved = [&](const net::Address& address) { return pools.is_reserved(address); };
  if (free_count(block, is_reserved) > 0) return Vacancy{};
  const auto first_end = first_cooldown_end(block, pools.cooldowns_of(block.cidr), now);
  if (!first_end) return {};
  return Vacancy{*first_end};
}

std::uint32_t count_of(const Block& block, AddressState state) {
  std::uint32_t count = 0;
  for (std::uint32_t i = 0; i < block.allocations.size(); ++i) {
    count += state_of(block, net::Ordinal(i)) == state ? 1 : 0;
  }
  return count;
}

std::uint32_t count_of_handle(const Block& block, const std::string& handle_id) {
  return static_cast<std::uint32_t>(
      std::count_if(block.allocations.begin(), block.allocations.end(), [&](const std::optional<std::uint32_t>& index) {
        return index && block.attributes[*index].handle_id == handle_id;
      }));
}

Result<std::optional<Block>> Draft::block(const net::Prefix& cidr) {
  if (const auto it = changes_.find(cidr); it != changes_.end()) return it->second.block;
  const Block* stored = reader_.sound(block_key(cidr));
  if (const Error* error = reader_.damage(block_key(cidr))) return fail(*error);
  if (stored == nullptr) return std::optional<Block>();
  TRY_VOID(check_writable(*stored));
  if (stored->cidr != cidr) {
    return fail(ErrorCode::corrupt,
                "the record of block " + cidr.to_string() + " holds block " + stored->cidr.to_string());
  }
  if (stored->deleted) return std::optional<Block>();
  return with_clock_marks(with_cooled_freed(*stored, pools_.cooldowns_of(cidr), now_), now_);
}

void Draft::put(Block block, const std::vector<std::string>& handle_ids) {
  Change& change = changes_[block.cidr];
  change.block = std::move(block);
  change.handle_ids.insert(change.handle_ids.end(), handle_ids.begin(), handle_ids.end());
}

void Draft::put_claimed(Block block, const Pool& pool, const std::vector<std::string>& handle_ids) {
  const net::Prefix cidr = block.cidr;
  put(std::move(block), handle_ids);
  changes_[cidr].claimed_in = &pool;
}

void Draft::drop_affinity(const Affinity& stale) {
  affinities_.push_back(to_delete(affinity_key(stale.owner, stale.cidr)));
}

void Draft::confirm_affinity(const Affinity& unconfirmed) {
  Affinity confirmed = unconfirmed;
  confirmed.state = AffinityState::confirmed;
  affinities_.push_back(to_put(affinity_key(confirmed.owner, confirmed.cidr), confirmed));
}

/// Beside foreign writers a vacancy may be missing although the block had room before: then it is written anew.
bool Draft::has_vacancy_row(const Block& block, const std::optional<Vacancy>& vacancy) {
  if (!reader_.foreign_writers()) return true;
  const Vacancy* row = reader_.find(vacancy_key(block.affinity, block.cidr));
  return vacancy ? row != nullptr && *row == *vacancy : row == nullptr;
}

void Draft::write_vacancy(const Block* before, const Block& after, Writes& writes) {
  const auto vacancy = vacancy_of(after, pools_, now_);
  const bool same_owner = before != nullptr && before->affinity == after.affinity;
  if (same_owner && vacancy_of(*before, pools_, now_) == vacancy && has_vacancy_row(after, vacancy)) return;
  if (!same_owner && !vacancy) return;
  const auto key = vacancy_key(after.affinity, after.cidr);
  add(writes, vacancy ? to_put(key, *vacancy, Guard::none) : to_delete(key, Guard::none));
}

/// The rows of a block that its owner has just claimed.
void Draft::write_claim(const AffinityOwner& owner, const net::Prefix& cidr, const Pool& pool, Writes& writes) {
  // A successor that came and went since the mark was read has raised it.
  const Block* there = reader_.get(block_key(cidr));
  if (there == nullptr || there->deleted) {
    static_cast<void>(reader_.get(high_water_mark_key(cidr)));
    add(writes, to_check(high_water_mark_key(cidr)));
  }
  const Affinity* before = reader_.get(affinity_key(owner, cidr));
  Affinity claim{owner, cidr, AffinityState::confirmed, false};
  if (before != nullptr) claim.rest = before->rest;
  if (!is_planted("claim_forgotten")) add(writes, to_put(affinity_key(owner, cidr), std::move(claim)));
  add(writes, to_check(pool_key(pool.name)));
}

void Draft::write_block(Change& change, Writes& writes) {
  const auto key = block_key(change.block.cidr);
  const Block* before = reader_.get(key);
  if (before != nullptr && before->deleted) before = nullptr;
  Block after = with_next_sequence_number(std::move(change.block));
  if (before != nullptr && before->affinity != after.affinity) {
    if (before->affinity && !is_planted("claim_left")) {
      add(writes, to_delete(affinity_key(*before->affinity, after.cidr), Guard::none));
    }
    add(writes, to_delete(vacancy_key(before->affinity, after.cidr), Guard::none));
  }
  if (!after.affinity && (is_empty(after) || is_planted("holders_overlooked"))) {
    // Nobody's and empty: it goes, and leaves the number above which a successor must start.
    add(writes, to_delete(vacancy_key(std::nullopt, after.cidr), Guard::none));
    add(writes, to_put(high_water_mark_key(after.cidr), HighWaterMark{after.sequence_number}, Guard::none));
    add(writes, to_delete(key));
    return;
  }
  write_vacancy(before, after, writes);
  if (change.claimed_in != nullptr) write_claim(*after.affinity, after.cidr, *change.claimed_in, writes);
  add(writes, to_put(key, std::move(after)));
}

bool Draft::gains(const std::string& handle_id) const {
  return std::any_of(changes_.begin(), changes_.end(), [&](const auto& change) {
    const Block* before = reader_.find(block_key(change.first));
    const std::uint32_t held = before != nullptr ? count_of_handle(*before, handle_id) : 0;
    return count_of_handle(change.second.block, handle_id) > held;
  });
}

void Draft::write_handles(Writes& writes) {
  std::set<std::string> ids;
  for (const auto& [cidr, change] : changes_) ids.insert(change.handle_ids.begin(), change.handle_ids.end());
  for (const auto& [id, blocks] : dropped_) ids.insert(id);
  for (const std::string& id : ids) {
    const auto key = handle_key(id);
    const Handle* stored = reader_.get(key);
    Handle handle = stored != nullptr ? *stored : Handle{id, {}, false};
    for (const auto& [cidr, change] : changes_) {
      const std::uint32_t count = count_of_handle(change.block, id);
      if (count > 0) {
        handle.blocks[cidr.to_string()] = count;
      } else {
        handle.blocks.erase(cidr.to_string());
      }
    }
    if (const auto dropped = dropped_.find(id); dropped != dropped_.end()) {
      for (const std::string& block : dropped->second) handle.blocks.erase(block);
    }
    if (stored == nullptr && handle.blocks.empty()) continue;
    // One that counts already what it gains is written all the same: a DEL that read it may delete it yet.
    if (stored != nullptr && handle == *stored && !gains(id)) continue;
    add(writes, handle.blocks.empty() ? to_delete(key) : to_put(key, std::move(handle)));
  }
}

std::vector<PlannedWrite> Draft::writes() {
  Writes writes;
  for (const PlannedWrite& affinity : affinities_) add(writes, affinity);
  write_handles(writes);
  for (auto& [cidr, change] : changes_) write_block(change, writes);
  changes_.clear();
  std::vector<PlannedWrite> result;
  result.reserve(writes.size());
  for (auto& [key, write] : writes) result.push_back(std::move(write));
  return result;
}

}  // namespace croft::core
