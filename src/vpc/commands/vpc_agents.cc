#include "vpc/commands/vpc_agents.h"

#include <algorithm>
#include <array>
#include <map>
#include <optional>
#include <set>
#include <utility>

#include <fmt/format.h>

#include "base/net/echo.h"
#include "http/endpoint.h"
#include "http/grpc_channel.h"
#include "store/kube/vpc_objects.h"
#include "vpc/format/messages.h"

namespace croft::app {
namespace {

/// Go's names of gRPC's codes, by number.
constexpr std::array<std::string_view, 17> kGoCodes = {
    "OK",       "Canceled",       "Unknown",          "InvalidArgument",   "DeadlineExceeded",
    "NotFound", "AlreadyExists",  "PermissionDenied", "ResourceExhausted", "FailedPrecondition",
    "Aborted",  "OutOfRange",     "Unimplemented",    "Internal",          "Unavailable",
    "DataLoss", "Unauthenticated"};

std::string go_text(os::GrpcCode code, std::string_view message) {
  return fmt::format("rpc error: code = {} desc = {}", kGoCodes.at(static_cast<std::size_t>(code)), message);
}

[[nodiscard]] Result<os::Endpoint> endpoint_of(const std::string& address, bool secure) {
  const bool is_socket = address.starts_with("unix:");
  auto endpoint = os::Endpoint::parse(is_socket ? address : fmt::format("http{}://{}", secure ? "s" : "", address));
  if (!endpoint) {
    return fail(ErrorCode::invalid_argument,
                fmt::format("address of an agent {}: {}; it is unix:/path, 10.0.0.2:7312 or [fd00::2]:7312",
                            net::echo(address), endpoint.error().message));
  }
  return *endpoint;
}

class StaticAgents final : public AgentDirectory {
 public:
  explicit StaticAgents(std::vector<AgentPlace> agents) : agents_(std::move(agents)) {}
  [[nodiscard]] Result<std::vector<AgentPlace>> agents(Deadline /*deadline*/) override { return agents_; }

 private:
  const std::vector<AgentPlace> agents_;
};

class ClusterAgents final : public AgentDirectory {
 public:
  ClusterAgents(std::unique_ptr<store::kube::Api> api, std::string own_node, std::string own_socket)
      : api_(std::move(api)), stocks_(*api_), own_node_(std::move(own_node)), own_socket_(std::move(own_socket)) {}

  [[nodiscard]] Result<std::vector<AgentPlace>> agents(Deadline deadline) override {
    TRY(const auto all, stocks_.all(deadline));
    const auto nodes = store::kube::node_names(*api_, deadline);
    if (!nodes && nodes.error().code != ErrorCode::permission_denied) return fail(nodes.error());
    std::map<std::string, AgentPlace> by_node;
    for (const auto& one : all) {
      const wire::kube::IpamdRecord& record = one.record;
      if (record.node.empty() || (nodes && !nodes->contains(record.node))) continue;
      const auto [place, is_new] = by_node.try_emplace(record.node);
      AgentPlace& agent = place->second;
      if (is_new) agent = {record.node, record.address, record.subnet, 0, true};
      agent.pool = agent.pool.value_or(0) + record.current;
      if (record.node != own_node_ || own_socket_.empty()) continue;
      agent.address = "unix:" + own_socket_;
      agent.is_of_board = false;
    }
    std::vector<AgentPlace> agents;
    for (auto& [node, agent] : by_node) agents.push_back(std::move(agent));
    return agents;
  }

 private:
  const std::unique_ptr<store::kube::Api> api_;
  store::kube::VpcObjects<wire::kube::IpamdRecord> stocks_;
  const std::string own_node_, own_socket_;
};

/// The text of a failure on the way says more than its code.
[[nodiscard]] Error failure_of(const os::GrpcStatus& status) {
  const ErrorCode code = status.from_server                               ? ErrorCode::internal
                         : status.code == os::GrpcCode::deadline_exceeded ? ErrorCode::deadline_exceeded
                                                                          : ErrorCode::unavailable;
  return {code, go_text(status.code, status.message), {}};
}

}  // namespace

Result<std::unique_ptr<AgentDirectory>> static_agents(const std::vector<std::string>& texts,
                                                      const std::string& own_node) {
  std::vector<AgentPlace> agents;
  for (const std::string& text : texts) {
    // A path may have a `=` in it, an address of the network has none.
    const std::size_t equals = text.starts_with("unix:") ? std::string::npos : text.find('=');
    AgentPlace place;
    place.node = equals == std::string::npos ? own_node : text.substr(0, equals);
    place.address = equals == std::string::npos ? text : text.substr(equals + 1);
    if (place.node.empty()) {
      return fail(ErrorCode::invalid_argument,
                  fmt::format("--agent {}: it names no node; give NODE=ADDRESS", net::echo(text)));
    }
    TRY_VOID(endpoint_of(place.address, false));
    if (std::ranges::any_of(agents, [&](const AgentPlace& other) { return other.node == place.node; })) {
      return fail(ErrorCode::invalid_argument,
                  fmt::format("--agent: node {} has two; give each node's agent once", net::echo(place.node)));
    }
    agents.push_back(std::move(place));
  }
  return std::unique_ptr<AgentDirectory>(std::make_unique<StaticAgents>(std::move(agents)));
}

std::unique_ptr<AgentDirectory> cluster_agents(std::unique_ptr<store::kube::Api> api, std::string own_node,
                                               std::string own_socket) {
  return std::make_unique<ClusterAgents>(std::move(api), std::move(own_node), std::move(own_socket));
}

Result<std::string> AgentCaller::call(const AgentPlace& agent, wire::vpc::Method method,
                                      std::string_view request) const {
  if (agent.is_of_board && !os::Endpoint::parse_numeric(agent.address, true)) {
    return fail(
        ErrorCode::invalid_argument,
        fmt::format("spec.addr of the ipamds object of node {} is {}, no numeric ADDRESS:PORT; its agent writes "
                    "it anew, or delete the object",
                    net::echo(agent.node), net::echo(agent.address)));
  }
  TRY(os::Endpoint endpoint, endpoint_of(agent.address, tls_.has_value()));
  std::shared_ptr<const os::TransportSecurity> security;
  if (tls_) {
    os::TlsFiles files = *tls_;
    files.server_name = agent.node;
    security = os::make_tls(std::move(files));
  }
  os::GrpcOptions options;
  options.message_bytes_max = wire::vpc::kAnswerBytesMax;
  const auto channel =
      os::GrpcChannel::connect(endpoint, security.get(), options, clock_, Deadline::after(clock_.now(), kConnect));
  if (!channel) {
    return fail(channel.error().code, go_text(os::GrpcCode::unavailable, channel.error().message));
  }
  const os::GrpcReply reply =
      (*channel)->call(wire::vpc::path_of(method), request, Deadline::after(clock_.now(), kCall));
  if (!reply.status.ok()) return fail(failure_of(reply.status));
  return reply.message;
}

}  // namespace croft::app
