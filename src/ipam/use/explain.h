#pragma once

#include "ipam/decide/explain.h"
#include "ipam/use/transact.h"

namespace croft::engine {

/// Explains the address that an ADD would get now, or its refusal; changes nothing (core::plan_explain). The owner is
/// made up: that it holds nothing is not asked. Without the right to read the node it is told as far as no pool selects
/// nodes; error: permission_denied where one does.
[[nodiscard]] Result<core::Explanation> explain(const Context& context, const core::AssignRequest& request);

}  // namespace croft::engine
