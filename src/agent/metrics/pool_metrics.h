#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include <prometheus/metric_family.h>

#include "collector/use/sweep.h"
#include "ipam/audit/pool_status.h"

namespace croft::edge {

/// The part of Metrics that has pools and the collector. For one thread at a time.
class PoolMetrics {
 public:
  void count(const std::vector<core::PoolFill>& pools);
  void count(const engine::SweepReport& pass);
  void count_failed_pass();
  void forget();
  /// The figures of pools, in Prometheus' text format: written when they are counted, as there may be thousands.
  [[nodiscard]] const std::string& pools_text() const { return pools_text_; }
  /// The rest.
  void collect(std::vector<prometheus::MetricFamily>& all) const;

 private:
  std::string pools_text_;
  std::optional<std::uint64_t> candidates_;
  std::map<std::string, std::uint64_t> released_;  ///< by what it was
  std::uint64_t passes_ = 0, failed_passes_ = 0;
};

}  // namespace croft::edge
