#pragma once

#include <array>
#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/duration_histogram.h"
#include "collector/use/sweep.h"
#include "history/decide/forecast.h"
#include "ipam/audit/pool_status.h"
#include "ipam/decide/assign.h"
#include "noderanges/use/node_range.h"
#include "services/use/range_repair.h"
#include "vpc/decide/stock.h"
#include "vpc/provider.h"
#include "vpc/use/stock_keeper.h"

namespace croft::edge {

/// A controller's observations, for Prometheus (docs/metrics.md). Counts are of this process, since its start.
///
/// The figures of pools, as they were when they were last counted, and of the collector.
///
/// Ranges, under the names of kube-apiserver and kube-controller-manager (docs/notes/service-ranges.md#metrics,
/// #repair-metrics; docs/notes/node-ranges.md#metrics; docs/notes/kubernetes-client.md#leases).
///
/// No samples without a look. Any thread may call anything; who reads sees all of a pass or nothing of it.
class ControllerMetrics {
 public:
  /// One pass of the repair of Service ranges. The gauges are from now on those of its ranges and no others, as the
  /// pass left them: as written, or as read where nothing was written.
  void count(const engine::RangeRepairReport& report);
  /// One that could read nothing. The gauges stay.
  void count_failed_repair();

  /// One pass over node ranges. Ranges that others gave out or took back since the pass before count too, and those
  /// from before the first pass as given out, as in the reference.
  void count(const engine::NodeRangesReconciled& done);

  /// Whether this process leads by a Lease, from now on.
  void set_leading(const std::string& lease, bool leads);

  /// The gauges are from now on those of these pools and no others.
  void count(const std::vector<core::PoolFill>& pools);
  /// Another controller counts pools and leaks from now on.
  void forget_pools();
  /// When pools will be full. Those of which that is not known have no gauge.
  void count(const std::map<std::string, core::history::Forecast>& forecasts);
  /// One pass of the collector.
  void count(const engine::SweepReport& pass);
  /// One that could not look. The gauge stays.
  void count_failed_pass();

  /// All of it in Prometheus' text format.
  [[nodiscard]] std::string text() const;

 private:
  /// How full a range is.
  struct Range {
    double allocated = 0;
    double available = 0;
  };
  struct Repairs {
    core::audit::RepairCounts errors{};
    std::uint64_t reconcile_errors = 0;
    void add(const std::vector<core::audit::RepairFinding>& findings);
  };
  struct ClusterCidrMetrics {
    std::uint64_t allocations = 0, releases = 0, taken = 0, size = 0;
    static constexpr std::array kTriesBounds{1.0, 5.0, 25.0, 125.0, 625.0};  ///< of the histogram of tries
    std::array<std::uint64_t, kTriesBounds.size()> tries_up_to{};            ///< each with those below it
    std::uint64_t tries_count = 0;
    double tries_sum = 0;
    /// Changes that this process did not make, others did.
    void see(const core::ClusterCidrUse& use);
    void add(const engine::ClusterCidrCounts& counts);
  };

  static Range of_bands(const core::audit::BandUse& in_static, const core::audit::BandUse& in_dynamic);
  template <class M>
  static Range of_record(const core::RangeAllocation& range);

  mutable std::mutex mutex_;                        ///< guards all below
  std::map<std::string, Range> service_addresses_;  ///< by CIDR
  std::optional<Range> node_ports_;
  bool is_repairing_ = false;
  Repairs address_repairs_, port_repairs_;
  std::map<net::Prefix, ClusterCidrMetrics> cluster_cidrs_;
  std::map<std::string, bool> leading_;  ///< by the Lease
  /// The figures of pools, in Prometheus' text format: written when they are counted, as there may be thousands.
  std::string pools_text_;
  std::map<std::string, core::history::Forecast> forecasts_;  ///< by pool
  std::optional<std::uint64_t> candidates_;
  std::map<std::string, std::uint64_t> released_;  ///< by what it was
  std::uint64_t passes_ = 0, failed_passes_ = 0;
};

/// The ADDs that an agent has answered since its start, for Prometheus (docs/metrics.md). Any thread may call anything.
class AgentMetrics {
 public:
  /// One ADD; `answer`: null where it failed.
  void count(std::chrono::nanoseconds took, const core::AssignAnswer* answer);
  /// All of it in Prometheus' text format.
  [[nodiscard]] std::string text() const;

 private:
  mutable std::mutex mutex_;  ///< guards all below
  DurationHistogram ok_, refused_, failed_;
  std::map<std::pair<std::string, core::RefusalCause>, std::uint64_t> refusals_;
  std::uint64_t borrowed_ = 0;
};

/// The figures of a stock of cloud addresses at one moment.
struct StockFigures {
  core::warm::Counts counts;
  std::uint32_t low = 0, high = 0;
  engine::KeeperTally keeper;
  engine::StockCallTally calls;
};

/// A stock for Prometheus (docs/warm-pool.md#metrics). Any thread may call anything.
class StockMetrics {
 public:
  /// `figures` is asked at each look, from any thread; nothing: nothing is known yet.
  explicit StockMetrics(std::function<std::optional<StockFigures>()> figures) : figures_(std::move(figures)) {}

  /// One call of the cloud that has ended.
  void count(const cloud::Provider::Call& call);
  /// All of it in Prometheus' text format.
  [[nodiscard]] std::string text() const;

 private:
  struct Took {
    std::uint64_t count = 0;
    std::chrono::nanoseconds sum{};
  };
  const std::function<std::optional<StockFigures>()> figures_;
  mutable std::mutex mutex_;  ///< guards both below
  std::map<std::pair<std::string, std::string>, std::uint64_t> calls_;
  std::map<std::string, Took> took_;
};

}  // namespace croft::edge
