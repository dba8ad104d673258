#include "hostlocal/use/host_local.h"

#include <algorithm>

#include "base/texts.h"

namespace croft::engine {
namespace {

using core::host_local::Decision;
using core::host_local::Pick;
using core::host_local::RangeSet;
using store::Care;
using store::Holder;
using store::Reservation;
using store::Reservations;

/// The addresses of a holder in the order of the file names, in which the reference finds them: the first is named when
/// it refuses.
[[nodiscard]] Result<std::vector<net::Address>> held_by(Reservations& reservations, const Holder& holder) {
  std::vector<net::Address> held;
  const Holder of_container{holder.container_id, ""};
  for (const Holder* sought : {&holder, &of_container}) {
    TRY(const auto found, reservations.held_by(*sought, Care::quick));
    for (const Reservation& reservation : found) held.push_back(reservation.address);
  }
  std::ranges::sort(held, {}, [](const net::Address& address) { return address.to_string(); });
  return held;
}

std::vector<store::NewReservation> to_reserve(const std::vector<Pick>& picks) {
  std::vector<store::NewReservation> wanted;
  for (const Pick& pick : picks) wanted.push_back({pick.address.address, pick.set});
  return wanted;
}

std::vector<net::Address> addresses_of(const std::vector<Reservation>& reservations) {
  std::vector<net::Address> addresses;
  for (const Reservation& reservation : reservations) addresses.push_back(reservation.address);
  return addresses;
}

/// The reservations of a holder: by container and interface, else by the container alone
/// (docs/notes/host-local.md#matching).
[[nodiscard]] Result<std::vector<Reservation>> find_held(Reservations& reservations, const Holder& holder) {
  TRY(auto held, reservations.held_by(holder, Care::thorough));
  if (!held.empty()) return held;
  return reservations.held_by({holder.container_id, ""}, Care::thorough);
}

bool contains(const std::vector<net::Address>& addresses, const net::Address& address) {
  return std::find(addresses.begin(), addresses.end(), address) != addresses.end();
}

bool in_a_set(const std::vector<RangeSet>& sets, const net::Address& address) {
  return std::any_of(sets.begin(), sets.end(), [&](const RangeSet& set) { return set.contains(address); });
}

bool is_young(const Reservation& reservation, const Instant& now) {
  return now.wall - reservation.written < kReservationAgeMin;
}

bool is_alive(const Holder& holder, const std::set<Holder>& alive) {
  if (!holder.interface_name.empty()) return alive.contains(holder);
  const auto first = alive.lower_bound({holder.container_id, ""});
  return first != alive.end() && first->container_id == holder.container_id;
}

}  // namespace

Result<std::vector<Pick>> assign_from_ranges(Reservations& reservations, const Holder& holder,
                                             const std::vector<RangeSet>& sets,
                                             const std::vector<net::Address>& requested,
                                             const std::function<void(const std::string&)>& warn) {
  // Only somebody who does not ask for the lock can make a decision void.
  constexpr int kTriesMax = 16;
  for (int attempt = 0; attempt < kTriesMax; ++attempt) {
    const auto held = [&] { return held_by(reservations, holder); };
    TRY(Decision decision, core::host_local::assign(sets, {holder.container_id, requested, held}, reservations));
    for (const std::string& warning : decision.warnings) warn(warning);
    const auto wanted = to_reserve(decision.picks);
    if (decision.refusal) {
      TRY_VOID(reservations.move_cursors(wanted));
      return fail(*decision.refusal);
    }
    TRY(const store::Reserved reserved, reservations.reserve(holder, wanted));
    if (reserved == store::Reserved::done) return std::move(decision.picks);
  }
  return fail(ErrorCode::conflict, "addresses are taken by somebody who does not lock the directory; find out who");
}

Result<std::vector<net::Address>> release_from_ranges(Reservations& reservations, const Holder& holder,
                                                      std::size_t set_count) {
  TRY(auto held, find_held(reservations, holder));
  const bool exact = !held.empty() && held.front().holder && !held.front().holder->interface_name.empty();
  if (exact && set_count > 1) {
    TRY(const auto of_container, reservations.held_by({holder.container_id, ""}, Care::quick));
    held.insert(held.end(), of_container.begin(), of_container.end());
  }
  // With nothing to release too: an earlier DEL may have died between removing and syncing.
  TRY_VOID(held.empty() ? reservations.settle() : reservations.release(held));
  // A file that can't be read may be the holder's, unless everything of it has been found.
  if (held.size() < std::max<std::size_t>(set_count, 1) && reservations.unreadable()) {
    return fail(*reservations.unreadable());
  }
  return addresses_of(held);
}

Result<void> check_ranges(Reservations& reservations, const Holder& holder, const std::vector<RangeSet>& sets,
                          const std::vector<net::Address>& previous) {
  TRY(const auto held, find_held(reservations, holder));
  if (held.empty()) {
    return fail(ErrorCode::not_found, "host-local: Failed to find address added by container {}", holder.container_id);
  }
  if (previous.empty()) return {};
  const std::vector<net::Address> addresses = addresses_of(held);
  for (const net::Address& address : previous) {
    if (contains(addresses, address) || !in_a_set(sets, address)) continue;
    TRY(const auto there, reservations.look_up(address));
    const std::string holds =
        there && there->holder ? "reserved for container " + there->holder->container_id : std::string("not reserved");
    return fail(ErrorCode::refused_by_configuration, "host-local: address {} of prevResult is {}", address, holds);
  }
  for (const net::Address& address : addresses) {
    const char* fault = !in_a_set(sets, address)       ? "lies in no range of the configuration"
                        : !contains(previous, address) ? "is not in prevResult"
                                                       : nullptr;
    if (fault == nullptr) continue;
    return fail(ErrorCode::refused_by_configuration, "host-local: address {}, reserved for container {}, {}", address,
                holder.container_id, fault);
  }
  return {};
}

Result<CollectedReservations> collect_from_ranges(Reservations& reservations, const std::set<Holder>& alive,
                                                  const Instant& now) {
  TRY(const auto all, reservations.list());
  CollectedReservations collected;
  std::vector<Reservation> dead;
  for (const Reservation& reservation : all) {
    const bool nobodys = reservation.empty;
    if (!nobodys && (!reservation.holder || is_alive(*reservation.holder, alive))) continue;
    if (is_young(reservation, now)) {
      ++collected.kept_young;
    } else {
      dead.push_back(reservation);
    }
  }
  TRY_VOID(reservations.release(dead));
  if (reservations.unreadable()) return fail(*reservations.unreadable());
  collected.released = addresses_of(dead);
  return collected;
}

Result<void> check_not_full(Reservations& reservations, const std::vector<RangeSet>& sets) {
  for (std::size_t i = 0; i < sets.size(); ++i) {
    const auto next_free = [&](const net::AddressRange& range) { return reservations.next_free(range); };
    TRY(const auto free, core::host_local::find_free(sets[i], std::nullopt, next_free));
    if (free) continue;
    return fail(ErrorCode::exhausted, "failed to allocate for range {}: no IP addresses available in range set: {}", i,
                sets[i]);
  }
  return {};
}

}  // namespace croft::engine
