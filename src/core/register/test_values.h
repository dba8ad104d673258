#pragma once

#include <string>

#include "core/register/records.h"
#include "net/test_values.h"

namespace croft::core {

// For tests.

[[nodiscard]] inline AffinityOwner node(const std::string& name) { return {AffinityOwner::Type::host, name}; }
inline const AffinityOwner kNode = node("node-a");

}  // namespace croft::core
