#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <utility>

#include "base/clock.h"
#include "base/result.h"
#include "store/store.h"

namespace croft::store {

/// Another store, with every call. A decorator of a store derives from this and overrides what it changes; the store
/// beneath must outlive it. Only commit_each() goes through commit(), one write after the other: so it can't pass by
/// what was overridden there; who does not override that forwards it.
class ForwardingStore : public Store {
 public:
  explicit ForwardingStore(Store& beneath) : beneath_(beneath) {}

  [[nodiscard]] Result<ReadAnswer> read(const core::Missing& wanted, Deadline deadline) override {
    return beneath_.read(wanted, deadline);
  }
  [[nodiscard]] Result<void> for_each(const ListRequest& request, const Until& until, const Take& take) override {
    return beneath_.for_each(request, until, take);
  }
  [[nodiscard]] Result<Revision> commit(std::span<const Write> writes, const WriteToken& token,
                                        Deadline deadline) override {
    return beneath_.commit(writes, token, deadline);
  }
  [[nodiscard]] Result<Fate> fate_of(std::span<const Write> writes, const WriteToken& token,
                                     Deadline deadline) override {
    return beneath_.fate_of(writes, token, deadline);
  }
  [[nodiscard]] Result<Revision> position(Deadline deadline) override { return beneath_.position(deadline); }
  [[nodiscard]] Result<std::unique_ptr<Watch>> watch(const WatchScope& scope, Revision after,
                                                     Deadline deadline) override {
    return beneath_.watch(scope, after, deadline);
  }
  [[nodiscard]] Result<std::unique_ptr<Turn>> take_turn(Deadline deadline) override {
    return beneath_.take_turn(deadline);
  }
  [[nodiscard]] Capabilities capabilities() const override { return beneath_.capabilities(); }
  [[nodiscard]] std::uint64_t epoch() const override { return beneath_.epoch(); }

 protected:
  [[nodiscard]] Store& beneath() const { return beneath_; }

 private:
  Store& beneath_;
};

/// Told once by a store that was opened to look: this account may not read what is Croft's own there, and none of it is
/// shown. Why.
using OnOwnDenied = std::function<void(const Error&)>;

/// A store for commands that only look: it refuses every write, whoever asks for it. Its view may lack records
/// (cli/stores/open_store.h), so nothing may be decided from it that is then written.
class LookOnly final : public ForwardingStore {
 public:
  explicit LookOnly(std::unique_ptr<Store> beneath) : ForwardingStore(*beneath), owned_(std::move(beneath)) {}

  /// The store below, for a pause, which is no record.
  [[nodiscard]] Store& looked_at() const { return beneath(); }

  /// Each of commit_each() too (ForwardingStore).
  [[nodiscard]] Result<Revision> commit(std::span<const Write> /*writes*/, const WriteToken& /*token*/,
                                        Deadline /*deadline*/) override {
    return fail(ErrorCode::read_only, "this command only looks, and writes nothing");
  }

 private:
  const std::unique_ptr<Store> owned_;
};

}  // namespace croft::store
