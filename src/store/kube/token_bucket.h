#pragma once

#include <chrono>
#include <cstdint>
#include <mutex>
#include <optional>

#include "base/clock.h"

namespace croft::store::kube {

/// How fast a client may ask: `per_second` in the long run, `burst` at once after a pause, as client-go's QPS and
/// Burst.
struct RateLimit {
  double per_second = 0;  ///< 0 or less: as fast as it likes
  std::uint32_t burst = 1;
};

/// Counts turns. It never sleeps: whoever takes a turn waits as long as it says. Safe to use from several threads.
class TokenBucket {
 public:
  explicit TokenBucket(const RateLimit& limit);
  /// Takes the next turn, and tells how long to wait for it. Nothing, and no turn is taken, when it would come at the
  /// deadline or later.
  [[nodiscard]] std::optional<std::chrono::nanoseconds> take(const Instant& now, Deadline deadline);
  [[nodiscard]] bool is_limited() const { return between_.count() > 0; }

 private:
  std::chrono::nanoseconds between_{0};  ///< two turns in the long run; 0: no limit
  std::chrono::nanoseconds ahead_{0};    ///< so much earlier than that a turn may come
  std::mutex mutex_;
  std::chrono::nanoseconds next_{0};  ///< guarded by mutex_: when the next turn is due, since boot
};

}  // namespace croft::store::kube
