#pragma once

#include <memory>
#include <string>
#include <vector>

#include "app/croft/command_line.h"
#include "core/audit/runtime_comparison.h"
#include "core/collect/facts.h"
#include "engine/transact.h"
#include "store/kube/api.h"

namespace croft::app {

/// The Kubernetes API whose pods hold addresses (CommandLine::cluster_url).
class Cluster {
 public:
  /// Null where none is at hand. Connects nothing. Error: as open_kube_api.
  [[nodiscard]] static Result<std::unique_ptr<Cluster>> of(const CommandLine& line);

  [[nodiscard]] store::kube::Api& api() { return *api_; }
  [[nodiscard]] Result<std::vector<core::audit::RunningPod>> running_pods();
  /// Nodes by the cluster's objects and, of a store beside it, by the store's records too: a node counts as gone when
  /// neither has it. Tunnels are those that the records name. Frozen.
  [[nodiscard]] Result<core::collect::Facts> nodes(const engine::Context& context);
  /// `nodes` with the pods of the cluster; frozen.
  [[nodiscard]] Result<core::collect::Facts> with_pods(const core::collect::Facts& nodes);

 private:
  Cluster(const CommandLine& line, std::unique_ptr<store::kube::Api> api) : line_(line), api_(std::move(api)) {}

  const CommandLine& line_;
  const std::unique_ptr<store::kube::Api> api_;
};

}  // namespace croft::app
