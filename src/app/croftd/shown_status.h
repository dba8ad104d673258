#pragma once

#include <chrono>
#include <optional>
#include <string>

#include <spdlog/spdlog.h>

#include "base/result.h"
#include "engine/transact.h"
#include "store/kube/status_board.h"

namespace croft::app {

/// Shows how full pools and node ranges are in the Kubernetes API that keeps them (store/kube/status_board.h), round
/// after round. It is no part of what a controller is for: what goes wrong is said in the log, once, and nothing waits
/// for it. References outlive it. For one thread.
class ShownStatus {
 public:
  /// `board`: null where there is nobody to show it to, or nobody wants it: it is never due then. `interval`: between
  /// two rounds.
  ShownStatus(const engine::Context& context, spdlog::logger& log, store::kube::StatusBoard* board,
              std::chrono::nanoseconds interval, bool with_node_ranges)
      : context_(context), log_(log), board_(board), interval_(interval), with_node_ranges_(with_node_ranges) {}

  /// When the next round is due, since boot; the largest value: never.
  [[nodiscard]] std::chrono::nanoseconds due() const {
    return board_ == nullptr ? std::chrono::nanoseconds::max() : due_;
  }
  /// One round. The next is due after the interval, and later where this one took long: reading all blocks of a large
  /// register shall take a twentieth of the time at most.
  void show();

 private:
  [[nodiscard]] Result<void> show_pools();
  [[nodiscard]] Result<void> show_node_ranges();
  void note(const char* what, std::string& told, const Result<void>& done);

  const engine::Context& context_;
  spdlog::logger& log_;
  store::kube::StatusBoard* const board_;
  const std::chrono::nanoseconds interval_;
  const bool with_node_ranges_;
  std::chrono::nanoseconds due_{0};
  std::string pools_told_, ranges_told_;  ///< what went wrong last; empty: nothing
};

}  // namespace croft::app
