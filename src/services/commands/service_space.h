#pragma once

#include <vector>

#include "ipam/use/pools.h"

namespace croft::app {

/// engine::service_space; that Services may not be read is a warning.
[[nodiscard]] Result<std::vector<engine::TakenSpace>> space_of_services(const engine::Context& context);

}  // namespace croft::app
