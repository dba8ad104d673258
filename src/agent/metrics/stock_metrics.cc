#include "agent/metrics/stock_metrics.h"

#include <initializer_list>
#include <utility>
#include <vector>

#include "agent/metrics/samples.h"

namespace croft::edge {
namespace {

using prometheus::ClientMetric;
using prometheus::MetricFamily;
using prometheus::MetricType;

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
        {"rebuilt", number(f.keeper.rebuilt)},
        {"refused", number(f.keeper.refused)},
        {"lost", number(f.keeper.lost)}});
  one("croft_stock_fill_duration_seconds", "Of the last fill that brought something", MetricType::Gauge,
      seconds(f.keeper.last_fill));
  one("croft_cloud_throttled_total", "Calls that the cloud refused because there were too many", MetricType::Counter,
      number(f.throttled));
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
