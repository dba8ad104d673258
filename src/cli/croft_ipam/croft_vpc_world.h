#pragma once

#include "base/clock.h"
#include "vpc/door/croft_vpc.h"

namespace croft::app {

/// The parts of croft-vpc that both files share: all but how a store and a cloud are opened, and the way between them.
/// `clock` and `random` must outlive it.
[[nodiscard]] edge::CroftVpcWorld croft_vpc_world(const Clock& clock, Random& random);

}  // namespace croft::app
