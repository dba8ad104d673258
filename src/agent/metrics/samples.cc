#include "agent/metrics/samples.h"

#include <limits>

#include <prometheus/text_serializer.h>

namespace croft::edge {

using prometheus::ClientMetric;
using prometheus::MetricFamily;
using prometheus::MetricType;

double seconds(std::chrono::nanoseconds span) { return static_cast<double>(span.count()) / 1e9; }

MetricFamily family(const char* name, const char* help, MetricType type) { return {name, help, type, {}}; }

ClientMetric with_labels(const SampleLabels& labels) {
  ClientMetric metric;
  for (const auto& [name, text] : labels) metric.label.push_back({name, text});
  return metric;
}

void add(MetricFamily& family, const SampleLabels& labels, double value) {
  ClientMetric metric = with_labels(labels);
  (family.type == MetricType::Gauge ? metric.gauge.value : metric.counter.value) = value;
  family.metric.push_back(std::move(metric));
}

void Durations::count(std::chrono::nanoseconds took) {
  std::size_t bucket = 0;
  for (std::chrono::nanoseconds limit = first; took > limit && bucket + 1 < kBuckets; limit *= 2) ++bucket;
  ++counts.at(bucket);
  sum += took;
}

void add(MetricFamily& family, const SampleLabels& labels, const Durations& durations) {
  ClientMetric metric = with_labels(labels);
  std::uint64_t cumulative = 0;
  std::chrono::nanoseconds limit = durations.first;
  for (std::size_t i = 0; i < Durations::kBuckets; ++i, limit *= 2) {
    cumulative += durations.counts.at(i);
    const bool is_last = i + 1 == Durations::kBuckets;
    metric.histogram.bucket.push_back({cumulative, is_last ? std::numeric_limits<double>::infinity() : seconds(limit)});
  }
  metric.histogram.sample_count = cumulative;
  metric.histogram.sample_sum = seconds(durations.sum);
  family.metric.push_back(std::move(metric));
}

std::string text_of(std::vector<MetricFamily> families) {
  std::erase_if(families, [](const MetricFamily& one) { return one.metric.empty(); });
  return prometheus::TextSerializer().Serialize(families);
}

}  // namespace croft::edge
