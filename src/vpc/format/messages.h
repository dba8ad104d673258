#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <rpc/ipamd.pb.h>

#include "base/net/address.h"
#include "base/result.h"
#include "register/stock.h"

// The methods of UK8S' node agent (docs/notes/warm-pool.md#grpc) and its messages (proto/rpc/ipamd.proto), bytes <->
// values, for clients and servers of both generations. The messages are protobuf's own types. The other side's are
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

/// A longer request is refused; likewise an answer that has one address. The longest lawful one is a DelPodNetwork with
/// each member at its bound, 12 KiB; ReleaseIP has room for a thousand addresses. A read message takes many times its
/// size: it may have an entry in every two bytes.
inline constexpr std::size_t kRequestBytesMax = 64U << 10;
inline constexpr std::size_t kAnswerBytesMax = 64U << 20;  ///< a longer answer is refused
inline constexpr std::size_t kNameBytesMax = 253;
inline constexpr std::size_t kTextBytesMax = 4096;
inline constexpr std::size_t kListMax = 65'536;
inline constexpr std::int64_t kUnixSecondsMax = 253'402'300'799;  ///< the end of the year 9999

// ---------------------------------------------------------------- messages

// Some messages are the same for several methods; one of them stands for all. Those without members are no bytes: the
// requests of Ping, ListPodNetworkRecord, DescribePool, ListUnuse and SupportMultiSubnet, and the answers to Ping,
// DelPodNetwork, AddPodNetworkRecord, DelPodNetworkRecord, ReleaseIP and SupportMultiSubnet, which says no. The code of
// an answer is that of success: Go drops the body of a call that failed, so that peers see gRPC's status and text alone
// (docs/notes/warm-pool.md#grpc-errors).

/// Whatever is not known is empty, 0 or false. The MAC address is in upper case, as UCloud writes it.
using ::rpc::AddPodNetworkRequest;
using ::rpc::DelPodNetworkRequest;  ///< AddPodNetworkRecord has the first member alone
using ::rpc::PodNetwork;
using RecordKey = ::rpc::GetPodNetworkRecordRequest;  ///< of DelPodNetworkRecord too
using BorrowRequest = ::rpc::BorrowIPRequest;         ///< without a subnet: the lender's own (1.x)
using StockRequest = ::rpc::PopPoolRequest;           ///< of PushPool too; without an address: any
using ReleaseRequest = ::rpc::ReleaseIPRequest;
using NetworkAnswer = ::rpc::AddPodNetworkResponse;  ///< to GetPodNetworkRecord, BorrowIP, PushPool, PopPool too
using NetworksAnswer = ::rpc::ListPodNetworkRecordResponse;  ///< to ListUnuse too
using StockAnswer = ::rpc::DescribePoolResponse;             ///< free addresses, and those that are not yet
using ShowAnswer = ::rpc::ShowStockResponse;                 ///< properties with their values, for people

/// One of those above. Error: invalid_argument.
template <class Message>
[[nodiscard]] Result<Message> decode(std::string_view bytes);

/// Texts that no client would read become readable ones: control characters go, long ones are cut.
[[nodiscard]] ShowAnswer shown(const std::vector<std::pair<std::string, std::string>>& properties);

/// The end of PodNetwork's Why of an address that is on its way elsewhere: ReleaseIP does nothing more to it.
inline constexpr std::string_view kNotConfirmed = ", and the cloud has not confirmed that";

/// The agent's words about an address of its stock. From `extra` come DedicatedUNI ("dedicatedUNI", "true"),
/// InterfaceID ("interfaceID") and EIPID ("eipID").
[[nodiscard]] PodNetwork pod_network_of(const core::StockAddress& address);

/// A client's or peer's words about an address, as far as they go: address, prefix length, gateway, MAC, the cloud's
/// names, pod, sandbox (as the owner's container), network namespace, `extra`, created, recycled. `state` is left
/// `quarantined`, and everything that the protocol has no word for is empty: it is for the caller to say. Error:
/// invalid_argument naming the member: no address, a gateway of the other family, a mask with holes or none, no MAC
/// address.
[[nodiscard]] Result<core::StockAddress> warm_address_of(const PodNetwork& network);

}  // namespace croft::wire::vpc
