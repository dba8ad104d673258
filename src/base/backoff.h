#pragma once

#include <algorithm>
#include <chrono>
#include <cstdint>

#include "base/clock.h"

namespace croft {

/// The pauses of one who asks a server again and again. Each is twice as long as the one before, up to a bound, and
/// drawn from its second half, so that the agents of a cluster do not come back in step. Used by one thread.
class Backoff {
 public:
  /// `seed`: any number that other agents do not have too, as a reading of a clock in nanoseconds.
  Backoff(std::chrono::nanoseconds min, std::chrono::nanoseconds max, std::uint64_t seed)
      : min_(min), max_(max), span_(min), random_(seed) {}

  /// The next one: of at least half of `min`, and at most `max`.
  [[nodiscard]] std::chrono::nanoseconds next() {
    const std::chrono::nanoseconds span = span_;
    span_ = std::min(span_ * 2, max_);
    return span / 2 + std::chrono::nanoseconds(static_cast<std::int64_t>(random_.next() % kParts) * (span.count() / 2) /
                                               static_cast<std::int64_t>(kParts));
  }
  /// There was progress: the next pause is a short one.
  void reset() { span_ = min_; }

 private:
  static constexpr std::uint64_t kParts = 1024;

  std::chrono::nanoseconds min_, max_, span_;
  SeededRandom random_;
};

}  // namespace croft
