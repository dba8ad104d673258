#include "hostlocal/use/host_local_import.h"

#include <algorithm>
#include <array>
#include <map>
#include <optional>
#include <utility>
#include <variant>

#include <fmt/format.h>

#include "ipam/decide/pool_changes.h"
#include "ipam/use/assign.h"
#include "ipam/use/inspect.h"

namespace croft::engine {
namespace {

using core::host_local::Holder;
using store::Reservation;
using store::Reservations;
using Outcome = ImportedHolder::Outcome;

[[nodiscard]] Result<std::vector<core::Pool>> named_pools(const Context& context, const ImportRequest& request) {
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

/// One holder's reservations, to be imported together: an owner's addresses are one commit.
struct Group {
  ImportedHolder row;
  std::vector<Reservation> reservations;
  bool nobodys = false;  ///< a file without content: whoever made it never answered

  void leave(std::string reason) {
    row.outcome = Outcome::left;
    row.reason = std::move(reason);
  }
  void clash(std::string reason) {
    row.outcome = Outcome::clashes;
    row.reason = std::move(reason);
  }
};

std::vector<Group> groups_of(const std::vector<Reservation>& reservations) {
  std::map<Holder, Group> by_holder;
  std::vector<Group> groups;
  for (const Reservation& reservation : reservations) {
    if (reservation.empty || !reservation.holder) {
      Group& group = groups.emplace_back();
      group.row.addresses = {reservation.address};
      group.nobodys = reservation.empty;
      group.leave(reservation.empty
                      ? "its file is empty: croft host-local repair removes it"
                      : "its file does not say who holds it; nothing is read through a link, a FIFO or a device");
      continue;
    }
    Group& group = by_holder[*reservation.holder];
    group.row.holder = *reservation.holder;
    group.row.addresses.push_back(reservation.address);
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

/// The answer of the pools; in a dry run the one that they would give.
[[nodiscard]] Result<core::AssignAnswer> hold(const Context& context, const core::AssignRequest& request,
                                              bool dry_run) {
  if (!dry_run) return assign(context, request);
  return transact(context, TurnTaking::before_writing, [&](const core::Snapshot& snapshot, const Instant& now) {
    return written_if(false, core::plan_assign(snapshot, request, now));
  });
}

/// Decides what can be decided from the directory and the pools; true when the group is to be imported.
bool may_import(Group& group, const std::vector<core::Pool>& pools, const ImportRequest& request) {
  if (group.reservations.empty()) return false;
  Holder& holder = group.row.holder;
  if (holder.interface_name.empty()) holder.interface_name = request.interface_name;
  if (holder.interface_name.empty()) {
    group.leave("its file names no interface: give one with --interface");
    return false;
  }
  for (const net::Address& address : group.row.addresses) {
    const auto contains = [&](const net::Prefix& prefix) { return prefix.contains(address); };
    if (std::ranges::none_of(request.ranges, contains)) {
      group.leave(fmt::format("{} is not in the range of this node", address.to_string()));
      return false;
    }
    if (in_a_pool(pools, address)) continue;
    group.leave(fmt::format("{} is in none of the pools", address.to_string()));
    return false;
  }
  return true;
}

[[nodiscard]] Result<void> import_group(const Context& context, Reservations& reservations,
                                        const ImportRequest& request, Group& group) {
  const core::Owner owner{request.network, group.row.holder.container_id, group.row.holder.interface_name};
  core::AssignRequest assignment;
  assignment.owner = owner;
  assignment.node = request.node;
  assignment.count = {0, 0};
  assignment.addresses = group.row.addresses;
  const auto answer = hold(context, assignment, request.dry_run);
  if (!answer) {
    // A name that no handle can have, or a damaged one, is the holder's own matter.
    const ErrorCode code = answer.error().code;
    if (code != ErrorCode::invalid_argument && code != ErrorCode::corrupt) return fail(answer.error());
    group.clash(answer.error().message);
    return {};
  }
  if (const auto* refusal = std::get_if<core::Refusal>(&*answer)) {
    // Killed while its files went: what is left names fewer addresses than it holds.
    TRY(const bool has_all, holds_all(context, owner, group.row.addresses));
    if (!has_all) {
      group.clash(reason_of(*refusal));
      return {};
    }
  }
  if (!request.dry_run) TRY_VOID(reservations.release(group.reservations));
  group.row.outcome = Outcome::imported;
  return {};
}

net::Prefix prefix_of(const net::Address& address) {
  return net::Prefix::containing(address, net::bit_length(address.family()));
}

/// The addresses of a range between others.
std::vector<net::AddressRange> gaps_between(const net::Prefix& range, std::vector<net::AddressRange> others) {
  const auto whole = net::AddressRange::of(range);
  std::erase_if(others, [&](const net::AddressRange& other) { return !other.overlaps(whole); });
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

/// Reserves what host-local gives to nobody of a range: its ends, its gateway, what its configuration leaves out. An
/// address that has a file is its holder's.
[[nodiscard]] Result<void> keep_out(const Context& context, const std::vector<Reservation>& files,
                                    const ImportRequest& request, const net::Prefix& range,
                                    std::vector<ImportedHolder>& result) {
  std::vector<net::AddressRange> taken;
  for (const Reservation& file : files) taken.push_back(net::AddressRange::of(prefix_of(file.address)));
  const auto never = core::host_local::unassignable_addresses(range, request.gateways);
  TRY(const auto all, list_addresses(context));
  for (const AddressView& view : all) {
    if (view.state != core::AddressState::held) continue;
    taken.push_back(net::AddressRange::of(prefix_of(view.address)));
    if (std::ranges::count(never, view.address) == 0) continue;
    ImportedHolder& row = result.emplace_back();
    row.outcome = Outcome::clashes;
    row.addresses = {view.address};
    row.reason = fmt::format(
        "host-local gives it to nobody of {}, and in the pool it is held{}: delete that pod where it is the gateway, "
        "which is the node's own",
        range.to_string(), view.owner ? " for container " + view.owner->container_id : "");
  }
  std::vector<net::Prefix> wanted;
  for (const net::Address& address : never) {
    if (std::ranges::count(files, address, &Reservation::address) > 0) continue;
    wanted.push_back(prefix_of(address));
    taken.push_back(net::AddressRange::of(wanted.back()));
  }
  const auto whole = net::AddressRange::of(range);
  if (std::ranges::any_of(request.given, [&](const auto& given) { return given.overlaps(whole); })) {
    taken.insert(taken.end(), request.given.begin(), request.given.end());
    for (const net::AddressRange& gap : gaps_between(range, std::move(taken))) {
      for (const net::Prefix& prefix : net::prefixes_of(gap)) wanted.push_back(prefix);
    }
  }
  if (wanted.empty()) return {};
  TRY(core::ReservationMade kept,
      transact(context, TurnTaking::before_writing, [&](const core::Snapshot& snapshot, const Instant&) {
        return written_if(!request.dry_run,
                          core::plan_reserve(snapshot, core::reservation_name_of_range(range), wanted));
      }));
  if (kept.added.empty()) return {};
  ImportedHolder& row = result.emplace_back();
  row.outcome = Outcome::reserved;
  row.ranges = std::move(kept.added);
  row.reason = fmt::format(
      "host-local gives it to nobody of {}: network address, gateway, broadcast address, what is outside rangeStart "
      "and rangeEnd",
      range.to_string());
  return {};
}

}  // namespace

std::string_view name_of(Outcome outcome) {
  constexpr std::array<std::string_view, 4> kNames = {"imported", "left", "reserved", "clashes"};
  return kNames.at(static_cast<std::size_t>(outcome));
}

Result<std::vector<ImportedHolder>> import_reservations(const Context& context, Reservations& reservations,
                                                        const ImportRequest& request) {
  TRY(const auto pools, named_pools(context, request));
  TRY(const auto all, reservations.list());
  std::vector<ImportedHolder> result;
  for (const net::Prefix& range : request.ranges) TRY_VOID(keep_out(context, all, request, range, result));
  for (Group& group : groups_of(all)) {
    if (may_import(group, pools, request)) TRY_VOID(import_group(context, reservations, request, group));
    if (group.row.outcome != Outcome::imported && !group.nobodys) {
      TRY(group.row.at_risk, may_be_given_out(context, group.row.addresses));
    }
    result.push_back(std::move(group.row));
  }
  return result;
}

}  // namespace croft::engine
