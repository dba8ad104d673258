#pragma once

#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "engine/transact.h"
#include "store/store.h"

namespace croft::engine {

/// The store of a first try: one that answers reads from what may be old or a guess. It remembers whether the use case
/// ended in a commit that was done, and stops it once one was not: there is no point in reading the same again.
class FirstTry final : public store::Store {
 public:
  explicit FirstTry(store::Store& cached) : cached_(cached) {}

  /// The last thing that happened was a commit that was done: its conditions have confirmed what was read.
  [[nodiscard]] bool ended_in_commit() const { return ended_in_commit_ && !gave_up_; }

  [[nodiscard]] Result<std::optional<store::Record>> get(const store::Key& key, Deadline deadline) override {
    TRY_VOID(begin_read());
    return cached_.get(key, deadline);
  }
  [[nodiscard]] Result<std::vector<std::optional<store::Record>>> get_many(std::span<const store::Key> keys,
                                                                           Deadline deadline) override {
    TRY_VOID(begin_read());
    return cached_.get_many(keys, deadline);
  }
  [[nodiscard]] Result<store::Page> list(const store::ListRequest& request, Deadline deadline) override {
    TRY_VOID(begin_read());
    return cached_.list(request, deadline);
  }
  [[nodiscard]] Result<store::KeyPage> list_keys(const store::ListRequest& request, Deadline deadline) override {
    TRY_VOID(begin_read());
    return cached_.list_keys(request, deadline);
  }
  [[nodiscard]] Result<store::ReadAnswer> read(const core::Missing& wanted, Deadline deadline) override {
    TRY_VOID(begin_read());
    return cached_.read(wanted, deadline);
  }
  [[nodiscard]] Result<store::Revision> commit(std::span<const store::Write> writes, const store::WriteToken& token,
                                               Deadline deadline) override {
    return noted(cached_.commit(writes, token, deadline));
  }
  [[nodiscard]] Result<store::Revision> commit_as_of(store::Revision as_of, std::span<const store::Write> writes,
                                                     const store::WriteToken& token, Deadline deadline) override {
    return noted(cached_.commit_as_of(as_of, writes, token, deadline));
  }
  [[nodiscard]] Result<store::Fate> fate_of(std::span<const store::Write> writes, const store::WriteToken& token,
                                            Deadline deadline) override {
    auto fate = cached_.fate_of(writes, token, deadline);
    if (fate && *fate == store::Fate::applied) ended_in_commit_ = true;
    if (!fate || *fate == store::Fate::lost) gave_up_ = true;
    return fate;
  }
  [[nodiscard]] Result<store::Revision> position(Deadline deadline) override { return cached_.position(deadline); }
  [[nodiscard]] Result<std::unique_ptr<store::Watch>> watch(const store::WatchScope& scope, store::Revision after,
                                                            Deadline deadline) override {
    return cached_.watch(scope, after, deadline);
  }
  [[nodiscard]] Result<std::unique_ptr<Turn>> take_turn(Deadline deadline) override {
    return cached_.take_turn(deadline);
  }
  [[nodiscard]] store::Capabilities capabilities() const override { return cached_.capabilities(); }
  [[nodiscard]] std::uint64_t history() const override { return cached_.history(); }
  [[nodiscard]] Result<std::uint64_t> prove_history(Deadline deadline) override {
    return cached_.prove_history(deadline);
  }

 private:
  [[nodiscard]] Result<store::Revision> noted(Result<store::Revision> committed) {
    ended_in_commit_ = committed.has_value();
    // Of an unknown outcome the caller finds out more with fate_of().
    if (!committed && committed.error().code != ErrorCode::unknown_outcome) gave_up_ = true;
    return committed;
  }
  [[nodiscard]] Result<void> begin_read() {
    ended_in_commit_ = false;
    if (gave_up_) return fail(ErrorCode::conflict, "a commit that rested on the cache was not done");
    return {};
  }

  store::Store& cached_;
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
