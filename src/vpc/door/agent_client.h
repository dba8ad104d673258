#pragma once

#include <functional>
#include <memory>
#include <string>

#include "base/clock.h"
#include "base/result.h"
#include "http/transport.h"
#include "register/stock.h"
#include "vpc/decide/assign.h"
#include "vpc/use/stock_sources.h"

// The agent of a stock as the node's plugin sees it, and as the agents of other nodes do.

namespace croft::edge {

/// An ADD and a DEL through the agent behind a socket, by UK8S' protocol: a Ping that has to be answered within a
/// second, then the call (an ADD up to a minute: the stock may be empty), which is left where the agent's connection
/// shows no sign of life for a second. Error unavailable: no agent, none that answers, or one that ends; what became of
/// the call does not matter then: the plugin takes the next term (vpc/decide/stock.h) and goes on on the same records.
/// Any other error is the agent's answer.
[[nodiscard]] Result<core::StockAddress> assign_by_agent(const std::string& socket, const core::warm::Request& request,
                                                         const Clock& clock);
[[nodiscard]] Result<void> release_by_agent(const std::string& socket, const core::warm::Release& release,
                                            const Clock& clock);

/// Takes no server for a node's but one whose certificate has the node's name. The answer null: plain gRPC, as UK8S'
/// own agents speak it.
using SecurityFor = std::function<std::shared_ptr<const os::TransportSecurity>(const std::string& node)>;

/// engine::PeerAgents::borrow by gRPC over TCP, with certificates on both sides unless it is told otherwise;
/// `security_for` null: nobody is spoken to. The peer is at a numeric `10.0.0.2:7312`. Connects within a second, or it
/// did not answer at all. Errors also: invalid_argument (its address is not numeric: nobody was spoken to);
/// permission_denied (a certificate is refused, here or there).
[[nodiscard]] Result<cloud::CloudAddress> borrow_by_agent(const engine::Peer& peer, const net::Mac& mac,
                                                          const std::string& subnet, const std::string& request,
                                                          const SecurityFor& security_for, const Clock& clock,
                                                          Deadline deadline);

}  // namespace croft::edge
