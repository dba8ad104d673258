#include "vpc/door/agent_client.h"

#include <chrono>
#include <utility>

#include "base/printable.h"
#include "vpc/format/messages.h"

namespace croft::edge {
namespace {

namespace vpc = wire::vpc;

// docs/notes/warm-pool.md#deadlines
constexpr std::chrono::milliseconds kPingTime{1000};
constexpr std::chrono::seconds kAddTime{60};
constexpr std::chrono::seconds kDelTime{5};

[[nodiscard]] Result<std::shared_ptr<os::GrpcChannel>> agent_at(const std::string& socket, const Clock& clock) {
  os::Endpoint endpoint;
  endpoint.kind = os::Endpoint::Kind::unix_socket;
  endpoint.path = socket;
  os::GrpcOptions options;
  options.message_bytes_max = vpc::kRequestBytesMax;
  // While a call waits, for an address perhaps, the agent shows that it lives.
  options.http2.ping_after = options.http2.ping_timeout = kPingTime / 2;
  auto channel = greet(endpoint, nullptr, options, vpc::own_speech(), clock, Deadline::after(clock.now(), kPingTime));
  // A plugin and an agent whose versions do not go together work on the same records, and those have a version of their
  // own.
  if (channel) return channel;
  const bool is_refused = channel.error().code == ErrorCode::refused_by_configuration;
  return fail(ErrorCode::unavailable, (is_refused ? "the agent refuses this plugin: " : "the agent does not answer: ") +
                                          channel.error().message);
}

[[nodiscard]] Result<std::string> ask(os::GrpcChannel& channel, vpc::Method method, const std::string& message,
                                      Deadline deadline) {
  os::GrpcReply reply = channel.call(vpc::path_of(method), message, deadline);
  if (reply.status.ok()) return std::move(reply.message);
  switch (reply.status.from_server ? reply.status.code : os::GrpcCode::unavailable) {
    case os::GrpcCode::invalid_argument:
      return fail(invalid_argument(reply.status.message));
    case os::GrpcCode::internal:
    case os::GrpcCode::deadline_exceeded:
      return fail(ErrorCode::exhausted, reply.status.message);
    case os::GrpcCode::aborted:
      return fail(ErrorCode::conflict, reply.status.message);
    default:
      return fail(ErrorCode::unavailable, reply.status.message);
  }
}

}  // namespace

Result<core::WarmAddress> assign_by_agent(const std::string& socket, const core::warm::Request& request,
                                          const Clock& clock) {
  TRY(const auto channel, agent_at(socket, clock));
  vpc::AddPodNetworkRequest message;
  message.pod_name = request.pod.name;
  message.pod_namespace = request.pod.namespace_name;
  message.pod_uid = request.pod.uid;
  message.sandbox_id = request.owner.container_id;
  message.network = request.owner.network;
  message.interface_name = request.owner.interface_name;
  message.netns = request.netns;
  message.subnet = request.subnet;
  message.speech = vpc::own_speech();
  TRY(const std::string reply,
      ask(*channel, vpc::Method::add_pod_network, vpc::encode(message), Deadline::after(clock.now(), kAddTime)));
  const auto answer = vpc::decode_network_answer(reply);
  if (!answer || !answer->network) return fail(ErrorCode::unavailable, "the agent's answer has no address");
  auto given = vpc::warm_address_of(*answer->network);
  if (!given) return fail(ErrorCode::unavailable, given.error().message);
  return *std::move(given);
}

Result<void> release_by_agent(const std::string& socket, const core::warm::Release& release, const Clock& clock) {
  TRY(const auto channel, agent_at(socket, clock));
  vpc::DelPodNetworkRequest message;
  message.pod_network.emplace();
  message.pod_network->pod_name = release.pod.name;
  message.pod_network->pod_namespace = release.pod.namespace_name;
  message.pod_network->pod_uid = release.pod.uid;
  message.pod_network->sandbox_id = release.owner.container_id;
  message.network = release.owner.network;
  message.interface_name = release.owner.interface_name;
  const auto reply =
      ask(*channel, vpc::Method::del_pod_network, vpc::encode(message), Deadline::after(clock.now(), kDelTime));
  // The plugin may do what an agent could not do now.
  if (!reply && reply.error().code == ErrorCode::exhausted) return fail(ErrorCode::unavailable, reply.error().message);
  if (!reply) return fail(reply.error());
  return {};
}

Result<std::shared_ptr<os::GrpcChannel>> greet(const os::Endpoint& agent, const os::TransportSecurity* security,
                                               const os::GrpcOptions& options, const vpc::Speech& own,
                                               const Clock& clock, Deadline deadline) {
  TRY(auto channel, os::GrpcChannel::connect(agent, security, options, clock, deadline));
  TRY_VOID(channel->wait_until_ready(deadline));
  const os::GrpcReply pong = channel->call(vpc::path_of(vpc::Method::ping), vpc::encode(vpc::Ping{own}), deadline);
  if (!pong.status.ok()) {
    const bool is_refused = pong.status.from_server && pong.status.code == os::GrpcCode::failed_precondition;
    return fail(is_refused ? ErrorCode::refused_by_configuration : ErrorCode::unavailable,
                printable(pong.status.message, Printed::line));
  }
  const auto said = vpc::decode_ping(pong.message);
  if (!said) return fail(ErrorCode::unavailable, said.error().message);
  if (auto skew = vpc::skew_between(own, said->speech)) {
    return fail(ErrorCode::refused_by_configuration, *std::move(skew));
  }
  return channel;
}

}  // namespace croft::edge
