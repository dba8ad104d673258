#include "vpc/daemon/pod_annotations.h"

#include <algorithm>
#include <cstddef>
#include <utility>

#include <fmt/format.h>

#include "base/error.h"

namespace croft::app {
namespace {

using std::chrono::nanoseconds;

constexpr std::size_t kAnnotationsMax = 4096;
constexpr nanoseconds kWriteTime = std::chrono::seconds{10};
constexpr nanoseconds kRestFirst = std::chrono::seconds{1};
constexpr nanoseconds kRestMax = std::chrono::minutes{10};
constexpr nanoseconds kApiRestMax = std::chrono::minutes{1};

}  // namespace

PodAnnotations::PodAnnotations(store::kube::Api& api, const Clock& clock, std::function<void(const std::string&)> log)
    : objects_(api), clock_(clock), log_(std::move(log)), thread_([this] { run(); }) {}

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
    std::erase_if(queue_, [&](const Wanted& wanted) { return wanted.pod == pod; });
    if (queue_.size() == kAnnotationsMax) queue_.pop_front();
    queue_.push_back({pod, address});
  }
  wake_.notify_all();
}

/// The first that is due, out of the queue; waits for it. Nothing: it is to stop.
std::optional<PodAnnotations::Wanted> PodAnnotations::next(std::unique_lock<std::mutex>& lock) {
  while (!stopping_) {
    if (queue_.empty()) {
      wake_.wait(lock);
      continue;
    }
    const nanoseconds now = clock_.now().since_boot;
    const auto first = std::ranges::min_element(queue_, {}, [&](const Wanted& wanted) {
      return std::max({wanted.not_before, api_not_before_, now});
    });
    const nanoseconds due = std::max(first->not_before, api_not_before_);
    if (due <= now) {
      Wanted wanted = *first;
      queue_.erase(first);
      return wanted;
    }
    wake_.wait_for(lock, due - now);
  }
  return std::nullopt;
}

void PodAnnotations::run() {
  std::unique_lock lock(mutex_);
  while (auto wanted = next(lock)) {
    lock.unlock();
    const core::PodIdentity& pod = wanted->pod;
    const auto done = objects_.annotate_pod(pod.namespace_name, pod.name, pod.uid, {wanted->address},
                                            Deadline::after(clock_.now(), kWriteTime));
    const bool is_over = done || done.error().code == ErrorCode::not_found || done.error().code == ErrorCode::conflict;
    if (!is_over) {
      log_(fmt::format("pod {}/{} is not annotated: {}", pod.namespace_name, pod.name, done.error().message));
    }
    lock.lock();
    const nanoseconds now = clock_.now().since_boot;
    // Whether it was written is not known: it is written again.
    const bool is_away =
        !is_over && (is_transient(done.error().code) || done.error().code == ErrorCode::unknown_outcome);
    if (is_away) {
      api_not_before_ = now + api_rest_;
      api_rest_ = std::min(api_rest_ * 2, kApiRestMax);
    } else {
      api_rest_ = kRestFirst;
    }
    // A newer wish for the same pod, which came meanwhile, is the one that counts.
    const bool is_renewed = std::ranges::any_of(queue_, [&](const Wanted& other) { return other.pod == wanted->pod; });
    if (is_over || is_renewed || queue_.size() == kAnnotationsMax) continue;
    if (is_away) {
      queue_.push_front(*std::move(wanted));
      continue;
    }
    wanted->not_before = now + wanted->rest;
    wanted->rest = std::min(wanted->rest * 2, kRestMax);
    queue_.push_back(*std::move(wanted));
  }
}

}  // namespace croft::app
