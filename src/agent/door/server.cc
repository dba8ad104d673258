#include "agent/door/server.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <string>
#include <utility>

#include "agent/format/messages.h"
#include "base/text/proto.h"

namespace croft::edge {
namespace {

/// A call that is answered sooner costs its caller no sign of life.
constexpr std::chrono::milliseconds kFirstSign{100};
/// But who waits for one that came late gets it so long before it turns away, and the rest of its patience with it.
constexpr std::chrono::milliseconds kFirstSignAhead{400};

os::GrpcCode grpc_code_of(ErrorCode code) {
  using Pair = std::pair<ErrorCode, os::GrpcCode>;
  constexpr std::array kKnown{Pair(ErrorCode::invalid_argument, os::GrpcCode::invalid_argument),
                              Pair(ErrorCode::refused_by_configuration, os::GrpcCode::failed_precondition),
                              Pair(ErrorCode::deadline_exceeded, os::GrpcCode::deadline_exceeded),
                              Pair(ErrorCode::unavailable, os::GrpcCode::unavailable)};
  const auto* const known = std::ranges::find(kKnown, code, &Pair::first);
  return known == kKnown.end() ? os::GrpcCode::internal : known->second;
}

/// The service's result of a call, as gRPC says it.
os::GrpcAnswer answer_of(os::GrpcCallId call, Result<std::string> done) {
  if (!done) return {call, grpc_code_of(done.error().code), std::move(done.error().message), {}};
  return {call, os::GrpcCode::ok, {}, *std::move(done)};
}

}  // namespace

/// Which call goes where. A call that needs no store is answered in the server's own thread, whatever the lanes wait
/// for.
class AgentServer::Door final : public os::GrpcHandler {
 public:
  Door(AgentService& service, Lanes& lanes, const GrpcHealth& health, os::GrpcServer& server, const Clock& clock)
      : service_(service), lanes_(lanes), health_(health), server_(server), clock_(clock) {}

  [[nodiscard]] bool serves(std::string_view method) override {
    return method == wire::agent::kAssignMethod || method == wire::agent::kReleaseMethod ||
           method == wire::agent::kStatusMethod || method == GrpcHealth::kCheckMethod;
  }

  void on_request(os::GrpcRequest request) override {
    if (request.method == GrpcHealth::kCheckMethod) {
      answers_.push_back(health_.check(request.call, request.message));
    } else if (request.method == wire::agent::kStatusMethod) {
      answers_.push_back(answer_of(request.call, service_.status()));
    } else {
      take_in(std::move(request));
    }
  }

  void on_batch_end() override {
    if (!calls_.empty()) {
      for (const AgentCall& refused : lanes_.add(std::exchange(calls_, {}))) {
        answers_.push_back({refused.id, os::GrpcCode::resource_exhausted, "too many calls wait; go to the store", {}});
      }
    }
    if (!answers_.empty()) server_.answer(std::exchange(answers_, {}));
  }

 private:
  void take_in(os::GrpcRequest request) {
    auto call = request.method == wire::agent::kAssignMethod ? service_.take_assign(request.message, request.deadline)
                                                             : service_.take_release(request.message, request.deadline);
    if (!call) return answers_.push_back(answer_of(request.call, fail(std::move(call).error())));
    call->id = request.call;
    call->hung_up = std::move(request.hung_up);
    call->told = std::move(request.told);
    if (call->wants_signs_of_life()) {
      const auto soon = clock_.now().since_boot + kFirstSign;
      server_.give_signs(call->id, taken_, std::min(soon, call->first.at_since_boot - kFirstSignAhead));
    }
    calls_.push_back(*std::move(call));
  }

  AgentService& service_;
  Lanes& lanes_;
  const GrpcHealth& health_;
  os::GrpcServer& server_;
  const Clock& clock_;
  const std::string taken_ = wire::agent::encode_sign_of_life();
  // The calls of this round.
  std::vector<AgentCall> calls_;
  std::vector<os::GrpcAnswer> answers_;
};

AgentServer::AgentServer(AgentService& service, std::unique_ptr<os::GrpcServer> server, const Clock& clock,
                         std::size_t room)
    : server_(std::move(server)),
      lanes_(
          service, [this](std::vector<AgentAnswer> answers) { send(std::move(answers)); }, room),
      door_(std::make_unique<Door>(service, lanes_, health_, *server_, clock)) {
  server_->serve(*door_);
}

AgentServer::~AgentServer() { stop(Deadline{std::chrono::nanoseconds{0}}); }

Result<std::unique_ptr<AgentServer>> AgentServer::start(AgentService& service,
                                                        std::unique_ptr<os::UnixListener> listener, const Clock& clock,
                                                        std::size_t room) {
  os::GrpcServerOptions server_options;
  server_options.session.message_bytes_max = wire::agent::kMessageBytesMax;
  TRY(auto server, os::GrpcServer::make(std::move(listener), server_options, clock));
  return std::unique_ptr<AgentServer>(new AgentServer(service, std::move(server), clock, room));
}

void AgentServer::stop(Deadline deadline) {
  server_->stop_listening();  // who comes from now on goes to the store at once
  health_.set_serving(false);
  server_->stop(deadline);
  lanes_.stop();
}

void AgentServer::send(std::vector<AgentAnswer> answers) {
  std::vector<os::GrpcAnswer> sent;
  sent.reserve(answers.size());
  for (AgentAnswer& answer : answers) sent.push_back(answer_of(answer.id, std::move(answer.message)));
  server_->answer(std::move(sent));
}

os::GrpcAnswer GrpcHealth::check(os::GrpcCallId call, std::string_view message) const {
  std::string_view service;
  for (proto::Field field; !message.empty();) {
    if (!proto::take_field(message, field)) {
      return {call, os::GrpcCode::invalid_argument, "this is no HealthCheckRequest", {}};
    }
    if (field.number == 1 && !field.is_varint) service = field.bytes;
  }
  const bool is_ours = service.empty() || service == wire::agent::kServiceName;
  if (!is_ours) return {call, os::GrpcCode::not_found, "there is no such service", {}};
  return {call, os::GrpcCode::ok, {}, serving_ ? "\x08\x01" : "\x08\x02"};  // status: SERVING, NOT_SERVING
}

}  // namespace croft::edge
