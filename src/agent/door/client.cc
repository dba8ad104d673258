#include "agent/door/client.h"

#include <algorithm>
#include <optional>
#include <utility>
#include <variant>

#include "base/texts.h"
#include "http/grpc_channel.h"
#include "http/unix_listener.h"
#include "os/files.h"
#include "os/process.h"
#include "store/store_url.h"

namespace croft::edge {
namespace {

namespace agent = wire::agent;

/// Until when a plugin waits for its agent.
struct Waiting {
  Deadline answer;                     ///< as long as there are signs of life
  Deadline first;                      ///< for the first of them
  std::chrono::nanoseconds silence{};  ///< between two
};

[[nodiscard]] Result<std::string> ask(const std::string& socket, const char* method, const std::string& message,
                                      const Clock& clock, const Waiting& until) {
  if (message.size() > agent::kMessageBytesMax) {
    return fail(ErrorCode::unavailable, "the call has {} bytes; an agent takes no more than {}", message.size(),
                agent::kMessageBytesMax);
  }
  os::Endpoint endpoint;
  endpoint.kind = os::Endpoint::Kind::unix_socket;
  endpoint.path = socket;
  endpoint.secure = true;  // by OwnPeer: not TLS, but a look at who listens
  const os::OwnPeer own_peer;
  os::GrpcOptions options;
  options.message_bytes_max = agent::kAnswerBytesMax;
  TRY(const auto channel, os::GrpcChannel::connect(endpoint, &own_peer, options, clock, until.first));
  const os::GrpcReply reply = channel->call(method, message, until.answer, {},
                                            os::GrpcSigns{agent::is_sign_of_life, until.first, until.silence});
  if (reply.status.ok()) return reply.message;
  return fail(ErrorCode::unavailable, "the agent at {} did not serve: {} (gRPC status {})", socket,
              reply.status.message, static_cast<int>(reply.status.code));
}

/// The file of a store that is one; nothing when there is none, or it can't be looked at.
[[nodiscard]] std::optional<agent::StoreFile> file_of(const std::string& url) {
  const auto path = store::file_of_store(url);
  if (!path) return std::nullopt;
  const auto status = os::file_status(*path);
  if (!status || !*status) return std::nullopt;
  return agent::StoreFile{(*status)->id.device, (*status)->id.inode};
}

class AgentAtSocket final : public Agent {
 public:
  AgentAtSocket(std::string socket, const Clock& clock, std::chrono::nanoseconds patience)
      : socket_(std::move(socket)), clock_(clock), patience_(patience) {}

  [[nodiscard]] Result<core::AssignAnswer> assign(const agent::AssignCall& call) override {
    agent::AssignCall timed = call;
    const Waiting until = limit(timed.caller);
    TRY(const std::string answer, ask(socket_, agent::kAssignMethod, agent::encode(timed), clock_, until));
    TRY(agent::AssignOutcome outcome, agent::decode_assign_outcome(answer));
    if (auto* error = std::get_if<Error>(&outcome)) return fail(std::move(*error));
    if (auto* refusal = std::get_if<core::Refusal>(&outcome)) return core::AssignAnswer(std::move(*refusal));
    return core::AssignAnswer(std::get<core::Assigned>(std::move(outcome)));
  }

  [[nodiscard]] Result<std::vector<net::Address>> release(const agent::ReleaseCall& call) override {
    agent::ReleaseCall timed = call;
    const Waiting until = limit(timed.caller);
    TRY(const std::string answer, ask(socket_, agent::kReleaseMethod, agent::encode(timed), clock_, until));
    TRY(agent::ReleaseOutcome outcome, agent::decode_release_outcome(answer));
    if (auto* error = std::get_if<Error>(&outcome)) return fail(std::move(*error));
    return std::get<std::vector<net::Address>>(std::move(outcome));
  }

 private:
  /// Says in the call which file is meant and until when it may be begun; answers until when we wait. A call that has
  /// an end already keeps it, if that is sooner.
  [[nodiscard]] Waiting limit(agent::Caller& caller) const {
    const Instant now = clock_.now();
    caller.file = file_of(caller.store);
    caller.network_namespace = os::own_network_namespace();
    caller.boot = now.boot;
    caller.expires = Deadline::after(now, patience_ - std::min<std::chrono::nanoseconds>(kHeadStart, patience_ / 2));
    const Deadline first = Deadline::after(now, patience_);
    const auto most = Deadline::after(now, kAnswerTimeMax).at_since_boot;
    const auto ends = std::min(caller.ends ? caller.ends->at_since_boot : most, most);
    caller.ends = Deadline{std::max(ends, first.at_since_boot)};
    return {*caller.ends, first, patience_};
  }

  const std::string socket_;
  const Clock& clock_;
  const std::chrono::nanoseconds patience_;
};

}  // namespace

std::unique_ptr<Agent> agent_at(const std::string& socket, const Clock& clock, std::chrono::nanoseconds patience) {
  return std::make_unique<AgentAtSocket>(socket, clock, patience);
}

Result<agent::AgentStatus> agent_status(const std::string& socket, const Clock& clock,
                                        std::chrono::nanoseconds patience) {
  const Deadline deadline = Deadline::after(clock.now(), patience);
  TRY(const std::string answer, ask(socket, agent::kStatusMethod, "", clock, {deadline, deadline, patience}));
  return agent::decode_status(answer);
}

}  // namespace croft::edge
