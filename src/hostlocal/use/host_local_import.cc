#include "hostlocal/use/host_local_import.h"

#include <algorithm>
#include <map>
#include <optional>
#include <utility>
#include <variant>

#include <fmt/format.h>

#include "base/net/echo.h"
#include "base/net/range_prefixes.h"
#include "hostlocal/decide/range_set.h"
#include "ipam/decide/keep_out.h"
#include "ipam/use/assign.h"
#include "ipam/use/inspect.h"
#include "ipam/use/release.h"

namespace croft::engine {
namespace {

using core::host_local::Holder;
using store::Reservation;
using store::Reservations;
using Outcome = MovedHolder::Outcome;

[[nodiscard]] Result<std::vector<core::Pool>> named_pools(const Context& context, const MoveRequest& request) {
  TRY(const auto all, list_pools(context));
  std::vector<core::Pool> named;
  for (const std::string& name : request.pools) {
    const auto found = std::find_if(all.begin(), all.end(), [&](const core::Pool& pool) { return pool.name == name; });
    if (found == all.end()) return fail(ErrorCode::not_found, fmt::format("no pool \"{}\"; see croft pool list", name));
    named.push_back(*found);
  }
  return named;
}

/// Whether some pool gives an address of these to whoever asks.
[[nodiscard]] Result<bool> may_be_given_out(const Context& context, const std::vector<net::Address>& addresses) {
  TRY(const auto pools, list_pools(context));
  return std::ranges::any_of(pools, [&](const core::Pool& pool) {
    return !pool.disabled && std::ranges::any_of(addresses, [&](const auto& a) { return pool.cidr.contains(a); });
  });
}

bool in_a_pool(const std::vector<core::Pool>& pools, const net::Address& address) {
  return std::any_of(pools.begin(), pools.end(), [&](const core::Pool& pool) { return pool.cidr.contains(address); });
}

/// One holder's reservations, to be moved together: an owner's addresses are one commit.
struct Group {
  MovedHolder moved;
  std::vector<Reservation> reservations;
  bool nobodys = false;  ///< a file without content: whoever made it never answered; or of a holder that is gone

  void leave(std::string reason) {
    moved.outcome = Outcome::left;
    moved.reason = std::move(reason);
  }
  void clash(std::string reason) {
    moved.outcome = Outcome::clashes;
    moved.reason = std::move(reason);
  }
};

std::vector<Group> groups_of(const std::vector<Reservation>& reservations) {
  std::map<Holder, Group> by_holder;
  std::vector<Group> groups;
  for (const Reservation& reservation : reservations) {
    if (reservation.empty || !reservation.holder) {
      Group& group = groups.emplace_back();
      group.moved.addresses = {reservation.address};
      group.nobodys = reservation.empty;
      group.leave(reservation.empty
                      ? "its file is empty: croft host-local repair removes it"
                      : "its file does not say who holds it; nothing is read through a link, a FIFO or a device");
      continue;
    }
    Group& group = by_holder[*reservation.holder];
    group.moved.holder = *reservation.holder;
    group.moved.addresses.push_back(reservation.address);
    group.reservations.push_back(reservation);
  }
  for (auto& [holder, group] : by_holder) groups.push_back(std::move(group));
  return groups;
}

std::string reason_of(const core::Refusal& refusal) {
  const Error error = core::to_error(refusal);
  return error.details.empty() ? error.message : error.message + ": " + error.details;
}

/// Whether the owner holds all of these, and maybe more.
[[nodiscard]] Result<bool> holds_all(const Context& context, const core::Owner& owner,
                                     const std::vector<net::Address>& addresses) {
  for (const net::Address& address : addresses) {
    TRY(const AddressView view, show_address(context, address));
    if (view.state != core::AddressState::held || view.owner != owner) return false;
  }
  return true;
}

/// Why a dry run expects a clash; empty when it does not.
[[nodiscard]] Result<std::string> expected_clash(const Context& context, const core::Owner& owner,
                                                 const std::vector<net::Address>& addresses) {
  std::optional<net::Address> held, wanted;
  for (const net::Address& address : addresses) {
    TRY(const AddressView view, show_address(context, address));
    const bool free = view.state == core::AddressState::free;
    const bool ours = view.state == core::AddressState::held && view.owner == owner;
    if (free) wanted = address;
    if (ours) held = address;
    if (held && wanted) {
      return fmt::format("its container holds {} in the pool already, and gets {} no more: delete it first",
                         held->to_string(), wanted->to_string());
    }
    if (free || ours) continue;
    return fmt::format("{} is {}{}", address.to_string(), core::name_of(view.state),
                       view.owner ? " for container " + view.owner->container_id : "");
  }
  return std::string();
}

/// Why the store can have no handle of this owner, so that it can hold nothing there; empty when it can.
[[nodiscard]] Result<std::string> why_no_handle(const Context& context, const core::Owner& owner) {
  const core::Key key = core::handle_key(core::handle_of(owner));
  if (key.name.size() > core::kKeyNameBytesMax) {
    return fmt::format("the register takes names of {} bytes, and its handle has {}", core::kKeyNameBytesMax,
                       key.name.size());
  }
  TRY(const auto record, context.store.get(key, deadline_of_use_case(context)));
  const Error* damage = record ? core::damage_of(record->value) : nullptr;
  return damage != nullptr ? damage->message : std::string();
}

/// Decides what can be decided from the directory and the pools; true when the group is to be moved.
bool may_move(Group& group, const std::vector<core::Pool>& pools, const MoveRequest& request) {
  if (group.reservations.empty()) return false;
  // All of a holder's or none: one that lives in part lives.
  const auto gone = [&](const net::Address& address) { return request.gone.contains(address); };
  if (std::ranges::all_of(group.moved.addresses, gone)) {
    group.nobodys = true;
    group.leave(request.gone.at(group.moved.addresses.front()));
    return false;
  }
  Holder& holder = group.moved.holder;
  if (holder.interface_name.empty()) holder.interface_name = request.interface_name;
  if (holder.interface_name.empty()) {
    group.leave("its file names no interface: give one with --interface");
    return false;
  }
  for (const net::Address& address : group.moved.addresses) {
    const auto contains = [&](const net::Prefix& prefix) { return prefix.contains(address); };
    if (!request.only_in.empty() && std::ranges::none_of(request.only_in, contains)) {
      group.leave(fmt::format("{} is not in the range of this node", address.to_string()));
      return false;
    }
    if (in_a_pool(pools, address)) continue;
    group.leave(fmt::format("{} is in none of the pools", address.to_string()));
    return false;
  }
  return true;
}

[[nodiscard]] Result<void> move_in(const Context& context, Reservations& reservations, const MoveRequest& request,
                                   Group& group) {
  const core::Owner owner{request.network, group.moved.holder.container_id, group.moved.holder.interface_name};
  // Its own matter: the others are moved.
  TRY(const std::string no_handle, why_no_handle(context, owner));
  if (!no_handle.empty()) {
    group.leave(no_handle);
    return {};
  }
  if (request.dry_run) {
    TRY(const std::string clash, expected_clash(context, owner, group.moved.addresses));
    if (!clash.empty()) group.clash(clash);
    if (clash.empty()) group.moved.outcome = Outcome::moved;
    return {};
  }
  core::AssignRequest assignment;
  assignment.owner = owner;
  assignment.node = request.node;
  assignment.count = {0, 0};
  assignment.addresses = group.moved.addresses;
  TRY(const core::AssignAnswer answer, assign(context, assignment));
  if (const auto* refusal = std::get_if<core::Refusal>(&answer)) {
    // Killed while its files went: what is left names fewer addresses than it holds.
    TRY(const bool has_all, holds_all(context, owner, group.moved.addresses));
    if (!has_all) {
      group.clash(reason_of(*refusal));
      return {};
    }
  }
  TRY_VOID(reservations.release(group.reservations));
  group.moved.outcome = Outcome::moved;
  return {};
}

net::Prefix prefix_of(const net::Address& address) {
  return net::Prefix::containing(address, net::bit_length(address.family()));
}

/// Those that no reservation had.
[[nodiscard]] Result<std::vector<net::Prefix>> reserve(const Context& context, const MoveRequest& request,
                                                       const net::Prefix& range,
                                                       const std::vector<net::Prefix>& wanted) {
  TRY(core::KeptOut kept,
      transact(context, TurnTaking::before_writing, [&](const core::Snapshot& snapshot, const Instant&) {
        auto step = core::plan_keep_out(snapshot, core::reservation_name_of_range(range), wanted);
        auto* const plan = std::get_if<core::Plan<core::KeptOut>>(&step);
        if (plan != nullptr && request.dry_run) plan->writes.clear();
        return step;
      }));
  return std::move(kept.added);
}

/// What lies in a range beside others; nothing where none of them is in it.
std::vector<net::AddressRange> beside(const net::Prefix& range, std::vector<net::AddressRange> others) {
  const auto whole = net::AddressRange::of(range);
  std::erase_if(others, [&](const net::AddressRange& other) { return !other.overlaps(whole); });
  if (others.empty()) return {};
  std::ranges::sort(others);
  std::vector<net::AddressRange> gaps;
  std::optional<net::Address> next = whole.first();
  for (const net::AddressRange& other : others) {
    if (!next) break;
    if (*next < other.first()) gaps.push_back(*net::AddressRange::make(*next, *other.first().previous()));
    if (other.last() >= *next) next = other.last().next();
  }
  if (next && *next <= whole.last()) gaps.push_back(*net::AddressRange::make(*next, whole.last()));
  return gaps;
}

/// What the configuration keeps out of a range, but for what has a file, or is held: that is its holder's.
[[nodiscard]] Result<void> keep_out_beside(const Context& context, const std::vector<Reservation>& files,
                                           const MoveRequest& request, const net::Prefix& range,
                                           std::vector<MovedHolder>& result) {
  const auto gaps = beside(range, request.given);
  if (gaps.empty()) return {};
  std::vector<net::AddressRange> but;
  for (const net::Address& one : core::host_local::never_given(range, request.gateways)) {
    but.push_back(net::AddressRange::of(prefix_of(one)));
  }
  for (const Reservation& file : files) but.push_back(net::AddressRange::of(prefix_of(file.address)));
  TRY(const auto all, list_addresses(context));
  for (const AddressView& view : all) {
    if (view.state == core::AddressState::held) but.push_back(net::AddressRange::of(prefix_of(view.address)));
  }
  std::vector<net::AddressRange> given = request.given;
  given.insert(given.end(), but.begin(), but.end());
  std::vector<net::Prefix> wanted;
  for (const net::AddressRange& gap : beside(range, std::move(given))) {
    for (const net::Prefix& prefix : net::prefixes_of(gap)) wanted.push_back(prefix);
  }
  TRY(auto kept, reserve(context, request, range, wanted));
  if (kept.empty()) return {};
  MovedHolder& row = result.emplace_back();
  row.outcome = Outcome::reserved;
  row.ranges = std::move(kept);
  row.reason =
      fmt::format("host-local's configuration gives it to nobody of {} (rangeStart, rangeEnd)", range.to_string());
  return {};
}

/// What host-local gives to nobody of a range. An address that has a file all the same is its holder's.
[[nodiscard]] Result<void> keep_out(const Context& context, const std::vector<Reservation>& files,
                                    const MoveRequest& request, const net::Prefix& range,
                                    std::vector<MovedHolder>& result) {
  auto addresses = core::host_local::never_given(range, request.gateways);
  std::erase_if(addresses, [&](const net::Address& address) {
    return std::ranges::any_of(files, [&](const Reservation& file) { return file.address == address; });
  });
  if (addresses.empty()) return {};
  std::vector<net::Prefix> wanted;
  for (const net::Address& address : addresses) wanted.push_back(prefix_of(address));
  TRY(const auto kept, reserve(context, request, range, wanted));
  if (!kept.empty()) {
    MovedHolder& row = result.emplace_back();
    row.outcome = Outcome::reserved;
    for (const net::Prefix& one : kept) row.addresses.push_back(one.first());
    row.reason = fmt::format("host-local gives it to nobody of {}: its network address, its gateway{}",
                             range.to_string(), range.family() == net::Family::v4 ? ", its broadcast address" : "");
  }
  for (const net::Address& address : addresses) {
    TRY(const AddressView view, show_address(context, address));
    if (view.state != core::AddressState::held) continue;
    MovedHolder& row = result.emplace_back();
    row.outcome = Outcome::clashes;
    row.addresses = {address};
    row.reason = fmt::format(
        "host-local gives it to nobody of {}, and in the pool it is held{}: delete that pod where it is the gateway, "
        "which is the node's own",
        range.to_string(), view.owner ? " for container " + view.owner->container_id : "");
  }
  return {};
}

/// What the register has on the way back, to be moved, or left, together: an owner's, or what no owner has.
struct HeldGroup {
  std::vector<AddressView> views;
  bool is_networks = false;  ///< the network's on this node, in one of the pools
  bool is_at_risk = false;   ///< host-local gives one of them
  std::string why_left;      ///< empty: nothing keeps it from being moved
};

bool host_locals_own(const AddressView& view, const MoveRequest& request) {
  if (request.only_in.empty()) return view.block_owner == request.node;
  return std::ranges::any_of(request.only_in, [&](const net::Prefix& range) { return range.contains(view.address); });
}

bool is_of_networks(const core::Owner& owner, const MoveRequest& request) {
  return owner.network == request.network || std::ranges::count(request.more_networks, owner.network) > 0;
}

/// Why an address stays in the register; empty when it may be moved.
std::string why_left_in_register(const AddressView& view, const std::vector<core::Pool>& pools,
                                 const MoveRequest& request) {
  const std::string address = view.address.to_string();
  if (!view.owner) {
    return fmt::format("{} is held under the handle {}, which is no container's: croft ip show {} tells more", address,
                       net::echo(view.handle_id), address);
  }
  if (view.node != request.node.name) {
    return fmt::format("{} is held by a pod of node {}: delete it first", address, net::echo(view.node));
  }
  if (!is_of_networks(*view.owner, request)) {
    return fmt::format("{} is of network {}: move that one too, with another --network, or delete its pod first",
                       address, net::echo(view.owner->network));
  }
  if (!in_a_pool(pools, view.address)) {
    return fmt::format("{} is in none of the pools: {}", address,
                       view.pool.empty() ? "no pool has it" : "name its own with --pool " + view.pool);
  }
  if (host_locals_own(view, request)) return {};
  if (!request.only_in.empty()) return fmt::format("{} is not in the range of this node", address);
  if (!view.block_owner) return {};
  return fmt::format("{} is in block {} of node {}, whose host-local gives it: delete its pod before that node moves",
                     address, view.block ? view.block->to_string() : "", net::echo(view.block_owner->name));
}

/// Everything that the network has on this node, and whatever else lives by what host-local gives.
std::map<std::pair<std::optional<core::Owner>, std::string>, HeldGroup> held_groups(
    const std::vector<AddressView>& all, const std::vector<core::Pool>& pools, const MoveRequest& request) {
  std::map<std::pair<std::optional<core::Owner>, std::string>, HeldGroup> groups;
  for (const AddressView& view : all) {
    if (view.state != core::AddressState::held) continue;
    const auto& owner = view.owner;
    HeldGroup& group = groups[{owner, owner ? std::string() : view.handle_id}];
    group.views.push_back(view);
    group.is_networks = group.is_networks || (owner && is_of_networks(*owner, request) &&
                                              view.node == request.node.name && in_a_pool(pools, view.address));
    group.is_at_risk = group.is_at_risk || host_locals_own(view, request);
    if (group.why_left.empty()) group.why_left = why_left_in_register(view, pools, request);
  }
  std::erase_if(groups, [](const auto& entry) { return !entry.second.is_networks && !entry.second.is_at_risk; });
  return groups;
}

MovedHolder left_in_register(const HeldGroup& group, const std::optional<core::Owner>& owner) {
  MovedHolder left;
  if (owner) left.holder = {owner->container_id, owner->interface_name};
  for (const AddressView& view : group.views) left.addresses.push_back(view.address);
  left.reason = group.why_left;
  left.at_risk = group.is_at_risk;
  return left;
}

/// The addresses that have no file for this holder yet; nothing when somebody else has one of them.
[[nodiscard]] Result<std::optional<std::vector<store::NewReservation>>> without_file(Reservations& reservations,
                                                                                     MovedHolder& moved) {
  std::vector<store::NewReservation> missing;
  for (const net::Address& address : moved.addresses) {
    TRY(const auto there, reservations.look_up(address));
    if (!there || there->empty) {
      missing.push_back({address, std::nullopt});
    } else if (there->holder != moved.holder) {
      moved.outcome = Outcome::clashes;
      moved.reason = fmt::format("{} is reserved for {}", address.to_string(),
                                 there->holder ? "container " + there->holder->container_id : "an unknown holder");
      return std::optional<std::vector<store::NewReservation>>();
    }
  }
  return std::optional(std::move(missing));
}

[[nodiscard]] Result<MovedHolder> move_out(const Context& context, Reservations& reservations,
                                           const MoveRequest& request, const core::Owner& owner,
                                           const std::vector<AddressView>& views) {
  MovedHolder moved;
  moved.holder = {owner.container_id, owner.interface_name.empty() ? request.interface_name : owner.interface_name};
  for (const AddressView& view : views) moved.addresses.push_back(view.address);
  TRY(const auto missing, without_file(reservations, moved));
  if (!missing) return moved;
  moved.outcome = Outcome::moved;
  if (request.dry_run) return moved;
  if (!missing->empty()) {
    TRY(const store::Reserved reserved, reservations.reserve(moved.holder, *missing));
    if (reserved == store::Reserved::taken) {
      moved.outcome = Outcome::clashes;
      moved.reason = "an address was taken meanwhile by somebody who does not lock the directory";
      return moved;
    }
  }
  std::vector<core::AddressToRelease> to_release;
  for (const AddressView& view : views) to_release.push_back({view.address, view.handle_id, view.sequence_number});
  TRY_VOID(release_addresses(context, to_release));
  return moved;
}

}  // namespace

std::string_view name_of(Outcome outcome) {
  switch (outcome) {
    case Outcome::moved:
      return "moved";
    case Outcome::left:
      return "left";
    case Outcome::reserved:
      return "reserved";
    case Outcome::clashes:
      return "clashes";
  }
  return "left";
}

Result<std::vector<MovedHolder>> move_into_pools(const Context& context, Reservations& reservations,
                                                 const MoveRequest& request) {
  TRY(const auto pools, named_pools(context, request));
  TRY(const auto all, reservations.list());
  std::vector<MovedHolder> result;
  for (const net::Prefix& range : request.only_in) {
    TRY_VOID(keep_out(context, all, request, range, result));
    TRY_VOID(keep_out_beside(context, all, request, range, result));
  }
  for (Group& group : groups_of(all)) {
    if (may_move(group, pools, request)) TRY_VOID(move_in(context, reservations, request, group));
    if (group.moved.outcome != Outcome::moved && !group.nobodys) {
      TRY(group.moved.at_risk, may_be_given_out(context, group.moved.addresses));
    }
    result.push_back(std::move(group.moved));
  }
  return result;
}

Result<std::vector<MovedHolder>> move_out_of_pools(const Context& context, Reservations& reservations,
                                                   const MoveRequest& request) {
  TRY(const auto pools, named_pools(context, request));
  TRY(const auto all, list_addresses(context));
  std::vector<MovedHolder> result;
  for (const auto& [key, group] : held_groups(all, pools, request)) {
    const auto& owner = key.first;
    if (!owner || !group.why_left.empty()) {
      result.push_back(left_in_register(group, owner));
      continue;
    }
    TRY(MovedHolder moved, move_out(context, reservations, request, *owner, group.views));
    if (moved.outcome == Outcome::moved) {
      TRY(moved.at_risk, may_be_given_out(context, moved.addresses));
    }
    result.push_back(std::move(moved));
  }
  return result;
}

}  // namespace croft::engine
