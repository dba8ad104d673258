#pragma once

#include <string>

#include "sim/server.h"

namespace croft::sim {

/// The manners of a store with the times that were measured (docs/measurements.md), on machines with two cores that the
/// clients shared. There the work of a request limits the rate. It is divided by the cores. The cost of a change for
/// each watcher is estimated. `datastore`: one of kStores.
[[nodiscard]] Manners measured_manners(const std::string& datastore, double cores);

}  // namespace croft::sim
