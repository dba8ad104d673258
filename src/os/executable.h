#pragma once

#include <cstdint>
#include <string>

#include "base/result.h"

namespace croft::os {

/// The kind of program that a path names, symbolic links followed.
enum class Runnable : std::uint8_t {
  absent,  ///< nothing is there
  no,      ///< no regular file, an empty one, or nobody may run it by its mode
  yes,
};

/// Opens nothing. Errors: as system_error maps them.
[[nodiscard]] Result<Runnable> runnable(const std::string& path);

}  // namespace croft::os
