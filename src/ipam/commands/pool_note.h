#pragma once

#include <vector>

#include "ipam/use/pools.h"
#include "register/pool.h"

namespace croft::app {

/// Warns when the pool exists but cannot serve.
void tell_if_unallocatable(const core::Pool& pool);

/// engine::service_space; that Services may not be read is a warning.
[[nodiscard]] Result<std::vector<engine::TakenSpace>> space_of_services(const engine::Context& context);

}  // namespace croft::app
