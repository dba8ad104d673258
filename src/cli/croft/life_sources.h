#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include <CLI/CLI.hpp>

#include "cli/croft/command_line.h"
#include "collector/decide/facts.h"
#include "collector/use/holder_life.h"
#include "ipam/audit/runtime_comparison.h"
#include "ipam/use/transact.h"
#include "store/kube/api.h"

namespace croft::app {

/// Which cache of a runtime is compared with the register, by `croft check` and `croft ip release`.
struct RuntimeCache {
  std::vector<std::string> directories;
  std::string node;
  std::int64_t grace_seconds = 60;
  bool in_container = false;

  /// The options that say the same again, each after a space; empty without a directory.
  [[nodiscard]] std::string words() const;
};

/// Adds the options; `first` is what --cni-cache is for.
void add_runtime_cache_options(CLI::App& command, RuntimeCache& cache, const std::string& first);

/// The runtime's knowledge; nothing without a directory. Warns of entries that can't be told to be there or gone.
/// Errors: invalid_argument for options that do not fit together or the store, and for a directory that is no cache;
/// not_found for a node that the register does not know.
[[nodiscard]] Result<std::optional<core::audit::LiveAttachments>> read_runtime_cache(const engine::Context& context,
                                                                                     const RuntimeCache& cache);
/// The same once more, without a warning.
[[nodiscard]] Result<std::optional<core::audit::LiveAttachments>> read_runtime_cache_again(const RuntimeCache& cache);

/// The Kubernetes API whose pods hold addresses (CommandLine::cluster_url).
class Cluster {
 public:
  /// Null where none is at hand. Connects nothing. Error: as open_kube_api.
  [[nodiscard]] static Result<std::unique_ptr<Cluster>> of(const CommandLine& line);

  [[nodiscard]] store::kube::Api& api() { return *api_; }
  /// And, where it is not null, `all` pods as facts without nodes, frozen: of one list.
  [[nodiscard]] Result<std::vector<core::audit::RunningPod>> running_pods(core::collect::Facts* all = nullptr);
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
class LifeSources {
 public:
  [[nodiscard]] Result<void> read(const CommandLine& line, const engine::Context& context, const RuntimeCache& cache);
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
