#pragma once

#include <algorithm>
#include <chrono>
#include <map>
#include <string>
#include <vector>

#include <spdlog/spdlog.h>

#include "agent/daemon/daemon.h"
#include "agent/metrics/metrics.h"
#include "base/result.h"
#include "ipam/audit/pool_status.h"
#include "ipam/use/inspect.h"
#include "ipam/use/transact.h"
#include "noderanges/use/node_range.h"
#include "store/kube/events.h"
#include "store/kube/format/croft_kinds.h"
#include "store/kube/status_board.h"

namespace croft::app {

/// Counts how full pools are, round after round, for metrics. Shows it and node ranges in the Kubernetes API that keeps
/// them (store/kube/status_board.h). Says in the log and by an Event when a pool gets nearly full, or full. A failure
/// is said in the log, once, and nothing waits for it. References outlive it. For one thread.
class ShownStatus {
 public:
  /// `board`, `events`, `metrics`: null where there is nobody to show it to, or nobody wants it. `interval`: between
  /// two rounds; 0: there are none.
  ShownStatus(const engine::Context& context, spdlog::logger& log, store::kube::StatusBoard* board,
              store::kube::Events* events, edge::ControllerMetrics* metrics, std::chrono::nanoseconds interval,
              bool with_node_ranges)
      : context_(context),
        log_(log),
        board_(board),
        events_(events),
        metrics_(metrics),
        interval_(interval),
        with_node_ranges_(with_node_ranges) {}

  /// When the next round is due, since boot; the largest value: never.
  [[nodiscard]] std::chrono::nanoseconds due() const {
    const bool is_wanted = interval_ > interval_.zero() && (board_ != nullptr || metrics_ != nullptr);
    return is_wanted ? due_ : std::chrono::nanoseconds::max();
  }
  /// One round. The next is due after the interval, and later where this one took long: reading all blocks of a large
  /// register shall take a twentieth of the time at most.
  void show() {
    constexpr int kPart = 20;
    const auto begin = context_.clock.now().since_boot;
    note("pools", pools_told_, show_pools());
    if (with_node_ranges_ && board_ != nullptr) note("node ranges", ranges_told_, show_node_ranges());
    const auto now = context_.clock.now().since_boot;
    due_ = now + std::max(interval_, (now - begin) * kPart);
  }
  /// Another controller may have told of pools since.
  void forget() {
    fullness_.clear();
    due_ = {};
  }

 private:
  [[nodiscard]] Result<void> show_pools() {
    TRY(const auto pools, engine::fill_of_pools(context_));
    if (metrics_ != nullptr) metrics_->count(pools);
    Result<store::kube::StatusBoard::Shown> shown;
    if (board_ != nullptr) shown = board_->show(core::status_of_pools(pools));
    tell_of_fullness(pools, shown ? shown->uids : std::map<std::string, std::string>());
    if (!shown) return fail(shown.error());
    for (const std::string& name : shown->deleted) log_.info("croftpools {} shows no pool: deleted", one_line(name));
    return {};
  }

  [[nodiscard]] Result<void> show_node_ranges() {
    TRY(const core::NodeRangeOverview seen, engine::read_node_range_overview(context_));
    if (!seen.set) return {};
    return board_->show(core::status_of_node_ranges(seen));
  }

  /// Once for each change to the worse.
  void tell_of_fullness(const std::vector<core::PoolFill>& pools, const std::map<std::string, std::string>& uids) {
    std::map<std::string, core::Fullness> now;
    for (const core::PoolFill& fill : pools) {
      const core::Fullness fullness = core::fullness_of(fill);
      if (fullness == core::Fullness::room) continue;
      const std::string& name = fill.pool.name;
      now[name] = fullness;
      const auto before = fullness_.find(name);
      if (before != fullness_.end() && before->second >= fullness) continue;
      const std::string text = core::fullness_text(fill);
      log_.warn("{}", one_line(text));
      if (events_ == nullptr) continue;
      const auto uid = uids.find(name);
      events_->tell({wire::kube::kOwnApiVersion,
                     wire::kube::croft_pool_kind().kind,
                     {},
                     name,
                     uid == uids.end() ? "" : uid->second},
                    {store::kube::Events::Type::warning,
                     fullness == core::Fullness::full ? "PoolFull" : "PoolNearlyFull", "", text});
    }
    fullness_ = std::move(now);
  }

  void note(const char* what, std::string& told, const Result<void>& done) {
    const std::string text = done ? std::string() : done.error().message;
    if (text == told) return;
    if (!text.empty()) log_.warn("status of {}: {}", what, one_line(text));
    if (text.empty()) log_.info("status of {} is shown again", what);
    told = text;
  }

  const engine::Context& context_;
  spdlog::logger& log_;
  store::kube::StatusBoard* const board_;
  store::kube::Events* const events_;
  edge::ControllerMetrics* const metrics_;
  const std::chrono::nanoseconds interval_;
  const bool with_node_ranges_;
  std::chrono::nanoseconds due_{0};
  std::map<std::string, core::Fullness> fullness_;  ///< by pool, in the last round; those with room are not in it
  std::string pools_told_, ranges_told_;            ///< what went wrong last; empty: nothing
};

}  // namespace croft::app
