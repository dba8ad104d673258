#pragma once

#include <functional>
#include <memory>
#include <utility>

#include "store/forwarding_store.h"

namespace croft::store {

/// Told once by a store that was opened to look: this account may not read what is Croft's own there, and none of it is
/// shown. Why.
using OwnDenied = std::function<void(const Error&)>;

/// A store for commands that only look: it refuses every write, whoever asks for it. Its view may lack records
/// (cli/stores/open_store.h), so nothing may be decided from it that is then written.
class LookOnly final : public ForwardingStore {
 public:
  explicit LookOnly(std::unique_ptr<Store> beneath) : ForwardingStore(*beneath), owned_(std::move(beneath)) {}

  /// The store below, for a pause, which is no record.
  [[nodiscard]] Store& looked_at() const { return beneath(); }

  [[nodiscard]] Result<void> for_each(ListRequest request, const std::function<Deadline()>& until,
                                      const std::function<Result<void>(Record&)>& take) override {
    return beneath().for_each(std::move(request), until, take);
  }
  /// Each of commit_each() too (ForwardingStore).
  [[nodiscard]] Result<Revision> commit(std::span<const Write> /*writes*/, const WriteToken& /*token*/,
                                        Deadline /*deadline*/) override {
    return fail(ErrorCode::read_only, "this command only looks, and writes nothing");
  }

 private:
  const std::unique_ptr<Store> owned_;
};

}  // namespace croft::store
