#pragma once

#include <condition_variable>
#include <deque>
#include <functional>
#include <mutex>
#include <string>
#include <thread>
#include <utility>

#include "base/clock.h"
#include "base/net/address.h"
#include "register/owner.h"
#include "store/kube/api.h"

namespace croft::app {

/// Writes pods' addresses where Calico's policy reads them before kubelet has reported them, one after the other. A
/// failure is not tried again: Calico reads the address in the pod's status then.
class PodAnnotations {
 public:
  /// `api` and `clock` outlive it; `log` takes one line for each failure, from its thread.
  PodAnnotations(store::kube::Api& api, const Clock& clock, std::function<void(const std::string&)> log);
  /// Annotations that still wait are not written.
  ~PodAnnotations();
  PodAnnotations(const PodAnnotations&) = delete;
  PodAnnotations& operator=(const PodAnnotations&) = delete;
  /// Never blocks. Beyond 4096 the oldest are forgotten.
  void add(const core::PodIdentity& pod, const net::Address& address);

 private:
  void run();
  [[nodiscard]] Result<void> annotate(const core::PodIdentity& pod, const net::Address& address);

  store::kube::Api& api_;
  const Clock& clock_;
  const std::function<void(const std::string&)> log_;
  std::mutex mutex_;
  std::condition_variable wake_;
  bool stopping_ = false;                                         ///< guarded by mutex_, as below
  std::deque<std::pair<core::PodIdentity, net::Address>> queue_;  ///< in the order of their arrival
  std::thread thread_;
};

}  // namespace croft::app
