#pragma once

#include <cstddef>
#include <string>

#include "base/result.h"

namespace croft::os {

/// As read_file, for a key or a password. Error also: permission_denied, with the mode to set, when others than its
/// user and its group may read it, or others than its user may write it.
[[nodiscard]] Result<std::string> read_secret_file(const std::string& path, std::size_t bytes_max);

}  // namespace croft::os
