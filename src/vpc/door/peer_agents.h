#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "http/transport.h"
#include "vpc/use/warm_ports.h"

namespace croft::edge {

/// The agents of other nodes by gRPC over TCP, with certificates on both sides unless it is told otherwise. The
/// `directory` tells who they are, each at a numeric `10.0.0.2:7312`.
class GrpcPeers final : public engine::PeerAgents {
 public:
  using Directory = std::function<Result<std::vector<Peer>>(const std::string& subnet, Deadline deadline)>;
  /// Takes no server for a node's but one whose certificate has the node's name. The answer null: plain gRPC, as UK8S'
  /// own agents speak it.
  using SecurityFor = std::function<std::shared_ptr<const os::TransportSecurity>(const std::string& node)>;
  /// `security` may be null: then nobody is spoken to. `node` is this one, as its certificate says. `clock` outlives
  /// it. From agents that speak an older version than `oldest_speech` nothing is borrowed (vpc/format/messages.h).
  GrpcPeers(Directory directory, SecurityFor security, std::string node, const Clock& clock,
            std::uint32_t oldest_speech = 0)
      : directory_(std::move(directory)),
        security_(std::move(security)),
        node_(std::move(node)),
        clock_(clock),
        oldest_speech_(oldest_speech) {}

  [[nodiscard]] Result<std::vector<Peer>> peers(const std::string& subnet, Deadline deadline) override {
    return directory_(subnet, deadline);
  }
  /// Connects within a second, or it did not answer at all. Errors also: invalid_argument (its address is not numeric:
  /// nobody was spoken to); permission_denied (a certificate is refused, here or there);
  /// refused_by_configuration (one of the two does not take the other's version: nothing was asked for).
  [[nodiscard]] Result<cloud::CloudAddress> borrow(const Peer& peer, const net::Mac& mac, const std::string& subnet,
                                                   const std::string& request, Deadline deadline) override;

 private:
  const Directory directory_;
  const SecurityFor security_;
  const std::string node_;
  const Clock& clock_;
  const std::uint32_t oldest_speech_;
};

}  // namespace croft::edge
