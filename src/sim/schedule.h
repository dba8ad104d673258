#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "base/clock.h"

namespace croft::sim {

using Span = std::chrono::nanoseconds;
inline constexpr Span kNever = Span::max();

/// The exception that stops an actor whose process was killed: thrown where it waits, caught by the schedule alone.
struct Killed {};

class Process;
struct Actor;

/// Simulated time. Events happen in the order of their times, and those of one time in the order in which they were
/// asked for. So a run is a function of its input. Actors are calls that may wait, each on a stack of its own
/// (os/fiber.h). One thread.
class Schedule {
 public:
  Schedule();
  ~Schedule();
  Schedule(const Schedule&) = delete;
  Schedule& operator=(const Schedule&) = delete;

  /// Since the beginning.
  [[nodiscard]] Span now() const { return now_; }
  [[nodiscard]] std::uint64_t events_done() const { return done_; }

  /// Calls `event` at that time, outside of all actors; one in the past is due now.
  void at(Span when, std::function<void()> event);
  void after(Span span, std::function<void()> event) { at(now_ + span, std::move(event)); }
  /// An actor of the process, which begins now, behind what is due now already.
  void spawn(Process& process, std::function<void()> body);
  /// Does everything that is due until then.
  void run_until(Span end);

 private:
  friend class Process;
  friend class Signal;
  friend void sleep(Span span);
  friend bool wait(class Signal& signal, Span until);

  struct Event {
    Span when;
    std::uint64_t number;
    std::function<void()> what;
    [[nodiscard]] bool operator<(const Event& other) const {
      return when != other.when ? when > other.when : number > other.number;
    }
  };
  void resume(const std::shared_ptr<Actor>& actor);
  void wake_at(Span when, const std::shared_ptr<Actor>& actor);

  Span now_{0};
  std::uint64_t asked_ = 0, done_ = 0;
  std::vector<Event> events_;  ///< a heap
};

/// Actors that die together. Outlives none of its schedule's events: it is dead before it is destroyed.
class Process {
 public:
  explicit Process(Schedule& schedule) : schedule_(schedule) {}
  ~Process() { kill(); }
  Process(const Process&) = delete;
  Process& operator=(const Process&) = delete;

  [[nodiscard]] bool is_alive() const { return is_alive_; }
  /// Its actors end where they wait; the one that calls this ends where it waits next. A dead process gets no actors.
  void kill();
  /// Stands still until then: what is due for it is due when it goes on.
  void freeze_until(Span until) { frozen_until_ = until; }
  [[nodiscard]] bool is_frozen() const { return frozen_until_ > schedule_.now(); }

 private:
  friend class Schedule;
  Schedule& schedule_;
  bool is_alive_ = true;
  Span frozen_until_{0};
  std::vector<std::shared_ptr<Actor>> actors_;
};

/// Waits in an actor. Ends with Killed when its process is killed.
void sleep(Span span);

/// The event that actors wait for.
class Signal {
 public:
  /// Wakes all that wait now.
  void notify_all();

 private:
  friend bool wait(Signal& signal, Span until);
  struct Waiting {
    std::weak_ptr<Actor> actor;
    std::uint64_t wait = 0;
  };
  std::vector<Waiting> waiting_;
};

/// Waits for the signal, or until that time of the schedule: false.
bool wait(Signal& signal, Span until = kNever);
/// Waits until it is true, which is looked at after each signal, or until that time: false.
template <class Condition>
bool wait_for(Signal& signal, Condition is_true, Span until = kNever) {
  while (!is_true()) {
    if (!wait(signal, until)) return is_true();
  }
  return true;
}

/// The time that the wall clocks of a run show at its beginning, but for their skew, if nothing else is said:
/// 2026-01-15 10:00:00 UTC.
inline constexpr WallTime kBeginning{std::chrono::seconds(1768471200)};

/// The clocks of one machine: the wall clock may be wrong and be set, the other counts from the boot.
class MachineClock final : public Clock {
 public:
  /// `number`: of the machine, which no other has.
  MachineClock(const Schedule& schedule, std::uint16_t number, WallTime beginning = kBeginning)
      : schedule_(schedule), beginning_(beginning), booted_at_(Span{0} - kUpBefore) {
    boot_.bytes[0] = 1;
    boot_.bytes[1] = static_cast<std::uint8_t>(number);
    boot_.bytes[2] = static_cast<std::uint8_t>(number >> 8);
  }
  [[nodiscard]] Instant now() const override {
    return {beginning_ + schedule_.now() + skew_, schedule_.now() - booted_at_, boot_};
  }
  void set_skew(Span skew) { skew_ = skew; }
  void reboot() {
    booted_at_ = schedule_.now();
    ++boot_.bytes[0];
  }
  /// When a deadline of this boot is, on the schedule.
  [[nodiscard]] Span at(Deadline deadline) const {
    return deadline.at_since_boot == kNever ? kNever : booted_at_ + deadline.at_since_boot;
  }
  [[nodiscard]] const BootId& boot() const { return boot_; }
  [[nodiscard]] Span booted_at() const { return booted_at_; }

 private:
  static constexpr Span kUpBefore = std::chrono::hours{2};

  const Schedule& schedule_;
  const WallTime beginning_;
  Span booted_at_;
  Span skew_{0};
  BootId boot_;
};

}  // namespace croft::sim
