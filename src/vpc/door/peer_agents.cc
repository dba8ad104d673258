#include "vpc/door/peer_agents.h"

#include <algorithm>
#include <chrono>

#include "base/printable.h"
#include "http/endpoint.h"
#include "http/grpc_channel.h"
#include "vpc/format/messages.h"

namespace croft::edge {
namespace {

namespace vpc = wire::vpc;

/// docs/notes/warm-pool.md#borrowing: a dead peer costs no more than this.
constexpr std::chrono::seconds kConnectMax{1};

/// As a peer says it, and as anybody may be shown it.
std::string shown(const std::string& text) { return printable(text, Printed::line); }

Deadline sooner(Deadline a, Deadline b) { return {std::min(a.at_since_boot, b.at_since_boot)}; }

}  // namespace

Result<cloud::CloudAddress> GrpcPeers::borrow(const Peer& peer, const net::Mac& mac, const std::string& subnet,
                                              const std::string& request, Deadline deadline) {
  return ask(peer, nullptr, mac, subnet, request, deadline);
}

Result<cloud::CloudAddress> GrpcPeers::borrow_kept(const Peer& peer, const Kept& kept, const net::Mac& mac,
                                                   const std::string& subnet, const std::string& request,
                                                   Deadline deadline) {
  return ask(peer, &kept, mac, subnet, request, deadline);
}

Result<cloud::CloudAddress> GrpcPeers::ask(const Peer& peer, const Kept* kept, const net::Mac& mac,
                                           const std::string& subnet, const std::string& request, Deadline deadline) {
  if (security_ == nullptr) {
    return fail(ErrorCode::refused_by_configuration,
                "peers are spoken to with certificates: give --tls-ca, --tls-certificate and --tls-key");
  }
  const auto security = security_(peer.node);
  // A writer of the board says where peers are: never a socket of this machine.
  TRY(const os::Endpoint endpoint, os::Endpoint::parse_numeric(peer.address, security != nullptr));
  os::GrpcOptions options;
  options.message_bytes_max = vpc::kRequestBytesMax;
  const Deadline first = sooner(deadline, Deadline::after(clock_.now(), kConnectMax));
  TRY(const auto channel, os::GrpcChannel::connect(endpoint, security.get(), options, clock_, first));
  TRY_VOID(channel->wait_until_ready(first));
  const vpc::Speech own = vpc::own_speech(oldest_speech_);
  const os::GrpcReply pong = channel->call(vpc::path_of(vpc::Method::ping), vpc::encode(vpc::Ping{own}), first);
  const bool is_refused = pong.status.from_server && pong.status.code == os::GrpcCode::failed_precondition;
  if (is_refused) return fail(ErrorCode::refused_by_configuration, shown(pong.status.message));
  if (!pong.status.ok()) return fail(ErrorCode::unavailable, shown(pong.status.message));
  const auto said = vpc::decode_ping(pong.message);
  if (!said) return fail(ErrorCode::unavailable, said.error().message);
  if (auto skew = vpc::skew_between(own, said->speech)) return fail(ErrorCode::refused_by_configuration, *skew);
  if (kept != nullptr) {
    if (auto why = vpc::no_lending_by_name(said->speech)) {
      return fail(ErrorCode::refused_by_configuration, *std::move(why));
    }
  }
  vpc::BorrowRequest wanted{"", subnet, request, own, node_};
  if (kept != nullptr) {
    wanted.ip = kept->address.to_string();
    wanted.kept_for = kept->pod;
    wanted.is_named = kept->is_named;
  }
  // Upper case, as its own protocol has it.
  std::string text = mac.to_string();
  std::ranges::transform(text, text.begin(),
                         [](char c) { return c >= 'a' && c <= 'f' ? static_cast<char>(c - 'a' + 'A') : c; });
  wanted.mac = text;
  const os::GrpcReply reply = channel->call(vpc::path_of(vpc::Method::borrow_ip), vpc::encode(wanted), deadline);
  if (reply.status.from_server && reply.status.code == os::GrpcCode::failed_precondition) {
    return fail(ErrorCode::refused_by_configuration, shown(reply.status.message));
  }
  if (reply.status.from_server && reply.status.code == os::GrpcCode::permission_denied) {
    return fail(ErrorCode::permission_denied, shown(reply.status.message));
  }
  if (!reply.status.ok()) {
    const std::string why = shown(reply.status.message);
    if (reply.status.surely_not_processed) return fail(ErrorCode::unavailable, why);
    // A lender of before this protocol says INTERNAL whatever became of its move; one that says nothing, or that it
    // does not know, leaves the cloud to be asked.
    const bool is_known = reply.status.from_server && reply.status.code != os::GrpcCode::deadline_exceeded &&
                          reply.status.code != os::GrpcCode::internal && reply.status.code != os::GrpcCode::unavailable;
    if (!is_known) return fail(ErrorCode::unknown_outcome, why);
    if (kept != nullptr && reply.status.code == os::GrpcCode::aborted) {
      return fail(ErrorCode::conflict, shown(reply.status.message));
    }
    if (kept != nullptr && reply.status.code == os::GrpcCode::not_found) return fail(ErrorCode::not_found, why);
    return fail(reply.status.code == os::GrpcCode::resource_exhausted ? ErrorCode::exhausted : ErrorCode::unavailable,
                why);
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
