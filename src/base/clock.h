#pragma once

#include <array>
#include <chrono>
#include <compare>
#include <cstdint>
#include <mutex>

namespace croft {

/// Wall-clock time, UTC, nanoseconds. For display and for comparison across boots; it may jump.
using WallTime = std::chrono::sys_time<std::chrono::nanoseconds>;

/// Names one boot of one machine (Linux: /proc/sys/kernel/random/boot_id). All zero means unknown.
struct BootId {
  std::array<std::uint8_t, 16> bytes{};
  friend auto operator<=>(const BootId&, const BootId&) = default;
};

/// One reading of all clocks. `since_boot` (CLOCK_BOOTTIME: counts sleep, never jumps) is comparable only between
/// readings with the same `boot`; that pair is what keeps a cooldown honest when the wall clock is set.
struct Instant {
  WallTime wall{};
  std::chrono::nanoseconds since_boot{};
  BootId boot{};
  friend auto operator<=>(const Instant&, const Instant&) = default;
};

/// The source of time. The one implementation that asks the kernel is os/clock.h; tests move theirs by hand.
/// Implementations are safe to call from several threads.
class Clock {
 public:
  virtual ~Clock() = default;
  [[nodiscard]] virtual Instant now() const = 0;
};

/// The moment after which a call must not go on, in `Instant::since_boot` of this machine's boot.
struct Deadline {
  std::chrono::nanoseconds at_since_boot = std::chrono::nanoseconds::max();

  [[nodiscard]] static Deadline after(const Instant& now, std::chrono::nanoseconds span) {
    return {now.since_boot + span};
  }
  [[nodiscard]] bool passed(const Instant& now) const { return now.since_boot >= at_since_boot; }
};

/// The source of randomness (jitter, write tokens). os/clock.h asks the kernel; tests use a seeded one.
class Random {
 public:
  virtual ~Random() = default;
  [[nodiscard]] virtual std::uint64_t next() = 0;
};

/// splitmix64 with a seed: the same seed gives the same numbers everywhere.
class SeededRandom final : public Random {
 public:
  explicit SeededRandom(std::uint64_t seed) : state_(seed) {}
  [[nodiscard]] std::uint64_t next() override {
    std::uint64_t z = (state_ += 0x9e3779b97f4a7c15);
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
    z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
    return z ^ (z >> 31);
  }

 private:
  std::uint64_t state_;
};

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
