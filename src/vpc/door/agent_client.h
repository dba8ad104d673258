#pragma once

#include <memory>
#include <string>

#include "base/clock.h"
#include "base/result.h"
#include "http/endpoint.h"
#include "http/grpc_channel.h"
#include "register/warm.h"
#include "vpc/decide/assign.h"
#include "vpc/format/messages.h"

// The agent of a stock as the node's plugin sees it, and how agents are spoken to.

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

/// A connection to an agent whose version goes together with `own`, as it said to Ping. Errors: unavailable;
/// refused_by_configuration (one of the two does not take the other's version); those of a connection.
[[nodiscard]] Result<std::shared_ptr<os::GrpcChannel>> greet(const os::Endpoint& agent,
                                                             const os::TransportSecurity* security,
                                                             const os::GrpcOptions& options,
                                                             const wire::vpc::Speech& own, const Clock& clock,
                                                             Deadline deadline);

}  // namespace croft::edge
