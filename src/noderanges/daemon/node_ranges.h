#pragma once

#include <algorithm>
#include <string>
#include <utility>

#include <fmt/format.h>
#include <spdlog/spdlog.h>

#include "agent/daemon/daemon.h"
#include "agent/metrics/metrics.h"
#include "base/net/prefix.h"
#include "base/result.h"
#include "base/texts.h"
#include "noderanges/commands/node_range_inputs.h"
#include "noderanges/use/node_range.h"
#include "store/kube/events.h"

namespace croft::app {

/// Gives nodes their ranges and takes back those of nodes that are gone, pass after pass, and says so in the log
/// and in the metrics. References outlive it.
class NodeRanges {
 public:
  /// `cidrs`: what the nodes' objects say; null where they say nothing. `events`: null where there is nobody to tell
  /// but the log.
  NodeRanges(const engine::Context& context, spdlog::logger& log, edge::ControllerMetrics& metrics,
             const engine::ReconcileOptions& options, engine::NodeCidrs* cidrs, store::kube::Events* events)
      : context_(context), log_(log), metrics_(metrics), options_(options), cidrs_(cidrs), events_(events) {}

  /// Says what ranges are cut from, when that was given; else the store must know it from before. Errors: of the flags
  /// and of engine::configure_node_ranges.
  [[nodiscard]] Result<void> configure(const NodeRangeFlags& flags) {
    if (flags.cluster_cidr.empty()) {
      TRY(const core::NodeRangeOverview seen, engine::read_node_range_overview(context_));
      if (!seen.set) return fail(read_node_range_flags(flags).error());
      return {};
    }
    TRY(const NodeRangeFlagsRead read, read_node_range_flags(flags));
    for (const std::string& warning : read.warnings) log_.warn("{}", warning);
    if (options_.dry_run) return {};
    TRY(const core::NodeRangesConfigured done, engine::configure_node_ranges(context_, read.spec));
    if (done.changed) log_.info("node ranges are cut from {}", flags.cluster_cidr);
    for (const core::NodeRange& range : done.outside) {
      log_.warn("node {} keeps {}, which lies in no cluster CIDR", one_line(range.node), range.cidr.to_string());
    }
    return {};
  }

  /// The success is whether something held it back (alarms).
  [[nodiscard]] Result<bool> pass() {
    engine::ReconcileOptions options = options_;
    TRY(const bool may_give, adopt(options));
    if (!may_give) return true;
    TRY(const engine::NodeRangesReconciled done, engine::reconcile_node_ranges(context_, memory_, options));
    TRY_VOID(say());
    metrics_.count(done);
    for (const auto& one : done.released) {
      log_.info("node {} is gone: {} {}", one_line(one.node), done.dry_run ? "would take back" : "took back",
                net::joined(one.cidrs));
    }
    tell_of(done.surplus);
    for (const auto& alarm : done.alarms) log_.warn("node ranges: {}: {}", name_of(alarm.kind), alarm.text);
    for (const auto& one : done.assigned) log_.info("node {} got {}", one_line(one.node), net::joined(one.cidrs));
    for (const auto& one : done.refused) {
      log_.warn("CIDRNotAvailable: {}", one_line(one.refusal->message));
      if (!options_.dry_run) tell(one.node, "CIDRNotAvailable");
    }
    for (const auto& [outer, inner] : done.seen.collisions) {
      log_.error("nodes {} and {} collide: {} and {}", one_line(outer.node), one_line(inner.node),
                 outer.cidr.to_string(), inner.cidr.to_string());
    }
    std::string use;
    for (const core::ClusterCidrUse& one : done.seen.use) {
      use += fmt::format("; {} {} of {} taken", one.cluster.cidr, one.taken, one.size);
    }
    log_.info("node ranges: {} nodes, {} given{}, {} waiting, {} of nodes that are gone{}", done.seen.nodes,
              done.assigned.size(), done.dry_run ? " (dry run)" : "",
              done.dry_run ? done.seen.bare.size() : done.refused.size(), done.gone.size(), use);
    return !done.alarms.empty();
  }

  /// Drops what earlier passes have seen.
  void forget() {
    memory_ = {};
    said_ = {};
  }

 private:
  /// Sets what to leave as it is. False when nothing may be given.
  [[nodiscard]] Result<bool> adopt(engine::ReconcileOptions& options) {
    if (cidrs_ == nullptr) return true;
    TRY(engine::NodeCidrsAdopted found, engine::adopt_node_cidrs(context_, *cidrs_, said_, options.dry_run));
    for (const auto& [node, cidr] : found.adopted)
      log_.info("node {} has {} already", one_line(node), cidr.to_string());
    for (const auto& [node, error] : found.failed) log_.warn("node {}: {}", one_line(node), one_line(error.message));
    for (const auto& one : found.differing) {
      log_.warn("node {} says {}, and its record {}: neither is changed", one_line(one.node), net::joined(one.said),
                net::joined(one.recorded));
    }
    for (const auto& one : found.overlaps) {
      log_.error(
          "the object of node {} says {}, and {} of node {} {}: no other node gets either; `croft check` has the "
          "remedy",
          one_line(one.said.node), one.said.cidr.to_string(), one.other_is_recorded ? "the record" : "the object",
          one_line(one.other.node),
          one.said.cidr == one.other.cidr ? std::string("the same") : one.other.cidr.to_string());
    }
    options.as_they_are = std::move(found.as_they_are);
    options.said = std::move(found.said);
    if (!found.rival) return true;
    log_.error("node ranges: {}", one_line(*found.rival));
    return false;
  }
  [[nodiscard]] Result<void> say() {
    if (cidrs_ == nullptr || options_.dry_run) return {};
    TRY(const engine::NodeCidrsSaid done, engine::say_node_cidrs(context_, *cidrs_));
    tell_of(done.surplus);
    for (const auto& [node, cidrs] : done.said) log_.info("node {} says {}", one_line(node), net::joined(cidrs));
    for (const auto& [node, error] : done.failed) {
      log_.warn("CIDRAssignmentFailed: node {}: {}", one_line(node), one_line(error.message));
      tell(node, "CIDRAssignmentFailed");
    }
    return {};
  }
  void tell_of(const std::vector<core::SurplusRange>& surplus) {
    for (const auto& one : surplus) {
      log_.warn("node {} gives {} back, as two programs gave ranges at once: {} stays", one_line(one.range.node),
                one.range.cidr.to_string(), one.kept.to_string());
    }
  }
  /// In the field's words, those of kube-controller-manager.
  void tell(const std::string& node, const std::string& reason) {
    if (events_ == nullptr) return;
    // As its UID the field says the node's name, and `kubectl describe node` asks for that.
    events_->tell({"v1", "Node", "", node, node}, {store::kube::Events::Type::normal, reason, "",
                                                   fmt::format("Node {} status is now: {}", node, reason)});
  }

  const engine::Context& context_;
  spdlog::logger& log_;
  edge::ControllerMetrics& metrics_;
  const engine::ReconcileOptions options_;
  engine::NodeCidrs* const cidrs_;
  store::kube::Events* const events_;
  engine::GoneNodes memory_;
  engine::NodeCidrsMemory said_;
};

}  // namespace croft::app
