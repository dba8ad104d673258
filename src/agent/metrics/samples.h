#pragma once

#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include <prometheus/metric_family.h>

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
/// A name with the one sample it has.
[[nodiscard]] prometheus::MetricFamily one(const char* name, const char* help, prometheus::MetricType type,
                                           double value);

/// Durations by powers of two; the last bucket has whatever takes longer.
struct Durations {
  static constexpr std::size_t kBuckets = 18;
  std::chrono::nanoseconds first = std::chrono::microseconds(250);  ///< the upper bound of the first bucket
  std::array<std::uint64_t, kBuckets> counts{};
  std::chrono::nanoseconds sum{};

  void count(std::chrono::nanoseconds took);
};
/// A histogram's sample.
void add(prometheus::MetricFamily& family, const SampleLabels& labels, const Durations& durations);

}  // namespace croft::edge
