#pragma once

#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "base/result.h"
#include "http/transport.h"
#include "register/stock.h"
#include "vpc/decide/attachments.h"
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

/// The agents of other nodes by gRPC over TCP, with certificates on both sides unless it is told otherwise. The
/// `directory` tells who they are, each at a numeric `10.0.0.2:7312`.
class GrpcPeers final : public engine::PeerAgents {
 public:
  using Directory = std::function<Result<std::vector<Peer>>(const std::string& subnet, Deadline deadline)>;
  /// Takes no server for a node's but one whose certificate has the node's name. The answer null: plain gRPC, as UK8S'
  /// own agents speak it.
  using SecurityFor = std::function<std::shared_ptr<const os::TransportSecurity>(const std::string& node)>;
  /// `security` may be null: then nobody is spoken to. `clock` outlives it.
  GrpcPeers(Directory directory, SecurityFor security, const Clock& clock)
      : directory_(std::move(directory)), security_(std::move(security)), clock_(clock) {}

  [[nodiscard]] Result<std::vector<Peer>> peers(const std::string& subnet, Deadline deadline) override {
    return directory_(subnet, deadline);
  }
  /// Connects within a second, or it did not answer at all. Errors also: invalid_argument (its address is not numeric:
  /// nobody was spoken to); permission_denied (a certificate is refused, here or there).
  [[nodiscard]] Result<cloud::CloudAddress> borrow(const Peer& peer, const net::Mac& mac, const std::string& subnet,
                                                   const std::string& request, Deadline deadline) override;

 private:
  const Directory directory_;
  const SecurityFor security_;
  const Clock& clock_;
};

}  // namespace croft::edge
