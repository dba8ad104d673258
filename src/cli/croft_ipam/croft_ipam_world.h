#pragma once

#include "base/clock.h"
#include "ipam/door/croft_ipam.h"

namespace croft::app {

/// The parts that both files of croft-ipam share: all but how a store is opened, and the way between the files. `clock`
/// and `random` must outlive it.
[[nodiscard]] edge::CroftIpamWorld croft_ipam_world(const Clock& clock, Random& random);

}  // namespace croft::app
