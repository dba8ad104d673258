#pragma once

#include <string>

#include "base/result.h"

namespace croft::os {

/// Loads a shared library into the process, for good; what it does when it is loaded is what it is for. Not for a
/// static program. Error: unavailable, with the loader's words.
[[nodiscard]] Result<void> load_library(const std::string& name);

}  // namespace croft::os
