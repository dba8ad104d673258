#pragma once

#include <vector>

#include "ipam/decide/assignment.h"

namespace croft::core {

/// Serves addresses of one family that are wanted exactly, beside those of the family that the owner holds already: one
/// that is not wanted any more refuses all.
[[nodiscard]] AssignFlow<void> assign_explicit(Assignment& assignment, const std::vector<net::Address>& wanted,
                                               const std::vector<AssignedAddress>& held);

}  // namespace croft::core
