#pragma once

#include <string>
#include <vector>

#include "base/result.h"
#include "register/pool.h"

namespace croft::app {

/// The families of which pods of a node are to get addresses.
struct Families {
  bool v4 = true, v6 = false;
};

/// Compares them with the pools of the register. Lines for people: pools of which no pod gets anything. Nothing where
/// there is no pool at all: one may be made later. Error: refused_by_configuration, where there are pools, and none of
/// a family that pods are to get: none of them would start, for an ADD gives all families or none.
[[nodiscard]] Result<std::vector<std::string>> compare_families(const Families& wanted,
                                                                const std::vector<core::Pool>& pools);

}  // namespace croft::app
