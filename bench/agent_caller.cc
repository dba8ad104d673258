#include "agent_caller.h"

#include <chrono>
#include <utility>
#include <variant>
#include <vector>

#include "agent_process.h"
#include "http/grpc_frame.h"
#include "http/transport.h"

namespace croft::bench {
namespace {

[[noreturn]] void not_served(const std::string& why) { bench::give_up("bench", "a call of the agent: " + why); }

}  // namespace

AgentCaller::AgentCaller(const std::string& socket, std::string store, std::string node, const Clock& clock)
    : store_(std::move(store)), node_(std::move(node)), clock_(clock) {
  os::Endpoint endpoint;
  endpoint.kind = os::Endpoint::Kind::unix_socket;
  endpoint.path = socket;
  auto transport = os::connect_transport(endpoint, nullptr, clock, soon());
  if (!transport) not_served(transport.error().message);
  connection_ = os::Http2Connection::make(*std::move(transport), "the agent", {}, clock);
  if (const auto ready = connection_->wait_until_ready(soon()); !ready) not_served(ready.error().message);
}

void AgentCaller::begin_add(const std::string& container) {
  wire::agent::AssignCall call;
  call.caller = caller();
  call.request.owner = {"net", container, "eth0"};
  call.request.node = {core::AffinityOwner::Type::host, node_};
  begin(wire::agent::kAssignMethod, wire::agent::encode(call));
}

void AgentCaller::end_add() {
  const auto outcome = wire::agent::decode_assign_outcome(end());
  if (!outcome) not_served(outcome.error().message);
  if (const auto* refusal = std::get_if<core::Refusal>(&*outcome)) not_served(refusal->summary);
  if (const auto* error = std::get_if<Error>(&*outcome)) not_served(error->message);
}

void AgentCaller::begin_del(const std::string& container) {
  const core::Owner owner{"net", container, "eth0"};
  begin(wire::agent::kReleaseMethod, wire::agent::encode(wire::agent::ReleaseCall{caller(), owner}));
}

void AgentCaller::end_del() {
  const auto outcome = wire::agent::decode_release_outcome(end());
  const auto* released = outcome ? std::get_if<std::vector<net::Address>>(&*outcome) : nullptr;
  if (released == nullptr || released->size() != 1) not_served("a DEL released nothing");
}

Deadline AgentCaller::soon() const { return Deadline::after(clock_.now(), std::chrono::seconds(20)); }

wire::agent::Caller AgentCaller::caller() const { return {store_, node_, clock_.now().boot, soon(), {}}; }

void AgentCaller::begin(const char* method, const std::string& message) {
  const std::vector<os::Http2Header> headers = {{":method", "POST"}, {":scheme", "http"},
                                                {":path", method},   {":authority", "localhost"},
                                                {"te", "trailers"},  {"content-type", "application/grpc"}};
  auto stream = connection_->open(headers, os::grpc_framed(message), true, 1 << 20);
  if (!stream) not_served(stream.error().message);
  stream_ = *std::move(stream);
}

std::string AgentCaller::end() {
  const auto received = stream_->read_all(soon());
  if (!received.ended) not_served("no answer");
  os::GrpcUnframer unframer(1 << 20);
  unframer.add(received.bytes);
  const auto message = unframer.next();
  if (!message || !*message) not_served("it was refused");
  return **message;
}

}  // namespace croft::bench
