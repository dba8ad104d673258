#pragma once

#include <chrono>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include <spdlog/spdlog.h>

#include "agent/metrics/metrics.h"
#include "base/result.h"
#include "ipam/audit/pool_status.h"
#include "ipam/use/transact.h"
#include "store/kube/events.h"
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
              store::kube::Events* events, edge::Metrics* metrics, std::chrono::nanoseconds interval,
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
  void show();
  /// Another controller may have told of pools since.
  void forget() { fullness_.clear(); }

 private:
  [[nodiscard]] Result<void> show_pools();
  [[nodiscard]] Result<void> show_node_ranges();
  /// Once for each change to the worse.
  void tell_of_fullness(const std::vector<core::PoolFill>& pools, const std::map<std::string, std::string>& uids);
  void note(const char* what, std::string& told, const Result<void>& done);

  const engine::Context& context_;
  spdlog::logger& log_;
  store::kube::StatusBoard* const board_;
  store::kube::Events* const events_;
  edge::Metrics* const metrics_;
  const std::chrono::nanoseconds interval_;
  const bool with_node_ranges_;
  std::chrono::nanoseconds due_{0};
  std::map<std::string, core::Fullness> fullness_;  ///< by pool, in the last round; those with room are not in it
  std::string pools_told_, ranges_told_;            ///< what went wrong last; empty: nothing
};

}  // namespace croft::app
