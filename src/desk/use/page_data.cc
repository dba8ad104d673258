#include "desk/use/page_data.h"

#include <algorithm>
#include <array>
#include <utility>

#include "base/texts.h"
#include "ipam/use/inspect.h"
#include "ipam/use/pools.h"
#include "ipam/use/transact.h"
#include "register/service.h"
#include "services/use/service.h"

namespace croft::engine {
namespace {

using core::desk::AddressMap;
using core::desk::Mark;

AddressMap::Block block_of(const BlockView& view) {
  AddressMap::Block block{view.block.cidr, view.block.affinity ? to_string(*view.block.affinity) : "", {}};
  block.marks.reserve(view.states.size());
  for (std::uint32_t i = 0; i < view.states.size(); ++i) {
    const bool is_borrowed = view.states[i] == core::AddressState::held &&
                             core::is_borrowed(view.block, *core::attribute_of(view.block, net::Ordinal(i)));
    block.marks.push_back(mark_of(view.states[i], is_borrowed));
  }
  return block;
}

/// Those that a store of Croft's, or an etcd of Kubernetes', keeps as bitmaps.
[[nodiscard]] Result<void> add_bitmap_ranges(const Context& context, std::vector<net::Prefix>& ranges) {
  if (context.store.capabilities().lacks.contains(core::Kind::range_allocation)) return {};
  for (const std::string_view name : {core::kServiceIps, core::kSecondaryServiceIps}) {
    TRY(const auto record, get_sound(context, core::range_allocation_key(name), deadline_of_use_case(context)));
    if (!record) continue;
    const auto cidr = net::Prefix::parse(std::get<core::RangeAllocation>(*record->value).range);
    if (cidr) ranges.push_back(*cidr);
  }
  return {};
}

[[nodiscard]] Result<void> add_service_ranges(const Context& context, PageData& data) {
  TRY(const auto objects, service_cidrs(context));
  for (const TakenSpace& one : objects) data.service_ranges.push_back(one.cidr);
  TRY_VOID(add_bitmap_ranges(context, data.service_ranges));
  std::ranges::sort(data.service_ranges);
  const auto same = std::ranges::unique(data.service_ranges);
  data.service_ranges.erase(same.begin(), same.end());
  data.are_service_ranges_known = true;
  return {};
}

[[nodiscard]] Result<void> add_services(const Context& context, PageData& data) {
  TRY(const auto services, list_services(context));
  for (const StoredService& one : services) {
    for (const net::Address& address : core::addresses_of(one.service)) data.map.add(address, Mark::service);
  }
  return {};
}

}  // namespace

Mark mark_of(core::AddressState state, bool is_borrowed) {
  constexpr std::array kMarks{Mark::free, Mark::used, Mark::cooling, Mark::reserved};
  return is_borrowed ? Mark::borrowed : kMarks[static_cast<std::size_t>(state)];
}

Result<PageData> read_page_data(const Context& context) {
  PageData data;
  data.begun = context.clock.now();
  TRY(Survey seen, survey(context, [&](const BlockView& view) { data.map.add_block(block_of(view)); }));
  data.pools = std::move(seen.pools);
  data.strict_affinity = seen.strict_affinity;
  data.map.set_reserved(std::move(seen.reserved));
  TRY(data.nodes, list_nodes(context));
  if (seen.unreadable_blocks > 0) {
    data.notes.push_back(
        counted_as(seen.unreadable_blocks, "block cannot be read and is", "blocks cannot be read and are") +
        " not shown; croft check names them");
  }
  if (const auto done = add_service_ranges(context, data); !done) {
    data.notes.push_back("the ranges of Services are not known: " + done.error().message);
  }
  if (const auto done = add_services(context, data); !done) {
    data.notes.push_back("Services are not shown: " + done.error().message);
  }
  data.map.freeze();
  return data;
}

}  // namespace croft::engine
