#include "vpc/door/agent_client.h"

#include <algorithm>
#include <chrono>

#include "base/printable.h"
#include "http/grpc_channel.h"
#include "vpc/format/messages.h"

namespace croft::edge {
namespace {

namespace vpc = wire::vpc;

// docs/notes/warm-pool.md#deadlines
constexpr std::chrono::milliseconds kPingTime{1000};
constexpr std::chrono::seconds kAddTime{60};
constexpr std::chrono::seconds kDelTime{5};
/// docs/notes/warm-pool.md#borrowing: a dead peer costs no more than this.
constexpr std::chrono::seconds kConnectMax{1};

/// A connection to an agent that answers Ping.
[[nodiscard]] Result<std::shared_ptr<os::GrpcChannel>> greet(const os::Endpoint& agent,
                                                             const os::TransportSecurity* security,
                                                             const os::GrpcOptions& options, const Clock& clock,
                                                             Deadline deadline) {
  TRY(auto channel, os::GrpcChannel::connect(agent, security, options, clock, deadline));
  TRY_VOID(channel->wait_until_ready(deadline));
  const os::GrpcReply pong = channel->call(vpc::path_of(vpc::Method::ping), "", deadline);
  if (!pong.status.ok()) return fail(ErrorCode::unavailable, printable(pong.status.message, Printed::line));
  return channel;
}

[[nodiscard]] Result<std::shared_ptr<os::GrpcChannel>> agent_at(const std::string& socket, const Clock& clock) {
  os::Endpoint endpoint;
  endpoint.kind = os::Endpoint::Kind::unix_socket;
  endpoint.path = socket;
  os::GrpcOptions options;
  options.message_bytes_max = vpc::kRequestBytesMax;
  // While a call waits, for an address perhaps, the agent shows that it lives.
  options.http2.ping_after = options.http2.ping_timeout = kPingTime / 2;
  auto channel = greet(endpoint, nullptr, options, clock, Deadline::after(clock.now(), kPingTime));
  if (!channel) return fail(ErrorCode::unavailable, "the agent does not answer: " + channel.error().message);
  return channel;
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

Result<core::StockAddress> assign_by_agent(const std::string& socket, const core::warm::Request& request,
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
  message.is_crofts = true;
  TRY(const std::string reply,
      ask(*channel, vpc::Method::add_pod_network, vpc::encode(message), Deadline::after(clock.now(), kAddTime)));
  const auto answer = vpc::decode<vpc::NetworkAnswer>(reply);
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

Result<cloud::CloudAddress> borrow_by_agent(const engine::Peer& peer, const net::Mac& mac, const std::string& subnet,
                                            const std::string& request, const SecurityFor& security_for,
                                            const Clock& clock, Deadline deadline) {
  if (security_for == nullptr) {
    return fail(ErrorCode::refused_by_configuration,
                "peers are spoken to with certificates: give --tls-ca, --tls-certificate and --tls-key");
  }
  const auto security = security_for(peer.node);
  // A writer of the board says where peers are: never a socket of this machine.
  TRY(const os::Endpoint endpoint, os::Endpoint::parse_numeric(peer.address, security != nullptr));
  os::GrpcOptions options;
  options.message_bytes_max = vpc::kRequestBytesMax;
  const Deadline first = Deadline::after(clock.now(), kConnectMax);
  TRY(const auto channel,
      greet(endpoint, security.get(), options, clock, {std::min(first.at_since_boot, deadline.at_since_boot)}));
  const vpc::BorrowRequest wanted{cloud::capital_text(mac), subnet, request};
  const os::GrpcReply reply = channel->call(vpc::path_of(vpc::Method::borrow_ip), vpc::encode(wanted), deadline);
  if (!reply.status.ok()) {
    // It may be shown to anybody.
    const std::string why = printable(reply.status.message, Printed::line);
    if (reply.status.surely_not_processed) return fail(ErrorCode::unavailable, why);
    switch (reply.status.from_server ? reply.status.code : os::GrpcCode::unknown) {
      case os::GrpcCode::permission_denied:
        return fail(ErrorCode::permission_denied, why);
      case os::GrpcCode::resource_exhausted:
        return fail(ErrorCode::exhausted, why);
      // UK8S' own lender says INTERNAL whatever became of its move; one that says nothing, or that it
      // does not know, leaves the cloud to be asked.
      case os::GrpcCode::unknown:
      case os::GrpcCode::deadline_exceeded:
      case os::GrpcCode::internal:
      case os::GrpcCode::unavailable:
        return fail(ErrorCode::unknown_outcome, why);
      default:
        return fail(ErrorCode::unavailable, why);
    }
  }
  const auto answer = vpc::decode<vpc::NetworkAnswer>(reply.message);
  if (!answer || !answer->network) return fail(ErrorCode::unknown_outcome, "it answered without an address");
  const auto lent = vpc::warm_address_of(*answer->network);
  if (!lent) return fail(ErrorCode::unknown_outcome, lent.error().message);
  cloud::CloudAddress address = core::warm::cloud_address_of(*lent);
  address.mac = mac;
  if (address.subnet.empty()) address.subnet = subnet;
  return address;
}

}  // namespace croft::edge
