#pragma once

#include "register/pool.h"

namespace croft::app {

/// Warns when the pool exists but cannot serve.
void tell_if_unallocatable(const core::Pool& pool);

}  // namespace croft::app
