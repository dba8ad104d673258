#pragma once

#include <string>
#include <vector>

#include "base/net/count.h"
#include "ipam/use/inspect.h"

namespace croft::app {

/// "12 (4.7%)"
[[nodiscard]] std::string percent_of(const net::Count& part, const net::Count& whole);

/// One row a pool: how many addresses are there, in use, cooling, reserved and free, with their share; with
/// `with_blocks` the blocks below, those of no pool at the end.
[[nodiscard]] std::string usage_table(const engine::Overview& overview, bool with_blocks);

}  // namespace croft::app
