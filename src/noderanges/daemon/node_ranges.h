#pragma once

#include <string>

#include <spdlog/spdlog.h>

#include "agent/metrics/metrics.h"
#include "base/result.h"
#include "noderanges/commands/node_range_flags.h"
#include "noderanges/use/node_cidrs.h"
#include "noderanges/use/node_range.h"
#include "store/kube/events.h"

namespace croft::app {

/// Gives nodes their ranges and takes back those of nodes that are gone, pass after pass, and says so in the log
/// and in the metrics. References outlive it.
class NodeRanges {
 public:
  /// `cidrs`: what the nodes' objects say; null where they say nothing. `events`: null where there is nobody to tell
  /// but the log.
  NodeRanges(const engine::Context& context, spdlog::logger& log, edge::Metrics& metrics,
             const engine::ReconcileOptions& options, engine::NodeCidrs* cidrs, store::kube::Events* events)
      : context_(context), log_(log), metrics_(metrics), options_(options), cidrs_(cidrs), events_(events) {}

  /// Says what ranges are cut from, when that was given; else the store must know it from before. Errors: of the flags
  /// and of engine::configure_node_ranges.
  [[nodiscard]] Result<void> configure(const NodeRangeFlags& flags);

  /// The success is whether something held it back (alarms).
  [[nodiscard]] Result<bool> pass();

  /// Drops what earlier passes have seen.
  void forget() {
    memory_ = {};
    said_ = {};
  }

 private:
  /// Sets what to leave as it is. False when nothing may be given.
  [[nodiscard]] Result<bool> adopt(engine::ReconcileOptions& options);
  [[nodiscard]] Result<void> say();
  void tell_of(const std::vector<core::SurplusRange>& surplus);
  /// In the field's words, those of kube-controller-manager.
  void tell(const std::string& node, const std::string& reason);

  const engine::Context& context_;
  spdlog::logger& log_;
  edge::Metrics& metrics_;
  const engine::ReconcileOptions options_;
  engine::NodeCidrs* const cidrs_;
  store::kube::Events* const events_;
  engine::GoneNodes memory_;
  engine::NodeCidrsMemory said_;
};

}  // namespace croft::app
