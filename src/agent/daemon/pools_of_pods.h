#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/net/per_family.h"
#include "base/result.h"
#include "ipam/decide/draft.h"
#include "ipam/decide/pool_choice.h"
#include "register/pool.h"

namespace croft::app {

/// What the pods of a node are to get.
struct PodNeeds {
  std::string node;
  /// By which pools select nodes; nullopt: not known, and each may be for this one.
  std::optional<core::Labels> node_labels = core::Labels();
  net::PerFamily<bool> families{true, false};
  net::PerFamily<std::vector<core::AskedPool>> asked;  ///< --ipv4-pool, --ipv6-pool
  /// The main plugin, where it fails each ADD whose address comes without a gateway (docs/limits.md#cni); else empty.
  std::string wants_gateways{};
};

/// Whether they get it, by what an ADD chooses of the register's pools (core::choose_pools), whatever pod it is for.
/// Lines for people: where none gets anything as it is now, and pools without the gateway that the main plugin wants.
/// Nothing where there is no pool at all: one may be made later. Error: refused_by_configuration, of a pool that was
/// named and that the register has not, or of the other family, or not for pods, and where no pool that may be used has
/// such a gateway: no pod would start.
[[nodiscard]] Result<std::vector<std::string>> compare_pools(const PodNeeds& needs, const core::PoolTable& pools);

}  // namespace croft::app
