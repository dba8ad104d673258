#include "vpc/format/methods.h"

#include <algorithm>
#include <cstddef>
#include <utility>

#include <fmt/format.h>

namespace croft::wire::vpc {

namespace {

constexpr std::array<Method, kMethodCount> kMethods = {
    Method::ping,
    Method::add_pod_network,
    Method::del_pod_network,
    Method::add_pod_network_record,
    Method::del_pod_network_record,
    Method::get_pod_network_record,
    Method::list_pod_network_record,
    Method::borrow_ip,
    Method::describe_pool,
    Method::push_pool,
    Method::pop_pool,
    Method::list_unuse,
    Method::release_ip,
    Method::support_multi_subnet,
    Method::show_stock,
};

/// In the order of Method.
constexpr std::array<std::string_view, kMethodCount> kPaths = {
    "/rpc.CNIIpam/Ping",
    "/rpc.CNIIpam/AddPodNetwork",
    "/rpc.CNIIpam/DelPodNetwork",
    "/rpc.CNIIpam/AddPodNetworkRecord",
    "/rpc.CNIIpam/DelPodNetworkRecord",
    "/rpc.CNIIpam/GetPodNetworkRecord",
    "/rpc.CNIIpam/ListPodNetworkRecord",
    "/rpc.CNIIpam/BorrowIP",
    "/rpc.CNIIpam/DescribePool",
    "/rpc.CNIIpam/PushPool",
    "/rpc.CNIIpam/PopPool",
    "/rpc.CNIIpam/ListUnuse",
    "/rpc.CNIIpam/ReleaseIP",
    "/rpc.CNIIpam/SupportMultiSubnet",
    "/rpc.CNIIpam/ShowStock",
};

constexpr std::array<std::pair<CniCode, std::string_view>, 16> kCodes = {{
    {CniCode::success, "CNISuccess"},
    {CniCode::missing_parameters, "CNIMissingParameters"},
    {CniCode::allocate_secondary_ip_failure, "CNIAllocateSecondaryIPFailure"},
    {CniCode::release_secondary_ip_failure, "CNIReleaseSecondaryIPFailure"},
    {CniCode::allocate_eip_failure, "CNIAllocateEIPFailure"},
    {CniCode::release_eip_failure, "CNIReleaseEIPFailure"},
    {CniCode::bind_eip_failure, "CNIBindEIPFailure"},
    {CniCode::unbind_eip_failure, "CNIUnbindEIPFailure"},
    {CniCode::allocate_uni_failure, "CNIAllocateUNIFailure"},
    {CniCode::release_uni_failure, "CNIReleaseUNIFailure"},
    {CniCode::attach_uni_failure, "CNIAttachUNIFailure"},
    {CniCode::detach_uni_failure, "CNIDetachUNIFailure"},
    {CniCode::kubernetes_api_error, "CNIK8SAPIError"},
    {CniCode::write_db_error, "CNIWriteDBError"},
    {CniCode::read_db_error, "CNIReadDBError"},
    {CniCode::borrow_ip_failure, "CNIBorrowIPFailure"},
}};

// docs/notes/warm-pool.md#grpc-errors
constexpr auto kAnswers = std::to_array<FailureAnswer>({
    {Method::add_pod_network, Failure::pod_unreadable, CniCode::kubernetes_api_error, RpcStatus::internal},
    {Method::add_pod_network, Failure::no_address, CniCode::allocate_secondary_ip_failure, RpcStatus::internal},
    {Method::add_pod_network, Failure::own_interface, CniCode::allocate_uni_failure, RpcStatus::internal},
    {Method::del_pod_network, Failure::nothing_named, CniCode::success, RpcStatus::ok},
    {Method::del_pod_network, Failure::own_interface, CniCode::release_uni_failure, RpcStatus::invalid_argument},
    {Method::del_pod_network, Failure::not_released, CniCode::release_secondary_ip_failure, RpcStatus::internal},
    {Method::add_pod_network_record, Failure::record_not_written, CniCode::write_db_error, RpcStatus::internal},
    {Method::del_pod_network_record, Failure::record_not_written, CniCode::write_db_error, RpcStatus::internal},
    {Method::get_pod_network_record, Failure::record_unreadable, CniCode::read_db_error, RpcStatus::internal},
    {Method::get_pod_network_record, Failure::record_absent, CniCode::success, RpcStatus::ok},
    {Method::list_pod_network_record, Failure::record_unreadable, CniCode::read_db_error, RpcStatus::internal},
    {Method::borrow_ip, Failure::missing_parameter, CniCode::missing_parameters, RpcStatus::invalid_argument},
    {Method::borrow_ip, Failure::not_lent, CniCode::borrow_ip_failure, RpcStatus::internal},
    {Method::describe_pool, Failure::stock_unreadable, CniCode::read_db_error, RpcStatus::internal},
    {Method::push_pool, Failure::cloud_failed, CniCode::kubernetes_api_error, RpcStatus::internal},
    {Method::push_pool, Failure::stock_not_written, CniCode::write_db_error, RpcStatus::internal},
    {Method::pop_pool, Failure::not_in_stock, CniCode::read_db_error, RpcStatus::internal},
    {Method::pop_pool, Failure::not_given_back, CniCode::release_secondary_ip_failure, RpcStatus::internal},
    {Method::list_unuse, Failure::cloud_failed, CniCode::kubernetes_api_error, RpcStatus::internal},
    {Method::list_unuse, Failure::stock_unreadable, CniCode::read_db_error, RpcStatus::internal},
    {Method::release_ip, Failure::in_use, CniCode::release_uni_failure, RpcStatus::internal},
});

}  // namespace

std::span<const Method, kMethodCount> all_methods() { return kMethods; }

std::string_view name_of(Method method) {
  const std::string_view path = path_of(method);
  return path.substr(path.rfind('/') + 1);
}

std::string_view path_of(Method method) { return kPaths.at(static_cast<std::size_t>(method)); }

std::optional<Method> method_of(std::string_view path) {
  const auto found = std::ranges::find(kPaths, path);
  if (found == kPaths.end()) return {};
  return kMethods.at(static_cast<std::size_t>(found - kPaths.begin()));
}

std::string_view name_of(CniCode code) {
  const auto found = std::ranges::find(kCodes, code, &std::pair<CniCode, std::string_view>::first);
  return found == kCodes.end() ? "unknown code" : found->second;
}

std::span<const FailureAnswer> failure_answers() { return kAnswers; }

std::optional<FailureAnswer> answer_of(Method method, Failure failure) {
  for (const FailureAnswer& answer : kAnswers) {
    if (answer.method == method && answer.failure == failure) return answer;
  }
  return {};
}

namespace {

std::string told(const Speech& side) {
  const std::string versions =
      side.oldest == side.newest ? fmt::format("{}", side.newest) : fmt::format("{} to {}", side.oldest, side.newest);
  return fmt::format("{} speaks version {} of the protocol",
                     side.program.empty() ? "a program without a name (UK8S' own?)" : side.program, versions);
}

}  // namespace

Speech own_speech(std::uint32_t oldest) { return {kSpeechNewest, oldest, std::string("croft ") + CROFT_VERSION}; }

std::optional<std::string> skew_between(const Speech& own, const Speech& other) {
  if (other.newest >= own.oldest && own.newest >= other.oldest) return std::nullopt;
  const bool is_old = other.newest < own.oldest;
  return fmt::format("version skew: {}, {}: upgrade {}", told(own), told(other), is_old ? "the other" : "this one");
}

std::optional<std::string> no_lending_by_name(const Speech& other) {
  if (other.newest >= kSpeechOfKept) return std::nullopt;
  return fmt::format("{}, and lends no address by its name before version {}: upgrade it", told(other), kSpeechOfKept);
}

}  // namespace croft::wire::vpc
