#include "ipam/use/inspect.h"

#include <algorithm>
#include <memory>
#include <utility>

#include "base/net/address.h"
#include "base/time_text.h"
#include "ipam/decide/draft.h"
#include "ipam/use/transact.h"

namespace croft::engine {
namespace {

/// Pools, reservations and switches as read outside a decision.
class Frame {
 public:
  [[nodiscard]] static Result<std::unique_ptr<Frame>> read(const Context& context) {
    auto frame = std::make_unique<Frame>(context);
    TRY_VOID(read_for(context.clock, frame->loader_, [](core::Reader& reader) { core::PoolTable{reader}; }));
    frame->reader_.emplace(frame->loader_.snapshot());
    frame->pools_.emplace(*frame->reader_);
    return frame;
  }
  explicit Frame(const Context& context) : loader_(context.store, deadline_of_use_case(context)) {}

  [[nodiscard]] const core::PoolTable& pools() const { return *pools_; }
  /// Those that are reserved one by one.
  [[nodiscard]] std::set<net::Address> reserved_addresses() {
    std::vector<net::Prefix> cidrs;
    for (const core::Pool* pool : pools_->pools()) {
      const auto own = core::kept_by(*pool);
      cidrs.insert(cidrs.end(), own.begin(), own.end());
    }
    for (const auto& [key, value] : reader_->sound({core::Kind::reservation, ""})) {
      const auto& reservation = std::get<core::Reservation>(value);
      cidrs.insert(cidrs.end(), reservation.cidrs.begin(), reservation.cidrs.end());
    }
    std::set<net::Address> single;
    for (const net::Prefix& cidr : cidrs) {
      if (cidr.length() == net::bit_length(cidr.family())) single.insert(cidr.first());
    }
    return single;
  }

 private:
  Loader loader_;
  std::optional<core::Reader> reader_;
  std::optional<core::PoolTable> pools_;
};

BlockView view_of(const core::PoolTable& pools, const core::Block& stored, const Instant& now) {
  BlockView view;
  view.block = core::with_cooled_freed(stored, pools.cooldowns_of(stored.cidr), now);
  const core::Pool* pool = pools.containing(stored.cidr.first());
  view.pool = pool != nullptr ? pool->name : "";
  view.usage.size = std::uint64_t{view.block.allocations.size()};
  for (std::uint32_t i = 0; i < view.block.allocations.size(); ++i) {
    const net::Ordinal ordinal(i);
    core::AddressState state = core::state_of(view.block, ordinal);
    if (state == core::AddressState::free && pools.is_reserved(net::address_at(view.block.cidr, ordinal))) {
      state = core::AddressState::reserved;
    }
    view.usage.held += state == core::AddressState::held ? 1 : 0;
    view.usage.cooling += state == core::AddressState::cooling ? 1 : 0;
    if (state == core::AddressState::reserved) view.usage.reserved += 1;
    view.states.push_back(state);
  }
  if (pools.config().strict_affinity && view.block.affinity) view.usage.stranded = view.usage.free();
  return view;
}

/// Never shows a time that has passed as a second that is still to come.
std::string whole_seconds(WallTime time) { return rfc3339_exact(std::chrono::floor<std::chrono::seconds>(time)); }

void describe_holder(AddressView& view, const std::string& handle_id,
                     const std::map<std::string, std::string>& secondary) {
  view.handle_id = handle_id;
  view.owner = core::owner_of(handle_id, secondary);
  view.attributes = secondary;
  view.node = core::member_of(secondary, core::kNodeKey);
  view.pod = core::member_of(secondary, core::kPodKey);
  view.namespace_name = core::member_of(secondary, core::kNamespaceKey);
}

AddressView address_view(const core::PoolTable& pools, const BlockView& block, net::Ordinal ordinal,
                         const Instant& now) {
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
    view.until = rfc3339_rounded_up(core::cooldown_end(cooling, pools.cooldowns_of(block.block.cidr).of(cooling), now));
  } else {
    describe_holder(view, attribute->handle_id.value_or(""), attribute->secondary);
    view.alternate_owner = attribute->alternate_owner;
    const auto since = parse_go_utc_text(core::member_of(attribute->secondary, core::kTimestampKey));
    view.since = since ? whole_seconds(*since) : "";
  }
  return view;
}

/// Adds the addresses of a block that are not simply free.
void add_addresses(const core::PoolTable& pools, const BlockView& block, const Instant& now,
                   std::vector<AddressView>& views) {
  for (std::uint32_t i = 0; i < block.states.size(); ++i) {
    if (block.states[i] != core::AddressState::free) views.push_back(address_view(pools, block, net::Ordinal(i), now));
  }
}

/// The numbers of a pool without blocks.
core::PoolFill empty_fill(const core::PoolTable& pools, const core::Pool& pool) {
  core::PoolFill fill;
  fill.pool = pool;
  fill.capacity = net::Count::of(pool.cidr);
  fill.reserved = pools.reserved()->count_in(pool.cidr);
  return fill;
}

/// Adds a block of the pool.
void add_block(core::PoolFill& fill, const core::PoolTable& pools, const BlockView& view, const Instant& now) {
  ++fill.blocks;
  fill.held += view.usage.held;
  fill.cooling += view.usage.cooling;
  const auto end = core::first_cooldown_end(view.block, pools.cooldowns_of(view.block.cidr), now);
  if (end && (!fill.cools_until || *end < *fill.cools_until)) fill.cools_until = end;
  fill.owned_blocks += view.block.affinity ? 1 : 0;
  core::for_each_held(view.block, [&](net::Ordinal, const core::Attribute& holder) {
    fill.borrowed += core::is_borrowed(view.block, holder) ? 1 : 0;
  });
  if (!fill.pool.cidr.contains(view.block.cidr)) return;
  fill.stranded += view.usage.stranded;
  fill.reserved -= pools.reserved()->count_in(view.block.cidr);
  fill.reserved += view.usage.reserved;
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
  Loader loader(context.store, deadline_of_use_case(context));
  for (const net::Family family : net::kFamilies) {
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

namespace {

/// Returns how many are left out.
[[nodiscard]] Result<std::uint64_t> for_each_sound_block(const Context& context,
                                                         const std::function<void(const core::Block&)>& visit) {
  // A block of 256 addresses takes a quarter of a megabyte in memory.
  constexpr std::size_t kBlocksPage = 50;
  std::uint64_t left_out = 0;
  TRY_VOID(for_each_in_any_order(
      context, {core::Kind::block, "", kBlocksPage},
      [&](const store::Record& record) {
        const auto* block = record.value ? &std::get<core::Block>(*record.value) : nullptr;
        left_out += block == nullptr ? 1 : 0;
        if (block != nullptr && !block->deleted) visit(*block);
      },
      OnDamage::visit));
  return left_out;
}

}  // namespace

Result<void> for_each_block(const Context& context, const std::function<void(const core::Block&)>& visit) {
  TRY_VOID(for_each_sound_block(context, visit));
  return {};
}

Result<Overview> look(const Context& context) {
  TRY(const auto frame, Frame::read(context));
  const core::PoolTable& pools = frame->pools();
  const Instant now = context.clock.now();
  Overview overview;
  std::map<std::string, std::pair<core::PoolFill, std::vector<BlockView>>> found;
  for (const core::Pool* pool : pools.pools()) found[pool->name].first = empty_fill(pools, *pool);
  TRY_VOID(for_each_block(context, [&](const core::Block& block) {
    BlockView view = view_of(pools, block, now);
    if (view.pool.empty()) return overview.stray_blocks.push_back(std::move(view));
    auto& [fill, blocks] = found[view.pool];
    add_block(fill, pools, view, now);
    blocks.push_back(std::move(view));
  }));
  const auto by_cidr = [](const BlockView& a, const BlockView& b) { return a.block.cidr < b.block.cidr; };
  for (auto& [name, both] : found) {
    auto& [fill, blocks] = both;
    std::sort(blocks.begin(), blocks.end(), by_cidr);
    const Usage usage{fill.capacity, fill.held, fill.cooling, fill.reserved, fill.stranded};
    overview.pools.push_back({std::move(fill.pool), usage, std::move(blocks)});
  }
  std::sort(overview.stray_blocks.begin(), overview.stray_blocks.end(), by_cidr);
  return overview;
}

Result<Survey> survey(const Context& context, const std::function<void(const BlockView&)>& visit) {
  TRY(const auto frame, Frame::read(context));
  const core::PoolTable& pools = frame->pools();
  const Instant now = context.clock.now();
  std::map<std::string, core::PoolFill> found;
  for (const core::Pool* pool : pools.pools()) found[pool->name] = empty_fill(pools, *pool);
  TRY(const std::uint64_t left_out, for_each_sound_block(context, [&](const core::Block& block) {
        const BlockView view = view_of(pools, block, now);
        if (!view.pool.empty()) add_block(found[view.pool], pools, view, now);
        visit(view);
      }));
  Survey all{{}, pools.reserved(), pools.config().strict_affinity, left_out};
  for (auto& [name, fill] : found) all.pools.push_back(std::move(fill));
  return all;
}

Result<std::vector<core::PoolFill>> fill_of_pools(const Context& context) {
  TRY(Survey all, survey(context, [](const BlockView&) {}));
  return std::move(all.pools);
}

bool AddressView::borrowed() const {
  return state == core::AddressState::held && !node.empty() && (!block_owner || block_owner->name != node);
}

std::string AddressView::type() const {
  if (attributes.contains("vmi-name")) return "vmi";
  if (!pod.empty()) return "pod";
  return core::member_of(attributes, "type");
}

Result<BlockView> show_block(const Context& context, const net::Prefix& cidr) {
  TRY(const auto frame, Frame::read(context));
  const core::PoolTable& pools = frame->pools();
  TRY(const auto record, get_sound(context, core::block_key(cidr), deadline_of_use_case(context)));
  const core::Block* found = record ? &std::get<core::Block>(*record->value) : nullptr;
  if (found == nullptr || found->deleted) {
    return fail(ErrorCode::not_found, "there is no block " + cidr.to_string() + "; `croft block list` names them");
  }
  const core::Block& block = *found;
  return view_of(pools, block, context.clock.now());
}

Result<std::optional<core::Affinity>> affinity_of(const Context& context, const core::Block& block) {
  if (!block.affinity) return std::optional<core::Affinity>();
  const core::Key key = core::affinity_key(*block.affinity, block.cidr);
  TRY(const auto record, get_sound(context, key, deadline_of_use_case(context)));
  if (!record) return std::optional<core::Affinity>();
  return std::optional(std::get<core::Affinity>(*record->value));
}

Result<std::vector<AddressView>> list_addresses(const Context& context) {
  TRY(const auto frame, Frame::read(context));
  const core::PoolTable& pools = frame->pools();
  const Instant now = context.clock.now();
  std::vector<AddressView> result;
  std::vector<net::Prefix> blocks;
  TRY_VOID(for_each_block(context, [&](const core::Block& block) {
    blocks.push_back(block.cidr);
    add_addresses(pools, view_of(pools, block, now), now, result);
  }));
  // Larger reservations are shown as usage, not address by address.
  for (const net::Address& reserved : frame->reserved_addresses()) {
    const auto in_block = [&](const net::Prefix& block) { return block.contains(reserved); };
    if (std::any_of(blocks.begin(), blocks.end(), in_block)) continue;
    const core::Pool* pool = pools.containing(reserved);
    AddressView view;
    view.address = reserved;
    view.state = core::AddressState::reserved;
    view.pool = pool != nullptr ? pool->name : "";
    result.push_back(std::move(view));
  }
  std::sort(result.begin(), result.end(), [](const auto& a, const auto& b) { return a.address < b.address; });
  return result;
}

Result<AddressView> show_address(const Context& context, const net::Address& address) {
  TRY(auto found, show_addresses(context, {address}));
  if (!found.empty()) return std::move(found.begin()->second);
  return fail(ErrorCode::not_found, address.to_string() + " is in no pool; `croft pool list` names them");
}

Result<std::map<net::Address, AddressView>> show_addresses(const Context& context,
                                                           const std::set<net::Address>& addresses) {
  TRY(const auto frame, Frame::read(context));
  const core::PoolTable& pools = frame->pools();
  const Instant now = context.clock.now();
  TRY(const std::vector<net::Prefix> cidrs, list_block_cidrs(context));
  std::map<net::Prefix, std::optional<BlockView>> blocks;
  std::map<net::Address, AddressView> views;
  for (const net::Address& address : addresses) {
    const auto cidr = std::ranges::find_if(cidrs, [&](const auto& one) { return one.contains(address); });
    if (cidr != cidrs.end()) {
      const auto [block, is_unread] = blocks.try_emplace(*cidr);
      if (is_unread) {
        TRY(const auto record, get_sound(context, core::block_key(*cidr), deadline_of_use_case(context)));
        const auto* there = record ? &std::get<core::Block>(*record->value) : nullptr;
        if (there != nullptr && !there->deleted) block->second = view_of(pools, *there, now);
      }
      if (block->second) {
        views[address] = address_view(pools, *block->second, *net::ordinal_of(*cidr, address), now);
        continue;
      }
    }
    const core::Pool* pool = pools.containing(address);
    if (pool == nullptr) continue;
    AddressView view;
    view.address = address;
    view.state = pools.is_reserved(address) ? core::AddressState::reserved : core::AddressState::free;
    view.pool = pool->name;
    views[address] = std::move(view);
  }
  return views;
}

}  // namespace croft::engine
