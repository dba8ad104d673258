#pragma once

#include <string>
#include <vector>

#include "base/clock.h"
#include "base/net/address.h"
#include "base/result.h"
#include "register/block.h"
#include "register/owner.h"
#include "sim/plan.h"
#include "store/store.h"

namespace croft::sim {

/// Makes a plan begin with a register as it is: copies its records. Nodes and pods that are 0 become those of today.
/// Errors: of the store; not_found without a pool.
[[nodiscard]] Result<void> begin_with(Plan& plan, store::Store& store, const Clock& clock);

/// A pod as the register has it.
struct PodOfToday {
  core::Owner owner;
  std::string namespace_name, name, uid;
};
struct HeldToday {
  net::Address address;
  std::string node;
  PodOfToday pod;
};
/// The pods that a block holds addresses for; tunnels and the like are none.
[[nodiscard]] std::vector<HeldToday> held_today(const core::Block& block);

}  // namespace croft::sim
