#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.h"
#include "base/result.h"
#include "http/tls.h"
#include "store/kube/api.h"
#include "vpc/format/methods.h"

// Where the node agents are, and what one is asked over gRPC.

namespace croft::app {

/// One node's agent.
struct AgentPlace {
  std::string node;
  std::string address;               ///< "unix:/run/cni-vpc-ipamd.sock", "10.0.0.2:7312", "[fd00::2]:7312"
  std::string subnet;                ///< as a directory says; empty: it does not
  std::optional<std::int64_t> pool;  ///< free addresses as a directory says; absent: it does not
  /// The address is what an object of the cluster says: a numeric one, never a socket of this machine.
  bool is_of_board = false;
};

/// Knows the agents of a cluster.
class AgentDirectory {
 public:
  virtual ~AgentDirectory() = default;
  /// One for each node, in no order. Errors: as the directory has them.
  [[nodiscard]] virtual Result<std::vector<AgentPlace>> agents(Deadline deadline) = 0;
};

/// The agents that a command line names: each text `NODE=ADDRESS`, or `ADDRESS` alone for that of `own_node`. Error of
/// the factory: invalid_argument for an address that is none, for two agents of one node.
[[nodiscard]] Result<std::unique_ptr<AgentDirectory>> static_agents(const std::vector<std::string>& texts,
                                                                    const std::string& own_node);

/// The agents that say so in a cluster, by their objects `ipamds`. A node that the cluster does not have is left out,
/// where nodes may be listed; of a node with several objects the stocks are added up. That of `own_node` is reached by
/// `own_socket` where that is not empty. Errors of the list: those of the API.
[[nodiscard]] std::unique_ptr<AgentDirectory> cluster_agents(std::unique_ptr<store::kube::Api> api,
                                                             std::string own_node, std::string own_socket);

/// Asks agents, each call on a connection of its own. Safe to use from several threads.
class AgentCaller {
 public:
  /// Nothing of `tls`: nothing is encrypted. A Unix socket never is. An agent's certificate has to have its node's
  /// name: what is meant for one node's stock is told to no other node.
  AgentCaller(const Clock& clock, std::optional<os::TlsFiles> tls) : clock_(clock), tls_(std::move(tls)) {}

  /// The bytes of the answer. Connecting takes at most kConnect, a call kCall. Errors: unavailable when the agent
  /// cannot be reached or does not answer, internal with its own words when it answers that it failed; each message is
  /// Go's `rpc error: code = Internal desc = …`, which operators know.
  [[nodiscard]] Result<std::string> call(const AgentPlace& agent, wire::vpc::Method method,
                                         std::string_view request) const;

  static constexpr std::chrono::seconds kConnect{1};
  static constexpr std::chrono::seconds kCall{10};

 private:
  const Clock& clock_;
  std::optional<os::TlsFiles> tls_;
};

}  // namespace croft::app
