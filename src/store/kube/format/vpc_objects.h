#pragma once

// The objects by which agents of a stock of cloud addresses find each other, and by which fixed addresses are kept, as
// UK8S' clusters have them (docs/notes/warm-pool.md). They are kinds of the group vpc.uk8s.ucloud.cn, and members of a
// pod that Calico reads.
//
// Reading is tolerant: unknown members are kept by the writers, missing ones are empty or 0. Errors: corrupt, naming
// the member.

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "base/net/address.h"
#include "base/result.h"
#include "store/kube/format/api.h"

namespace croft::wire::kube {

/// Holds a claim while its address is attached.
inline constexpr std::string_view kClaimFinalizer = "cni-vpc-ipamd";

/// An agent's record of itself and its stock: an `ipamds` object of kube-system, of the node's name.
struct IpamdRecord {
  std::string node;
  std::string address;  ///< `10.0.0.2:7312`, in brackets for IPv6
  std::string subnet;
  std::int64_t current = 0, high = 0, low = 0;  ///< addresses
  std::string status;                           ///< "dry", "hungry", "normal", "overflow"
  friend bool operator==(const IpamdRecord&, const IpamdRecord&) = default;
};

/// The fixed address of a pod, which outlives it: a `vpcipclaims` object of the pod's name in its namespace.
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

/// An object as it was read.
template <class Record>
struct VpcObject {
  Record record;
  ApiMeta meta;
  std::shared_ptr<const JsonDocument> whole;  ///< for encode_vpc; null where it came out of a list
};

/// How one of the kinds is called.
struct VpcKind {
  ApiResource resource;
  std::string_view kind;
  std::string_view name_space;  ///< where all of them are; empty: in any
};
template <class Record>
[[nodiscard]] const VpcKind& vpc_kind();

template <class Record>
[[nodiscard]] Result<Record> decode_vpc(JsonRef object);
/// The body of a POST; with `before`, of a PUT: what was read, its resourceVersion and all that is not ours included,
/// with another record. A claim's labels and finalizer follow from the record: it has the finalizer exactly while it is
/// attached.
template <class Record>
[[nodiscard]] std::string encode_vpc(const std::optional<VpcObject<Record>>& before, std::string_view name_space,
                                     std::string_view name, const Record& record);

/// A pod's annotations about keeping its address (docs/notes/warm-pool.md#fixed-addresses).
inline constexpr std::string_view kFixedAddressAnnotation = "network.beta.kubernetes.io/ucloud-statefulset-static-ip";
inline constexpr std::string_view kReleaseTimeAnnotation =
    "network.beta.kubernetes.io/ucloud-statefulset-ip-claim-policy";

/// A merge patch (RFC 7386) of a pod, which the API server takes for the pod of this UID only: its address where
/// Calico reads it, in its spelling (`10.0.0.5/32`).
[[nodiscard]] std::string encode_pod_address_patch(std::string_view uid, const net::Address& address);

}  // namespace croft::wire::kube
