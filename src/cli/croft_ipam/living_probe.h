#pragma once

#include "base/clock.h"
#include "cni/door/living_addresses.h"

namespace croft::app {

/// Asks the kernel of this process's network namespace, which is the node's: main plugins start their IPAM plugin
/// before they enter the container's.
[[nodiscard]] edge::LivingProbe living_probe(const Clock& clock);

}  // namespace croft::app
