#pragma once

#include <chrono>
#include <cstddef>
#include <functional>
#include <set>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/net/address.h"
#include "base/result.h"
#include "hostlocal/decide/assign.h"
#include "hostlocal/reservations.h"

// host-local's use cases, on the locked reservations of one network: read, decide, write once, answer.

namespace croft::engine {

/// Gives the holder an address of each set, on disk. Errors: the refusals of core::host_local::assign, as errors; those
/// of `reservations`. After an error nothing is reserved that was not before; the cursors of the sets before the one
/// that failed have moved, as in the reference. `warn` takes what the reference writes to standard error and goes on
/// after (a cursor that cannot be read).
[[nodiscard]] Result<std::vector<core::host_local::Pick>> assign_from_ranges(
    store::Reservations& reservations, const store::Holder& holder, const std::vector<core::host_local::RangeSet>& sets,
    const std::vector<net::Address>& requested, const std::function<void(const std::string& line)>& warn);

/// Releases what the holder has, durably, and answers with it. Files of an old plugin, which name the container only,
/// are released when nothing names the interface; with two range sets or more also besides, as in the reference. Error:
/// a file that can't be read, when less was found than there are sets: it may be the holder's. The reservations found
/// are released even then.
[[nodiscard]] Result<std::vector<net::Address>> release_from_ranges(store::Reservations& reservations,
                                                                    const store::Holder& holder, std::size_t set_count);

/// Whether the holder still has what its ADD answered: at least one reservation; each of `previous` that one of the
/// sets contains is reserved for it; and, when `previous` is not empty, what it has lies in a set and is among
/// `previous`. Errors: not_found (text of the reference) when it has nothing; refused_by_configuration naming the
/// address else.
[[nodiscard]] Result<void> check_ranges(store::Reservations& reservations, const store::Holder& holder,
                                        const std::vector<core::host_local::RangeSet>& sets,
                                        const std::vector<net::Address>& previous);

/// A reservation younger than this is kept by a collection: the list of the living may be older than it.
inline constexpr std::chrono::seconds kReservationAgeMin{60};

struct CollectedReservations {
  std::vector<net::Address> released;
  std::size_t kept_young = 0;
};

/// Releases every reservation of the network whose holder is not in `alive`, but the young ones (kReservationAgeMin;
/// one dated in the future counts as young). One that names the container only lives as long as any interface of it.
/// A file that does not say who holds it is left alone, unless it is empty: that is nobody's. Goes on after an error,
/// also when a file can't be read, and returns the first.
[[nodiscard]] Result<CollectedReservations> collect_from_ranges(store::Reservations& reservations,
                                                                const std::set<store::Holder>& alive,
                                                                const Instant& now);

/// Whether each set has a free address. Error: exhausted, with the text of the refusal.
[[nodiscard]] Result<void> check_not_full(store::Reservations& reservations,
                                          const std::vector<core::host_local::RangeSet>& sets);

}  // namespace croft::engine
