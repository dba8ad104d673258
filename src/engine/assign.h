#pragma once

#include "core/block/assign.h"
#include "engine/transact.h"

namespace croft::engine {

/// Assigns addresses to an owner, durably, or says why not as a value. Asking again with the same owner gives the same
/// answer without a write. A request for very many addresses takes several commits; when it is refused in the end, what
/// they assigned is given back (unless AssignRequest::partial).
[[nodiscard]] Result<core::AssignAnswer> assign(const Context& context, const core::AssignRequest& request);

/// Sees to it that a node has a block (core::plan_ensure_block).
[[nodiscard]] Result<core::EnsureAnswer> ensure_block(const Context& context, const core::AssignRequest& request,
                                                      net::Family family);

}  // namespace croft::engine
