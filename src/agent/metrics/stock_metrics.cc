#include "agent/metrics/stock_metrics.h"

#include <vector>

#include "agent/metrics/samples.h"

namespace croft::edge {
namespace {

using prometheus::ClientMetric;
using prometheus::MetricFamily;
using prometheus::MetricType;

void add_figures(const StockFigures& f, std::vector<MetricFamily>& all) {
  const auto one = [&](const char* name, const char* help, MetricType type, double value) {
    add(all.emplace_back(family(name, help, type)), {}, value);
  };
  MetricFamily addresses = family("croft_stock_addresses", "Cloud addresses of this node", MetricType::Gauge);
  for (const auto& [state, number] : {std::pair{"free", f.counts.free},
                                      {"cooling", f.counts.cooling},
                                      {"held", f.counts.held},
                                      {"probing", f.counts.probing},
                                      {"leaving", f.counts.leaving},
                                      {"quarantined", f.counts.quarantined},
                                      {"doubted", f.counts.doubted}}) {
    add(addresses, {{"state", state}}, number);
  }
  all.push_back(std::move(addresses));
  MetricFamily marks = family("croft_stock_water_mark", "Free addresses that the agent keeps", MetricType::Gauge);
  add(marks, {{"mark", "low"}}, f.low);
  add(marks, {{"mark", "high"}}, f.high);
  all.push_back(std::move(marks));
  one("croft_stock_waiting_adds", "ADDs that wait because the stock is empty", MetricType::Gauge, f.waiting);
  MetricFamily adds = family("croft_stock_adds_total", "ADDs", MetricType::Counter);
  add(adds, {{"outcome", "ok"}}, static_cast<double>(f.adds));
  add(adds, {{"outcome", "failed"}}, static_cast<double>(f.adds_failed));
  all.push_back(std::move(adds));
  MetricFamily dels = family("croft_stock_dels_total", "DELs", MetricType::Counter);
  add(dels, {{"outcome", "ok"}}, static_cast<double>(f.dels));
  add(dels, {{"outcome", "failed"}}, static_cast<double>(f.dels_failed));
  all.push_back(std::move(dels));
  one("croft_stock_waited_total", "ADDs that found the stock empty", MetricType::Counter,
      static_cast<double>(f.waited));
  one("croft_stock_commits_total", "Commits for ADDs and DELs", MetricType::Counter, static_cast<double>(f.commits));
  MetricFamily moves = family("croft_stock_moves_total", "Addresses that came and went", MetricType::Counter);
  for (const auto& [what, number] : {std::pair{"allocated", f.keeper.allocated},
                                     {"given_back", f.keeper.given_back},
                                     {"borrowed", f.keeper.borrowed},
                                     {"lent", f.keeper.lent},
                                     {"conflict", f.keeper.conflicts},
                                     {"quarantined", f.keeper.quarantined},
                                     {"collected", f.keeper.collected},
                                     {"rebuilt", f.keeper.rebuilt},
                                     {"refused", f.keeper.refused},
                                     {"lost", f.keeper.lost}}) {
    add(moves, {{"what", what}}, static_cast<double>(number));
  }
  all.push_back(std::move(moves));
  one("croft_stock_fill_duration_seconds", "Of the last fill that brought something", MetricType::Gauge,
      seconds(f.keeper.last_fill));
  one("croft_cloud_throttled_total", "Calls that the cloud refused because there were too many", MetricType::Counter,
      static_cast<double>(f.throttled));
  MetricFamily delays =
      family("croft_stock_add_duration_seconds", "How long ADDs took that got an address", MetricType::Histogram);
  add(delays, {}, Durations{f.add_delay_first, f.add_delays, f.add_delay_sum});
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
