#include "sim/checker.h"

#include <algorithm>
#include <utility>
#include <variant>

#include <fmt/format.h>

#include "base/net/ordinal.h"
#include "register/quarantine.h"

namespace croft::sim {
namespace {

bool holds(const core::Attribute* attribute) { return attribute != nullptr && attribute->handle_id.has_value(); }

/// Nobody's handle (register/quarantine.h): its address is kept from everybody.
bool is_quarantine(const std::string& handle) { return handle.find('.') == handle.npos; }

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
      const auto* pool = changed.after ? std::get_if<core::Pool>(&*changed.after) : nullptr;
      if (pool != nullptr) {
        pools_.insert_or_assign(changed.key.name, *pool);
      } else {
        pools_.erase(changed.key.name);
      }
    } else if (changed.key.kind == core::Kind::handle) {
      handle_changed(changed.key, changed.after);
    } else if (changed.key.kind == core::Kind::block) {
      block_changed(changed.before, changed.after);
    }
  }
  for (const std::string& handle : std::exchange(touched_, {})) check_counts(handle);
}

void Checker::put_back(Server& server) {
  lives_.clear();
  rests_.clear();
  pools_.clear();
  held_.clear();
  counted_.clear();
  sequences_.clear();
  std::vector<Changed> all;
  for (store::Record& record : server.copy().records)
    all.push_back({record.key, std::nullopt, std::move(record.value)});
  committed(all);
}

std::chrono::seconds Checker::cooldown_of(const net::Address& address) const {
  for (const auto& [name, pool] : pools_) {
    if (pool.cidr.contains(address)) return pool.cooldown;
  }
  return std::chrono::seconds{0};
}

void Checker::block_changed(const std::optional<core::Value>& before, const std::optional<core::Value>& after) {
  const core::Block* was = block_in(before);
  const core::Block* is = block_in(after);
  const core::Block& either = is != nullptr ? *is : *was;
  if (is != nullptr) {
    core::SequenceNumber& last = sequences_[either.cidr];
    if (is->sequence_number < last || (is->sequence_number == last && was == nullptr)) {
      violate("sequence number repeated",
              fmt::format("block {} has {} after {}", either.cidr.to_string(), is->sequence_number.value, last.value));
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
  if (holds(is) && !is_quarantine(*is->handle_id)) {
    const auto rest = rests_.find(address);
    // A release that could not be done as a whole is taken back.
    const bool is_taken_back = rest != rests_.end() && rest->second.of == *is->handle_id;
    if (rest != rests_.end() && !is_taken_back && rest->second.until > schedule_.now()) {
      violate("cooldown cut short",
              fmt::format("{} of {} went to {} with {} ms left", address.to_string(), rest->second.of, *is->handle_id,
                          (rest->second.until - schedule_.now()).count() / 1'000'000));
    }
    rests_.erase(address);
  }
  if (!holds(was)) return;
  // An ADD that could not be done as a whole is taken back: nobody lived with what it had.
  const auto had = had_.find(address);
  if (had == had_.end() || had->second != *was->handle_id) return;
  had_.erase(had);
  const std::chrono::seconds cooldown = cooldown_of(address);
  if (cooldown.count() == 0) return;
  // Also where one commit releases an address and gives it to the next.
  if (is == nullptr || !is->cooling) {
    return violate("released without rest", fmt::format("{} of {}", address.to_string(), *was->handle_id));
  }
  // By the clock that nobody sets, of the machine that released it.
  const auto boot = boots_.find(is->cooling->released_at.boot);
  const Span released = boot == boots_.end() ? schedule_.now() : boot->second + is->cooling->released_at.since_boot;
  rests_[address] = {released + cooldown, *was->handle_id};
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
  if (is_quarantine(handle)) return;
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
    const auto* block = record ? std::get_if<core::Block>(&record->value) : nullptr;
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
                    const std::string& strict_node) {
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
    lives_[address] = owner;
    had_[address] = handle;
  }
}

void Checker::left(const core::Owner& owner) {
  std::erase_if(lives_, [&](const auto& living) { return living.second == owner; });
}

std::string Checker::living_with(const net::Address& address) const {
  const auto found = lives_.find(address);
  return found == lives_.end() ? std::string() : core::handle_of(found->second);
}

bool Checker::is_clean() { return leak().empty(); }

void Checker::expect_clean() {
  if (const std::string found = leak(); !found.empty()) violate("leaked for ever", found);
}

std::string Checker::leak() const {
  std::set<std::string> living;
  for (const auto& [address, owner] : lives_) living.insert(core::handle_of(owner));
  const auto is_left_alone = [&](const std::string& handle) {
    return is_quarantine(handle) || living.contains(handle);
  };
  for (const auto& [handle, blocks] : held_) {
    for (const auto& [cidr, held] : blocks) {
      if (held > 0 && !is_left_alone(handle)) return fmt::format("{} holds {} in {}", handle, held, cidr);
    }
  }
  for (const auto& [handle, blocks] : counted_) {
    if (blocks.empty() || is_left_alone(handle)) continue;
    return fmt::format("{} counts in {}", handle, blocks.begin()->first);
  }
  return {};
}

}  // namespace croft::sim
