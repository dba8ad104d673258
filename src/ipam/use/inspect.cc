#include "ipam/use/inspect.h"

#include <algorithm>
#include <memory>
#include <utility>

#include "base/net/address.h"
#include "base/texts.h"
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
    std::set<net::Address> single;
    for (const net::Prefix& cidr : core::reserved_by(*reader_, pools_->pools())) {
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

[[nodiscard]] Result<std::optional<BlockView>> read_block(const Context& context, const core::PoolTable& pools,
                                                          const net::Prefix& cidr, const Instant& now) {
  TRY(const auto record, get_sound(context, core::block_key(cidr), deadline_of_use_case(context)));
  const auto* block = record ? &std::get<core::Block>(*record->value) : nullptr;
  if (block == nullptr || block->deleted) return std::optional<BlockView>();
  return std::optional(view_of(pools, *block, now));
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

/// The view of an address without a block.
AddressView address_view(const net::Address& address, core::AddressState state, const core::Pool* pool) {
  AddressView view;
  view.address = address;
  view.state = state;
  view.pool = pool != nullptr ? pool->name : "";
  return view;
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
  std::ranges::sort(cidrs);
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

Result<std::uint64_t> for_each_block(const Context& context, const std::function<void(const core::Block&)>& visit) {
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

Result<Overview> read_overview(const Context& context) {
  Overview overview;
  std::map<std::string, std::vector<BlockView>> blocks;
  TRY(Survey all, survey(context, [&](BlockView&& view) {
        (view.pool.empty() ? overview.stray_blocks : blocks[view.pool]).push_back(std::move(view));
      }));
  const auto cidr_of = [](const BlockView& view) { return view.block.cidr; };
  for (core::PoolFill& fill : all.pools) {
    std::vector<BlockView>& own = blocks[fill.pool.name];
    std::ranges::sort(own, {}, cidr_of);
    const Usage usage{fill.capacity, fill.held, fill.cooling, fill.reserved, fill.stranded};
    overview.pools.push_back({std::move(fill.pool), usage, std::move(own)});
  }
  std::ranges::sort(overview.stray_blocks, {}, cidr_of);
  return overview;
}

Result<Survey> survey(const Context& context, const std::function<void(BlockView&&)>& visit) {
  TRY(const auto frame, Frame::read(context));
  const core::PoolTable& pools = frame->pools();
  const Instant now = context.clock.now();
  std::map<std::string, core::PoolFill> found;
  for (const core::Pool* pool : pools.pools()) {
    core::PoolFill& fill = found[pool->name];
    fill.pool = *pool;
    fill.capacity = net::Count::of(pool->cidr);
    fill.reserved = pools.reserved()->count_in(pool->cidr);
  }
  TRY(const std::uint64_t left_out, for_each_block(context, [&](const core::Block& block) {
        BlockView view = view_of(pools, block, now);
        if (!view.pool.empty()) add_block(found[view.pool], pools, view, now);
        visit(std::move(view));
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
  TRY(std::optional<BlockView> view, read_block(context, frame->pools(), cidr, context.clock.now()));
  if (view) return *std::move(view);
  return fail(ErrorCode::not_found, "there is no block {}; `croft block list` names them", cidr);
}

Result<std::optional<core::Affinity>> read_owner_affinity(const Context& context, const core::Block& block) {
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
    const BlockView view = view_of(pools, block, now);
    for (std::uint32_t i = 0; i < view.states.size(); ++i) {
      if (view.states[i] != core::AddressState::free) result.push_back(address_view(pools, view, net::Ordinal(i), now));
    }
  }));
  // Larger reservations are shown as usage, not address by address.
  for (const net::Address& reserved : frame->reserved_addresses()) {
    if (std::ranges::any_of(blocks, [&](const net::Prefix& block) { return block.contains(reserved); })) continue;
    result.push_back(address_view(reserved, core::AddressState::reserved, pools.containing(reserved)));
  }
  std::ranges::sort(result, {}, &AddressView::address);
  return result;
}

Result<AddressView> show_address(const Context& context, const net::Address& address) {
  TRY(auto found, show_addresses(context, {address}));
  if (!found.empty()) return std::move(found.begin()->second);
  return fail(ErrorCode::not_found, "{} is in no pool; `croft pool list` names them", address);
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
        TRY(block->second, read_block(context, pools, *cidr, now));
      }
      if (block->second) {
        views[address] = address_view(pools, *block->second, *net::ordinal_of(*cidr, address), now);
        continue;
      }
    }
    const core::Pool* pool = pools.containing(address);
    if (pool == nullptr) continue;
    const auto state = pools.is_reserved(address) ? core::AddressState::reserved : core::AddressState::free;
    views[address] = address_view(address, state, pool);
  }
  return views;
}

}  // namespace croft::engine
