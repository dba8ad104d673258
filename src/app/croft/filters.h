#pragma once

#include <string>

#include "engine/transact.h"

namespace croft::app {

/// A line on standard error.
void warn(const std::string& text);

/// Says so when the register knows no such node or pool, or when that can't be found out: a list of nothing looks the
/// same for a name that is misspelt. Empty: not asked for.
void warn_of_unknown(const engine::Context& context, const std::string& node, const std::string& pool);

}  // namespace croft::app
