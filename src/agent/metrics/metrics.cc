#include "agent/metrics/metrics.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <map>
#include <mutex>
#include <optional>
#include <utility>
#include <vector>

#include <prometheus/metric_family.h>
#include <prometheus/text_serializer.h>

#include "agent/metrics/pool_metrics.h"
#include "agent/metrics/samples.h"
#include "services/decide/mapped_range.h"

namespace croft::edge {
namespace {

namespace audit = core::audit;
using prometheus::ClientMetric;
using prometheus::MetricFamily;
using prometheus::MetricType;
using Labels = std::vector<ClientMetric::Label>;
using Type = audit::RepairFinding::Type;

/// How full a range is.
struct RangeSeries {
  double allocated = 0;
  double available = 0;
};

RangeSeries series_of(const audit::BandUse& in_static, const audit::BandUse& in_dynamic) {
  const double used = number(in_static.used) + number(in_dynamic.used);
  return {used, number(in_static.size) + number(in_dynamic.size) - used};
}

template <class M>
RangeSeries series_of(const core::RangeAllocation& range) {
  const auto made = core::service::range_from<M>({range.range, range.data});
  if (!made) return {};  // never: a repair made it
  return {number(made->range.taken_count()), number(made->range.free_count())};
}

struct RepairSeries {
  audit::RepairCounts errors{};
  std::uint64_t reconcile_errors = 0;

  void add(const std::vector<audit::RepairFinding>& findings) {
    const audit::RepairCounts counts = audit::counts_of(findings);
    for (std::size_t i = 0; i < counts.size(); ++i) errors[i] += counts[i];
  }
};

/// Upper bounds of the histogram of tries.
constexpr std::array kTriesBounds{1.0, 5.0, 25.0, 125.0, 625.0};

struct ClusterCidrSeries {
  std::uint64_t allocations = 0;
  std::uint64_t releases = 0;
  std::uint64_t taken = 0;
  std::uint64_t size = 0;
  std::array<std::uint64_t, kTriesBounds.size()> tries_up_to{};  ///< each with those below it
  std::uint64_t tries_count = 0;
  double tries_sum = 0;

  /// Changes that this process did not make, others did.
  void see(const core::ClusterCidrUse& use) {
    if (use.taken > taken) allocations += use.taken - taken;
    if (use.taken < taken) releases += taken - use.taken;
    taken = use.taken;
    size = use.size;
  }

  void add(const engine::ClusterCidrCounts& counts) {
    allocations += counts.allocations;
    releases += counts.releases;
    taken += counts.allocations;
    taken -= std::min(taken, counts.releases);
    for (const std::uint32_t tries : counts.tries) {
      for (std::size_t i = 0; i < kTriesBounds.size(); ++i) tries_up_to[i] += tries <= kTriesBounds[i] ? 1 : 0;
      ++tries_count;
      tries_sum += tries;
    }
  }
};

/// One name with its samples; goes when it has none (drop_empty).
class Family {
 public:
  Family(std::vector<MetricFamily>& all, MetricType type, const char* name, const char* help)
      : all_(all), index_(all.size()), type_(type) {
    all.push_back({name, help, type, {}});
  }

  void add(Labels labels, double value) {
    ClientMetric metric;
    metric.label = std::move(labels);
    if (type_ == MetricType::Counter) metric.counter.value = value;
    if (type_ == MetricType::Gauge) metric.gauge.value = value;
    all_[index_].metric.push_back(std::move(metric));
  }
  void add_tries(Labels labels, const ClusterCidrSeries& series) {
    ClientMetric metric;
    metric.label = std::move(labels);
    metric.histogram.sample_count = series.tries_count;
    metric.histogram.sample_sum = series.tries_sum;
    for (std::size_t i = 0; i < kTriesBounds.size(); ++i) {
      metric.histogram.bucket.push_back({series.tries_up_to[i], kTriesBounds[i]});
    }
    all_[index_].metric.push_back(std::move(metric));
  }

 private:
  std::vector<MetricFamily>& all_;
  std::size_t index_;
  MetricType type_;
};

void drop_empty(std::vector<MetricFamily>& all) {
  std::erase_if(all, [](const MetricFamily& family) { return family.metric.empty(); });
}

bool is_written(const engine::RangeRepairReport& report, const std::string& name) {
  return std::ranges::find(report.written, name) != report.written.end();
}

/// Without the leaks that were to be freed and were not.
std::vector<audit::RepairFinding> findings_of(const engine::RangeRepairReport& report,
                                              const audit::RangeRepair& range) {
  std::vector<audit::RepairFinding> findings = range.findings;
  if (!is_written(report, range.name)) {
    std::erase_if(findings, [](const auto& finding) { return finding.type == Type::leak; });
  }
  return findings;
}

/// Likewise of objects.
std::vector<audit::RepairFinding> findings_of_objects(const engine::RangeRepairReport& report) {
  std::vector<audit::RepairFinding> findings = report.addresses->findings;
  std::erase_if(findings, [&](const auto& finding) {
    return finding.type == Type::leak &&
           (!report.applied ||
            std::ranges::find(report.changed_meanwhile, finding.value) != report.changed_meanwhile.end());
  });
  return findings;
}

}  // namespace

class Metrics::State {
 public:
  void count(const engine::RangeRepairReport& report) {
    std::map<std::string, RangeSeries> addresses;
    std::optional<RangeSeries> ports;
    const std::lock_guard lock(mutex_);
    is_repairing_ = true;
    for (const auto& [name, tries] : report.failed_tries) {
      (name == core::kServiceNodePorts ? port_repairs_ : address_repairs_).reconcile_errors += tries;
    }
    for (const audit::RangeRepair& range : report.ranges) {
      const bool is_new = is_written(report, range.name);
      if (range.name == core::kServiceNodePorts) {
        port_repairs_.add(findings_of(report, range));
        if (is_new) ports = series_of<core::service::NodePortRange>(*range.write);
        if (!is_new && range.present) ports = series_of(range.in_static, range.in_dynamic);
      } else {
        address_repairs_.add(findings_of(report, range));
        if (is_new) addresses[range.write->range] = series_of<core::service::ServiceCidr>(*range.write);
        if (!is_new && range.present) addresses[range.range] = series_of(range.in_static, range.in_dynamic);
      }
    }
    if (report.objects && report.addresses) {
      address_repairs_.add(findings_of_objects(report));
      for (const audit::ServiceCidrUse& use : report.addresses->cidrs) {
        addresses[use.cidr.to_string()] = series_of(use.in_static, use.in_dynamic);
      }
    }
    service_addresses_ = std::move(addresses);
    node_ports_ = ports;
  }

  void count_failed_repair() {
    const std::lock_guard lock(mutex_);
    is_repairing_ = true;
    ++address_repairs_.reconcile_errors;
    ++port_repairs_.reconcile_errors;
  }

  void count(const engine::NodeRangesReconciled& done) {
    const std::lock_guard lock(mutex_);
    std::map<net::Prefix, ClusterCidrSeries> now;
    for (const core::ClusterCidrUse& use : done.seen.use) {
      const auto before = cluster_cidrs_.find(use.cluster.cidr);
      ClusterCidrSeries series = before != cluster_cidrs_.end() ? before->second : ClusterCidrSeries{};
      series.see(use);
      if (const auto counts = done.counts.find(use.cluster.cidr); counts != done.counts.end()) {
        series.add(counts->second);
      }
      now.emplace(use.cluster.cidr, series);
    }
    cluster_cidrs_ = std::move(now);
  }

  void set_leading(const std::string& lease, bool leads) {
    const std::lock_guard lock(mutex_);
    leading_[lease] = leads;
  }

  void count(const std::vector<core::PoolFill>& pools) {
    const std::lock_guard lock(mutex_);
    pools_.count(pools);
  }
  void forget_pools() {
    const std::lock_guard lock(mutex_);
    pools_.forget();
  }
  void count(const engine::SweepReport& pass) {
    const std::lock_guard lock(mutex_);
    pools_.count(pass);
  }
  void count_failed_pass() {
    const std::lock_guard lock(mutex_);
    pools_.count_failed_pass();
  }

  [[nodiscard]] std::string text() const {
    const std::lock_guard lock(mutex_);
    return pools_.pools_text() + prometheus::TextSerializer().Serialize(collect());
  }

 private:
  /// With mutex_ held.
  [[nodiscard]] std::vector<MetricFamily> collect() const {
    std::vector<MetricFamily> all;
    pools_.collect(all);
    collect_service_addresses(all);
    collect_node_ports(all);
    collect_repairs(all);
    collect_cluster_cidrs(all);
    collect_leading(all);
    drop_empty(all);
    return all;
  }

  void collect_service_addresses(std::vector<MetricFamily>& all) const {
    Family allocated(all, MetricType::Gauge, "kube_apiserver_clusterip_allocator_allocated_ips",
                     "Number of allocated IPs for Services");
    Family available(all, MetricType::Gauge, "kube_apiserver_clusterip_allocator_available_ips",
                     "Number of available IPs for Services");
    for (const auto& [cidr, series] : service_addresses_) {
      allocated.add({{"cidr", cidr}}, series.allocated);
      available.add({{"cidr", cidr}}, series.available);
    }
  }

  void collect_node_ports(std::vector<MetricFamily>& all) const {
    if (!node_ports_) return;
    Family(all, MetricType::Gauge, "kube_apiserver_nodeport_allocator_allocated_ports",
           "Number of allocated NodePorts for Services")
        .add({}, node_ports_->allocated);
    Family(all, MetricType::Gauge, "kube_apiserver_nodeport_allocator_available_ports",
           "Number of available NodePorts for Services")
        .add({}, node_ports_->available);
  }

  void collect_repairs(std::vector<MetricFamily>& all) const {
    if (!is_repairing_) return;
    Family addresses(all, MetricType::Counter, "apiserver_clusterip_repair_ip_errors_total",
                     "Number of errors detected on clusterips by the repair loop, by type");
    Family ports(all, MetricType::Counter, "apiserver_nodeport_repair_port_errors_total",
                 "Number of errors detected on ports by the repair loop, by type");
    for (std::size_t i = 0; i < audit::RepairFinding::kTypeCount; ++i) {
      const Type type{static_cast<std::uint8_t>(i)};
      const Labels labels{{"type", std::string(name_of(type))}};
      addresses.add(labels, number(address_repairs_.errors[i]));
      // A port is a number, so none is invalid.
      if (type != Type::invalid) ports.add(labels, number(port_repairs_.errors[i]));
    }
    Family(all, MetricType::Counter, "apiserver_clusterip_repair_reconcile_errors_total",
           "Number of reconciliation failures of the clusterip repair loop")
        .add({}, number(address_repairs_.reconcile_errors));
    Family(all, MetricType::Counter, "apiserver_nodeport_repair_reconcile_errors_total",
           "Number of reconciliation failures of the nodeport repair loop")
        .add({}, number(port_repairs_.reconcile_errors));
  }

  void collect_cluster_cidrs(std::vector<MetricFamily>& all) const {
    Family allocations(all, MetricType::Counter, "node_ipam_controller_cidrset_cidrs_allocations_total",
                       "Number of node CIDRs taken");
    Family releases(all, MetricType::Counter, "node_ipam_controller_cidrset_cidrs_releases_total",
                    "Number of node CIDRs given back");
    Family usage(all, MetricType::Gauge, "node_ipam_controller_cidrset_usage_cidrs",
                 "Taken node CIDRs as a part of all, 0 to 1");
    Family max(all, MetricType::Gauge, "node_ipam_controller_cirdset_max_cidrs", "Number of node CIDRs there can be");
    Family tries(all, MetricType::Histogram, "node_ipam_controller_cidrset_allocation_tries_per_request",
                 "Number of taken node CIDRs that were passed over");
    for (const auto& [cidr, series] : cluster_cidrs_) {
      const Labels labels{{"clusterCIDR", cidr.to_string()}};
      allocations.add(labels, number(series.allocations));
      releases.add(labels, number(series.releases));
      usage.add(labels, series.size == 0 ? 0 : number(series.taken) / number(series.size));
      max.add(labels, number(series.size));
      tries.add_tries(labels, series);
    }
  }

  void collect_leading(std::vector<MetricFamily>& all) const {
    Family leading(all, MetricType::Gauge, "leader_election_master_status",
                   "1: this process leads by the Lease of that name; 0: it does not");
    for (const auto& [lease, leads] : leading_) leading.add({{"name", lease}}, leads ? 1 : 0);
  }

  mutable std::mutex mutex_;                              ///< guards all below
  std::map<std::string, RangeSeries> service_addresses_;  ///< by CIDR
  std::optional<RangeSeries> node_ports_;
  bool is_repairing_ = false;
  RepairSeries address_repairs_;
  RepairSeries port_repairs_;
  std::map<net::Prefix, ClusterCidrSeries> cluster_cidrs_;
  std::map<std::string, bool> leading_;  ///< by the Lease
  PoolMetrics pools_;
};

Metrics::Metrics() : state_(std::make_unique<State>()) {}
Metrics::~Metrics() = default;

void Metrics::count(const engine::RangeRepairReport& report) { state_->count(report); }
void Metrics::count_failed_repair() { state_->count_failed_repair(); }
void Metrics::count(const engine::NodeRangesReconciled& done) { state_->count(done); }
void Metrics::set_leading(const std::string& lease, bool leads) { state_->set_leading(lease, leads); }
void Metrics::count(const std::vector<core::PoolFill>& pools) { state_->count(pools); }
void Metrics::forget_pools() { state_->forget_pools(); }
void Metrics::count(const engine::SweepReport& pass) { state_->count(pass); }
void Metrics::count_failed_pass() { state_->count_failed_pass(); }

std::string Metrics::text() const { return state_->text(); }

}  // namespace croft::edge
