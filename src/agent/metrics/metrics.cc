#include "agent/metrics/metrics.h"

#include <algorithm>
#include <initializer_list>
#include <limits>
#include <utility>
#include <variant>

#include <prometheus/metric_family.h>
#include <prometheus/text_serializer.h>

#include "services/decide/service_bitmap.h"

namespace croft::edge {
namespace {

namespace audit = core::audit;
using prometheus::ClientMetric;
using prometheus::MetricFamily;
using prometheus::MetricType;
using Type = audit::RepairFinding::Type;

// How samples are written.

using SampleLabels = std::vector<std::pair<std::string, std::string>>;

/// Prometheus knows no integers; what is exact up to 2^53 is so here.
template <class T>
double number(T count) {
  return static_cast<double>(count);
}
double seconds(std::chrono::nanoseconds span) { return static_cast<double>(span.count()) / 1e9; }

/// A name without samples.
MetricFamily family(const char* name, const char* help, MetricType type) { return {name, help, type, {}}; }

/// For the sample of another kind.
ClientMetric with_labels(const SampleLabels& labels) {
  ClientMetric metric;
  for (const auto& [name, text] : labels) metric.label.push_back({name, text});
  return metric;
}

/// A gauge's or counter's.
void add(MetricFamily& family, const SampleLabels& labels, double value) {
  ClientMetric metric = with_labels(labels);
  (family.type == MetricType::Gauge ? metric.gauge.value : metric.counter.value) = value;
  family.metric.push_back(std::move(metric));
}

/// A histogram's.
void add(MetricFamily& family, const SampleLabels& labels, const DurationHistogram& durations) {
  ClientMetric metric = with_labels(labels);
  std::uint64_t cumulative = 0;
  std::chrono::nanoseconds limit = durations.first;
  for (std::size_t i = 0; i < DurationHistogram::kBuckets; ++i, limit *= 2) {
    cumulative += durations.counts.at(i);
    const bool is_last = i + 1 == DurationHistogram::kBuckets;
    metric.histogram.bucket.push_back({cumulative, is_last ? std::numeric_limits<double>::infinity() : seconds(limit)});
  }
  metric.histogram.sample_count = cumulative;
  metric.histogram.sample_sum = seconds(durations.sum);
  family.metric.push_back(std::move(metric));
}

/// The text of families, without those that have no samples.
std::string text_of(std::vector<MetricFamily> families) {
  std::erase_if(families, [](const MetricFamily& one) { return one.metric.empty(); });
  return prometheus::TextSerializer().Serialize(families);
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

/// The figures of pools.
std::string text_of_pools(const std::vector<core::PoolFill>& pools) {
  MetricFamily addresses = family("croft_pool_addresses", "Addresses of a pool by state", MetricType::Gauge);
  MetricFamily capacity = family("croft_pool_capacity", "Addresses of a pool", MetricType::Gauge);
  MetricFamily blocks = family("croft_pool_blocks", "Blocks of a pool by state", MetricType::Gauge);
  MetricFamily borrowed = family("croft_pool_borrowed_addresses",
                                 "Held addresses on a node that does not own their block", MetricType::Gauge);
  MetricFamily disabled = family("croft_pool_disabled", "1: the pool gives no new addresses", MetricType::Gauge);
  for (const core::PoolFill& fill : pools) {
    const core::Pool& pool = fill.pool;
    const SampleLabels labels{{"pool", pool.name}, {"family", std::string(net::name_of(pool.cidr.family()))}};
    const auto in_state = [&](MetricFamily& of, const char* state, double value) {
      SampleLabels with_state = labels;
      with_state.emplace_back("state", state);
      add(of, with_state, value);
    };
    in_state(addresses, "held", number(fill.held));
    in_state(addresses, "cooling", number(fill.cooling));
    in_state(addresses, "reserved", fill.reserved.as_double());
    in_state(addresses, "free", fill.open().as_double());
    in_state(addresses, "stranded", fill.stranded.as_double());
    add(capacity, labels, fill.capacity.as_double());
    const net::Count places = net::Count::power_of_two(pool.block_length - pool.cidr.length());
    in_state(blocks, "owned", number(fill.owned_blocks));
    in_state(blocks, "ownerless", number(fill.blocks - fill.owned_blocks));
    in_state(blocks, "unclaimed", (places - fill.blocks).as_double());
    add(borrowed, labels, number(fill.borrowed));
    add(disabled, labels, pool.disabled || !pool.unallocatable.empty() ? 1 : 0);
  }
  return text_of(
      {std::move(addresses), std::move(capacity), std::move(blocks), std::move(borrowed), std::move(disabled)});
}

}  // namespace

ControllerMetrics::Range ControllerMetrics::of_bands(const audit::BandUse& in_static,
                                                     const audit::BandUse& in_dynamic) {
  const double used = number(in_static.used) + number(in_dynamic.used);
  return {used, number(in_static.size) + number(in_dynamic.size) - used};
}

template <class M>
ControllerMetrics::Range ControllerMetrics::of_record(const core::RangeAllocation& range) {
  const auto made = core::service::range_from<M>(range);
  if (!made) return {};  // never: a repair made it
  return {number(made->range.taken_count()), number(made->range.free_count())};
}

void ControllerMetrics::Repairs::add(const std::vector<audit::RepairFinding>& findings) {
  const audit::RepairCounts counts = audit::counts_of(findings);
  for (std::size_t i = 0; i < counts.size(); ++i) errors[i] += counts[i];
}

void ControllerMetrics::ClusterCidrMetrics::see(const core::ClusterCidrUse& use) {
  if (use.taken > taken) allocations += use.taken - taken;
  if (use.taken < taken) releases += taken - use.taken;
  taken = use.taken;
  size = use.size;
}

void ControllerMetrics::ClusterCidrMetrics::add(const engine::ClusterCidrCounts& counts) {
  allocations += counts.tries.size();
  releases += counts.releases;
  taken += counts.tries.size();
  taken -= std::min(taken, counts.releases);
  for (const std::uint32_t tries : counts.tries) {
    for (std::size_t i = 0; i < kTriesBounds.size(); ++i) tries_up_to[i] += tries <= kTriesBounds[i] ? 1 : 0;
    ++tries_count;
    tries_sum += tries;
  }
}

void ControllerMetrics::count(const engine::RangeRepairReport& report) {
  std::map<std::string, Range> addresses;
  std::optional<Range> ports;
  const std::lock_guard lock(mutex_);
  is_repairing_ = true;
  for (const auto& [name, tries] : report.failed_tries) {
    (name == core::kServiceNodePorts ? port_repairs_ : address_repairs_).reconcile_errors += tries;
  }
  for (const audit::RangeRepair& range : report.ranges) {
    const bool is_new = is_written(report, range.name);
    if (range.name == core::kServiceNodePorts) {
      port_repairs_.add(findings_of(report, range));
      if (is_new) ports = of_record<core::service::NodePortRange>(*range.write);
      if (!is_new && range.present) ports = of_bands(range.in_static, range.in_dynamic);
    } else {
      address_repairs_.add(findings_of(report, range));
      if (is_new) addresses[range.write->range] = of_record<core::service::ServiceCidr>(*range.write);
      if (!is_new && range.present) addresses[range.range] = of_bands(range.in_static, range.in_dynamic);
    }
  }
  service_addresses_ = std::move(addresses);
  node_ports_ = ports;
}

void ControllerMetrics::count_failed_repair() {
  const std::lock_guard lock(mutex_);
  is_repairing_ = true;
  ++address_repairs_.reconcile_errors;
  ++port_repairs_.reconcile_errors;
}

void ControllerMetrics::count(const engine::NodeRangesReconciled& done) {
  const std::lock_guard lock(mutex_);
  std::map<net::Prefix, ClusterCidrMetrics> now;
  for (const core::ClusterCidrUse& use : done.seen.use) {
    const auto before = cluster_cidrs_.find(use.cluster.cidr);
    ClusterCidrMetrics series = before != cluster_cidrs_.end() ? before->second : ClusterCidrMetrics{};
    series.see(use);
    if (const auto counts = done.counts.find(use.cluster.cidr); counts != done.counts.end()) {
      series.add(counts->second);
    }
    now.emplace(use.cluster.cidr, series);
  }
  cluster_cidrs_ = std::move(now);
}

void ControllerMetrics::set_leading(const std::string& lease, bool leads) {
  const std::lock_guard lock(mutex_);
  leading_[lease] = leads;
}

void ControllerMetrics::count(const std::vector<core::PoolFill>& pools) {
  std::string text = text_of_pools(pools);
  const std::lock_guard lock(mutex_);
  pools_text_ = std::move(text);
}

void ControllerMetrics::count(const std::map<std::string, core::history::Forecast>& forecasts) {
  const std::lock_guard lock(mutex_);
  forecasts_ = forecasts;
}

void ControllerMetrics::forget_pools() {
  const std::lock_guard lock(mutex_);
  pools_text_.clear();
  candidates_.reset();
}

void ControllerMetrics::count(const engine::SweepReport& pass) {
  const std::lock_guard lock(mutex_);
  candidates_ = pass.candidates;
  ++(pass.failure ? failed_passes_ : passes_);
  if (pass.dry_run) return;
  for (const auto& evidence : pass.released) ++released_[std::string(name_of(evidence.what))];
}

void ControllerMetrics::count_failed_pass() {
  const std::lock_guard lock(mutex_);
  ++failed_passes_;
}

std::string ControllerMetrics::text() const {
  std::vector<MetricFamily> all;
  // The last one with a sample of that name.
  const auto begin = [&](const char* name, const char* help, MetricType type) {
    all.push_back(family(name, help, type));
  };
  const auto sample = [&](const SampleLabels& labels, double value) { add(all.back(), labels, value); };
  const std::lock_guard lock(mutex_);
  begin("croft_leak_candidates", "Addresses that looked dead in the collector's last pass", MetricType::Gauge);
  if (candidates_) sample({}, number(*candidates_));
  begin("croft_collector_passes_total", "Passes of the collector", MetricType::Counter);
  if (passes_ + failed_passes_ > 0) {
    sample({{"outcome", "ok"}}, number(passes_));
    sample({{"outcome", "failed"}}, number(failed_passes_));
  }
  begin("croft_collector_released_total", "What the collector released", MetricType::Counter);
  for (const auto& [what, count] : released_) sample({{"what", what}}, number(count));

  begin("kube_apiserver_clusterip_allocator_allocated_ips", "Number of allocated IPs for Services", MetricType::Gauge);
  for (const auto& [cidr, range] : service_addresses_) sample({{"cidr", cidr}}, range.allocated);
  begin("kube_apiserver_clusterip_allocator_available_ips", "Number of available IPs for Services", MetricType::Gauge);
  for (const auto& [cidr, range] : service_addresses_) sample({{"cidr", cidr}}, range.available);
  begin("kube_apiserver_nodeport_allocator_allocated_ports", "Number of allocated NodePorts for Services",
        MetricType::Gauge);
  if (node_ports_) sample({}, node_ports_->allocated);
  begin("kube_apiserver_nodeport_allocator_available_ports", "Number of available NodePorts for Services",
        MetricType::Gauge);
  if (node_ports_) sample({}, node_ports_->available);

  const auto errors = [&](const Repairs& repairs, bool with_invalid) {
    for (std::size_t i = 0; is_repairing_ && i < audit::RepairFinding::kTypeCount; ++i) {
      const Type type{static_cast<std::uint8_t>(i)};
      if (with_invalid || type != Type::invalid) {
        sample({{"type", std::string(name_of(type))}}, number(repairs.errors[i]));
      }
    }
  };
  begin("apiserver_clusterip_repair_ip_errors_total",
        "Number of errors detected on clusterips by the repair loop, by type", MetricType::Counter);
  errors(address_repairs_, true);
  begin("apiserver_nodeport_repair_port_errors_total", "Number of errors detected on ports by the repair loop, by type",
        MetricType::Counter);
  errors(port_repairs_, false);  // a port is a number, so none is invalid
  begin("apiserver_clusterip_repair_reconcile_errors_total",
        "Number of reconciliation failures of the clusterip repair loop", MetricType::Counter);
  if (is_repairing_) sample({}, number(address_repairs_.reconcile_errors));
  begin("apiserver_nodeport_repair_reconcile_errors_total",
        "Number of reconciliation failures of the nodeport repair loop", MetricType::Counter);
  if (is_repairing_) sample({}, number(port_repairs_.reconcile_errors));

  const auto of_cidrs = [&](const char* name, const char* help, MetricType type, const auto& value_of) {
    begin(name, help, type);
    for (const auto& [cidr, use] : cluster_cidrs_) sample({{"clusterCIDR", cidr.to_string()}}, value_of(use));
  };
  of_cidrs("node_ipam_controller_cidrset_cidrs_allocations_total", "Number of node CIDRs taken", MetricType::Counter,
           [](const ClusterCidrMetrics& use) { return number(use.allocations); });
  of_cidrs("node_ipam_controller_cidrset_cidrs_releases_total", "Number of node CIDRs given back", MetricType::Counter,
           [](const ClusterCidrMetrics& use) { return number(use.releases); });
  of_cidrs("node_ipam_controller_cidrset_usage_cidrs", "Taken node CIDRs as a part of all, 0 to 1", MetricType::Gauge,
           [](const ClusterCidrMetrics& use) { return use.size == 0 ? 0 : number(use.taken) / number(use.size); });
  of_cidrs("node_ipam_controller_cirdset_max_cidrs", "Number of node CIDRs there can be", MetricType::Gauge,
           [](const ClusterCidrMetrics& use) { return number(use.size); });
  begin("node_ipam_controller_cidrset_allocation_tries_per_request", "Number of taken node CIDRs that were passed over",
        MetricType::Histogram);
  for (const auto& [cidr, use] : cluster_cidrs_) {
    ClientMetric metric = with_labels({{"clusterCIDR", cidr.to_string()}});
    metric.histogram.sample_count = use.tries_count;
    metric.histogram.sample_sum = use.tries_sum;
    for (std::size_t i = 0; i < use.tries_up_to.size(); ++i) {
      metric.histogram.bucket.push_back({use.tries_up_to[i], ClusterCidrMetrics::kTriesBounds[i]});
    }
    all.back().metric.push_back(std::move(metric));
  }
  begin("croft_pool_exhaustion_seconds", "Time until the pool is full, by its growth; +Inf: not in sight",
        MetricType::Gauge);
  for (const auto& [pool, forecast] : forecasts_) {
    if (!forecast.is_known) continue;
    const bool is_in_sight = forecast.full_in.has_value();
    sample({{"pool", pool}},
           is_in_sight ? static_cast<double>(forecast.full_in->count()) : std::numeric_limits<double>::infinity());
  }
  begin("leader_election_master_status", "1: this process leads by the Lease of that name; 0: it does not",
        MetricType::Gauge);
  for (const auto& [lease, leads] : leading_) sample({{"name", lease}}, leads ? 1 : 0);
  return pools_text_ + text_of(std::move(all));
}

void AgentMetrics::count(std::chrono::nanoseconds took, const core::AssignAnswer* answer) {
  const auto* refusal = answer != nullptr ? std::get_if<core::Refusal>(answer) : nullptr;
  const std::lock_guard lock(mutex_);
  (answer == nullptr ? failed_ : refusal != nullptr ? refused_ : ok_).count(took);
  if (answer == nullptr) return;
  if (refusal == nullptr) {
    for (const core::AssignedAddress& one : std::get<core::Assigned>(*answer).addresses) {
      borrowed_ += one.borrowed && !one.held_before ? 1 : 0;
    }
    return;
  }
  bool might_serve = false;
  for (const core::PoolVerdict& verdict : refusal->considered) {
    if (!verdict.usable) continue;
    might_serve = true;
    ++refusals_[{verdict.pool, refusal->cause}];
  }
  if (!might_serve) ++refusals_[{"", refusal->cause}];
}

std::string AgentMetrics::text() const {
  auto durations = family("croft_agent_add_duration_seconds", "How long ADDs took in the agent", MetricType::Histogram);
  auto refusals = family("croft_agent_refusals_total", "ADDs that no address was free for, by pool and reason",
                         MetricType::Counter);
  auto borrowed = family("croft_agent_borrowed_addresses_total",
                         "Addresses given from blocks that the node does not own", MetricType::Counter);
  const std::lock_guard lock(mutex_);
  add(durations, {{"outcome", "ok"}}, ok_);
  add(durations, {{"outcome", "refused"}}, refused_);
  add(durations, {{"outcome", "failed"}}, failed_);
  for (const auto& [key, count] : refusals_) {
    add(refusals, {{"pool", key.first}, {"reason", std::string(name_of(key.second))}}, number(count));
  }
  add(borrowed, {}, number(borrowed_));
  return text_of({std::move(durations), std::move(refusals), std::move(borrowed)});
}

// ---------------------------------------------------------------- a stock

namespace {

void add_figures(const StockFigures& f, std::vector<MetricFamily>& all) {
  using Labelled = std::initializer_list<std::pair<const char*, double>>;
  const auto one = [&](const char* name, const char* help, MetricType type, double value) {
    add(all.emplace_back(family(name, help, type)), {}, value);
  };
  const auto some = [&](const char* name, const char* help, MetricType type, const char* label, Labelled values) {
    MetricFamily& added = all.emplace_back(family(name, help, type));
    for (const auto& [word, value] : values) add(added, {{label, word}}, value);
  };
  some("croft_stock_addresses", "Cloud addresses of this node", MetricType::Gauge, "state",
       {{"free", number(f.counts.free)},
        {"cooling", number(f.counts.cooling)},
        {"held", number(f.counts.held)},
        {"probing", number(f.counts.probing)},
        {"leaving", number(f.counts.leaving)},
        {"quarantined", number(f.counts.quarantined)},
        {"doubted", number(f.counts.doubted)}});
  some("croft_stock_water_mark", "Free addresses that the agent keeps", MetricType::Gauge, "mark",
       {{"low", number(f.low)}, {"high", number(f.high)}});
  one("croft_stock_waiting_adds", "ADDs that wait because the stock is empty", MetricType::Gauge,
      number(f.calls.waiting));
  some("croft_stock_adds_total", "ADDs", MetricType::Counter, "outcome",
       {{"ok", number(f.calls.adds)}, {"failed", number(f.calls.adds_failed)}});
  some("croft_stock_dels_total", "DELs", MetricType::Counter, "outcome",
       {{"ok", number(f.calls.dels)}, {"failed", number(f.calls.dels_failed)}});
  one("croft_stock_waited_total", "ADDs that found the stock empty", MetricType::Counter, number(f.calls.waited));
  one("croft_stock_commits_total", "Commits for ADDs and DELs", MetricType::Counter, number(f.calls.commits));
  some("croft_stock_moves_total", "Addresses that came and went", MetricType::Counter, "what",
       {{"allocated", number(f.keeper.allocated)},
        {"given_back", number(f.keeper.given_back)},
        {"borrowed", number(f.keeper.borrowed)},
        {"lent", number(f.keeper.lent)},
        {"conflict", number(f.keeper.conflicts)},
        {"quarantined", number(f.keeper.quarantined)},
        {"collected", number(f.keeper.collected)},
        {"lost", number(f.keeper.lost)}});
  one("croft_stock_fill_duration_seconds", "Of the last fill that brought something", MetricType::Gauge,
      seconds(f.keeper.last_fill));
  MetricFamily delays =
      family("croft_stock_add_duration_seconds", "How long ADDs took that got an address", MetricType::Histogram);
  add(delays, {}, f.calls.add_delays);
  all.push_back(std::move(delays));
}

}  // namespace

void StockMetrics::count(const cloud::Provider::Call& call) {
  const std::lock_guard lock(mutex_);
  ++calls_[{call.action, call.outcome}];
  Took& took = took_[call.action];
  ++took.count;
  took.sum += call.took;
}

std::string StockMetrics::text() const {
  std::vector<MetricFamily> all;
  if (const auto figures = figures_()) add_figures(*figures, all);
  const std::lock_guard lock(mutex_);
  MetricFamily calls = family("croft_cloud_calls_total", "Calls of the cloud", MetricType::Counter);
  for (const auto& [key, number] : calls_) {
    add(calls, {{"action", key.first}, {"outcome", key.second}}, static_cast<double>(number));
  }
  all.push_back(std::move(calls));
  MetricFamily took =
      family("croft_cloud_call_duration_seconds", "How long calls of the cloud took", MetricType::Summary);
  for (const auto& [action, spent] : took_) {
    ClientMetric metric = with_labels({{"action", action}});
    metric.summary.sample_count = spent.count;
    metric.summary.sample_sum = seconds(spent.sum);
    took.metric.push_back(std::move(metric));
  }
  all.push_back(std::move(took));
  return text_of(std::move(all));
}

}  // namespace croft::edge
