#pragma once

#include <chrono>
#include <string>
#include <utility>
#include <vector>

#include <prometheus/metric_family.h>

#include "agent/metrics/metrics.h"

// How this folder writes samples: private to it.
namespace croft::edge {

using SampleLabels = std::vector<std::pair<std::string, std::string>>;

/// Prometheus knows no integers; what is exact up to 2^53 is so here.
template <class T>
double number(T count) {
  return static_cast<double>(count);
}
[[nodiscard]] double seconds(std::chrono::nanoseconds span);

/// A name without samples.
[[nodiscard]] prometheus::MetricFamily family(const char* name, const char* help, prometheus::MetricType type);
/// A gauge's or counter's.
void add(prometheus::MetricFamily& family, const SampleLabels& labels, double value);
/// A histogram's.
void add(prometheus::MetricFamily& family, const SampleLabels& labels, const Durations& durations);
/// For the sample of another kind.
[[nodiscard]] prometheus::ClientMetric with_labels(const SampleLabels& labels);

/// The text of families, without those that have no samples.
[[nodiscard]] std::string text_of(std::vector<prometheus::MetricFamily> families);

}  // namespace croft::edge
