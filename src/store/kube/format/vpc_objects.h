#pragma once

// The objects by which agents of a stock of cloud addresses find each other, and by which fixed addresses are kept, as
// the cluster has them for UK8S (docs/reference/warm-pool.md): kinds of the group vpc.uk8s.ucloud.cn, and what Calico
// reads from a pod.
//
// Reading is tolerant: unknown members are kept by the writers, missing ones are empty or 0. Errors: corrupt, naming
// the member.

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "base/net/address.h"
#include "base/result.h"
#include "store/kube/format/api.h"
#include "store/kube/format/requests.h"

namespace croft::wire::kube {

inline constexpr ApiResource kIpamds{"vpc.uk8s.ucloud.cn", "v1beta1", "ipamds"};
inline constexpr ApiResource kVpcIpClaims{"vpc.uk8s.ucloud.cn", "v1beta1", "vpcipclaims"};
/// Where all of the first kind are.
inline constexpr std::string_view kIpamdNamespace = "kube-system";
/// Holds a claim while its address is attached.
inline constexpr std::string_view kClaimFinalizer = "cni-vpc-ipamd";

/// What an agent says of itself and of its stock.
struct IpamdRecord {
  std::string node;
  std::string address;  ///< `10.0.0.2:7312`, in brackets for IPv6
  std::string subnet;
  std::int64_t current = 0, high = 0, low = 0;  ///< addresses
  std::string status;                           ///< "dry", "hungry", "normal", "overflow"
  friend bool operator==(const IpamdRecord&, const IpamdRecord&) = default;
};

/// An object as it was read.
struct Ipamd {
  IpamdRecord record;
  ApiMeta meta;
  std::string json;  ///< all of it, for encode_changed; empty where it came out of a list
};

[[nodiscard]] Result<Ipamd> decode_ipamd(std::string json, const std::string& name);
/// Of an item of a list.
[[nodiscard]] Result<IpamdRecord> decode_ipamd_record(JsonRef object);
/// The body of a POST.
[[nodiscard]] std::string encode_new(std::string_view name, const IpamdRecord& record);
/// The body of a PUT: what was read, its resourceVersion and all that is not ours included, with another record.
[[nodiscard]] Result<std::string> encode_changed(const Ipamd& before, const IpamdRecord& record);

/// The fixed address of a pod, which outlives it.
struct VpcIpClaimRecord {
  std::string ip, mask, gateway;  ///< as the cloud writes them: a dotted mask
  std::string subnet, vpc;
  bool attached = false;
  std::string last_detach_time;  ///< "2006-01-02 15:04:05", the node's local time
  std::string release_time;      ///< a duration as Go writes it, or "Never"
  std::string sandbox, mac, zone;
  std::string node;                ///< Croft's: where it was attached last; empty: not said
  std::string owner_stateful_set;  ///< label; empty: none
  friend bool operator==(const VpcIpClaimRecord&, const VpcIpClaimRecord&) = default;
};

struct VpcIpClaim {
  VpcIpClaimRecord record;
  ApiMeta meta;
  std::string json;  ///< as Ipamd's
};

[[nodiscard]] Result<VpcIpClaim> decode_vpc_ip_claim(std::string json, const std::string& name_space,
                                                     const std::string& pod);
[[nodiscard]] Result<VpcIpClaimRecord> decode_vpc_ip_claim_record(JsonRef object);
/// The labels and the finalizer follow from the record: it has the finalizer exactly while it is attached.
[[nodiscard]] std::string encode_new(std::string_view name_space, std::string_view name,
                                     const VpcIpClaimRecord& record);
[[nodiscard]] Result<std::string> encode_changed(const VpcIpClaim& before, const VpcIpClaimRecord& record);

/// What a pod says in its annotations of keeping its address (docs/reference/warm-pool.md#fixed-addresses).
inline constexpr std::string_view kFixedAddressAnnotation = "network.beta.kubernetes.io/ucloud-statefulset-static-ip";
inline constexpr std::string_view kReleaseTimeAnnotation =
    "network.beta.kubernetes.io/ucloud-statefulset-ip-claim-policy";

struct NotedPod {
  ApiMeta meta;
  std::map<std::string, std::string, std::less<>> annotations;
};
/// The answer to a GET of this pod. Error: corrupt, also where it is another object or an annotation is no text.
[[nodiscard]] Result<NotedPod> decode_noted_pod(std::string_view json, const std::string& name_space,
                                                const std::string& name);

/// A merge patch (RFC 7386) of a pod, which the API server takes for the pod of this UID only: the addresses where
/// Calico reads them, in its spelling (`10.0.0.5/32`), the first by itself. At least one.
[[nodiscard]] std::string encode_pod_addresses_patch(std::string_view uid, const std::vector<net::Address>& addresses);

}  // namespace croft::wire::kube
