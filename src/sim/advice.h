#pragma once

#include <string>
#include <vector>

#include "base/net/prefix.h"
#include "base/result.h"
#include "sim/plan.h"

namespace croft::sim {

/// A size to take, and why.
struct Advice {
  int block_length = 0;
  net::Prefix pool;
  std::vector<std::string> reasons;  ///< sentences
};
/// Tries other block lengths on a part of the cluster, and computes the pool from what was measured.
[[nodiscard]] Result<Advice> advise(const Plan& plan, const Measured& measured);

}  // namespace croft::sim
