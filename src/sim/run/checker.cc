#include "sim/run/checker.h"

#include <algorithm>
#include <utility>
#include <variant>

#include <fmt/format.h>

namespace croft::sim {
namespace {

bool holds(const core::Attribute* attribute) { return attribute != nullptr && attribute->handle_id.has_value(); }

const core::Attribute* at(const core::Block* block, std::uint32_t ordinal) {
  if (block == nullptr || block->deleted) return nullptr;
  const auto index = block->allocations[ordinal];
  return index ? &block->attributes[*index] : nullptr;
}

const core::Block* block_in(const std::optional<core::Value>& value) {
  return value ? std::get_if<core::Block>(&*value) : nullptr;
}

}  // namespace

void Checker::violate(const std::string& what, const std::string& detail) {
  if (!violation_.empty()) return;
  violation_ = what + ": " + detail;
  violated_at_ = schedule_.now();
}

void Checker::committed(const std::vector<Changed>& changes) {
  for (const Changed& changed : changes) {
    if (changed.key.kind == core::Kind::pool) {
      pool_changed(changed.key.name, changed.after ? std::get_if<core::Pool>(&*changed.after) : nullptr);
    } else if (changed.key.kind == core::Kind::reservation) {
      const auto* reservation = changed.after ? std::get_if<core::Reservation>(&*changed.after) : nullptr;
      reservations_.erase(changed.key.name);
      if (reservation != nullptr) reservations_[changed.key.name] = {reservation->cidrs, schedule_.now()};
    } else if (changed.key.kind == core::Kind::affinity) {
      claim_changed(changed.before, changed.after);
    } else if (changed.key.kind == core::Kind::handle) {
      handle_changed(changed.key, changed.after);
    } else if (changed.key.kind == core::Kind::block) {
      block_changed(changed.before, changed.after);
    }
  }
  for (const std::string& handle : std::exchange(touched_, {})) check_counts(handle);
  for (const net::Prefix& block : std::exchange(touched_claims_, {})) check_claims(block);
}

void Checker::put_back(TroubledServer& server) {
  for (auto& [address, had] : had_) had.left = std::min(had.left, schedule_.now());
  lives_.clear();
  // An address that the copy does not know as resting is free: nothing tells of its release. Those that rest in it do
  // so by its records. Sequence numbers go on from the copy's.
  rests_.clear();
  sequences_.clear();
  pools_.clear();
  reservations_.clear();
  claims_.clear();
  held_.clear();
  counted_.clear();
  std::vector<Changed> all;
  for (store::Record& record : server.copy().records)
    all.push_back({record.key, std::nullopt, *std::move(record.value)});
  committed(all);
}

const Checker::KnownPool* Checker::pool_of(const net::Address& address) const {
  const KnownPool* found = nullptr;
  for (const auto& [name, known] : pools_) {
    if (!known.pool.cidr.contains(address)) continue;
    if (found == nullptr || known.is_open || (!found->is_open && known.since > found->since)) found = &known;
  }
  return found;
}

bool Checker::has_room(net::Family family, std::size_t blocks) const {
  std::size_t there = 0;
  for (const auto& [name, known] : pools_) {
    const core::Pool& pool = known.pool;
    if (known.is_open && pool.cidr.family() == family)
      there += std::size_t{1} << (pool.block_length - pool.cidr.length());
  }
  return there >= blocks;
}

void Checker::pool_changed(const std::string& name, const core::Pool* pool) {
  KnownPool& known = pools_[name];
  const bool is_open = pool != nullptr && core::is_enabled(*pool);
  if (is_open != known.is_open) known.since = schedule_.now();
  known.is_open = is_open;
  if (pool != nullptr) known.pool = *pool;
}

void Checker::claim_changed(const std::optional<core::Value>& before, const std::optional<core::Value>& after) {
  const auto& row = std::get<core::Affinity>(after ? *after : *before);
  auto& rows = claims_[row.cidr].rows;
  rows.erase(row.owner);
  if (after && !row.deleted) rows[row.owner] = row.state;
  touched_claims_.insert(row.cidr);
}

bool Checker::is_open(const net::Prefix& block) const {
  return std::ranges::any_of(pools_, [&](const auto& known) {
    return known.second.is_open && known.second.pool.cidr.contains(block.first());
  });
}

/// The block alone decides who owns it. Its owner finds it by a row, and no row says more than the block does. The
/// deleter of a pool takes the rows of blocks that are just being made: their makers remove them, empty.
void Checker::check_claims(const net::Prefix& block) {
  const Claims& claims = claims_[block];
  const bool is_being_made = claims.is_empty && !is_open(block);
  if (claims.owner && !claims.rows.contains(*claims.owner) && !is_being_made) {
    violate("block without claim", fmt::format("{} of {}", block.to_string(), core::to_string(*claims.owner)));
  }
  for (const auto& [owner, state] : claims.rows) {
    if (state != core::AffinityState::confirmed || claims.owner == owner) continue;
    violate("claim on another's block",
            fmt::format("{} of {} is confirmed to {}", block.to_string(),
                        claims.owner ? core::to_string(*claims.owner) : "nobody", core::to_string(owner)));
  }
}

void Checker::block_changed(const std::optional<core::Value>& before, const std::optional<core::Value>& after) {
  const core::Block* was = block_in(before);
  const core::Block* is = block_in(after);
  const core::Block& either = is != nullptr ? *is : *was;
  claims_[either.cidr].owner = is != nullptr && !is->deleted ? is->affinity : std::nullopt;
  claims_[either.cidr].is_empty = is != nullptr && core::is_empty(*is);
  touched_claims_.insert(either.cidr);
  if (is != nullptr) {
    core::SequenceNumber& last = sequences_[either.cidr];
    // An empty one may come late, by a request that was given up: its number is of its maker's clock, and is raised
    // before anything is taken of it.
    const WallTime made{std::chrono::nanoseconds(static_cast<std::int64_t>(is->sequence_number.value))};
    const bool is_late = made > kBeginning - core::kClockSkewMax &&
                         std::ranges::none_of(is->allocations, [](const auto& one) { return one.has_value(); });
    const bool is_repeated = is->sequence_number < last || (is->sequence_number == last && was == nullptr);
    if (is_repeated && !is_late) {
      violate("sequence number repeated",
              fmt::format("block {} has {} after {}", either.cidr.to_string(), is->sequence_number.value, last.value));
    }
    const bool is_other = was != nullptr && was->allocations != is->allocations;
    if (is_other && is->sequence_number == was->sequence_number) {
      violate("sequence number not raised",
              fmt::format("block {} is another, and has {} still", either.cidr.to_string(), last.value));
    }
    last = std::max(last, is->sequence_number);
  }
  const std::string cidr = either.cidr.to_string();
  for (std::uint32_t i = 0; i < core::block_size(either.cidr); ++i) {
    const core::Attribute* old_one = at(was, i);
    const core::Attribute* new_one = at(is, i);
    if (old_one == new_one) continue;
    if (holds(old_one)) count(*old_one->handle_id, cidr, -1);
    if (holds(new_one)) count(*new_one->handle_id, cidr, +1);
    ordinal_changed(net::address_at(either.cidr, net::Ordinal(i)), old_one, new_one);
  }
}

void Checker::ordinal_changed(const net::Address& address, const core::Attribute* was, const core::Attribute* is) {
  const bool same_holder = holds(was) && holds(is) && was->handle_id == is->handle_id;
  if (const auto living = lives_.find(address); living != lives_.end()) {
    const std::string handle = core::handle_of(living->second);
    if (!holds(is) || *is->handle_id != handle) {
      violate("live address freed", fmt::format("{} of {} is {} now", address.to_string(), handle,
                                                holds(is)       ? "held by " + *is->handle_id
                                                : is != nullptr ? "cooling"
                                                                : "free"));
    }
  }
  if (same_holder) return;
  if (holds(is)) {
    const auto rest = rests_.find(address);
    if (rest != rests_.end() && rest->second.until > schedule_.now()) {
      violate("cooldown cut short",
              fmt::format("{} of {} went to {} with {} ms left", address.to_string(), rest->second.of, *is->handle_id,
                          (rest->second.until - schedule_.now()).count() / 1'000'000));
    }
    rests_.erase(address);
    taken_[address] = schedule_.now();
  }
  if (was == nullptr && is != nullptr && is->cooling && !rests_.contains(address)) {
    rest_begins(address, *is->cooling, is->cooling->previous_handle, Span{0});
  }
  if (!holds(was)) return;
  // An ADD that could not be done as a whole gives back what it had: nobody lived with it.
  const auto had = had_.find(address);
  if (had == had_.end() || had->second.handle != *was->handle_id) return;
  const Span left = had->second.left;
  had_.erase(had);
  // One that is gone may come back, and with it its cooldown.
  const KnownPool* pool = pool_of(address);
  if (pool == nullptr || pool->pool.cooldown.count() == 0) return;
  // Also where one commit releases an address and gives it to the next.
  if (is == nullptr || !is->cooling) {
    return violate("released without rest", fmt::format("{} of {}", address.to_string(), *was->handle_id));
  }
  rest_begins(address, *is->cooling, *was->handle_id, left);
}

/// The record tells when by the clock that nobody sets, of the machine that released the address.
void Checker::rest_begins(const net::Address& address, const core::Cooling& cooling, const std::string& handle,
                          Span left) {
  const auto boot = boots_.find(cooling.released_at.boot);
  const Span released = boot == boots_.end() ? kNever : boot->second + cooling.released_at.since_boot;
  if (released < left || released > schedule_.now()) {
    violate("wrong time of release", fmt::format("{} of {}: {} ms, was left at {} ms", address.to_string(), handle,
                                                 released.count() / 1'000'000, left.count() / 1'000'000));
  }
  const KnownPool* pool = pool_of(address);
  if (pool != nullptr) rests_[address] = {released + pool->pool.cooldown, handle};
}

void Checker::handle_changed(const core::Key& key, const std::optional<core::Value>& after) {
  const auto* handle = after ? std::get_if<core::Handle>(&*after) : nullptr;
  auto& counts = counted_[key.name];
  counts.clear();
  if (handle != nullptr && !handle->deleted) counts = handle->blocks;
  touched_.insert(key.name);
}

void Checker::count(const std::string& handle, const std::string& cidr, int by) {
  held_[handle][cidr] += by;
  touched_.insert(handle);
}

void Checker::check_counts(const std::string& handle) {
  for (const auto& [cidr, held] : held_[handle]) {
    const auto& counts = counted_[handle];
    const auto counted = counts.find(cidr);
    const std::uint32_t says = counted == counts.end() ? 0 : counted->second;
    if (held > 0 && says < static_cast<std::uint32_t>(held)) {
      violate("handle counts too few", fmt::format("{} holds {} in {}, its handle says {}", handle, held, cidr, says));
    }
  }
}

std::optional<core::Block> Checker::find(Server& server, const std::string& handle, const net::Address& address) const {
  const auto held = held_.find(handle);
  if (held == held_.end()) return {};
  for (const auto& [cidr, count] : held->second) {
    const auto prefix = net::Prefix::parse(cidr).value();
    if (count <= 0 || !prefix.contains(address)) continue;
    const auto record = server.records().get(core::block_key(prefix), {}).value();
    const auto* block = record ? record->get_if<core::Block>() : nullptr;
    const auto ordinal = net::ordinal_of(prefix, address);
    if (block == nullptr || !ordinal) continue;
    const core::Attribute* holder = core::attribute_of(*block, *ordinal);
    if (holder != nullptr && holder->handle_id == handle) return *block;
  }
  return {};
}

bool Checker::is_held(Server& server, const core::Owner& owner, const std::vector<net::Address>& addresses) const {
  return std::ranges::all_of(addresses, [&](const net::Address& address) {
    return find(server, core::handle_of(owner), address).has_value();
  });
}

void Checker::given(Server& server, const core::Owner& owner, const std::vector<net::Address>& addresses,
                    const std::string& strict_node, Span informed) {
  const std::string handle = core::handle_of(owner);
  for (const net::Address& address : addresses) {
    if (const auto other = lives_.find(address); other != lives_.end() && other->second != owner) {
      violate("two holders", fmt::format("{} was given to {}, and {} lives with it", address.to_string(), handle,
                                         core::handle_of(other->second)));
    }
    const auto found = find(server, handle, address);
    if (!found)
      violate("acknowledged and not recorded", fmt::format("{} was given to {}", address.to_string(), handle));
    const bool is_own = found && found->affinity && found->affinity->name == strict_node;
    if (found && !strict_node.empty() && !is_own) {
      violate("borrowed under strict affinity", fmt::format("{} of {} was given to {} on {}", address.to_string(),
                                                            found->cidr.to_string(), handle, strict_node));
    }
    check_in_use(address, handle, informed);
    lives_[address] = owner;
    had_[address] = {handle, kNever};
  }
}

/// A decision that knew that the address was out of use.
void Checker::check_in_use(const net::Address& address, const std::string& handle, Span informed) {
  const auto is_known = [&](Span since) { return since <= informed && since < taken_[address]; };
  const KnownPool* pool = pool_of(address);
  if (pool == nullptr || (!pool->is_open && is_known(pool->since))) {
    violate("given from no enabled pool", fmt::format("{} was given to {}", address.to_string(), handle));
  }
  for (const auto& [name, reservation] : reservations_) {
    const bool is_in = std::ranges::any_of(reservation.cidrs, [&](const auto& cidr) { return cidr.contains(address); });
    if (is_in && is_known(reservation.since)) {
      violate("given from a reservation", fmt::format("{} of {} was given to {}", address.to_string(), name, handle));
    }
  }
}

void Checker::left(const core::Owner& owner) {
  std::erase_if(lives_, [&](const auto& living) {
    if (living.second != owner) return false;
    had_[living.first].left = schedule_.now();
    return true;
  });
}

std::string Checker::living_with(const net::Address& address) const {
  const auto found = lives_.find(address);
  return found == lives_.end() ? std::string() : core::handle_of(found->second);
}

void Checker::expect_clean() {
  if (const std::string found = leak(); !found.empty()) violate("leaked for ever", found);
}

std::string Checker::leak() const {
  std::set<std::string> living;
  for (const auto& [address, owner] : lives_) living.insert(core::handle_of(owner));
  for (const auto& [handle, blocks] : held_) {
    for (const auto& [cidr, held] : blocks) {
      if (held > 0 && !living.contains(handle)) return fmt::format("{} holds {} in {}", handle, held, cidr);
    }
  }
  for (const auto& [handle, blocks] : counted_) {
    if (blocks.empty() || living.contains(handle)) continue;
    return fmt::format("{} counts in {}", handle, blocks.begin()->first);
  }
  return {};
}

}  // namespace croft::sim
