#pragma once

#include <chrono>

#include "cli/stores/open_store.h"

namespace croft::app {

/// With what `croft` opens stores and APIs.
[[nodiscard]] StoreParts operator_parts();

/// For a page of a list: the server reads 500 pods.
inline constexpr std::chrono::seconds kPageTime{15};

}  // namespace croft::app
