#pragma once

#include <memory>

#include "cli/croft/cluster.h"
#include "cli/croft/command_line.h"
#include "cli/croft/runtime_cache.h"
#include "collector/use/holders.h"

namespace croft::app {

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
