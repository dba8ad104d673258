#pragma once

#include <string>

#include "base/net/test_values.h"
#include "register/records.h"

namespace croft::core {

// For tests.

[[nodiscard]] inline AffinityOwner node(const std::string& name) { return {AffinityOwner::Type::host, name}; }
inline const AffinityOwner kNode = node("node-a");

}  // namespace croft::core
