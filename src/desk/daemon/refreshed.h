#pragma once

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <exception>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <stop_token>
#include <thread>
#include <utility>

#include "base/clock.h"
#include "base/result.h"

namespace croft::app {

/// A value that takes long to make: made in a thread of its own when somebody asks and the last one is old, and never
/// when nobody does. Those who ask get the last one meanwhile, unless it is older than twice its age.
template <class T>
class Refreshed {
 public:
  /// `make` runs on that thread. A value is old after `age`, and later where it took long: making it shall take a
  /// twentieth of the time at most. References outlive it.
  Refreshed(const Clock& clock, std::chrono::nanoseconds age, std::function<Result<T>()> make)
      : clock_(clock), age_(age), make_(std::move(make)), thread_([this](const std::stop_token& end) { run(end); }) {}

  struct Seen {
    std::shared_ptr<const T> value;      ///< the last one; null: there is none yet
    std::optional<Error> trouble;        ///< why the last try made none
    std::chrono::nanoseconds made_at{};  ///< since boot: when making `value` began
    bool is_being_made = false;          ///< another one is on its way
  };
  /// Waits for the first one, for another where the last is older than twice its age, or for the failure of that; no
  /// longer than `patience`.
  [[nodiscard]] Seen get(std::chrono::nanoseconds patience) {
    std::unique_lock lock(mutex_);
    const auto now = clock_.now().since_boot;
    if (now >= due_ && !seen_.is_being_made) {
      seen_.is_being_made = true;
      turn_.notify_all();
    }
    turn_.wait_for(lock, patience,
                   [&] { return !seen_.is_being_made || (seen_.value != nullptr && now - seen_.made_at <= 2 * age_); });
    return seen_;
  }

 private:
  static constexpr int kPart = 20;

  void run(const std::stop_token& end) {
    std::unique_lock lock(mutex_);
    while (turn_.wait(lock, end, [this] { return seen_.is_being_made; })) {
      lock.unlock();
      const auto begun = clock_.now().since_boot;
      Result<T> made = try_to_make();
      const auto now = clock_.now().since_boot;
      lock.lock();
      seen_.trouble = made ? std::nullopt : std::optional(made.error());
      if (made) {
        seen_.value = std::make_shared<const T>(*std::move(made));
        seen_.made_at = begun;
      }
      due_ = now + (made ? std::max(age_, (now - begun) * kPart) : age_);
      seen_.is_being_made = false;
      turn_.notify_all();
    }
  }

  [[nodiscard]] Result<T> try_to_make() {
    try {
      return make_();
    } catch (const std::exception& thrown) {
      return fail(ErrorCode::internal, thrown.what());  // no memory, say; the controller goes on
    }
  }

  const Clock& clock_;
  const std::chrono::nanoseconds age_;
  const std::function<Result<T>()> make_;
  std::mutex mutex_;  ///< guards all below
  std::condition_variable_any turn_;
  Seen seen_;
  std::chrono::nanoseconds due_{0};
  std::jthread thread_;  ///< last: it uses the others
};

}  // namespace croft::app
