#pragma once

#include <cstddef>
#include <memory>
#include <mutex>
#include <optional>
#include <string>

#include "base/clock.h"
#include "store/kube/pod_wishes.h"

namespace croft::store::kube {

/// What the annotations of the pods of one node, and of all namespaces, ask for: from memory, which follows the API
/// from the first question on. A hint of moments ago, as what a kubelet knows of a pod is. Safe to use from several
/// threads.
class WishFollower {
 public:
  /// What it remembers of pods, and the same of namespaces. Who makes pods chooses how much their annotations say;
  /// those for which there is no room have to be asked for.
  static constexpr std::size_t kBytesMax = std::size_t{24} << 20;

  /// `clock` must outlive it.
  WishFollower(std::unique_ptr<Api> api, std::string node, const Clock& clock, std::size_t bytes_max = kBytesMax);
  ~WishFollower();
  WishFollower(const WishFollower&) = delete;
  WishFollower& operator=(const WishFollower&) = delete;

  /// Of a pod that memory knows by name and UID, and its namespace. Nothing: ask(). An Error is that of wishes_in().
  [[nodiscard]] std::optional<Result<core::AnnotatedWishes>> remembered(const core::PodIdentity& pod);
  /// As ask_for_wishes().
  [[nodiscard]] Result<core::AnnotatedWishes> ask(const core::PodIdentity& pod, Deadline deadline) {
    return ask_for_wishes(*api_, pod, deadline);
  }
  /// Why the API does not let pods or namespaces be followed, so that every one is asked for by itself: a right is
  /// missing, or what it tells is not understood. Empty: it does, or nobody has asked for wishes yet.
  [[nodiscard]] std::string refusal();

 private:
  class Feed;
  const std::unique_ptr<Api> api_;
  const std::string node_;
  const Clock& clock_;
  const std::size_t bytes_max_;
  std::mutex mutex_;  ///< guards who makes the feeds
  std::unique_ptr<Feed> pods_, namespaces_;
};

}  // namespace croft::store::kube
