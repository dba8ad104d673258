#pragma once

#include <mutex>

#include "base/clock.h"

namespace croft {

/// A clock moved by hand, for tests and simulation. Starts at 2026-01-15 10:00:00 UTC, 1000 s after boot 1.
class ManualClock final : public Clock {
 public:
  ManualClock() {
    now_.wall = WallTime(std::chrono::seconds(1768471200));
    now_.since_boot = std::chrono::seconds(1000);
    now_.boot.bytes[0] = 1;
  }
  [[nodiscard]] Instant now() const override {
    const std::lock_guard lock(mutex_);
    return now_;
  }
  /// Time passes.
  void advance(std::chrono::nanoseconds span) {
    const std::lock_guard lock(mutex_);
    now_.wall += span;
    now_.since_boot += span;
  }
  /// Somebody sets the wall clock; no time passes.
  void jump_wall(std::chrono::nanoseconds span) {
    const std::lock_guard lock(mutex_);
    now_.wall += span;
  }
  /// The machine starts anew after `down`.
  void reboot(std::chrono::nanoseconds down = {}) {
    const std::lock_guard lock(mutex_);
    now_.wall += down;
    now_.since_boot = {};
    ++now_.boot.bytes[0];
  }

 private:
  mutable std::mutex mutex_;
  Instant now_;
};

}  // namespace croft
