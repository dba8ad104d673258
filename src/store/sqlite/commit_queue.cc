#include "store/sqlite/commit_queue.h"

#include <algorithm>

#include "base/assert.h"
#include "base/texts.h"

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
                "another thread of this process writes to the store and did not finish in time ({})", lock_.path());
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

void CommitQueue::run(PendingCommit& commit) {
  if (gate_.is_inside()) {
    PendingCommit* const alone = &commit;
    commit.result = std::move(apply_({&alone, 1}).front());
    return;
  }
  std::unique_lock lock(mutex_);
  waiting_.push_back(&commit);
  while (!commit.result) {
    if (!has_leader_) {
      lead(lock, commit);
      continue;
    }
    changed_.wait_for(lock, remaining(clock_, commit.deadline));
    const bool too_late = !commit.result && has_leader_ && commit.deadline.passed(clock_.now());
    if (too_late && std::erase(waiting_, &commit) != 0) {
      commit.result = fail(ErrorCode::deadline_exceeded, "other commits of this process took until the deadline");
    } else if (too_late) {
      changed_.wait(lock, [&] { return commit.result.has_value(); });  // under way: its outcome comes
    }
  }
}

void CommitQueue::lead(std::unique_lock<std::mutex>& lock, PendingCommit& mine) {
  has_leader_ = true;
  lock.unlock();
  auto entered = gate_.enter(mine.deadline);
  lock.lock();
  if (entered) {
    serve(lock);
  } else {
    std::erase(waiting_, &mine);
    mine.result = fail(std::move(entered).error());
  }
  has_leader_ = false;
  changed_.notify_all();
}

void CommitQueue::serve(std::unique_lock<std::mutex>& lock) {
  const auto count = static_cast<std::ptrdiff_t>(std::min(waiting_.size(), kGroupMax));
  const std::vector<PendingCommit*> group(waiting_.begin(), waiting_.begin() + count);
  waiting_.erase(waiting_.begin(), waiting_.begin() + count);
  lock.unlock();
  auto results = apply_(group);
  lock.lock();
  for (std::size_t i = 0; i < group.size(); ++i) group[i]->result = std::move(results[i]);
  changed_.notify_all();
  lock.unlock();
  tidy_up_();
  gate_.leave();
  lock.lock();
}

}  // namespace croft::store
