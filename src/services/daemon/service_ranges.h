#pragma once

#include <algorithm>
#include <chrono>
#include <span>
#include <string>
#include <utility>

#include <fmt/format.h>
#include <spdlog/spdlog.h>

#include "agent/daemon/daemon.h"
#include "agent/metrics/metrics.h"
#include "base/result.h"
#include "services/use/range_repair.h"

namespace croft::app {

/// How often the ranges of Services are looked at, as a kube-apiserver does.
inline constexpr std::chrono::minutes kServiceRangesInterval{3};

/// Repairs the ranges of Services, pass after pass, and says so in the log and in the metrics. References
/// outlive it.
class ServiceRanges {
 public:
  ServiceRanges(const engine::Context& context, spdlog::logger& log, edge::ControllerMetrics& metrics)
      : context_(context), log_(log), metrics_(metrics) {}

  /// Sets the wanted ranges; empty: as stored. Error: invalid_argument, or the store shows no ranges.
  [[nodiscard]] Result<void> configure(const std::string& cluster_ip_range, const std::string& node_port_range,
                                       bool dry_run) {
    TRY_VOID(engine::shows_ranges(context_.store));
    TRY(core::ServiceRanges wanted, core::read_service_ranges(cluster_ip_range, node_port_range));
    options_ = {std::move(wanted), !dry_run};
    return {};
  }

  /// Findings are warnings with the field's reasons. Error: nothing could be read, or a range
  /// could not be repaired; the others were.
  [[nodiscard]] Result<void> pass() {
    const auto done = engine::repair_ranges(context_, options_, memory_);
    if (!done) {
      metrics_.count_failed_repair();
      return fail(done.error());
    }
    const engine::RangeRepairReport& report = *done;
    metrics_.count(report);
    const auto findings = report.findings();
    for (const auto& finding : findings) {
      log_.warn("{}{}: {}", finding.reason, finding.service ? " " + one_line(finding.service->to_string()) : "",
                one_line(finding.message));
    }
    std::string use;
    for (const auto& range : report.ranges) {
      use += fmt::format("; {} {} {} of {} taken", range.name, one_line(range.range),
                         range.in_static.used + range.in_dynamic.used, range.in_static.size + range.in_dynamic.size);
    }
    log_.info("service ranges: {} services, {} findings{}{}", report.services.size(), findings.size(),
              options_.write ? "" : " (dry run)", use);
    if (report.failures.empty()) return {};
    for (const engine::RangeFailure& failure : std::span(report.failures).subspan(1)) {
      log_.error("service ranges: {}: {}", one_line(failure.range), one_line(failure.error.message));
    }
    return fail(report.failures.front().error.in(report.failures.front().range));
  }

  /// Drops what earlier passes have seen.
  void forget() { memory_ = {}; }

 private:
  const engine::Context& context_;
  spdlog::logger& log_;
  edge::ControllerMetrics& metrics_;
  engine::RangeRepairOptions options_;
  engine::RangeRepairMemory memory_;
};

}  // namespace croft::app
