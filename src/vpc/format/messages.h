#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/net/address.h"
#include "base/result.h"
#include "register/stock.h"

// The methods of UK8S' node agent (docs/notes/warm-pool.md#grpc) and its messages (proto/rpc/ipamd.proto), bytes <->
// values, for clients and servers of both generations. The other side's messages are
// checked against the bounds before anything looks at them: texts are UTF-8 without control characters, names have at
// most kNameBytesMax bytes, other texts kTextBytesMax, lists kListMax entries, times lie between 1970 and the year
// 9999. Fields that are not known are passed over, and an absent text is an empty one, as proto3 has it. Whether a
// request holds what its method needs is for the server to judge. All errors of decoding: invalid_argument, naming the
// member.

namespace croft::wire::vpc {

// ---------------------------------------------------------------- methods

/// All of them are unary.
enum class Method : std::uint8_t {
  ping,
  add_pod_network,
  del_pod_network,
  add_pod_network_record,
  del_pod_network_record,
  get_pod_network_record,
  list_pod_network_record,
  borrow_ip,
  describe_pool,
  push_pool,
  pop_pool,
  list_unuse,
  release_ip,
  support_multi_subnet,
  show_stock,  ///< Croft's own
};
inline constexpr std::size_t kMethodCount = 15;

/// gRPC's name: "/rpc.CNIIpam/AddPodNetwork"; NUL-terminated.
[[nodiscard]] std::string_view path_of(Method method);
/// The method of that path; nothing: there is none, which gRPC answers with UNIMPLEMENTED.
[[nodiscard]] std::optional<Method> method_of(std::string_view path);

// ---------------------------------------------------------------- bounds

/// The transport refuses a longer request; likewise an answer that has one address. The longest lawful one is a
/// DelPodNetwork with each member at its bound, 11.3 KiB; ReleaseIP has room for a thousand addresses. A read message
/// takes many times its size: it may have an entry in every two bytes.
inline constexpr std::size_t kRequestBytesMax = 64U << 10;
inline constexpr std::size_t kAnswerBytesMax = 64U << 20;  ///< the same of an answer with more of them
inline constexpr std::size_t kNameBytesMax = 253;
inline constexpr std::size_t kTextBytesMax = 4096;
inline constexpr std::size_t kListMax = 65'536;
inline constexpr std::int64_t kUnixSecondsMax = 253'402'300'799;  ///< the end of the year 9999

/// An address and what it is for, as the protocol has it; whatever is not known is empty, 0 or false.
struct PodNetwork {
  std::string pod_name;
  std::string pod_namespace;
  std::string pod_uid;
  std::string sandbox_id;
  std::string netns;  ///< a path
  std::string ip;     ///< as it was said
  std::string vpc;    ///< the cloud's names, as in `interface_id` and `eip_id`
  std::string subnet;
  std::string gateway;
  std::string mask;            ///< IPv4 dotted, "255.255.255.0"; IPv6 the length of the prefix, "64"
  std::string mac;             ///< Croft writes it in upper case, as UCloud does; net::Mac::parse takes either
  bool dedicated_uni = false;  ///< the pod has an interface of its own
  std::string interface_id;
  std::string eip_id;
  std::int64_t create_time = 0;   ///< seconds since the epoch; 0: not known
  std::int64_t recycle_time = 0;  ///< when its last pod let go, in seconds since the epoch; 0: none has
  bool recycled = false;          ///< a pod has had it before
  std::string why;                ///< Croft's, of ListUnuse: why no pod gets it
  friend bool operator==(const PodNetwork&, const PodNetwork&) = default;
};
/// The end of PodNetwork::why of an address that is on its way elsewhere: ReleaseIP does nothing more to it.
inline constexpr std::string_view kNotConfirmed = ", and the cloud has not confirmed that";

/// The agent's words about an address of its stock. From `extra` come dedicated_uni ("dedicatedUNI", "true"),
/// interface_id ("interfaceID") and eip_id ("eipID").
[[nodiscard]] PodNetwork pod_network_of(const core::StockAddress& address);

/// A client's or peer's words about an address, as far as they go: address, prefix length, gateway, MAC, the cloud's
/// names, pod, sandbox (as the owner's container), network namespace, `extra`, created, recycled. `state` is left
/// `quarantined`, and everything that the protocol has no word for is empty: it is for the caller to say. Error:
/// invalid_argument naming the member: no address, a gateway of the other family, a mask with holes or none, no MAC
/// address.
[[nodiscard]] Result<core::StockAddress> warm_address_of(const PodNetwork& network);

// ---------------------------------------------------------------- requests

// Ping, ListPodNetworkRecord, DescribePool, ListUnuse and SupportMultiSubnet ask without a word, and Ping,
// DelPodNetwork, AddPodNetworkRecord, DelPodNetworkRecord, ReleaseIP and SupportMultiSubnet, which says no, are
// answered so. The code of an answer is that of success: Go drops the body of a call that failed, so that peers see
// gRPC's status and text alone (docs/notes/warm-pool.md#grpc-errors).

struct AddPodNetworkRequest {
  std::string pod_name;
  std::string pod_namespace;
  std::string sandbox_id;
  std::string netns;  ///< a path
  std::string interface_name;
  std::string subnet;  ///< empty: the node's own (all of 1.x)
  std::string mac;     ///< of the node's interface in that subnet; empty: the node's own
  std::string interface_id;
  // Croft's: empty when the client is UK8S' own.
  std::string network;  ///< the CNI network's name
  std::string pod_uid;
  bool is_crofts = false;
  friend bool operator==(const AddPodNetworkRequest&, const AddPodNetworkRequest&) = default;
};

/// For AddPodNetworkRecord too, which has the first member alone.
struct DelPodNetworkRequest {
  std::optional<PodNetwork> pod_network;  ///< absent: nothing to release, unless Croft's members name a holder
  // Croft's: with the sandbox of pod_network these name a holder.
  std::string network;
  std::string interface_name;
  friend bool operator==(const DelPodNetworkRequest&, const DelPodNetworkRequest&) = default;
};

/// Which record: of DelPodNetworkRecord and GetPodNetworkRecord.
struct RecordKey {
  std::string pod_name;
  std::string pod_namespace;
  std::string sandbox_id;
  friend bool operator==(const RecordKey&, const RecordKey&) = default;
};

struct BorrowRequest {
  std::string mac;      ///< the borrower's interface
  std::string subnet;   ///< empty: the lender's own (1.x)
  std::string request;  ///< Croft's: the borrower's name for it; asked again, it gets the same address. Empty: none
  friend bool operator==(const BorrowRequest&, const BorrowRequest&) = default;
};

/// For PushPool and PopPool.
struct StockRequest {
  std::string ip;  ///< empty: any
  friend bool operator==(const StockRequest&, const StockRequest&) = default;
};

/// For ReleaseIP.
struct ReleaseRequest {
  std::vector<std::string> ips;
  friend bool operator==(const ReleaseRequest&, const ReleaseRequest&) = default;
};

// ---------------------------------------------------------------- answers

/// For AddPodNetwork, GetPodNetworkRecord, BorrowIP, PushPool and PopPool.
struct NetworkAnswer {
  std::optional<PodNetwork> network;
  friend bool operator==(const NetworkAnswer&, const NetworkAnswer&) = default;
};

/// For ListPodNetworkRecord and ListUnuse.
struct NetworksAnswer {
  std::vector<PodNetwork> networks;
  friend bool operator==(const NetworksAnswer&, const NetworksAnswer&) = default;
};

/// For DescribePool.
struct StockAnswer {
  std::vector<PodNetwork> pool;      ///< free
  std::vector<PodNetwork> cooldown;  ///< not yet
  friend bool operator==(const StockAnswer&, const StockAnswer&) = default;
};

/// For ShowStock: the agent and its stock as properties with their values, for people.
struct ShowAnswer {
  std::vector<std::pair<std::string, std::string>> properties;
  friend bool operator==(const ShowAnswer&, const ShowAnswer&) = default;
};

/// The bytes of one of the above.
template <class Value>
[[nodiscard]] std::string encode(const Value& value);
/// Texts that no client would read become readable ones: control characters go, long ones are cut.
[[nodiscard]] std::string encode(const ShowAnswer& value);
template <class Value>
[[nodiscard]] Result<Value> decode(std::string_view bytes);

}  // namespace croft::wire::vpc
