#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <string>

#include "agent/daemon/daemon.h"
#include "base/result.h"
#include "register/warm.h"
#include "store/kube/api.h"
#include "store/kube/events.h"
#include "vpc/daemon/cluster_claims.h"
#include "vpc/daemon/vpc_agent_options.h"
#include "vpc/daemon/vpc_board.h"
#include "vpc/door/node_view.h"
#include "vpc/use/warm_ports.h"

// The cluster of an agent of a stock of cloud addresses.

namespace croft::app {

/// How long one request to the API server may take.
inline constexpr std::chrono::seconds kVpcApiTime{10};

/// Where the agent finds its cluster; nothing where it has none.
struct ClusterOfStock {
  /// Where lines for people go, once there is a place for them; from any thread.
  std::shared_ptr<std::function<void(const std::string& line)>> tell =
      std::make_shared<std::function<void(const std::string& line)>>();
  std::unique_ptr<store::kube::Api> api;
  std::unique_ptr<edge::ApiPods> pods;
  std::unique_ptr<ClusterClaims> claims;
  std::unique_ptr<VpcBoard> board;
  std::unique_ptr<store::kube::Events> events;
  std::unique_ptr<GuardedApi> guarded_api;
};

/// The cluster that `--kubernetes` names; `daemon` outlives it. Errors: invalid_argument for what is no kube: URL;
/// those of its files.
[[nodiscard]] Result<ClusterOfStock> cluster_of(const VpcAgentOptions& options, Daemon& daemon);

/// Tells a node, by an Event, that an address the cloud gave it is somebody else's; at most one a minute.
void tell_of_conflict(store::kube::Events& events, const std::string& node, const core::WarmAddress& address);

}  // namespace croft::app
