#pragma once

#include <functional>
#include <optional>
#include <span>
#include <utility>

#include "store/forwarding_store.h"

namespace croft::engine {

/// A client of a store in whose reads and writes somebody else comes between. Each hook is called once, and may use the
/// store behind.
class Meddler : public store::ForwardingStore {
 public:
  using ForwardingStore::ForwardingStore;

  std::function<void()> after_read;     ///< of records alone: the snapshot of the ranges
  std::function<void()> before_commit;  ///< all has been read and decided
  std::function<void()> after_commit;   ///< done, and the caller does not know it yet
  bool lose_reply = false;              ///< of the next commit, behind after_commit

  [[nodiscard]] Result<store::ReadAnswer> read(const core::Missing& wanted, Deadline deadline) override {
    auto answer = ForwardingStore::read(wanted, deadline);
    if (wanted.records.size() > 1 && wanted.lists.empty()) once(after_read);
    return answer;
  }
  [[nodiscard]] Result<store::Revision> commit(std::span<const store::Write> writes, const store::WriteToken& token,
                                               Deadline deadline) override {
    once(before_commit);
    auto committed = ForwardingStore::commit(writes, token, deadline);
    once(after_commit);
    if (std::exchange(lose_reply, false)) return fail(ErrorCode::unknown_outcome, "the reply was lost");
    return committed;
  }

 private:
  static void once(std::function<void()>& hook) {
    if (!hook) return;
    std::exchange(hook, nullptr)();
  }
};

}  // namespace croft::engine
