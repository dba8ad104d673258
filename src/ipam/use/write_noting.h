#pragma once

#include <optional>
#include <span>
#include <vector>

#include "store/forwarding_store.h"

namespace croft::engine {

/// A store that notes whether a commit through it may have changed anything: one that is done, whose outcome is
/// unknown, or whose refusal doesn't say that the store was never reached. Who was refused and reads `false` then has
/// written nothing and never will (Store::commit). The store beneath and the note must outlive it; for one
/// thread.
class WriteNoting final : public store::ForwardingStore {
 public:
  WriteNoting(store::Store& beneath, bool& may_have_written)
      : ForwardingStore(beneath), may_have_written_(may_have_written) {}

  [[nodiscard]] Result<store::Revision> commit(std::span<const store::Write> writes, const store::WriteToken& token,
                                               Deadline deadline) override {
    auto done = beneath().commit(writes, token, deadline);
    note(done);
    return done;
  }
  [[nodiscard]] std::vector<Result<store::Revision>> commit_each(std::span<const store::Write> writes,
                                                                 const store::WriteToken& token,
                                                                 Deadline deadline) override {
    auto done = beneath().commit_each(writes, token, deadline);
    for (const auto& one : done) note(one);
    return done;
  }

 private:
  void note(const Result<store::Revision>& done) {
    const bool is_undone =
        !done && (done.error().code == ErrorCode::unavailable || done.error().code == ErrorCode::deadline_exceeded ||
                  done.error().code == ErrorCode::permission_denied || done.error().code == ErrorCode::read_only);
    may_have_written_ |= !is_undone;
  }

  bool& may_have_written_;
};

}  // namespace croft::engine
