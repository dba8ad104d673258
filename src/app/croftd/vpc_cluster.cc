#include "app/croftd/vpc_cluster.h"

#include <algorithm>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "app/croftd/store_parts.h"
#include "app/open_store.h"
#include "store/kube/pod_list.h"
#include "store/store_url.h"

namespace croft::app {
namespace {

constexpr std::size_t kAnnotationsMax = 4096;

/// What VpcIpClaims promise to pods.
class ClusterClaims final : public engine::AddressClaims {
 public:
  explicit ClusterClaims(store::kube::Api& api) : objects_(api) {}
  [[nodiscard]] Result<std::vector<net::Address>> claimed(Deadline deadline) override {
    const auto claims = objects_.claims("", deadline);
    std::vector<net::Address> addresses;
    // A cluster without the kind has none.
    if (!claims && claims.error().code == ErrorCode::not_found) return addresses;
    if (!claims) return fail(claims.error());
    for (const auto& claim : *claims) {
      // One without an address promises none yet; nonsense that could be one is not passed over.
      if (claim.record.ip.empty()) continue;
      auto address = net::Address::parse(claim.record.ip);
      if (!address) return fail(address.error().in("VpcIpClaim " + claim.meta.name));
      addresses.push_back(*address);
    }
    return addresses;
  }

 private:
  store::kube::VpcObjects objects_;
};

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
    if (queue_.size() == kAnnotationsMax) queue_.pop_front();
    queue_.push_back({pod, address});
  }
  wake_.notify_all();
}

void PodAnnotations::run() {
  std::chrono::nanoseconds rest = std::chrono::seconds{1};
  std::unique_lock lock(mutex_);
  while (!stopping_) {
    if (queue_.empty()) {
      wake_.wait(lock);
      continue;
    }
    const Wanted wanted = queue_.front();
    lock.unlock();
    const auto done = objects_.annotate_pod(wanted.pod.namespace_name, wanted.pod.name, wanted.pod.uid,
                                            {wanted.address}, Deadline::after(clock_.now(), kVpcApiTime));
    lock.lock();
    const bool is_over = done || done.error().code == ErrorCode::not_found || done.error().code == ErrorCode::conflict;
    if (is_over) {
      if (!queue_.empty()) queue_.pop_front();
      rest = std::chrono::seconds{1};
      continue;
    }
    log_(fmt::format("pod {}/{} is not annotated: {}", wanted.pod.namespace_name, wanted.pod.name,
                     done.error().message));
    wake_.wait_for(lock, rest, [this] { return stopping_; });
    rest = std::min<std::chrono::nanoseconds>(rest * 2, std::chrono::seconds{60});
  }
}

Result<ClusterOfStock> cluster_of(const VpcAgentOptions& options, Daemon& daemon) {
  ClusterOfStock cluster;
  if (options.kubernetes.empty()) return cluster;
  if (store::scheme_of(options.kubernetes) != store::Scheme::kube) {
    return fail(invalid_argument("--kubernetes must be kube: or kube:/path/to/kubeconfig"));
  }
  TRY(cluster.pods_api, open_kube_api(options.kubernetes, daemon.clock, kDaemonParts, kVpcApiTime));
  TRY(cluster.board_api, open_kube_api(options.kubernetes, daemon.clock, kDaemonParts, kVpcApiTime));
  TRY(cluster.annotations_api, open_kube_api(options.kubernetes, daemon.clock, kDaemonParts, kVpcApiTime));
  cluster.pods = std::make_unique<edge::ApiPods>([&api = *cluster.pods_api, &clock = daemon.clock, node = options.node](
                                                     Deadline deadline, const std::function<void()>& begin,
                                                     const std::function<void(const core::collect::PodFact&)>& take) {
    return store::kube::for_each_pod_of_node(api, clock, node, deadline, begin, take);
  });
  TRY(cluster.claims_api, open_kube_api(options.kubernetes, daemon.clock, kDaemonParts, kVpcApiTime));
  cluster.claims = std::make_unique<ClusterClaims>(*cluster.claims_api);
  cluster.board = std::make_unique<VpcBoard>(*cluster.board_api, daemon.clock, options.node, options.listen);
  return cluster;
}

}  // namespace croft::app
