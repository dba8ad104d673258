#include "sim/schedule.h"

#include <algorithm>
#include <exception>
#include <utility>

#include "base/assert.h"
#include "os/fiber.h"

namespace croft::sim {

struct Actor : std::enable_shared_from_this<Actor> {
  Actor(Schedule& of, Process& owner) : schedule(of), process(&owner) {}

  Schedule& schedule;
  Process* process;  ///< alive as long as the actor runs
  std::unique_ptr<os::Fiber> fiber;
  bool is_killed = false;
  bool is_signalled = false;
  std::uint64_t waits = 0;  ///< how often it has waited: what wakes it from an earlier wait comes too late
};

namespace {

/// The actor that runs; actors may resume others, when they kill them.
Actor* running = nullptr;  // NOLINT: one thread

/// Stops the running actor until it is resumed.
void stop() {
  Actor& self = *running;
  // A destructor that waits while its actor ends does not.
  if (self.is_killed && std::uncaught_exceptions() > 0) return;
  if (self.is_killed) throw Killed();
  os::Fiber::stop();
  if (self.is_killed) throw Killed();
}

}  // namespace

Schedule::Schedule() = default;
Schedule::~Schedule() = default;

void Schedule::at(Span when, std::function<void()> event) {
  events_.push_back({std::max(when, now_), asked_++, std::move(event)});
  std::push_heap(events_.begin(), events_.end());
}

void Schedule::run_until(Span end) {
  while (!events_.empty() && events_.front().when <= end) {
    std::pop_heap(events_.begin(), events_.end());
    const Event event = std::move(events_.back());
    events_.pop_back();
    now_ = event.when;
    ++done_;
    event.what();
  }
  now_ = std::max(now_, end);
}

void Schedule::resume(const std::shared_ptr<Actor>& actor) {
  if (actor->fiber->has_ended()) return;
  Actor* const outer = std::exchange(running, actor.get());
  actor->fiber->resume();
  running = outer;
  if (!actor->fiber->has_ended()) return;
  std::erase(actor->process->actors_, actor);
}

void Schedule::wake_at(Span when, const std::shared_ptr<Actor>& actor) {
  at(when, [this, weak = std::weak_ptr(actor), wait = actor->waits] {
    const auto still = weak.lock();
    if (!still || still->waits != wait || still->fiber->has_ended()) return;
    if (still->process->is_frozen()) return wake_at(still->process->frozen_until_, still);
    resume(still);
  });
}

void Schedule::spawn(Process& process, std::function<void()> body) {
  if (!process.is_alive_) return;
  auto actor = std::make_shared<Actor>(*this, process);
  actor->fiber = std::make_unique<os::Fiber>([body = std::move(body), raw = actor.get()]() mutable {
    try {
      if (!raw->is_killed) body();
    } catch (const Killed&) {
      CROFT_ASSERT(raw->is_killed);
    }
    body = nullptr;
  });
  process.actors_.push_back(actor);
  wake_at(now_, actor);
}

void Process::kill() {
  is_alive_ = false;
  // Each ends by itself: what it does as it ends may end others.
  while (true) {
    const auto next = std::ranges::find_if(actors_, [](const auto& actor) { return !actor->is_killed; });
    if (next == actors_.end()) return;
    const std::shared_ptr<Actor> actor = *next;
    actor->is_killed = true;
    if (actor.get() != running) schedule_.resume(actor);
  }
}

void sleep(Span span) {
  CROFT_ASSERT(running != nullptr);
  ++running->waits;
  running->schedule.wake_at(running->schedule.now_ + std::max(span, Span{0}), running->shared_from_this());
  stop();
}

void Signal::notify_all() {
  for (const Waiting& waiting : std::exchange(waiting_, {})) {
    const auto actor = waiting.actor.lock();
    if (!actor || actor->waits != waiting.wait) continue;
    actor->is_signalled = true;
    actor->schedule.wake_at(actor->schedule.now_, actor);
  }
}

bool wait(Signal& signal, Span until) {
  CROFT_ASSERT(running != nullptr);
  Actor& self = *running;
  ++self.waits;
  self.is_signalled = false;
  std::erase_if(signal.waiting_, [&](const Signal::Waiting& waiting) {
    const auto other = waiting.actor.lock();
    return !other || other.get() == &self;
  });
  signal.waiting_.push_back({self.weak_from_this(), self.waits});
  if (until != kNever) self.schedule.wake_at(until, self.shared_from_this());
  stop();
  return self.is_signalled;
}

}  // namespace croft::sim
