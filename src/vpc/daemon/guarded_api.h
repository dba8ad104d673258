#pragma once

#include <chrono>
#include <mutex>
#include <optional>
#include <string>

#include "base/clock.h"
#include "store/kube/api.h"

namespace croft::app {

/// How long an API server that did not answer is taken to be away; then it is asked again.
inline constexpr std::chrono::seconds kAwayFor{2};
/// A call that had less time than this says nothing of the server when that is over.
inline constexpr std::chrono::seconds kIsSilence{1};

/// An API for whose answers many wait: once it gives none, they do not wait one after the other. Their calls end as
/// `not_done`, unavailable. An answer of whatever kind, also a refusal, is one. Watches go past it. Safe to use from
/// several threads.
class GuardedApi final : public store::kube::Api {
 public:
  /// Both outlive it.
  GuardedApi(store::kube::Api& beneath, const Clock& clock) : beneath_(beneath), clock_(clock) {}
  [[nodiscard]] store::kube::Answer call(const store::kube::Request& request, Deadline deadline) override;
  [[nodiscard]] store::kube::WatchAnswer watch(const std::string& path, Deadline deadline) override {
    return beneath_.watch(path, deadline);
  }

 private:
  store::kube::Api& beneath_;
  const Clock& clock_;
  std::mutex mutex_;  ///< guards all below
  std::optional<Error> away_;
  std::chrono::nanoseconds ask_again_{};  ///< since boot; with away_
};

}  // namespace croft::app
