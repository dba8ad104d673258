#pragma once

#include <condition_variable>
#include <functional>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <thread>
#include <vector>

#include "base/clock.h"
#include "base/result.h"
#include "os/file_lock.h"
#include "store/store.h"

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

/// A write as it goes into the database.
struct EncodedWrite {
  std::int64_t kind = 0;
  const Key* key = nullptr;
  std::optional<std::string> bytes;  ///< absent: delete
  Condition condition;
  bool only_check = false;  ///< neither: the condition must hold
};

/// One call of commit() on its way.
struct PendingCommit {
  std::vector<EncodedWrite> writes;
  WriteToken token;
  Deadline deadline;
  std::optional<Result<Revision>> result;
  bool changes_pause = false;  ///< its one write is of the pause, which does not stand in its way
};

/// Group commit: threads that commit at the same time are served together. The first becomes the leader, waits for the
/// gate, takes everybody who has come by then and has them applied in one transaction with one sync; meanwhile the next
/// group gathers. Safe to call from several threads.
class CommitQueue {
 public:
  /// The results of the commits of a group, in their order.
  using Apply = std::function<std::vector<Result<Revision>>(std::span<PendingCommit* const>)>;
  /// The work that is done still inside the gate, after the results are out. A thread that came inside by itself does
  /// it by itself, before it leaves.
  using TidyUp = std::function<void()>;

  CommitQueue(WriterGate& gate, const Clock& clock, Apply apply, TidyUp tidy_up)
      : gate_(gate), clock_(clock), apply_(std::move(apply)), tidy_up_(std::move(tidy_up)) {}

  /// Returns when `commit` has its result. A thread inside the gate goes ahead alone. Errors beside those of the
  /// commit: of WriterGate::enter; then nothing was changed.
  void run(PendingCommit& commit);

  static constexpr std::size_t kGroupMax = 128;

 private:
  void lead(std::unique_lock<std::mutex>& lock, PendingCommit& mine);
  void serve(std::unique_lock<std::mutex>& lock);

  WriterGate& gate_;
  const Clock& clock_;
  const Apply apply_;
  const TidyUp tidy_up_;
  std::mutex mutex_;  ///< guards all below, and the results of commits that others wait for
  std::condition_variable changed_;
  std::vector<PendingCommit*> waiting_;
  bool has_leader_ = false;
};

}  // namespace croft::store
