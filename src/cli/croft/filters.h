#pragma once

#include <string>

#include "ipam/use/transact.h"

namespace croft::app {

/// A line on standard error.
void warn(const std::string& text);

/// For a list of nothing: whether it is one because no such node or pool is known. Empty: not asked for. Error:
/// not_found, naming what is near or some that there are; or why it can't be found out.
[[nodiscard]] Result<void> check_known(const engine::Context& context, const std::string& node,
                                       const std::string& pool);

/// The alternatives to a pool of this name: "; did you mean …?" or the names of some.
[[nodiscard]] Result<Error> no_such_pool(const engine::Context& context, const std::string& pool);

}  // namespace croft::app
