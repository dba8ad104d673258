#pragma once

#include <vector>

#include "core/block/assign.h"
#include "core/block/pool_changes.h"
#include "engine/transact.h"

namespace croft::engine {

/// Assigns addresses to an owner, durably, or says why not as a value. Asking again with the same owner gives the same
/// answer without a write. A request for very many addresses takes several commits; when it is refused in the end, what
/// they assigned is given back (unless AssignRequest::partial). Of `pools` those that are absent are made first, as
/// ensure_pools does; when all are there that costs no read of its own.
[[nodiscard]] Result<core::AssignAnswer> assign(const Context& context, const core::AssignRequest& request,
                                                const std::vector<core::PoolSpec>& pools = {});

/// Sees to it that a node has a block (core::plan_ensure_block).
[[nodiscard]] Result<core::EnsureAnswer> ensure_block(const Context& context, const core::AssignRequest& request,
                                                      net::Family family);

}  // namespace croft::engine
