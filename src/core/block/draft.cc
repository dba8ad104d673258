#include "core/block/draft.h"

#include <algorithm>
#include <set>

#include "base/assert.h"

namespace croft::core {

PoolTable::PoolTable(Reader& reader) {
  for (const auto& [key, value] : reader.list({Kind::pool, ""})) {
    pools_.push_back(std::get_if<Pool>(&value));
    CROFT_ASSERT(pools_.back() != nullptr);
  }
  for (const auto& [key, value] : reader.list({Kind::reservation, ""})) {
    const auto* reservation = std::get_if<Reservation>(&value);
    CROFT_ASSERT(reservation != nullptr);
    reserved_.insert(reserved_.end(), reservation->cidrs.begin(), reservation->cidrs.end());
  }
}

const Pool* PoolTable::containing(const net::Address& address) const {
  const auto it = std::find_if(pools_.begin(), pools_.end(), [&](const Pool* p) { return p->cidr.contains(address); });
  return it == pools_.end() ? nullptr : *it;
}

const Pool* PoolTable::named(const std::string& name) const {
  const auto it = std::find_if(pools_.begin(), pools_.end(), [&](const Pool* p) { return p->name == name; });
  return it == pools_.end() ? nullptr : *it;
}

bool PoolTable::is_reserved(const net::Address& address) const {
  return std::any_of(reserved_.begin(), reserved_.end(), [&](const net::Prefix& p) { return p.contains(address); });
}

IsReserved PoolTable::reservations() const {
  return [this](const net::Address& address) { return is_reserved(address); };
}

std::chrono::seconds PoolTable::cooldown_of(const net::Prefix& block) const {
  const Pool* pool = containing(block.first());
  return pool != nullptr ? pool->cooldown : kDefaultCooldown;
}

std::optional<Vacancy> vacancy_of(const Block& block, const PoolTable& pools, const Instant& now) {
  if (!block.affinity) return {};
  if (free_count(block, pools.reservations()) > 0) return Vacancy{};
  const auto first_end = first_cooldown_end(block, pools.cooldown_of(block.cidr), now);
  if (!first_end) return {};
  return Vacancy{*first_end};
}

std::uint32_t count_of_handle(const Block& block, const std::string& handle_id) {
  return static_cast<std::uint32_t>(
      std::count_if(block.allocations.begin(), block.allocations.end(), [&](const std::optional<std::uint32_t>& index) {
        return index && block.attributes[*index].handle_id == handle_id;
      }));
}

Result<std::optional<Block>> Draft::block(const net::Prefix& cidr) {
  if (const auto it = changes_.find(cidr); it != changes_.end()) return it->second.block;
  const Block* stored = reader_.get<Block>(block_key(cidr));
  if (stored == nullptr) return std::optional<Block>();
  TRY_VOID(check_block(*stored));
  if (stored->cidr != cidr) {
    return fail(ErrorCode::corrupt,
                "the record of block " + cidr.to_string() + " holds block " + stored->cidr.to_string());
  }
  return with_cooled_freed(*stored, pools_.cooldown_of(cidr), now_);
}

void Draft::put(Block block, const std::vector<std::string>& handle_ids) {
  Change& change = changes_[block.cidr];
  change.block = std::move(block);
  change.handle_ids.insert(change.handle_ids.end(), handle_ids.begin(), handle_ids.end());
}

void Draft::put_new(Block block, const Pool& pool, const std::vector<std::string>& handle_ids) {
  const net::Prefix cidr = block.cidr;
  put(std::move(block), handle_ids);
  changes_[cidr].created_in = &pool;
}

void Draft::write_block(const Change& change, std::vector<PlannedWrite>& writes) {
  const Key key = block_key(change.block.cidr);
  const Block* before = reader_.get<Block>(key);
  CROFT_ASSERT(change.created_in == nullptr || before == nullptr);  // a new block never replaces one
  Block after = stamped(change.block);
  if (!after.affinity && is_empty(after)) {
    // Nobody's and empty: it goes, and leaves the number above which a successor must start.
    writes.push_back({high_water_mark_key(after.cidr), HighWaterMark{after.sequence_number}, Guard::none, false});
    writes.push_back({key, std::nullopt, Guard::as_read, false});
    return;
  }
  if (after.affinity) {
    const auto vacancy = vacancy_of(after, pools_, now_);
    if (before == nullptr || vacancy_of(*before, pools_, now_) != vacancy) {
      const Key vacancy_row = vacancy_key(*after.affinity, after.cidr);
      writes.push_back({vacancy_row, vacancy ? std::optional<Value>(*vacancy) : std::nullopt, Guard::none, false});
    }
  }
  if (change.created_in != nullptr) {
    const AffinityOwner& owner = *after.affinity;
    // A successor that came and went since the mark was read has raised it.
    writes.push_back({high_water_mark_key(after.cidr), std::nullopt, Guard::as_read, true});
    const Affinity claim{owner, after.cidr, AffinityState::confirmed, false};
    writes.push_back({affinity_key(owner, after.cidr), claim, Guard::none, false});
    claims_[change.created_in] = {claim_cursor_key(owner, change.created_in->name), ClaimCursor{after.cidr},
                                  Guard::none, false};
  }
  writes.push_back({key, std::move(after), Guard::as_read, false});
}

void Draft::write_handles(std::vector<PlannedWrite>& writes) {
  std::set<std::string> ids;
  for (const auto& [cidr, change] : changes_) ids.insert(change.handle_ids.begin(), change.handle_ids.end());
  for (const std::string& id : ids) {
    const Key key = handle_key(id);
    const Handle* stored = reader_.get<Handle>(key);
    Handle handle = stored != nullptr ? *stored : Handle{id, {}, false};
    for (const auto& [cidr, change] : changes_) {
      const std::uint32_t count = count_of_handle(change.block, id);
      if (count > 0) {
        handle.blocks[cidr.to_string()] = count;
      } else {
        handle.blocks.erase(cidr.to_string());
      }
    }
    if (stored == nullptr && handle.blocks.empty()) continue;
    writes.push_back(
        {key, handle.blocks.empty() ? std::nullopt : std::optional<Value>(std::move(handle)), Guard::as_read, false});
  }
}

std::vector<PlannedWrite> Draft::writes() {
  std::vector<PlannedWrite> writes;
  claims_.clear();
  for (const auto& [cidr, change] : changes_) write_block(change, writes);
  for (auto& [pool, cursor] : claims_) {
    writes.push_back(std::move(cursor));
    writes.push_back({pool_key(pool->name), std::nullopt, Guard::as_read, true});
  }
  write_handles(writes);
  return writes;
}

}  // namespace croft::core
