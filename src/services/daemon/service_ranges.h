#pragma once

#include <chrono>
#include <string>

#include <spdlog/spdlog.h>

#include "agent/metrics/metrics.h"
#include "base/result.h"
#include "services/use/range_repair.h"
#include "store/kube/events.h"

namespace croft::app {

/// How often the ranges of Services are looked at, as a kube-apiserver does.
inline constexpr std::chrono::minutes kServiceRangesInterval{3};

/// Repairs the ranges of Services, pass after pass, and says so in the log and in the metrics. References
/// outlive it.
class ServiceRanges {
 public:
  /// `events`: null where there is nobody to tell but the log.
  ServiceRanges(const engine::Context& context, spdlog::logger& log, edge::Metrics& metrics,
                store::kube::Events* events)
      : context_(context), log_(log), metrics_(metrics), events_(events) {}

  /// Sets the wanted ranges; empty: as stored. Error: invalid_argument.
  [[nodiscard]] Result<void> configure(const std::string& cluster_ip_range, const std::string& node_port_range,
                                       bool dry_run);

  /// Findings are warnings with the field's reasons, in the log and as Events. Error: nothing could be read, or a range
  /// could not be repaired; the others were.
  [[nodiscard]] Result<void> pass();

  /// Drops what earlier passes have seen.
  void forget() { memory_ = {}; }

 private:
  void tell(const engine::RangeRepairReport& report, const core::audit::RepairFinding& finding);

  const engine::Context& context_;
  spdlog::logger& log_;
  edge::Metrics& metrics_;
  store::kube::Events* const events_;
  engine::RangeRepairOptions options_;
  engine::RangeRepairMemory memory_;
};

}  // namespace croft::app
