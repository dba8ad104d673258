#pragma once

#include <chrono>
#include <mutex>
#include <optional>

#include "base/clock.h"

namespace croft::cloud::ucloud {

/// How fast one action may be asked for.
struct Rate {
  double per_second = 20;            ///< at most; 0 or less: no limit of our own
  double least_per_second = 0.5;     ///< how slow being refused makes it at most
  double recovery_per_second = 0.5;  ///< by how much it grows in each second after that
};

/// Additive increase, multiplicative decrease: each refusal halves the rate, time brings it back. It never sleeps:
/// whoever takes a turn waits as long as it says. Safe to use from several threads.
class Limiter {
 public:
  explicit Limiter(const Rate& rate) : rate_(rate), current_(rate.per_second) {}
  /// Takes the next turn, and tells how long to wait for it. Nothing, and no turn is taken, when it would come at the
  /// deadline or later.
  [[nodiscard]] std::optional<std::chrono::nanoseconds> take(const Instant& now, Deadline deadline);
  /// The cloud refused: half as fast from now on. Refusals within one turn of each other count as one.
  void refused(const Instant& now);
  [[nodiscard]] double per_second(const Instant& now);

 private:
  void recover(const Instant& now);  ///< with the mutex

  const Rate rate_;
  std::mutex mutex_;
  double current_;  ///< guarded by mutex_, as all below
  std::optional<std::chrono::nanoseconds> refused_at_;
  std::chrono::nanoseconds looked_at_{0};
  std::chrono::nanoseconds next_{0};
};

}  // namespace croft::cloud::ucloud
