#include "vpc/daemon/fixed_addresses.h"

#include <algorithm>
#include <string_view>
#include <utility>

#include <fmt/format.h>

#include "base/net/echo.h"
#include "store/kube/format/vpc_objects.h"
#include "vpc/decide/promised.h"
#include "vpc/format/messages.h"

namespace croft::app {
namespace {

constexpr std::size_t kKnownMax = 4096;
constexpr int kWritesMax = 4;
constexpr std::size_t kReleaseTimeMax = 64;
constexpr const char* kNever = "Never";
constexpr std::string_view kStaticPodAnnotation = "kubernetes.io/config.hash";

using wire::kube::VpcIpClaimRecord;

std::string text_of(const wire::kube::NotedPod& pod, std::string_view annotation) {
  const auto found = pod.annotations.find(annotation);
  return found == pod.annotations.end() ? std::string() : found->second;
}

/// As Go reads a duration, as far as its letters go: who releases addresses reads it.
bool is_release_time(const std::string& text) {
  return text.size() <= kReleaseTimeMax && std::ranges::all_of(text, [](char c) {
           return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '.';
         });
}

VpcIpClaimRecord claim_of(const core::WarmAddress& held, VpcIpClaimRecord before) {
  const wire::vpc::PodNetwork network = wire::vpc::pod_network_of(held);
  before.ip = network.ip;
  before.mask = network.mask;
  if (!network.gateway.empty()) before.gateway = network.gateway;
  before.subnet = network.subnet;
  before.vpc = network.vpc;
  before.attached = true;
  before.sandbox = network.sandbox_id;
  before.mac = network.mac;
  if (before.owner_stateful_set.empty()) before.owner_stateful_set = core::warm::stateful_set_of(held.pod);
  return before;
}

}  // namespace

void ClusterFixedAddresses::remember(const std::string& uid) {
  const std::lock_guard lock(mutex_);
  if (!others_.insert(uid).second) return;
  order_.push_back(uid);
  if (order_.size() <= kKnownMax) return;
  others_.erase(order_.front());
  order_.pop_front();
}

Result<engine::FixedAddresses::Wish> ClusterFixedAddresses::wish_of(const core::PodIdentity& pod, Deadline deadline) {
  if (!pod.uid.empty()) {
    const std::lock_guard lock(mutex_);
    if (others_.contains(pod.uid)) return Wish{};
  }
  TRY(const auto seen, objects_.pod(pod.namespace_name, pod.name, deadline));
  // A static pod runs before the API knows it, and has another UID there.
  if (!seen) return Wish{};
  Wish wish;
  wish.is_fixed = text_of(*seen, wire::kube::kFixedAddressAnnotation) == "true";
  wish.release_time = text_of(*seen, wire::kube::kReleaseTimeAnnotation);
  if (wish.release_time.empty()) wish.release_time = kNever;
  if (wish.is_fixed && !is_release_time(wish.release_time)) {
    return fail(
        invalid_argument(fmt::format("pod {}/{}: the annotation {} is {}, and must be a duration as 1h10m20s, or "
                                     "Never",
                                     net::echo(pod.namespace_name), net::echo(pod.name),
                                     wire::kube::kReleaseTimeAnnotation, net::echo(wish.release_time))));
  }
  if (!wish.is_fixed) {
    remember(seen->meta.uid);
    return wish;
  }
  // A late call of a sandbox whose pod is gone: what is promised is its successor's. What kubelet runs from a file has
  // the hash of that for a UID, and the API's pod says so.
  const bool is_another = !pod.uid.empty() && !seen->meta.uid.empty() && pod.uid != seen->meta.uid &&
                          pod.uid != text_of(*seen, kStaticPodAnnotation);
  if (is_another) {
    return fail(
        ErrorCode::conflict,
        fmt::format("pod {}/{} is another one by now, of UID {}: its address is not given to the one of UID {}",
                    net::echo(pod.namespace_name), net::echo(pod.name), net::echo(seen->meta.uid), net::echo(pod.uid)));
  }
  return wish;
}

Result<std::optional<engine::FixedAddresses::Promise>> ClusterFixedAddresses::promise_to(const core::PodIdentity& pod,
                                                                                         Deadline deadline) {
  TRY(const auto claim, objects_.claim(pod.namespace_name, pod.name, deadline));
  // One that names no address yet promises none; attach() fills it in.
  if (!claim || claim->record.ip.empty()) return std::optional<Promise>();
  auto address = net::Address::parse(claim->record.ip);
  if (!address) return fail(ErrorCode::corrupt, address.error().in("VpcIpClaim " + claim->meta.name).message);
  Promise promise{*address, claim->record.subnet, std::nullopt, claim->record.node};
  if (const auto mac = net::Mac::parse(claim->record.mac)) promise.mac = *mac;
  return std::optional(std::move(promise));
}

Result<bool> ClusterFixedAddresses::is_gone(const std::string& node, Deadline deadline) {
  TRY(const auto nodes, objects_.node_names(deadline));
  // A list without this node is not to be believed.
  return nodes.contains(node_) && !nodes.contains(node);
}

Result<void> ClusterFixedAddresses::attach(const core::WarmAddress& held, const Wish& wish, Deadline deadline) {
  const core::PodIdentity& pod = held.pod;
  for (int writes = 0;; ++writes) {
    TRY(const auto before, objects_.claim(pod.namespace_name, pod.name, deadline));
    if (before && !before->record.ip.empty() && before->record.ip != held.address.to_string()) {
      return fail(
          ErrorCode::conflict,
          fmt::format("the VpcIpClaim of pod {}/{} promises {} by now, and the pod was given {}; it is tried again",
                      net::echo(pod.namespace_name), net::echo(pod.name), net::echo(before->record.ip),
                      held.address.to_string()));
    }
    VpcIpClaimRecord record = claim_of(held, before ? before->record : VpcIpClaimRecord{});
    record.node = node_;
    if (record.release_time.empty()) record.release_time = wish.release_time.empty() ? kNever : wish.release_time;
    if (before && before->record == record) return {};
    const auto written = before ? objects_.update(*before, record, deadline)
                                : objects_.create(pod.namespace_name, pod.name, record, deadline);
    if (written) return {};
    // Read again: somebody else wrote it, or this very write came through.
    const ErrorCode code = written.error().code;
    const bool may_be_there = code == ErrorCode::conflict || code == ErrorCode::already_exists ||
                              code == ErrorCode::unknown_outcome || (before && code == ErrorCode::not_found);
    if (!may_be_there || writes == kWritesMax) return fail(written.error());
  }
}

}  // namespace croft::app
