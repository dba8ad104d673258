#pragma once

#include <cstdlib>
#include <string>

#include "edge/tombstones/tombstones.h"

namespace croft::app {

/// Where DELs leave what they can't release now: `CROFT_TOMBSTONES`, else the default.
[[nodiscard]] inline std::string tombstones() {
  const char* named = std::getenv("CROFT_TOMBSTONES");
  return named != nullptr && *named != '\0' ? named : edge::kDefaultTombstones;
}

}  // namespace croft::app
