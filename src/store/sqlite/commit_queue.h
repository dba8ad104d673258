#pragma once

#include <condition_variable>
#include <functional>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "store/sqlite/writer_gate.h"
#include "store/store.h"

namespace croft::store {

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
  /// What is done still inside the gate, after the results are out. A thread that came inside by itself does it by
  /// itself, before it leaves.
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
  /// True: `commit` was still waiting and is so no more.
  bool withdraw(const PendingCommit& commit);

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
