#pragma once

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <thread>

#include "base/clock.h"
#include "core/register/owner.h"
#include "store/kube/api.h"

namespace croft::store::kube {

/// Tells pods, by Events, why they got no address. From a thread of its own: nobody waits for it, and what can't be
/// sent is dropped, for it is also in the log and in the answer to the runtime. Safe to use from several threads.
class PodEvents {
 public:
  struct Options {
    std::string component = "croft-agent";
    std::string node;
    std::chrono::nanoseconds interval = std::chrono::minutes(1);    ///< between two of one pod
    std::chrono::nanoseconds time_limit = std::chrono::seconds(5);  ///< of one request
  };
  /// `clock` and `random` must outlive it.
  PodEvents(std::unique_ptr<Api> api, const Clock& clock, Random& random, Options options);
  /// Sends nothing more; waits for the request under way.
  ~PodEvents();
  PodEvents(const PodEvents&) = delete;
  PodEvents& operator=(const PodEvents&) = delete;

  /// `reason` is a word in CamelCase. Nothing comes of it where the pod is not known by namespace and name, within the
  /// interval, or when too many wait.
  void tell(const core::PodIdentity& pod, const std::string& reason, const std::string& message);

  struct Counts {
    std::uint64_t sent = 0;
    std::uint64_t dropped = 0;  ///< within the interval, too many, or not taken by the API
    std::string trouble;        ///< why the last one was not taken; empty: it was
  };
  [[nodiscard]] Counts counts() const;

 private:
  struct Waiting {
    core::PodIdentity pod;
    std::string reason, message;
    WallTime at;
  };
  void run();
  void send(const Waiting& waiting);

  const std::unique_ptr<Api> api_;
  const Clock& clock_;
  Random& random_;
  const Options options_;
  mutable std::mutex mutex_;  ///< guards all below
  std::condition_variable wake_;
  bool stopping_ = false;
  std::deque<Waiting> waiting_;
  std::map<std::string, std::chrono::nanoseconds> told_since_boot_;  ///< by namespace/name
  Counts counts_;
  std::thread thread_;
};

}  // namespace croft::store::kube
