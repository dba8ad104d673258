#pragma once

#include "core/block/assign.h"
#include "engine/transact.h"

namespace croft::engine {

/// Assigns addresses to an owner, durably, or says why not as a value. Asking again with the same owner gives the same
/// answer without a write.
[[nodiscard]] Result<core::AssignAnswer> assign(const Context& context, const core::AssignRequest& request);

}  // namespace croft::engine
