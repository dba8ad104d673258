#pragma once

#include "register/pool.h"

namespace croft::app {

/// Who wants a pool that is there, and that something outside keeps from giving addresses, is told.
void tell_if_unallocatable(const core::Pool& pool);

}  // namespace croft::app
