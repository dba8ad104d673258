#pragma once

#include <string>
#include <vector>

#include "ipam/use/transact.h"
#include "register/pool.h"

// Addresses that are never handed out by themselves (docs/notes/calico-ipam.md#reservations).
namespace croft::engine {

/// All reservations, ascending by name; damaged ones are left out (`croft check` names them).
[[nodiscard]] Result<std::vector<core::Reservation>> list_reservations(const Context& context);

/// Makes a reservation; true when it was there already. Errors as core::plan_create_reservation.
[[nodiscard]] Result<bool> create_reservation(const Context& context, const core::Reservation& wanted);

/// Errors as core::plan_delete_reservation.
[[nodiscard]] Result<void> delete_reservation(const Context& context, const std::string& name);

}  // namespace croft::engine
