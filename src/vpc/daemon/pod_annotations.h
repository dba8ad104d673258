#pragma once

#include <chrono>
#include <condition_variable>
#include <deque>
#include <functional>
#include <mutex>
#include <optional>
#include <string>
#include <thread>

#include "base/clock.h"
#include "base/net/address.h"
#include "register/owner.h"
#include "store/kube/api.h"
#include "store/kube/vpc_objects.h"

namespace croft::app {

/// Writes pods' addresses where Calico's policy reads them, one after the other. A pod whose annotation the API refuses
/// is tried again behind the others, after 1 s, then twice as long, at most ten minutes; while the API does not answer
/// at all, all of them wait, at most a minute.
class PodAnnotations {
 public:
  /// `api` and `clock` outlive it; `log` takes one line for each failure, from its thread.
  PodAnnotations(store::kube::Api& api, const Clock& clock, std::function<void(const std::string&)> log);
  /// What waits still is not written.
  ~PodAnnotations();
  PodAnnotations(const PodAnnotations&) = delete;
  PodAnnotations& operator=(const PodAnnotations&) = delete;
  /// In the place of what was wanted for the same pod before. Never blocks. Beyond 4096 the oldest are forgotten.
  void add(const core::PodIdentity& pod, const net::Address& address);

 private:
  struct Wanted {
    core::PodIdentity pod;
    net::Address address;
    std::chrono::nanoseconds not_before{0};  ///< since boot
    std::chrono::nanoseconds rest = std::chrono::seconds{1};
  };
  void run();
  [[nodiscard]] std::optional<Wanted> next(std::unique_lock<std::mutex>& lock);

  store::kube::VpcObjects objects_;
  const Clock& clock_;
  const std::function<void(const std::string&)> log_;
  std::mutex mutex_;
  std::condition_variable wake_;
  bool stopping_ = false;     ///< guarded by mutex_, as below
  std::deque<Wanted> queue_;  ///< in the order of their arrival
  std::chrono::nanoseconds api_not_before_{0};
  std::chrono::nanoseconds api_rest_ = std::chrono::seconds{1};
  std::thread thread_;
};

}  // namespace croft::app
