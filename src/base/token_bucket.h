#pragma once

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <optional>

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

}  // namespace croft
