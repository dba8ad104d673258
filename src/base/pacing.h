#pragma once

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <optional>

#include "base/clock.h"

namespace croft {

/// Lets so many through at once, and one more after each `every`. Used by one thread; times are since boot.
class TokenBucket {
 public:
  TokenBucket(std::uint32_t size, std::chrono::nanoseconds every) : size_(size), every_(every) {}

  /// Takes a token, and says how long it is until that is there. Nothing, and none is taken, where that is longer than
  /// `patience`.
  [[nodiscard]] std::optional<std::chrono::nanoseconds> take(std::chrono::nanoseconds now,
                                                             std::chrono::nanoseconds patience = {}) {
    const auto full_at = std::max(full_at_, now) + every_;
    const auto wait = std::max(full_at - now - every_ * size_, std::chrono::nanoseconds{0});
    if (wait > patience) return std::nullopt;
    full_at_ = full_at;
    return wait;
  }
  /// So many were no use of it.
  void give_back(std::uint32_t count) { full_at_ -= every_ * count; }

 private:
  std::uint32_t size_;
  std::chrono::nanoseconds every_;
  std::chrono::nanoseconds full_at_{};  ///< when all that were taken are there again
};

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
