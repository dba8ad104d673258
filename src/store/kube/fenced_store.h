#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <shared_mutex>
#include <span>
#include <utility>

#include "store/forwarding_store.h"
#include "store/kube/leadership.h"

namespace croft::store::kube {

/// A store whose commits begin only while a process leads, in the term in which it began its work, and end with that
/// term at the latest; else they are refused (unavailable, nothing was changed). Reads pass. This fences what this
/// process knows; what it does not, as when it is stopped right before it sends, the commits' own conditions fence.
/// Safe to use from several threads.
class FencedStore final : public ForwardingStore {
 public:
  /// Both must outlive it. Before the first enter() nothing is committed.
  FencedStore(Store& beneath, const Leadership& leadership) : ForwardingStore(beneath), leadership_(leadership) {}

  /// Commits belong to this term from now on.
  void enter(Term term) { term_ = term; }

  /// Waits until no commit is under way that began before the process stopped to lead; false when it took too long.
  [[nodiscard]] bool wait_until_idle(std::chrono::nanoseconds patience);

  [[nodiscard]] Result<Revision> commit(std::span<const Write> writes, const WriteToken& token,
                                        Deadline deadline) override;

  [[nodiscard]] Result<void> for_each(ListRequest request, const std::function<Deadline()>& until,
                                      const std::function<Result<void>(Record&)>& take) override {
    return beneath().for_each(std::move(request), until, take);
  }

 private:
  const Leadership& leadership_;
  std::atomic<Term> term_ = 0;
  std::shared_timed_mutex committing_;  ///< shared by each commit
};

}  // namespace croft::store::kube
