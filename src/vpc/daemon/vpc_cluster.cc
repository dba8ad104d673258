#include "vpc/daemon/vpc_cluster.h"

#include <algorithm>
#include <ctime>
#include <limits>
#include <set>
#include <string_view>

#include <fmt/format.h>

#include "base/letters.h"
#include "base/printable.h"
#include "vpc/decide/assign.h"
#include "vpc/format/messages.h"

namespace croft::app {

namespace {

/// Each of which somebody else was faster.
constexpr int kWritesMax = 4;
constexpr std::size_t kReleaseTimeMax = 64;
constexpr const char* kNever = "Never";
constexpr std::string_view kElasticIpAnnotation = "network.kubernetes.io/eip";
constexpr std::string_view kStaticPodAnnotation = "kubernetes.io/config.hash";

using wire::kube::VpcIpClaimRecord;

std::string text_of(const wire::kube::ApiObject& pod, std::string_view annotation) {
  const auto annotations = member_of(member_of(pod.value, "metadata"), "annotations");
  const auto found = member_of(annotations, annotation);
  return found ? std::string(found->text()) : std::string();
}

/// As Go reads a duration, as far as its letters go: who releases addresses reads it.
bool is_release_time(const std::string& text) {
  return text.size() <= kReleaseTimeMax &&
         std::ranges::all_of(text, [](char c) { return is_alphanumeric(c) || c == '.'; });
}

VpcIpClaimRecord claim_of(const core::StockAddress& held, VpcIpClaimRecord before) {
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

/// Whether an API's pod is the mirror of a static pod, whose UID is the hash of its file.
bool is_mirror_of(const wire::kube::ApiObject& seen, const core::PodIdentity& pod) {
  return !pod.uid.empty() && pod.uid == text_of(seen, kStaticPodAnnotation);
}

/// Has the object say what `record_of` makes of the one that is there: of `before`, or of what is read. Where somebody
/// else wrote it meanwhile, or nobody heard what became of the write, it is read again.
template <class Record, class RecordOf>
[[nodiscard]] Result<wire::kube::VpcObject<Record>> put(store::kube::VpcObjects<Record>& objects,
                                                        const std::string& name_space, const std::string& name,
                                                        std::optional<wire::kube::VpcObject<Record>> before,
                                                        RecordOf record_of, Deadline deadline) {
  for (int writes = 1;; ++writes) {
    if (!before) {
      TRY(before, objects.find(name_space, name, deadline));
    }
    TRY(const Record record, record_of(before));
    if (before && before->record == record) return *std::move(before);
    auto written = objects.write(before, name_space, name, record, deadline);
    if (written) return written;
    const ErrorCode code = written.error().code;
    const bool may_be_there = code == ErrorCode::conflict || code == ErrorCode::already_exists ||
                              (before && code == ErrorCode::not_found) || code == ErrorCode::unknown_outcome;
    if (!may_be_there || writes == kWritesMax) return written;
    before.reset();
  }
}

/// As UK8S' agent writes it: the node's local time.
std::string local_time() {
  const std::time_t now = std::time(nullptr);
  std::tm parts{};
  char text[sizeof "2006-01-02 15:04:05"] = {};
  if (::localtime_r(&now, &parts) == nullptr) return {};
  return std::strftime(text, sizeof text, "%Y-%m-%d %H:%M:%S", &parts) == 0 ? std::string() : std::string(text);
}

}  // namespace

Result<engine::FixedAddresses::Wish> ClusterFixedAddresses::wish_of(const core::PodIdentity& pod, Deadline deadline) {
  TRY(const auto seen, store::kube::pod_of_stock(api_, pod.namespace_name, pod.name, deadline));
  // A static pod runs before the API knows it, and has another UID there.
  if (!seen) return Wish{};
  if (text_of(*seen, kElasticIpAnnotation) == "true") {
    return fail(ErrorCode::refused_by_configuration,
                fmt::format("pod {}/{} has the annotation {}: \"true\", and no elastic addresses are served here; take "
                            "the annotation away",
                            echo(pod.namespace_name), echo(pod.name), kElasticIpAnnotation));
  }
  Wish wish;
  wish.uid = seen->meta.uid;
  wish.is_fixed = text_of(*seen, wire::kube::kFixedAddressAnnotation) == "true";
  wish.release_time = text_of(*seen, wire::kube::kReleaseTimeAnnotation);
  if (wish.release_time.empty()) wish.release_time = kNever;
  if (wish.is_fixed && !is_release_time(wish.release_time)) {
    return fail(invalid_argument(fmt::format(
        "pod {}/{}: the annotation {} is {}, and must be a duration as 1h10m20s, or "
        "Never",
        echo(pod.namespace_name), echo(pod.name), wire::kube::kReleaseTimeAnnotation, echo(wish.release_time))));
  }
  if (!wish.is_fixed) return wish;
  // A late call of a sandbox whose pod is gone: what is promised is its successor's. A pod that kubelet runs from a
  // file has the file's hash for a UID, and the API's pod says so.
  const bool is_another =
      !pod.uid.empty() && !seen->meta.uid.empty() && pod.uid != seen->meta.uid && !is_mirror_of(*seen, pod);
  if (is_another) {
    return fail(ErrorCode::conflict,
                fmt::format("pod {}/{} is another one by now, of UID {}: its address is not given to the one of UID {}",
                            echo(pod.namespace_name), echo(pod.name), echo(seen->meta.uid), echo(pod.uid)));
  }
  return wish;
}

Result<std::optional<engine::FixedAddresses::Promise>> ClusterFixedAddresses::promise_to(const core::PodIdentity& pod,
                                                                                         Deadline deadline) {
  TRY(const auto claim, claims_.find(pod.namespace_name, pod.name, deadline));
  // One that names no address yet promises none; attach() fills it in.
  if (!claim || claim->record.ip.empty()) return std::optional<Promise>();
  auto address = net::Address::parse(claim->record.ip);
  if (!address) return fail(ErrorCode::corrupt, address.error().in("VpcIpClaim " + claim->meta.name).message);
  Promise promise{*address, claim->record.subnet, std::nullopt};
  if (const auto mac = net::Mac::parse(claim->record.mac)) promise.mac = *mac;
  return std::optional(std::move(promise));
}

Result<void> ClusterFixedAddresses::attach(const core::StockAddress& held, const Wish& wish, Deadline deadline) {
  const core::PodIdentity& pod = held.pod;
  const auto record_of = [&](const std::optional<Claim>& before) -> Result<VpcIpClaimRecord> {
    if (before && !before->record.ip.empty() && before->record.ip != held.address.to_string()) {
      return fail(
          ErrorCode::conflict,
          fmt::format("the VpcIpClaim of pod {}/{} promises {} by now, and the pod was given {}; it is tried again",
                      echo(pod.namespace_name), echo(pod.name), echo(before->record.ip), held.address.to_string()));
    }
    VpcIpClaimRecord record = claim_of(held, before ? before->record : VpcIpClaimRecord{});
    record.node = node_;
    if (record.release_time.empty()) record.release_time = wish.release_time.empty() ? kNever : wish.release_time;
    return record;
  };
  TRY_VOID(put<VpcIpClaimRecord>(claims_, pod.namespace_name, pod.name, std::nullopt, record_of, deadline));
  return {};
}

// ---------------------------------------------------------------- those of the whole cluster

Result<std::vector<ClusterFixedAddresses::Claim>> ClusterFixedAddresses::all(Deadline deadline) {
  auto claims = claims_.all(deadline);
  if (!claims && claims.error().code == ErrorCode::not_found) return std::vector<Claim>();
  return claims;
}

Result<std::vector<net::Address>> ClusterFixedAddresses::all_fixed(Deadline deadline) {
  TRY(const auto claims, all(deadline));
  std::vector<net::Address> addresses;
  for (const Claim& claim : claims) {
    // A writer of claims in one namespace does not decide for all nodes.
    if (const auto address = net::Address::parse(claim.record.ip)) addresses.push_back(*address);
  }
  return addresses;
}

Result<int> ClusterFixedAddresses::let_go(const std::function<bool(const net::Address&)>& is_held, Deadline deadline) {
  TRY(const auto claims, all(deadline));
  std::optional<std::set<std::string>> nodes;
  int gone = 0;
  for (const Claim& claim : claims) {
    if (!claim.meta.deletion_timestamp || !claim.record.attached || claim.record.node.empty()) continue;
    if (claim.record.node == node_) {
      const auto address = net::Address::parse(claim.record.ip);
      if (address && is_held(*address)) continue;
    } else {
      if (!nodes) {
        TRY(nodes, store::kube::node_names(api_, deadline));
      }
      // A list without this node is not to be believed.
      if (!nodes->contains(node_) || nodes->contains(claim.record.node)) continue;
    }
    TRY(const bool went, detach(claim, deadline));
    gone += went ? 1 : 0;
  }
  return gone;
}

Result<bool> ClusterFixedAddresses::detach(const Claim& seen, Deadline deadline) {
  TRY(const auto now, claims_.find(seen.meta.name_space, seen.meta.name, deadline));
  const bool is_same = now && now->meta.uid == seen.meta.uid && now->meta.deletion_timestamp &&
                       now->record.node == seen.record.node && now->record.ip == seen.record.ip;
  if (!is_same) return false;
  VpcIpClaimRecord record = now->record;
  record.attached = false;
  record.last_detach_time = local_time();
  const auto written = claims_.write(now, seen.meta.name_space, seen.meta.name, record, deadline);
  if (written) return true;
  const ErrorCode code = written.error().code;
  if (code == ErrorCode::conflict || code == ErrorCode::not_found || code == ErrorCode::unknown_outcome) return false;
  return fail(written.error());
}

// ---------------------------------------------------------------- the board

namespace {

constexpr std::chrono::nanoseconds kLookAgain = std::chrono::minutes{10};
/// Where all of them are.
const std::string kNamespace = "kube-system";

}  // namespace

Result<void> VpcBoard::publish(const cloud::Interface& interface, const Status& status, Deadline deadline) {
  const wire::kube::IpamdRecord record{node_,       address_,   interface.subnet, status.free,
                                       status.high, status.low, status.status};
  if (own_ && own_->record == record && clock_.now().since_boot - own_at_ < kLookAgain) return {};
  // A write over what was read last needs one request; what is unchanged is read, since somebody may have changed it.
  std::optional<Ipamd> before = std::exchange(own_, std::nullopt);
  if (before && before->record == record) before.reset();
  const auto record_of = [&](const auto&) -> Result<wire::kube::IpamdRecord> { return record; };
  TRY(own_, put<wire::kube::IpamdRecord>(stocks_, kNamespace, node_, std::move(before), record_of, deadline));
  own_at_ = clock_.now().since_boot;
  return {};
}

Result<void> VpcBoard::clean_up(Deadline deadline) {
  // The objects first: whose node comes in between is in the list of nodes.
  TRY(const auto all, stocks_.all(deadline));
  TRY(const std::set<std::string> nodes, store::kube::node_names(api_, deadline));
  if (!nodes.contains(node_)) return {};
  std::optional<Error> failed;
  for (const auto& one : all) {
    const std::string& node = one.record.node;
    if (node.empty() || nodes.contains(node)) continue;
    const auto removed = stocks_.remove(one.meta, deadline);
    // Changed meanwhile: it is looked at anew.
    if (!removed && removed.error().code != ErrorCode::conflict && !failed) failed = removed.error();
  }
  if (failed) return fail(*std::move(failed));
  return {};
}

Result<std::vector<engine::Peer>> VpcBoard::peers(const std::string& subnet, Deadline deadline) {
  TRY(const auto all, stocks_.all(deadline));
  std::vector<engine::Peer> peers;
  for (const auto& one : all) {
    const wire::kube::IpamdRecord& record = one.record;
    if (record.node == node_ || record.node.empty() || record.address.empty() || record.subnet != subnet) continue;
    const std::int64_t said = record.status == "dry" ? 0 : std::max<std::int64_t>(record.current, 0);
    const auto free = std::min<std::int64_t>(said, std::numeric_limits<std::uint32_t>::max());
    peers.push_back({record.node, record.address, static_cast<std::uint32_t>(free)});
  }
  return peers;
}

// ---------------------------------------------------------------- annotations

Result<void> annotate_pod(store::kube::Api& api, const core::PodIdentity& pod, const net::Address& address,
                          Deadline deadline) {
  auto done = store::kube::annotate_pod(api, pod.namespace_name, pod.name, pod.uid, address, deadline);
  if (done || done.error().code != ErrorCode::conflict) return done;
  // The runtime knows a static pod by the hash of its file; its mirror in the API has another UID.
  TRY(const auto seen, store::kube::pod_of_stock(api, pod.namespace_name, pod.name, deadline));
  if (!seen || !is_mirror_of(*seen, pod)) return done;
  return store::kube::annotate_pod(api, pod.namespace_name, pod.name, seen->meta.uid, address, deadline);
}

}  // namespace croft::app
