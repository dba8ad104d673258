#pragma once

#include <cstddef>
#include <functional>
#include <mutex>
#include <set>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/net/address.h"
#include "base/result.h"
#include "store/kube/api.h"
#include "store/kube/vpc_objects.h"
#include "vpc/use/warm_ports.h"

namespace croft::app {

/// What the VpcIpClaims of a cluster promise to pods. One without an address promises none yet, and one with nonsense
/// none that anybody could be given; that is told once. Safe to use from several threads.
class ClusterClaims final : public engine::AddressClaims {
 public:
  /// `api` outlives it. `log` takes lines without newline.
  ClusterClaims(store::kube::Api& api, std::function<void(const std::string& line)> log)
      : objects_(api), log_(std::move(log)) {}
  [[nodiscard]] Result<std::vector<net::Address>> claimed(Deadline deadline) override;

 private:
  void tell_once(const std::string& name, const std::string& ip);

  static constexpr std::size_t kToldMax = 100;
  store::kube::VpcObjects objects_;
  const std::function<void(const std::string& line)> log_;
  std::mutex mutex_;
  std::set<std::string> told_;  ///< guarded by mutex_
};

}  // namespace croft::app
