#pragma once

#include <string>
#include <vector>

#include "base/clock.h"
#include "base/result.h"

namespace croft::os {

/// The numeric addresses of a host's name, by the machine's resolver (a static program: by /etc/hosts and DNS alone),
/// in its order; at most 16. In a library of its own: the plugins have none. The resolver has its own time-outs: it may
/// last longer than the deadline. Error: unavailable, with the resolver's reason; deadline_exceeded when it has passed
/// already.
[[nodiscard]] Result<std::vector<std::string>> look_up_host(const std::string& name, Deadline deadline);

}  // namespace croft::os
