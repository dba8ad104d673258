#include "store/sqlite/writer_gate.h"

#include <algorithm>

#include <fmt/format.h>

#include "base/assert.h"

namespace croft::store {

std::chrono::nanoseconds remaining(const Clock& clock, Deadline deadline) {
  constexpr std::chrono::nanoseconds kLongest = std::chrono::hours{24};
  const Instant now = clock.now();
  if (deadline.passed(now)) return std::chrono::nanoseconds{0};
  return std::min(deadline.at_since_boot - now.since_boot, kLongest);
}

bool WriterGate::is_inside() const {
  const std::lock_guard lock(mutex_);
  return occupied_ && occupant_ == std::this_thread::get_id();
}

bool WriterGate::wait_for_threads(Deadline deadline) {
  std::unique_lock lock(mutex_);
  while (occupied_) {
    if (left_.wait_for(lock, remaining(clock_, deadline)) == std::cv_status::timeout && occupied_ &&
        deadline.passed(clock_.now())) {
      return false;
    }
  }
  occupied_ = true;
  occupant_ = std::this_thread::get_id();
  return true;
}

Result<void> WriterGate::enter(Deadline deadline) {
  CROFT_ASSERT(!is_inside());
  if (!wait_for_threads(deadline)) {
    return fail(ErrorCode::deadline_exceeded,
                fmt::format("another thread of this process writes to the store and did not finish in time ({})",
                            lock_.path()));
  }
  if (lock_is_held_) return {};
  auto locked = lock_.lock(clock_, deadline);
  if (!locked) leave();
  return locked;
}

Result<void> WriterGate::follow_lock_file(Deadline deadline) {
  CROFT_ASSERT(is_inside());
  if (lock_is_held_ || (lock_.is_held() && lock_.is_at_path())) return {};
  lock_.unlock();
  return lock_.lock(clock_, deadline);
}

void WriterGate::leave() {
  lock_.unlock();
  {
    const std::lock_guard lock(mutex_);
    occupied_ = false;
    occupant_ = {};
  }
  left_.notify_one();
}

}  // namespace croft::store
