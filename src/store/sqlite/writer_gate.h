#pragma once

#include <condition_variable>
#include <mutex>
#include <string>
#include <thread>

#include "base/clock.h"
#include "base/result.h"
#include "os/file_lock.h"

namespace croft::store {

/// Lets one thread of one process at a time write to a store: threads of this process wait for each other here,
/// processes on the store's lock file. Safe to call from several threads.
class WriterGate {
 public:
  /// With `lock_is_held` the caller holds the lock already, elsewhere: it is not taken here, and nothing is noted.
  WriterGate(std::string lock_path, const Clock& clock, bool lock_is_held = false)
      : clock_(clock), lock_is_held_(lock_is_held), lock_(std::move(lock_path), {.one_name = true}) {}

  /// Waits until nobody else is inside. The thread must not be inside. Errors: deadline_exceeded, and those of
  /// FileLock::lock.
  [[nodiscard]] Result<void> enter(Deadline deadline);
  /// May be called by another thread than the one that entered.
  void leave();

  /// When the lock file was replaced since, locks the one that is there now: those who write to the store behind the
  /// new one must be kept out. The thread must be inside. Errors: as enter(); then the thread is inside, and without a
  /// lock that counts.
  [[nodiscard]] Result<void> follow_lock_file(Deadline deadline);

  /// The lock file, for notes; the thread must be inside.
  [[nodiscard]] const os::FileLock& lock() const { return lock_; }
  [[nodiscard]] bool lock_is_held_by_caller() const { return lock_is_held_; }

  /// This thread entered and did not leave.
  [[nodiscard]] bool is_inside() const;

 private:
  [[nodiscard]] bool wait_for_threads(Deadline deadline);

  const Clock& clock_;
  const bool lock_is_held_;
  mutable std::mutex mutex_;  ///< guards occupied_ and occupant_
  std::condition_variable left_;
  bool occupied_ = false;
  std::thread::id occupant_;
  os::FileLock lock_;  ///< belongs to the occupant
};

/// How long a deadline leaves, for the waits of the standard library; bounded so that adding it to a clock can't
/// overflow.
[[nodiscard]] std::chrono::nanoseconds remaining(const Clock& clock, Deadline deadline);

}  // namespace croft::store
