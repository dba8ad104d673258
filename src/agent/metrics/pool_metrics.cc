#include "agent/metrics/pool_metrics.h"

#include <utility>

#include <prometheus/text_serializer.h>

#include "agent/metrics/samples.h"

namespace croft::edge {

using prometheus::MetricFamily;
using prometheus::MetricType;

void PoolMetrics::count(const engine::SweepReport& pass) {
  candidates_ = pass.candidates;
  ++(pass.failure ? failed_passes_ : passes_);
  if (pass.dry_run) return;
  for (const auto& evidence : pass.released) ++released_[std::string(name_of(evidence.what))];
}

void PoolMetrics::count_failed_pass() { ++failed_passes_; }

void PoolMetrics::forget() {
  pools_text_.clear();
  candidates_.reset();
}

void PoolMetrics::count(const std::vector<core::PoolFill>& pools) {
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
  pools_text_.clear();
  if (pools.empty()) return;
  pools_text_ = prometheus::TextSerializer().Serialize(
      {std::move(addresses), std::move(capacity), std::move(blocks), std::move(borrowed), std::move(disabled)});
}

void PoolMetrics::collect(std::vector<MetricFamily>& all) const {
  if (candidates_) {
    all.push_back(one("croft_leak_candidates", "Addresses that looked dead in the collector's last pass",
                      MetricType::Gauge, number(*candidates_)));
  }
  if (passes_ + failed_passes_ == 0) return;
  MetricFamily passes = family("croft_collector_passes_total", "Passes of the collector", MetricType::Counter);
  add(passes, {{"outcome", "ok"}}, number(passes_));
  add(passes, {{"outcome", "failed"}}, number(failed_passes_));
  all.push_back(std::move(passes));
  MetricFamily released = family("croft_collector_released_total", "What the collector released", MetricType::Counter);
  for (const auto& [what, count] : released_) add(released, {{"what", what}}, number(count));
  if (!released_.empty()) all.push_back(std::move(released));
}

}  // namespace croft::edge
