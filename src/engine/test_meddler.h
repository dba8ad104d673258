#pragma once

#include <functional>
#include <utility>

#include "store/store.h"

namespace croft::engine {

/// A client of a store in whose reads and writes somebody else comes between. Each hook is called once, and may use the
/// store behind.
class Meddler : public store::Store {
 public:
  explicit Meddler(store::Store& behind) : behind_(behind) {}

  std::function<void()> after_get_many;  ///< the snapshot of the ranges has been read
  std::function<void()> before_commit;   ///< all has been read and decided
  std::function<void()> after_commit;    ///< done, and the caller does not know it yet
  bool lose_reply = false;               ///< of the next commit, behind after_commit

  [[nodiscard]] Result<std::optional<store::Record>> get(const store::Key& key, Deadline deadline) override {
    return behind_.get(key, deadline);
  }
  [[nodiscard]] Result<std::vector<std::optional<store::Record>>> get_many(std::span<const store::Key> keys,
                                                                           Deadline deadline) override {
    auto result = behind_.get_many(keys, deadline);
    once(after_get_many);
    return result;
  }
  [[nodiscard]] Result<store::Page> list(const store::ListRequest& request, Deadline deadline) override {
    return behind_.list(request, deadline);
  }
  [[nodiscard]] Result<store::KeyPage> list_keys(const store::ListRequest& request, Deadline deadline) override {
    return behind_.list_keys(request, deadline);
  }
  [[nodiscard]] Result<store::ReadAnswer> read(const core::Missing& wanted, Deadline deadline) override {
    return behind_.read(wanted, deadline);
  }
  [[nodiscard]] Result<store::Revision> commit(std::span<const store::Write> writes, const store::WriteToken& token,
                                               Deadline deadline) override {
    once(before_commit);
    auto committed = behind_.commit(writes, token, deadline);
    once(after_commit);
    if (std::exchange(lose_reply, false)) return fail(ErrorCode::unknown_outcome, "the reply was lost");
    return committed;
  }
  [[nodiscard]] Result<store::Revision> commit_as_of(store::Revision as_of, std::span<const store::Write> writes,
                                                     const store::WriteToken& token, Deadline deadline) override {
    once(before_commit);
    auto committed = behind_.commit_as_of(as_of, writes, token, deadline);
    once(after_commit);
    return committed;
  }
  [[nodiscard]] Result<store::Fate> fate_of(std::span<const store::Write> writes, const store::WriteToken& token,
                                            Deadline deadline) override {
    return behind_.fate_of(writes, token, deadline);
  }
  [[nodiscard]] Result<store::Revision> position(Deadline deadline) override { return behind_.position(deadline); }
  [[nodiscard]] Result<std::unique_ptr<store::Watch>> watch(const store::WatchScope& scope, store::Revision after,
                                                            Deadline deadline) override {
    return behind_.watch(scope, after, deadline);
  }
  [[nodiscard]] Result<std::unique_ptr<Turn>> take_turn(Deadline deadline) override {
    return behind_.take_turn(deadline);
  }
  [[nodiscard]] store::Capabilities capabilities() const override { return behind_.capabilities(); }
  [[nodiscard]] std::uint64_t history() const override { return behind_.history(); }
  [[nodiscard]] Result<std::uint64_t> prove_history(Deadline deadline) override {
    return behind_.prove_history(deadline);
  }

 private:
  static void once(std::function<void()>& hook) {
    if (!hook) return;
    std::exchange(hook, nullptr)();
  }

  store::Store& behind_;
};

}  // namespace croft::engine
