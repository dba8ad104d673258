#pragma once

#include "app/open_store.h"

namespace croft::app {

/// With what `croft` opens stores and APIs.
[[nodiscard]] StoreParts operator_parts();

}  // namespace croft::app
