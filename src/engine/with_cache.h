#pragma once

#include <optional>
#include <span>
#include <utility>

#include "engine/transact.h"
#include "store/forwarding_store.h"
#include "store/store.h"

namespace croft::engine {

/// The store of a first try: one that answers reads from what may be old or a guess. It remembers whether the use case
/// ended in a commit that was done, and stops it once one was not: there is no point in reading the same again.
class FirstTry final : public store::ForwardingStore {
 public:
  explicit FirstTry(store::Store& cached) : ForwardingStore(cached) {}

  /// The last thing that happened was a commit that was done: its conditions have confirmed what was read.
  [[nodiscard]] bool ended_in_commit() const { return ended_in_commit_ && !gave_up_; }

  [[nodiscard]] Result<store::ReadAnswer> read(const core::Missing& wanted, Deadline deadline) override {
    TRY_VOID(begin_read());
    return ForwardingStore::read(wanted, deadline);
  }
  [[nodiscard]] Result<store::Page> list(const store::ListRequest& request, Deadline deadline) override {
    TRY_VOID(begin_read());
    return ForwardingStore::list(request, deadline);
  }
  [[nodiscard]] Result<store::Revision> commit_as_of(std::optional<store::Revision> as_of,
                                                     std::span<const store::Write> writes,
                                                     const store::WriteToken& token, Deadline deadline) override {
    auto committed = ForwardingStore::commit_as_of(as_of, writes, token, deadline);
    ended_in_commit_ = committed.has_value();
    // Of an unknown outcome the caller finds out more with fate_of().
    if (!committed && committed.error().code != ErrorCode::unknown_outcome) gave_up_ = true;
    return committed;
  }
  [[nodiscard]] Result<store::Fate> fate_of(std::span<const store::Write> writes, const store::WriteToken& token,
                                            Deadline deadline) override {
    auto fate = ForwardingStore::fate_of(writes, token, deadline);
    if (fate && *fate == store::Fate::applied) ended_in_commit_ = true;
    if (!fate || *fate == store::Fate::lost) gave_up_ = true;
    return fate;
  }

 private:
  [[nodiscard]] Result<void> begin_read() {
    ended_in_commit_ = false;
    if (gave_up_) return fail(ErrorCode::conflict, "a commit that rested on the cache was not done");
    return {};
  }

  bool ended_in_commit_ = false;
  bool gave_up_ = false;
};

/// An answer and where it came from.
template <class Answer>
struct Served {
  Result<Answer> answer;
  bool from_cache = false;
};

/// Runs a use case, `Result<Answer> use_case(const Context&)`, on a store that answers from memory, and believes what
/// comes of it only when it ended in a commit that was done and `is_final(answer)`; everything else (a refusal, an
/// answer without a write, a conflict, an error) is decided again on `direct`, the store itself. The use case must give
/// the same answer when it is asked again.
template <class UseCase, class IsFinal>
auto with_cache(const Context& direct, store::Store& cached, UseCase use_case, IsFinal is_final)
    -> Served<typename decltype(use_case(direct))::value_type> {
  FirstTry first_try(cached);
  const Context context{first_try, direct.clock, direct.random, direct.time_limit, direct.not_after};
  auto answer = use_case(context);
  if (answer && first_try.ended_in_commit() && is_final(*answer)) return {std::move(answer), true};
  return {use_case(direct), false};
}

}  // namespace croft::engine
