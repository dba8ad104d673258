#include "cli/croft/signs_of_life.h"

#include <utility>

#include <fmt/format.h>

#include "base/counted.h"
#include "cli/croft/filters.h"
#include "cli/croft/operator_parts.h"
#include "cli/stores/open_store.h"
#include "collector/daemon/running_pods.h"
#include "collector/use/node_facts.h"
#include "hostlocal/decide/audit.h"
#include "hostlocal/door/host_local_facts.h"
#include "ipam/use/inspect.h"
#include "noderanges/commands/cluster_nodes.h"
#include "store/kube/pod_list.h"

namespace croft::app {

Result<std::unique_ptr<Cluster>> Cluster::of(const CommandLine& line) {
  if (line.cluster_url.empty()) return nullptr;
  TRY(auto api, open_kube_api(line.cluster_url, line.clock, operator_parts(), kPageTime));
  return std::unique_ptr<Cluster>(new Cluster(line, std::move(api)));
}

Result<std::vector<core::audit::RunningPod>> Cluster::running_pods() { return list_running_pods(*api_, line_.clock); }

Result<core::collect::Facts> Cluster::nodes(const engine::Context& context) {
  TRY(core::collect::Facts facts, engine::NodeFacts(context).facts());
  if (line_.cluster_url == line_.store_url) {
    own_.insert(facts.nodes().begin(), facts.nodes().end());
    return facts;
  }
  TRY(const auto cidrs, open_node_cidrs(line_.cluster_url, line_.clock, operator_parts()));
  TRY(const auto nodes, cidrs->all());
  for (const engine::NodeCidrs::OfNode& node : nodes) {
    own_.insert(node.node);
    facts.add_node({node.node, {}, {}});
  }
  bool is_of_store = false;
  TRY_VOID(engine::for_each_affinity(context, "", [&](const core::Affinity& one) {
    is_of_store |= one.owner.type == core::AffinityOwner::Type::host && own_.contains(one.owner.name);
  }));
  if (is_of_store) return facts;
  return fail(ErrorCode::refused_for_safety,
              fmt::format("none of the cluster's {} has a block in {}; name the cluster whose pods have its addresses",
                          counted(own_.size(), "node"), line_.store_url));
}

Result<std::vector<core::audit::RunningPod>> Cluster::running_pods(core::collect::Facts& all) {
  std::vector<core::audit::RunningPod> running;
  const auto begin = [&] {
    running.clear();
    all = {};
  };
  TRY_VOID(store::kube::for_each_pod(*api_, line_.clock, begin, [&](const core::collect::PodFact& pod) {
    if (auto one = running_pod(pod)) running.push_back(*std::move(one));
    all.add_pod(pod);
  }));
  all.set_pods_known();
  all.freeze();
  return running;
}

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
