#pragma once

#include <cstdint>

#include "ipam/decide/assignment.h"

namespace croft::core {

/// Assigns so many addresses of a family, whichever they are (docs/notes/calico-ipam.md#auto-assign).
[[nodiscard]] AssignFlow<void> assign_automatic(Assignment& assignment, net::Family family, std::uint32_t count);

}  // namespace croft::core
