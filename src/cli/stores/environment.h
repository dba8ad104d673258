#pragma once

#include <cstdlib>
#include <string>

namespace croft::app {

/// A variable of the environment; empty where it is not set.
[[nodiscard]] inline std::string from_environment(const char* name) {
  const char* value = std::getenv(name);
  return value != nullptr ? value : "";
}

}  // namespace croft::app
