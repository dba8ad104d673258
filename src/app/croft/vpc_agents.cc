#include "app/croft/vpc_agents.h"

#include <algorithm>
#include <array>
#include <utility>

#include <fmt/format.h>

#include "net/echo.h"
#include "os/endpoint.h"
#include "os/grpc_channel.h"
#include "wire/vpc/messages.h"

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

/// What failed on the way says more than the code that stands for it.
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

Result<std::string> AgentCaller::call(const AgentPlace& agent, wire::vpc::Method method,
                                      std::string_view request) const {
  TRY(os::Endpoint endpoint, endpoint_of(agent.address, security_ != nullptr));
  os::GrpcOptions options;
  options.message_bytes_max = wire::vpc::kAnswerBytesMax;
  const auto channel =
      os::GrpcChannel::connect(endpoint, security_.get(), options, clock_, Deadline::after(clock_.now(), kConnect));
  if (!channel) {
    return fail(channel.error().code, go_text(os::GrpcCode::unavailable, channel.error().message));
  }
  const os::GrpcReply reply =
      (*channel)->call(wire::vpc::path_of(method), request, Deadline::after(clock_.now(), kCall));
  if (!reply.status.ok()) return fail(failure_of(reply.status));
  return reply.message;
}

}  // namespace croft::app
