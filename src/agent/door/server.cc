#include "agent/door/server.h"

#include <algorithm>
#include <chrono>
#include <string>
#include <utility>
#include <vector>

#include <google/protobuf/stubs/logging.h>

#include "agent/door/health.h"
#include "agent/door/lanes.h"
#include "agent/door/methods.h"
#include "agent/format/messages.h"

namespace croft::edge {
namespace {

/// A call that is answered sooner costs its caller no sign of life.
constexpr std::chrono::milliseconds kFirstSign{100};
/// But who waits for one that came late gets it so long before it turns away, and the rest of its patience with it.
constexpr std::chrono::milliseconds kFirstSignAhead{400};

/// Which call goes where. A call that needs no store is answered in the server's own thread, whatever the lanes wait
/// for.
class Door final : public os::GrpcHandler {
 public:
  Door(AgentService& service, Lanes& lanes, os::GrpcServer& server, const Clock& clock)
      : service_(service), lanes_(lanes), server_(server), clock_(clock) {}

  [[nodiscard]] bool serves(std::string_view method) override {
    return agent_method_of(method) || method == GrpcHealth::kCheckMethod;
  }

  void on_request(os::GrpcRequest request) override {
    const auto method = agent_method_of(request.method);
    if (!method) {
      answers_.push_back(health_.check(request.call, request.message));
    } else if (*method == AgentMethod::status) {
      answers_.push_back(answer_of(request.call, service_.status()));
    } else {
      take_in(*method, std::move(request));
    }
  }

  void on_batch_end() override {
    if (!calls_.empty()) {
      for (const AgentCall& refused : lanes_.add(std::exchange(calls_, {}))) {
        answers_.push_back(too_many_wait(refused.id));
      }
    }
    if (!answers_.empty()) server_.answer(std::exchange(answers_, {}));
  }

  /// From any thread.
  void set_serving(bool serving) { health_.set_serving(serving); }

 private:
  void take_in(AgentMethod method, os::GrpcRequest request) {
    auto call = method == AgentMethod::assign ? service_.take_assign(request.message, request.deadline)
                                              : service_.take_release(request.message, request.deadline);
    if (!call) return answers_.push_back(answer_of(request.call, fail(std::move(call).error())));
    call->id = request.call;
    call->hung_up = std::move(request.hung_up);
    call->told = std::move(request.told);
    if (call->takes_signs()) {
      const auto soon = clock_.now().since_boot + kFirstSign;
      server_.give_signs(call->id, taken_, std::min(soon, call->first.at_since_boot - kFirstSignAhead));
    }
    calls_.push_back(*std::move(call));
  }

  AgentService& service_;
  Lanes& lanes_;
  os::GrpcServer& server_;
  const Clock& clock_;
  const std::string taken_ = wire::agent::encode_taken();
  GrpcHealth health_;
  // The calls of this round.
  std::vector<AgentCall> calls_;
  std::vector<os::GrpcAnswer> answers_;
};

}  // namespace

class AgentServer::Parts {
 public:
  Parts(AgentService& service, std::unique_ptr<os::GrpcServer> server, const AgentServerOptions& options,
        const Clock& clock)
      : server_(std::move(server)),
        lanes_(
            service, [this](std::vector<AgentAnswer> answers) { send(std::move(answers)); }, options.lanes),
        door_(service, lanes_, *server_, clock) {
    server_->serve(door_);
  }

  void stop(Deadline deadline) {
    server_->stop_listening();  // who comes from now on goes to the store at once
    door_.set_serving(false);
    server_->stop(deadline);
    lanes_.stop();
  }

  void set_serving(bool serving) { door_.set_serving(serving); }

  [[nodiscard]] os::GrpcServer::Counts connections() const { return server_->counts(); }

 private:
  void send(std::vector<AgentAnswer> answers) {
    std::vector<os::GrpcAnswer> sent;
    sent.reserve(answers.size());
    for (AgentAnswer& answer : answers) sent.push_back(answer_of(answer.id, std::move(answer.message)));
    server_->answer(std::move(sent));
  }

  std::unique_ptr<os::GrpcServer> server_;
  Lanes lanes_;
  Door door_;
};

void silence_protobuf() { google::protobuf::SetLogHandler(nullptr); }

AgentServer::AgentServer(std::unique_ptr<Parts> parts) : parts_(std::move(parts)) {}

AgentServer::~AgentServer() { parts_->stop(Deadline{std::chrono::nanoseconds{0}}); }

Result<std::unique_ptr<AgentServer>> AgentServer::start(AgentService& service,
                                                        std::unique_ptr<os::UnixListener> listener,
                                                        const AgentServerOptions& options, const Clock& clock) {
  silence_protobuf();
  os::GrpcServerOptions server_options;
  server_options.session.message_bytes_max = wire::agent::kMessageBytesMax;
  TRY(auto server, os::GrpcServer::make(std::move(listener), server_options, clock));
  return std::unique_ptr<AgentServer>(
      new AgentServer(std::make_unique<Parts>(service, std::move(server), options, clock)));
}

void AgentServer::stop(Deadline deadline) { parts_->stop(deadline); }

void AgentServer::set_serving(bool serving) { parts_->set_serving(serving); }

os::GrpcServer::Counts AgentServer::connections() const { return parts_->connections(); }

}  // namespace croft::edge
