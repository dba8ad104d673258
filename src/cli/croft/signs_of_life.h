#pragma once

#include <memory>
#include <set>
#include <string>
#include <vector>

#include "cli/croft/command_line.h"
#include "cli/croft/runtime_cache.h"
#include "collector/decide/facts.h"
#include "collector/use/holders.h"
#include "ipam/audit/runtime_comparison.h"
#include "ipam/use/transact.h"
#include "store/kube/api.h"

namespace croft::app {

/// The Kubernetes API whose pods hold addresses (CommandLine::cluster_url).
class Cluster {
 public:
  /// Null where none is at hand. Connects nothing. Error: as open_kube_api.
  [[nodiscard]] static Result<std::unique_ptr<Cluster>> of(const CommandLine& line);

  [[nodiscard]] store::kube::Api& api() { return *api_; }
  [[nodiscard]] Result<std::vector<core::audit::RunningPod>> running_pods();
  /// The same, and all pods as facts without nodes, frozen: of one list.
  [[nodiscard]] Result<std::vector<core::audit::RunningPod>> running_pods(core::collect::Facts& all);
  /// Nodes by the cluster's objects and, of a store beside it, by the store's records too: a node counts as gone when
  /// neither has it. Tunnels are those that the records name. Frozen. Error also: refused_for_safety, when none of the
  /// cluster's nodes has a block in the store beside it: that is another cluster, of which nothing may be concluded.
  [[nodiscard]] Result<core::collect::Facts> nodes(const engine::Context& context);
  /// Whether the cluster itself has the node; behind nodes().
  [[nodiscard]] bool has_node(const std::string& name) const { return own_.contains(name); }

 private:
  Cluster(const CommandLine& line, std::unique_ptr<store::kube::Api> api) : line_(line), api_(std::move(api)) {}

  const CommandLine& line_;
  const std::unique_ptr<store::kube::Api> api_;
  std::set<std::string> own_;  ///< the cluster's nodes
};

/// The sources that say who lives. An address that is on an interface of this machine is somebody's, whatever a cache
/// lacks: runtimes keep theirs in several places. Elsewhere than on the node, and without root, nothing is seen of
/// that.
class SignsOfLife {
 public:
  [[nodiscard]] Result<void> look(const CommandLine& line, const engine::Context& context, const RuntimeCache& cache);
  [[nodiscard]] const engine::LifeKnown& known() const { return known_; }
  /// Whether the cluster itself has the node, whatever records the store has.
  [[nodiscard]] bool has_node(const std::string& name) const { return cluster_ != nullptr && cluster_->has_node(name); }
  /// Whether pods can be asked for.
  [[nodiscard]] bool knows_pods() const { return known_.find_pod != nullptr; }

 private:
  std::unique_ptr<Cluster> cluster_;
  engine::LifeKnown known_;
};

}  // namespace croft::app
