#pragma once

#include "ipam/decide/pool_changes.h"
#include "ipam/use/transact.h"

namespace croft::engine {

/// The cluster-wide switches; the defaults when nothing is stored.
[[nodiscard]] Result<core::IpamConfig> read_config(const Context& context);

/// Changes them (core::plan_set_config); what was changed meanwhile by others stays.
[[nodiscard]] Result<core::IpamConfig> set_config(const Context& context, const core::ConfigChange& change);

}  // namespace croft::engine
