#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/net/address.h"
#include "base/result.h"
#include "register/owner.h"
#include "register/pool.h"
#include "register/records.h"
#include "sim/plan.h"
#include "store/store.h"

namespace croft::sim {

/// A pod as the register has it; tunnels and the like are none.
struct PodOfToday {
  net::Address address;
  std::string node;
  core::Owner owner;
  core::PodIdentity of;
};

/// A register as it is.
struct Today {
  std::vector<store::Record> records;
  std::vector<core::Pool> pools;  ///< of one family; the first is the one that is planned
  core::IpamConfig config;
  std::uint32_t nodes = 0;
  WallTime read_at;
  std::vector<PodOfToday> pods;
};

/// Makes a plan begin with a register as it is. Nodes, pods and strict affinity become those of today. Pool, block
/// length and cooldown become those of the first enabled pool, of IPv4 where there is one. Errors: of the store;
/// not_found without a pool.
[[nodiscard]] Result<void> begin_with(Plan& plan, store::Store& store, const Clock& clock);

}  // namespace croft::sim
