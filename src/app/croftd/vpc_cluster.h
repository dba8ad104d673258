#pragma once

#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <thread>

#include "app/croftd/daemon.h"
#include "app/croftd/vpc_agent_options.h"
#include "app/vpc_board.h"
#include "base/clock.h"
#include "base/result.h"
#include "core/register/owner.h"
#include "edge/vpc/api_pods.h"
#include "engine/warm_ports.h"
#include "net/address.h"
#include "store/kube/api.h"
#include "store/kube/vpc_objects.h"

// What the agent of a stock of cloud addresses has of its cluster.

namespace croft::app {

/// How long one request to the API server may take.
inline constexpr std::chrono::seconds kVpcApiTime{10};

/// Where the agent finds its cluster; nothing where it has none.
struct ClusterOfStock {
  std::unique_ptr<store::kube::Api> pods_api, board_api, annotations_api, claims_api;
  std::unique_ptr<edge::ApiPods> pods;
  std::unique_ptr<engine::AddressClaims> claims;
  std::unique_ptr<VpcBoard> board;
};

/// Of `--kubernetes`; `daemon` outlives it. Errors: invalid_argument for what is no kube: URL; those of its files.
[[nodiscard]] Result<ClusterOfStock> cluster_of(const VpcAgentOptions& options, Daemon& daemon);

/// Writes pods' addresses where Calico's policy reads them, one after the other, again after a failure.
class PodAnnotations {
 public:
  /// `api` and `clock` outlive it; `log` takes one line for each failure, from its thread.
  PodAnnotations(store::kube::Api& api, const Clock& clock, std::function<void(const std::string&)> log);
  /// What waits still is not written.
  ~PodAnnotations();
  PodAnnotations(const PodAnnotations&) = delete;
  PodAnnotations& operator=(const PodAnnotations&) = delete;
  /// Never blocks. Beyond 4096 the oldest are forgotten.
  void add(const core::PodIdentity& pod, const net::Address& address);

 private:
  struct Wanted {
    core::PodIdentity pod;
    net::Address address;
  };
  void run();

  store::kube::VpcObjects objects_;
  const Clock& clock_;
  const std::function<void(const std::string&)> log_;
  std::mutex mutex_;
  std::condition_variable wake_;
  bool stopping_ = false;  ///< guarded by mutex_, as below
  std::deque<Wanted> queue_;
  std::thread thread_;
};

}  // namespace croft::app
