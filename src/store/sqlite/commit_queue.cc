#include "store/sqlite/commit_queue.h"

#include <algorithm>

namespace croft::store {

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
    if (too_late && withdraw(commit)) {
      commit.result = fail(ErrorCode::deadline_exceeded, "other commits of this process took until the deadline");
    } else if (too_late) {
      changed_.wait(lock, [&] { return commit.result.has_value(); });  // under way: its outcome comes
    }
  }
}

bool CommitQueue::withdraw(const PendingCommit& commit) {
  const auto it = std::find(waiting_.begin(), waiting_.end(), &commit);
  if (it == waiting_.end()) return false;
  waiting_.erase(it);
  return true;
}

void CommitQueue::lead(std::unique_lock<std::mutex>& lock, PendingCommit& mine) {
  has_leader_ = true;
  lock.unlock();
  auto entered = gate_.enter(mine.deadline);
  lock.lock();
  if (entered) {
    serve(lock);
  } else {
    withdraw(mine);
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
