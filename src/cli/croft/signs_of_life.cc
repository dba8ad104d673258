#include "cli/croft/signs_of_life.h"

#include <utility>

#include "cli/croft/filters.h"
#include "cli/croft/operator_parts.h"
#include "hostlocal/decide/audit.h"
#include "hostlocal/door/host_local_facts.h"
#include "store/kube/pod_list.h"

namespace croft::app {

Result<void> SignsOfLife::look(const CommandLine& line, const engine::Context& context, const RuntimeCache& cache) {
  TRY(known_.runtime.live, read_runtime_cache(context, cache));
  known_.runtime.node = cache.node;
  known_.runtime.grace = std::chrono::seconds(cache.grace_seconds);
  core::host_local::SignsOfLife life;
  edge::look_at_namespaces(true, life);
  known_.configured = std::move(life.configured);
  TRY(cluster_, Cluster::of(line));
  if (cluster_ == nullptr) return {};
  auto nodes = cluster_->nodes(context);
  if (!nodes && nodes.error().code != ErrorCode::permission_denied) return fail(nodes.error());
  if (!nodes) warn("the cluster is not asked for nodes: " + nodes.error().message);
  // The nodes of a cluster beside the store tell that it is the one.
  if (!nodes && line.cluster_url != line.store_url) return {};
  if (nodes && nodes->node_count() > 0) known_.nodes = *std::move(nodes);
  auto pods = cluster_->running_pods();
  if (!pods && pods.error().code != ErrorCode::permission_denied) return fail(pods.error());
  if (!pods) {
    warn("the cluster is not asked for pods: " + pods.error().message);
    return {};
  }
  known_.runtime.pods = *std::move(pods);
  known_.find_pod = [this, &line](const std::string& name_space, const std::string& name) {
    return store::kube::find_pod(cluster_->api(), name_space, name, Deadline::after(line.clock.now(), kPageTime));
  };
  return {};
}

}  // namespace croft::app
