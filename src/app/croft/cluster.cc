#include "app/croft/cluster.h"

#include <utility>

#include "app/cluster_nodes.h"
#include "app/croft/operator_parts.h"
#include "app/open_store.h"
#include "app/running_pods.h"
#include "engine/node_facts.h"
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
  if (line_.cluster_url == line_.store_url) return facts;
  TRY(const auto cidrs, open_node_cidrs(line_.cluster_url, line_.clock, operator_parts()));
  TRY(const auto nodes, cidrs->all());
  for (const engine::NodeCidrs::OfNode& node : nodes) facts.add_node({node.node, {}, {}});
  return facts;
}

Result<core::collect::Facts> Cluster::with_pods(const core::collect::Facts& nodes) {
  core::collect::Facts facts;
  TRY_VOID(store::kube::for_each_pod(
      *api_, line_.clock, [&] { facts = nodes.with_nodes_alone(); },
      [&](const core::collect::PodFact& pod) { facts.add_pod(pod); }));
  facts.set_pods_known();
  facts.freeze();
  return facts;
}

}  // namespace croft::app
