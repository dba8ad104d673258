#include "vpc/daemon/vpc_cluster.h"

#include <functional>
#include <utility>

#include <fmt/format.h>

#include "agent/daemon/store_parts.h"
#include "cli/stores/open_store.h"
#include "store/kube/pod_list.h"
#include "store/store_url.h"

namespace croft::app {
void tell_of_conflict(store::kube::Events& events, const std::string& node, const core::WarmAddress& address) {
  // As its UID the field says the node's name, and `kubectl describe node` asks for that.
  events.tell({"v1", "Node", "", node, node},
              {store::kube::Events::Type::warning, "AddressConflict", "Quarantine",
               fmt::format("{} is given to no pod: {}; croft vpc get unuse -n {} lists it", address.address.to_string(),
                           address.why, node)});
}

Result<ClusterOfStock> cluster_of(const VpcAgentOptions& options, Daemon& daemon) {
  ClusterOfStock cluster;
  if (options.kubernetes.empty()) return cluster;
  if (store::scheme_of(options.kubernetes) != store::Scheme::kube) {
    return fail(invalid_argument("--kubernetes must be kube: or kube:/path/to/kubeconfig"));
  }
  TRY(cluster.api, open_kube_api(options.kubernetes, daemon.clock, kDaemonParts, kVpcApiTime));
  cluster.pods = std::make_unique<edge::ApiPods>([&api = *cluster.api, &clock = daemon.clock, node = options.node](
                                                     Deadline deadline, const std::function<void()>& begin,
                                                     const std::function<void(const core::collect::PodFact&)>& take) {
    return store::kube::for_each_pod_of_node(api, clock, node, deadline, begin, take);
  });
  cluster.guarded_api = std::make_unique<GuardedApi>(*cluster.api, daemon.clock);
  cluster.claims = std::make_unique<ClusterClaims>(*cluster.guarded_api, options.node);
  store::kube::Events::Options how;
  how.component = "cni-vpc-ipamd";
  how.node = options.node;
  TRY(auto events_api,
      open_kube_api(options.kubernetes, daemon.clock, kDaemonParts, store::kube::Events::kRequestTime));
  cluster.events =
      std::make_unique<store::kube::Events>(std::move(events_api), daemon.clock, daemon.random, std::move(how));
  cluster.board = std::make_unique<VpcBoard>(*cluster.api, daemon.clock, options.node, options.listen);
  return cluster;
}

}  // namespace croft::app
