#pragma once

#include <string>

#include "base/clock.h"
#include "base/result.h"
#include "register/warm.h"
#include "vpc/decide/assign.h"

// The agent of a stock as the node's plugin sees it.

namespace croft::edge {

/// An ADD and a DEL through the agent behind a socket, by UK8S' protocol: a Ping that has to be answered within a
/// second, then the call (an ADD up to a minute: the stock may be empty), which is left where the agent's connection
/// shows no sign of life for a second. Error unavailable: no agent, none that answers, one that ends, or one
/// of a version with which this one's does not go together; what became of the call does not matter then: the plugin
/// takes the next term (vpc/decide/stock.h) and goes on on the same records. Any other error is the agent's answer.
[[nodiscard]] Result<core::WarmAddress> assign_by_agent(const std::string& socket, const core::warm::Request& request,
                                                        const Clock& clock);
[[nodiscard]] Result<void> release_by_agent(const std::string& socket, const core::warm::Release& release,
                                            const Clock& clock);

}  // namespace croft::edge
