#include "vpc/door/peer_agents.h"

#include <algorithm>
#include <chrono>

#include "base/printable.h"
#include "vpc/door/agent_client.h"
#include "vpc/format/messages.h"

namespace croft::edge {
namespace {

namespace vpc = wire::vpc;

/// docs/notes/warm-pool.md#borrowing: a dead peer costs no more than this.
constexpr std::chrono::seconds kConnectMax{1};

}  // namespace

Result<cloud::CloudAddress> GrpcPeers::borrow(const Peer& peer, const net::Mac& mac, const std::string& subnet,
                                              const std::string& request, Deadline deadline) {
  if (security_ == nullptr) {
    return fail(ErrorCode::refused_by_configuration,
                "peers are spoken to with certificates: give --tls-ca, --tls-certificate and --tls-key");
  }
  const auto security = security_(peer.node);
  // A writer of the board says where peers are: never a socket of this machine.
  TRY(const os::Endpoint endpoint, os::Endpoint::parse_numeric(peer.address, security != nullptr));
  os::GrpcOptions options;
  options.message_bytes_max = vpc::kRequestBytesMax;
  const vpc::Speech own = vpc::own_speech(oldest_speech_);
  const Deadline first = Deadline::after(clock_.now(), kConnectMax);
  TRY(const auto channel,
      greet(endpoint, security.get(), options, own, clock_, {std::min(first.at_since_boot, deadline.at_since_boot)}));
  const vpc::BorrowRequest wanted{cloud::capital_text(mac), subnet, request, own, node_};
  const os::GrpcReply reply = channel->call(vpc::path_of(vpc::Method::borrow_ip), vpc::encode(wanted), deadline);
  if (!reply.status.ok()) {
    // It may be shown to anybody.
    const std::string why = printable(reply.status.message, Printed::line);
    if (reply.status.surely_not_processed) return fail(ErrorCode::unavailable, why);
    switch (reply.status.from_server ? reply.status.code : os::GrpcCode::unknown) {
      case os::GrpcCode::failed_precondition:
        return fail(ErrorCode::refused_by_configuration, why);
      case os::GrpcCode::permission_denied:
        return fail(ErrorCode::permission_denied, why);
      case os::GrpcCode::resource_exhausted:
        return fail(ErrorCode::exhausted, why);
      // A lender of before this protocol says INTERNAL whatever became of its move; one that says nothing, or that it
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
  const auto answer = vpc::decode_network_answer(reply.message);
  if (!answer || !answer->network) return fail(ErrorCode::unknown_outcome, "it answered without an address");
  const auto lent = vpc::warm_address_of(*answer->network);
  if (!lent) return fail(ErrorCode::unknown_outcome, lent.error().message);
  cloud::CloudAddress address;
  address.address = lent->address;
  address.prefix_length = lent->prefix_length;
  address.gateway = lent->gateway;
  address.mac = mac;
  address.vpc = lent->vpc;
  address.subnet = lent->subnet.empty() ? subnet : lent->subnet;
  return address;
}

}  // namespace croft::edge
