#pragma once

#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>

namespace croft {

/// How often something took how long, by powers of two; the last bucket has whatever takes longer.
struct DurationHistogram {
  static constexpr std::size_t kBuckets = 18;
  std::chrono::nanoseconds first = std::chrono::microseconds(250);  ///< the upper bound of the first bucket
  std::array<std::uint64_t, kBuckets> counts{};
  std::chrono::nanoseconds sum{};

  void count(std::chrono::nanoseconds took) {
    std::size_t bucket = 0;
    for (std::chrono::nanoseconds limit = first; took > limit && bucket + 1 < kBuckets; limit *= 2) ++bucket;
    ++counts.at(bucket);
    sum += took;
  }
};

}  // namespace croft
