#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.h"
#include "base/net/address.h"
#include "base/result.h"
#include "register/owner.h"
#include "store/kube/api.h"
#include "store/kube/format/api.h"

// The objects by which agents of a stock of cloud addresses find each other, and by which fixed addresses are kept, as
// UK8S' clusters have them (docs/notes/warm-pool.md). They are kinds of the group vpc.uk8s.ucloud.cn, and members of a
// pod that Calico reads.
//
// Reading is tolerant: unknown members are kept by the writers, missing ones are empty or 0. Errors: corrupt, naming
// the member.
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

// The kinds of vpc.uk8s.ucloud.cn and what goes with them, one object at a time. Safe to use from several threads, as
// far as the Api is.
//
// Errors of all: those of the API (Answer::error), with what was asked for in front; permission_denied says what to
// allow; not_found also when the cluster has not the kind (its CustomResourceDefinition is missing, and is named);
// unknown_outcome of a write: read it back. So is a conflict: an intermediary may have sent the write twice.
namespace croft::store::kube {

/// Objects of one kind: wire::kube::IpamdRecord or VpcIpClaimRecord.
template <class Record>
class VpcObjects {
 public:
  using Object = wire::kube::VpcObject<Record>;
  /// `api` must outlive it.
  explicit VpcObjects(Api& api) : api_(api) {}

  /// All there are, of all namespaces. An ipamd that can't be read is left out, so that nobody's nonsense hides the
  /// others. A claim that can't be read is an error: what it holds must not look free.
  [[nodiscard]] Result<std::vector<Object>> all(Deadline deadline);
  /// Nothing where there is none.
  [[nodiscard]] Result<std::optional<Object>> find(const std::string& name_space, const std::string& name,
                                                   Deadline deadline);
  /// Makes it, or puts it in the place of `before`. Errors: already_exists; conflict when it is another one by now.
  [[nodiscard]] Result<Object> write(const std::optional<Object>& before, const std::string& name_space,
                                     const std::string& name, const Record& record, Deadline deadline);
  /// The very object that was seen: of this UID and version. One that is gone is a success. Error: conflict.
  [[nodiscard]] Result<void> remove(const wire::kube::ApiMeta& seen, Deadline deadline);

 private:
  Api& api_;
};

/// The names of all nodes, as new as can be.
[[nodiscard]] Result<std::set<std::string>> node_names(Api& api, Deadline deadline);

/// A pod; nothing where there is none of this name.
[[nodiscard]] Result<std::optional<wire::kube::ApiObject>> pod_of_stock(Api& api, const std::string& name_space,
                                                                        const std::string& pod, Deadline deadline);
/// The pods of all namespaces that have not ended and report this address, but those in their node's network; as new as
/// can be.
[[nodiscard]] Result<std::vector<core::PodIdentity>> pods_with(Api& api, const net::Address& address,
                                                               Deadline deadline);
/// Writes a pod's address where Calico reads it. Errors: not_found, the pod is gone; conflict, one of the same name has
/// taken its place.
[[nodiscard]] Result<void> annotate_pod(Api& api, const std::string& name_space, const std::string& pod,
                                        const std::string& uid, const net::Address& address, Deadline deadline);

}  // namespace croft::store::kube
