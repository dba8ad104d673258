#pragma once

#include "core/block/explain.h"
#include "engine/transact.h"

namespace croft::engine {

/// What an ADD would get now and why, or why it would be refused; changes nothing (core::plan_explain).
[[nodiscard]] Result<core::Explanation> explain(const Context& context, const core::AssignRequest& request);

}  // namespace croft::engine
