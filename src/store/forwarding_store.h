#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>

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
  [[nodiscard]] Result<Page> list(const ListRequest& request, Deadline deadline) override {
    return beneath_.list(request, deadline);
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

}  // namespace croft::store
