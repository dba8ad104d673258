#pragma once

#include <string>
#include <vector>

#include "register/snapshot.h"

namespace croft::core {

struct KeptOut {
  std::vector<net::Prefix> added;  ///< those that no reservation had all of yet
};

/// Decides that addresses are given to nobody: those that no reservation has go into the one of this name, beside what
/// is in it. Holders of such an address keep it. Error: of a damaged record of that name.
[[nodiscard]] Step<KeptOut> plan_keep_out(const Snapshot& snapshot, const std::string& name,
                                          const std::vector<net::Prefix>& addresses);

/// The name of the reservation of what host-local gave to nobody of a range: `host-local-10-244-3-0-24`.
[[nodiscard]] std::string reservation_name_of_range(const net::Prefix& range);

/// Decides that a reservation is made; true when one of this name with the same prefixes was there. Pods that hold one
/// of its addresses keep it. Errors: invalid_argument, of its name (check_pool_name) and of one without prefixes;
/// already_exists, naming what the one of this name keeps.
[[nodiscard]] Step<bool> plan_create_reservation(const Snapshot& snapshot, const Reservation& wanted);

struct ReservationDeleted {};
/// Decides that a reservation goes. Errors: not_found; refused_for_safety, of one that keeps a gateway or the ends of a
/// pool that is there.
[[nodiscard]] Step<ReservationDeleted> plan_delete_reservation(const Snapshot& snapshot, const std::string& name);

}  // namespace croft::core
