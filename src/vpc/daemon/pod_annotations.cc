#include "vpc/daemon/pod_annotations.h"

#include <cstddef>

#include <fmt/format.h>

#include "store/kube/vpc_objects.h"
#include "vpc/daemon/cluster_claims.h"

namespace croft::app {
namespace {

constexpr std::size_t kAnnotationsMax = 4096;
constexpr std::chrono::seconds kWriteTime{10};

}  // namespace

PodAnnotations::PodAnnotations(store::kube::Api& api, const Clock& clock, std::function<void(const std::string&)> log)
    : api_(api), clock_(clock), log_(std::move(log)), thread_([this] { run(); }) {}

PodAnnotations::~PodAnnotations() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  wake_.notify_all();
  thread_.join();
}

void PodAnnotations::add(const core::PodIdentity& pod, const net::Address& address) {
  {
    const std::lock_guard lock(mutex_);
    if (queue_.size() == kAnnotationsMax) queue_.pop_front();
    queue_.emplace_back(pod, address);
  }
  wake_.notify_all();
}

Result<void> PodAnnotations::annotate(const core::PodIdentity& pod, const net::Address& address) {
  const Deadline deadline = Deadline::after(clock_.now(), kWriteTime);
  auto done = store::kube::annotate_pod(api_, pod.namespace_name, pod.name, pod.uid, address, deadline);
  if (done || done.error().code != ErrorCode::conflict) return done;
  // The runtime knows a static pod by the hash of its file; its mirror in the API has another UID.
  TRY(const auto seen, store::kube::pod_of_stock(api_, pod.namespace_name, pod.name, deadline));
  if (!seen || !is_mirror_of(*seen, pod)) return done;
  return store::kube::annotate_pod(api_, pod.namespace_name, pod.name, seen->meta.uid, address, deadline);
}

void PodAnnotations::run() {
  std::unique_lock lock(mutex_);
  for (;;) {
    wake_.wait(lock, [this] { return stopping_ || !queue_.empty(); });
    if (stopping_) return;
    const auto [pod, address] = queue_.front();
    queue_.pop_front();
    lock.unlock();
    const auto done = annotate(pod, address);
    const bool is_gone =
        !done && (done.error().code == ErrorCode::not_found || done.error().code == ErrorCode::conflict);
    if (!done && !is_gone) {
      log_(fmt::format("pod {}/{} is not annotated: {}", pod.namespace_name, pod.name, done.error().message));
    }
    lock.lock();
  }
}

}  // namespace croft::app
