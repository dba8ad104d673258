#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

// The methods of UK8S' node agent, and what it answers when one fails (docs/notes/warm-pool.md#grpc). Data only.

namespace croft::wire::vpc {

inline constexpr const char* kServiceName = "rpc.CNIIpam";

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

/// In the order of Method.
[[nodiscard]] std::span<const Method, kMethodCount> all_methods();
/// "AddPodNetwork" and so on.
[[nodiscard]] std::string_view name_of(Method method);
/// gRPC's name: "/rpc.CNIIpam/AddPodNetwork"; NUL-terminated.
[[nodiscard]] std::string_view path_of(Method method);
/// The method of that path; nothing: there is none, which gRPC answers with UNIMPLEMENTED.
[[nodiscard]] std::optional<Method> method_of(std::string_view path);

/// The protocol's own codes, with their numbers. A peer may send others: they are kept as they are.
enum class CniCode : std::int32_t {
  success = 0,
  missing_parameters = 1001,
  allocate_secondary_ip_failure = 1002,
  release_secondary_ip_failure = 1003,
  allocate_eip_failure = 1004,
  release_eip_failure = 1005,
  bind_eip_failure = 1006,
  unbind_eip_failure = 1007,
  allocate_uni_failure = 1008,
  release_uni_failure = 1009,
  attach_uni_failure = 1010,
  detach_uni_failure = 1011,
  kubernetes_api_error = 1012,
  write_db_error = 1013,
  read_db_error = 1014,
  borrow_ip_failure = 1015,
};
/// The protocol's name, "CNIBorrowIPFailure"; "unknown code" for a number that has none.
[[nodiscard]] std::string_view name_of(CniCode code);

/// The codes of gRPC that these answers have, by gRPC's numbers.
enum class RpcStatus : std::uint8_t { ok = 0, invalid_argument = 3, internal = 13 };

/// A method's failures. Peers see the status and its text alone, since Go drops the body of a call that failed; the
/// code in the body is for those who look.
enum class Failure : std::uint8_t {
  pod_unreadable,      ///< Add: the pod cannot be read from the Kubernetes API
  no_address,          ///< Add: none to be had, a conflict on the wire, or the pod's annotation cannot be written
  own_interface,       ///< Add, Del: the interface of a pod that has one of its own
  nothing_named,       ///< Del: no PodNetwork is in the request. It succeeds: there is nothing to release
  not_released,        ///< Del: anything else
  record_not_written,  ///< the record of a pod cannot be added or deleted
  record_unreadable,   ///< the record of a pod, or the list of them, cannot be read
  record_absent,       ///< Get: no such record. It succeeds without one, as 2.x does; 1.x answers record_unreadable's
  missing_parameter,   ///< Borrow: no MAC address
  not_lent,            ///< Borrow: the stock is empty, or the address cannot be moved
  stock_unreadable,    ///< DescribePool, PopPool, ListUnuse: the stock cannot be read
  cloud_failed,        ///< PushPool, ListUnuse: the cloud's answer
  stock_not_written,   ///< PushPool: it cannot be recorded
  not_in_stock,        ///< PopPool: that address, or any, is not there
  not_given_back,      ///< PopPool: the cloud does not take it; it is in the stock again
  in_use,              ///< ReleaseIP: an address is used, or one of the deletions failed; those before it stay deleted
};

/// The answer: the code in the body, and gRPC's status.
struct FailureAnswer {
  Method method;
  Failure failure;
  CniCode code;
  RpcStatus status;
};

/// Every failure of every method that the protocol has one for.
[[nodiscard]] std::span<const FailureAnswer> failure_answers();
/// The row of a method's failure; nothing: the method has no such failure.
[[nodiscard]] std::optional<FailureAnswer> answer_of(Method method, Failure failure);

// Which versions of what Croft adds to UK8S' protocol two sides speak, and whether they go together.

/// Version 0 is UK8S' own; 1 has the network and UID of a pod, and a borrower's name of its request; 2 borrows an
/// address by name, for the pod that keeps it.
inline constexpr std::uint32_t kSpeechNewest = 2;
inline constexpr std::uint32_t kSpeechOfKept = 2;

/// One side's versions. Says it nothing, it is as the default.
struct Speech {
  std::uint32_t newest = 0;
  std::uint32_t oldest = 0;  ///< with which it still goes together
  std::string program;       ///< "croft 0.1.0"; for people
  friend bool operator==(const Speech&, const Speech&) = default;
};

/// This program's, which refuses versions below `oldest`.
[[nodiscard]] Speech own_speech(std::uint32_t oldest = 0);

/// Why two sides do not go together, in a sentence with both's versions; nothing: they do.
[[nodiscard]] std::optional<std::string> skew_between(const Speech& own, const Speech& other);

/// Why nothing is asked of the other side by its name, in a sentence; nothing: it knows the request. One that does not
/// would not see which address is meant, and move any other.
[[nodiscard]] std::optional<std::string> no_lending_by_name(const Speech& other);

}  // namespace croft::wire::vpc
