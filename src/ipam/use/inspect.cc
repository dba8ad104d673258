#include "ipam/use/inspect.h"

#include <algorithm>
#include <map>
#include <utility>

#include <fmt/format.h>

#include "base/net/intervals.h"
#include "base/time_text.h"
#include "ipam/decide/draft.h"
#include "ipam/use/config.h"
#include "ipam/use/each_record.h"

namespace croft::engine {
namespace {

constexpr net::Family kFamilies[] = {net::Family::v4, net::Family::v6};

Deadline deadline_of(const Context& context) { return deadline_of_use_case(context); }

[[nodiscard]] Result<core::KeyList> keys_of(const Context& context, const core::Listing& listing) {
  core::Missing wanted;
  wanted.keys.insert(listing);
  TRY(auto answer, context.store.read(wanted, deadline_of(context)));
  return std::move(answer.keys.front());
}

/// Pools and reservations as read outside a decision. Damaged records are left out.
class Frame {
 public:
  [[nodiscard]] static Result<Frame> read(const Context& context) {
    Frame frame;
    TRY(frame.pools_, list_pools(context));
    TRY_VOID(for_each_record(
        context, {core::Kind::reservation, ""},
        [&](const store::Record& record) {
          const auto& reservation = std::get<core::Reservation>(*record.value);
          frame.reserved_.insert(frame.reserved_.end(), reservation.cidrs.begin(), reservation.cidrs.end());
        },
        OnDamage::skip));
    for (const core::Pool& pool : frame.pools_) {
      const auto own = core::kept_by(pool);
      frame.reserved_.insert(frame.reserved_.end(), own.begin(), own.end());
    }
    std::sort(frame.reserved_.begin(), frame.reserved_.end());
    frame.reserved_.erase(std::unique(frame.reserved_.begin(), frame.reserved_.end()), frame.reserved_.end());
    frame.intervals_ = net::Intervals(frame.reserved_);
    const Deadline deadline = deadline_of(context);
    TRY(const core::KeyList pool_keys, keys_of(context, {core::Kind::pool, ""}));
    frame.pool_missing_ = pool_keys->size() > frame.pools_.size();
    TRY(const auto config, context.store.get(core::ipam_config_key(), deadline));
    if (config) {
      const auto* known = config->value ? &std::get<core::IpamConfig>(*config->value) : nullptr;
      frame.calicos_cooldown_ =
          known != nullptr ? std::chrono::seconds{known->ip_cooldown_seconds} : core::kUnknownCooldown;
      frame.is_strict_ = known != nullptr && known->strict_affinity;
    }
    return frame;
  }

  [[nodiscard]] const std::vector<core::Pool>& pools() const { return pools_; }
  [[nodiscard]] const std::vector<net::Prefix>& reserved() const { return reserved_; }
  [[nodiscard]] const core::Pool* pool_of(const net::Address& address) const {
    const auto it = std::find_if(pools_.begin(), pools_.end(), [&](const auto& p) { return p.cidr.contains(address); });
    return it == pools_.end() ? nullptr : &*it;
  }
  /// Whether a block is its owner's alone.
  [[nodiscard]] bool is_strict() const { return is_strict_; }
  [[nodiscard]] bool is_reserved(const net::Address& address) const { return intervals_.contains(address); }
  /// How many addresses of a prefix are reserved, held or not.
  [[nodiscard]] net::Count reserved_in(const net::Prefix& cidr) const { return intervals_.count_in(cidr); }
  [[nodiscard]] core::Cooldowns cooldowns_of(const net::Prefix& block) const {
    const core::Pool* pool = pool_of(block.first());
    const auto when_gone = pool_missing_ ? core::kUnknownCooldown : core::kCooldownMax;
    return {pool != nullptr ? pool->cooldown : when_gone, calicos_cooldown_};
  }

 private:
  std::vector<core::Pool> pools_;
  std::vector<net::Prefix> reserved_;
  net::Intervals intervals_;   ///< the same
  bool pool_missing_ = false;  ///< one is damaged
  std::chrono::seconds calicos_cooldown_{0};
  bool is_strict_ = false;
};

BlockView view_of(const Frame& frame, const core::Block& stored, const Instant& now) {
  BlockView view;
  view.block = core::with_cooled_freed(stored, frame.cooldowns_of(stored.cidr), now);
  const core::Pool* pool = frame.pool_of(stored.cidr.first());
  view.pool = pool != nullptr ? pool->name : "";
  view.usage.size = std::uint64_t{view.block.allocations.size()};
  for (std::uint32_t i = 0; i < view.block.allocations.size(); ++i) {
    const net::Ordinal ordinal(i);
    core::AddressState state = core::state_of(view.block, ordinal);
    if (state == core::AddressState::free && frame.is_reserved(net::address_at(view.block.cidr, ordinal))) {
      state = core::AddressState::reserved;
    }
    view.usage.held += state == core::AddressState::held ? 1 : 0;
    view.usage.cooling += state == core::AddressState::cooling ? 1 : 0;
    if (state == core::AddressState::reserved) view.usage.reserved += 1;
    view.states.push_back(state);
  }
  return view;
}

std::string text_of(const std::map<std::string, std::string>& map, const char* key) {
  const auto it = map.find(key);
  return it == map.end() ? "" : it->second;
}

/// Never shows a time that has passed as a second that is still to come.
std::string whole_seconds(WallTime time) { return rfc3339_exact(std::chrono::floor<std::chrono::seconds>(time)); }

void describe_holder(AddressView& view, const std::string& handle_id,
                     const std::map<std::string, std::string>& secondary) {
  view.handle_id = handle_id;
  view.owner = core::owner_of(handle_id, secondary);
  view.attributes = secondary;
  view.node = text_of(secondary, core::kNodeKey);
  view.pod = text_of(secondary, core::kPodKey);
  view.namespace_name = text_of(secondary, core::kNamespaceKey);
}

AddressView address_view(const Frame& frame, const BlockView& block, net::Ordinal ordinal, const Instant& now) {
  AddressView view;
  view.address = net::address_at(block.block.cidr, ordinal);
  view.state = block.states[ordinal.value];
  view.pool = block.pool;
  view.block = block.block.cidr;
  view.block_owner = block.block.affinity;
  const core::Attribute* attribute = core::attribute_of(block.block, ordinal);
  if (attribute == nullptr) return view;
  view.sequence_number = core::sequence_of(block.block, ordinal);
  if (attribute->cooling) {
    const core::Cooling& cooling = *attribute->cooling;
    describe_holder(view, cooling.previous_handle, cooling.previous_secondary);
    view.since = whole_seconds(cooling.released_at.wall);
    view.until = rfc3339_rounded_up(core::cooldown_end(cooling, frame.cooldowns_of(block.block.cidr).of(cooling), now));
  } else {
    describe_holder(view, attribute->handle_id.value_or(""), attribute->secondary);
    view.alternate_owner = attribute->alternate_owner;
    const auto since = parse_go_utc_text(text_of(attribute->secondary, core::kTimestampKey));
    view.since = since ? whole_seconds(*since) : "";
  }
  return view;
}

void add_usage(Usage& sum, const Usage& part) {
  sum.held += part.held;
  sum.cooling += part.cooling;
}

/// Addresses of a block that are held on a node which does not own it.
std::uint64_t borrowed_in(const core::Block& block) {
  std::uint64_t count = 0;
  for (std::uint32_t i = 0; i < block.allocations.size(); ++i) {
    const core::Attribute* attribute = core::attribute_of(block, net::Ordinal(i));
    if (attribute == nullptr || attribute->cooling) continue;
    const std::string node = text_of(attribute->secondary, core::kNodeKey);
    count += !node.empty() && (!block.affinity || block.affinity->name != node) ? 1 : 0;
  }
  return count;
}

/// Reserved addresses of a pool that nobody holds: all but those of its blocks, and of these the ones counted there.
net::Count reserved_in(const Frame& frame, const PoolView& pool) {
  net::Count count = frame.reserved_in(pool.pool.cidr);
  for (const BlockView& block : pool.blocks) {
    if (!pool.pool.cidr.contains(block.block.cidr)) continue;
    count -= frame.reserved_in(block.block.cidr);
    count += block.usage.reserved;
  }
  return count;
}

}  // namespace

Result<std::vector<core::Pool>> list_pools(const Context& context) {
  std::vector<core::Pool> pools;
  TRY_VOID(for_each_record(
      context, {core::Kind::pool, ""},
      [&](store::Record& record) { pools.push_back(std::get<core::Pool>(*std::move(record.value))); }, OnDamage::skip));
  return pools;
}

Result<std::vector<net::Prefix>> list_block_cidrs(const Context& context) {
  std::vector<net::Prefix> cidrs;
  Loader loader(context.store, deadline_of(context));
  for (const net::Family family : kFamilies) {
    const core::Listing listing{core::Kind::block, core::block_names_of(family)};
    core::Missing missing;
    missing.keys.insert(listing);
    TRY_VOID(loader.load(missing));
    for (const core::Key& key : *loader.snapshot().keys(listing)) {
      // Other keys there hold no address, and `croft check` names them.
      if (const auto cidr = core::block_cidr_of(key)) cidrs.push_back(*cidr);
    }
  }
  std::sort(cidrs.begin(), cidrs.end());
  return cidrs;
}

Result<void> for_each_affinity(const Context& context, const std::string& name_prefix,
                               const std::function<void(const core::Affinity&)>& visit) {
  return for_each_record(
      context, {core::Kind::affinity, name_prefix},
      [&](const store::Record& record) {
        const auto& affinity = std::get<core::Affinity>(*record.value);
        if (!affinity.deleted) visit(affinity);
      },
      OnDamage::skip);
}

Result<void> for_each_block(const Context& context, const std::function<void(const core::Block&)>& visit) {
  // A block of 256 addresses takes a quarter of a megabyte in memory.
  constexpr std::size_t kBlocksPage = 50;
  return for_each_in_any_order(
      context, {core::Kind::block, "", "", kBlocksPage},
      [&](const store::Record& record) {
        const auto& block = std::get<core::Block>(*record.value);
        if (!block.deleted) visit(block);
      },
      OnDamage::skip);
}

Result<Overview> look(const Context& context) {
  TRY(const Frame frame, Frame::read(context));
  const Instant now = context.clock.now();
  Overview overview;
  std::map<std::string, std::size_t> index;
  for (const core::Pool& pool : frame.pools()) {
    index[pool.name] = overview.pools.size();
    overview.pools.push_back({pool, {net::Count::of(pool.cidr), 0, 0, {}}, {}});
  }
  TRY_VOID(for_each_block(context, [&](const core::Block& block) {
    BlockView view = view_of(frame, block, now);
    if (view.pool.empty()) {
      overview.stray_blocks.push_back(std::move(view));
      return;
    }
    PoolView& pool = overview.pools[index[view.pool]];
    add_usage(pool.usage, view.usage);
    pool.blocks.push_back(std::move(view));
  }));
  const auto by_cidr = [](const BlockView& a, const BlockView& b) { return a.block.cidr < b.block.cidr; };
  for (PoolView& pool : overview.pools) {
    std::sort(pool.blocks.begin(), pool.blocks.end(), by_cidr);
    pool.usage.reserved = reserved_in(frame, pool);
  }
  std::sort(overview.stray_blocks.begin(), overview.stray_blocks.end(), by_cidr);
  return overview;
}

Result<std::vector<core::PoolFill>> fill_of_pools(const Context& context) {
  TRY(const Frame frame, Frame::read(context));
  const Instant now = context.clock.now();
  std::vector<core::PoolFill> pools;
  std::map<std::string, std::size_t> index;
  for (const core::Pool& pool : frame.pools()) {
    index[pool.name] = pools.size();
    core::PoolFill fill;
    fill.pool = pool;
    fill.capacity = net::Count::of(pool.cidr);
    fill.reserved = frame.reserved_in(pool.cidr);
    pools.push_back(std::move(fill));
  }
  TRY_VOID(for_each_block(context, [&](const core::Block& block) {
    const BlockView view = view_of(frame, block, now);
    const auto found = index.find(view.pool);
    if (found == index.end()) return;
    core::PoolFill& pool = pools[found->second];
    ++pool.blocks;
    pool.held += view.usage.held;
    pool.cooling += view.usage.cooling;
    pool.owned_blocks += view.block.affinity ? 1 : 0;
    pool.borrowed += borrowed_in(view.block);
    if (!pool.pool.cidr.contains(view.block.cidr)) return;
    if (frame.is_strict() && view.block.affinity) pool.stranded += view.usage.free();
    pool.reserved -= frame.reserved_in(view.block.cidr);
    pool.reserved += view.usage.reserved;
  }));
  return pools;
}

bool AddressView::borrowed() const {
  return state == core::AddressState::held && !node.empty() && (!block_owner || block_owner->name != node);
}

std::string AddressView::type() const {
  if (attributes.contains("vmi-name")) return "vmi";
  if (!pod.empty()) return "pod";
  return text_of(attributes, "type");
}

Result<BlockView> show_block(const Context& context, const net::Prefix& cidr) {
  TRY(const Frame frame, Frame::read(context));
  TRY(const auto record, get_sound(context, core::block_key(cidr), deadline_of(context)));
  const core::Block* found = record ? &std::get<core::Block>(*record->value) : nullptr;
  if (found == nullptr || found->deleted) {
    return fail(ErrorCode::not_found, "there is no block " + cidr.to_string() + "; `croft block list` names them");
  }
  const core::Block& block = *found;
  return view_of(frame, block, context.clock.now());
}

Result<std::optional<core::Affinity>> claim_on(const Context& context, const core::Block& block) {
  if (!block.affinity) return std::optional<core::Affinity>();
  const core::Key key = core::affinity_key(*block.affinity, block.cidr);
  TRY(const auto record, get_sound(context, key, deadline_of(context)));
  if (!record) return std::optional<core::Affinity>();
  return std::optional(std::get<core::Affinity>(*record->value));
}

Result<std::vector<AddressView>> list_addresses(const Context& context) {
  TRY(const Frame frame, Frame::read(context));
  const Instant now = context.clock.now();
  std::vector<AddressView> result;
  std::vector<net::Prefix> blocks;
  TRY_VOID(for_each_block(context, [&](const core::Block& block) {
    const BlockView view = view_of(frame, block, now);
    blocks.push_back(block.cidr);
    for (std::uint32_t i = 0; i < view.states.size(); ++i) {
      if (view.states[i] != core::AddressState::free) result.push_back(address_view(frame, view, net::Ordinal(i), now));
    }
  }));
  for (const net::Prefix& reserved : frame.reserved()) {
    // Single addresses only: larger reservations are shown as usage, not address by address.
    if (reserved.length() != net::bit_length(reserved.family())) continue;
    const auto in_block = [&](const net::Prefix& block) { return block.contains(reserved.first()); };
    if (std::any_of(blocks.begin(), blocks.end(), in_block)) continue;
    const core::Pool* pool = frame.pool_of(reserved.first());
    AddressView view;
    view.address = reserved.first();
    view.state = core::AddressState::reserved;
    view.pool = pool != nullptr ? pool->name : "";
    result.push_back(std::move(view));
  }
  std::sort(result.begin(), result.end(), [](const auto& a, const auto& b) { return a.address < b.address; });
  return result;
}

Result<AddressView> show_address(const Context& context, const net::Address& address) {
  TRY(const Frame frame, Frame::read(context));
  const Instant now = context.clock.now();
  TRY(const std::vector<net::Prefix> cidrs, list_block_cidrs(context));
  const auto it = std::find_if(cidrs.begin(), cidrs.end(), [&](const auto& cidr) { return cidr.contains(address); });
  if (it != cidrs.end()) {
    TRY(const auto record, get_sound(context, core::block_key(*it), deadline_of(context)));
    if (record) {
      const auto& block = std::get<core::Block>(*record->value);
      if (!block.deleted) return address_view(frame, view_of(frame, block, now), *net::ordinal_of(*it, address), now);
    }
  }
  const core::Pool* pool = frame.pool_of(address);
  if (pool == nullptr)
    return fail(ErrorCode::not_found, address.to_string() + " is in no pool; `croft pool list` names them");
  AddressView view;
  view.address = address;
  view.state = frame.is_reserved(address) ? core::AddressState::reserved : core::AddressState::free;
  view.pool = pool->name;
  return view;
}

}  // namespace croft::engine
