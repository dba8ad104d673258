#include "edge/agent/server.h"

#include <algorithm>
#include <condition_variable>
#include <deque>
#include <mutex>
#include <set>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <google/protobuf/stubs/logging.h>

#include "edge/agent/calls.h"
#include "edge/agent/health.h"
#include "edge/agent/reflection.h"
#include "wire/agent/messages.h"

namespace croft::edge {
namespace {

/// A few threads and two short queues. What does not fit is refused at once: nobody waits for nothing.
class Workers {
 public:
  Workers(const AgentServerOptions& options, AgentService& service, os::GrpcServer& server, const Clock& clock)
      : options_(options), service_(service), server_(server), clock_(clock) {
    for (std::size_t i = 0; i < options.workers; ++i) threads_.emplace_back([this] { run(); });
  }
  ~Workers() { stop(); }

  /// Takes them in order, releases before assignments; those that do not fit are left in the vectors.
  void add(std::vector<os::GrpcRequest>& releases, std::vector<os::GrpcRequest>& assigns) {
    std::size_t taken = 0;
    {
      const std::lock_guard lock(mutex_);
      taken += take(releases_, options_.releases_max, releases);
      taken += take(assigns_, options_.assigns_max, assigns);
    }
    for (std::size_t i = 0; i < std::min(taken, options_.workers); ++i) wake_.notify_one();
  }

  /// Everything that waits is still done.
  void stop() {
    {
      const std::lock_guard lock(mutex_);
      stopping_ = true;
    }
    wake_.notify_all();
    for (std::thread& thread : threads_) {
      if (thread.joinable()) thread.join();
    }
  }

 private:
  /// How many of the requests had room.
  [[nodiscard]] std::size_t take(std::deque<os::GrpcRequest>& queue, std::size_t most,
                                 std::vector<os::GrpcRequest>& requests) {
    // What a thread that has nothing to do is about to take does not wait.
    const std::size_t room = stopping_ ? 0 : most + options_.workers - busy_;
    const std::size_t taken = std::min(requests.size(), room - std::min(room, queue.size()));
    const auto end = requests.begin() + static_cast<std::ptrdiff_t>(taken);
    std::move(requests.begin(), end, std::back_inserter(queue));
    requests.erase(requests.begin(), end);
    return taken;
  }

  void run() {
    std::unique_lock lock(mutex_);
    for (;;) {
      wake_.wait(lock, [&] { return stopping_ || !releases_.empty() || !assigns_.empty(); });
      const bool releasing = !releases_.empty();
      std::deque<os::GrpcRequest>& queue = releasing ? releases_ : assigns_;
      if (queue.empty()) return;
      const os::GrpcRequest request = std::move(queue.front());
      queue.pop_front();
      ++busy_;
      lock.unlock();
      server_.answer({serve_call(service_, releasing ? AgentCall::release : AgentCall::assign, request, clock_)});
      lock.lock();
      --busy_;
    }
  }

  const AgentServerOptions options_;
  AgentService& service_;
  os::GrpcServer& server_;
  const Clock& clock_;
  std::mutex mutex_;  ///< guards all below but the threads
  std::condition_variable wake_;
  std::deque<os::GrpcRequest> releases_;
  std::deque<os::GrpcRequest> assigns_;
  std::size_t busy_ = 0;  ///< threads at work
  bool stopping_ = false;
  std::vector<std::thread> threads_;
};

/// Which call goes where. What needs no store is answered in the server's own thread, whatever the workers wait for.
class Door final : public os::GrpcHandler {
 public:
  Door(AgentService& service, Workers& workers, os::GrpcServer& server, bool reflection, const Clock& clock)
      : service_(service), workers_(workers), server_(server), reflection_(reflection), clock_(clock) {}

  [[nodiscard]] os::GrpcMethodKind kind_of(std::string_view method) override {
    if (agent_call_of(method) || method == Health::kCheckMethod) return os::GrpcMethodKind::unary;
    const bool streams = method == Health::kWatchMethod || (reflection_ && is_reflection(method));
    return streams ? os::GrpcMethodKind::streaming : os::GrpcMethodKind::unknown;
  }

  void on_request(os::GrpcRequest request) override {
    const auto call = agent_call_of(request.method);
    if (call == AgentCall::assign) {
      assigns_.push_back(std::move(request));
    } else if (call == AgentCall::release) {
      releases_.push_back(std::move(request));
    } else if (call == AgentCall::status) {
      answers_.push_back(serve_call(service_, *call, request, clock_));
    } else {
      answers_.push_back(health_.check(request.call, request.message));
    }
  }

  void on_batch_end() override {
    workers_.add(releases_, assigns_);
    for (auto* refused : {&releases_, &assigns_}) {
      for (const os::GrpcRequest& request : *refused) answers_.push_back(too_many_wait(request.call));
      refused->clear();
    }
    server_.answer(std::exchange(answers_, {}));
  }

  void on_open(os::GrpcCallId call, std::string_view method) override {
    const std::lock_guard lock(mutex_);
    if (ending_) return answers_.push_back(farewell(call));
    streams_.insert(call);
    if (method != Health::kWatchMethod) reflecting_.insert(call);
  }
  void on_message(os::GrpcCallId call, std::string message) override {
    if (reflecting_.contains(call)) {
      const auto answer = reflect(message);
      if (!answer) return end(call, os::GrpcCode::invalid_argument, answer.error().message);
      return server_.send(call, *answer);
    }
    const auto news = health_.watch(call, message);
    if (!news) return end(call, os::GrpcCode::invalid_argument, news.error().message);
    server_.send(call, news->message);
  }
  /// A Watch goes on: its caller says one thing, and listens.
  void on_end(os::GrpcCallId call) override {
    if (reflecting_.contains(call)) end(call, os::GrpcCode::ok, {});
  }
  void on_gone(os::GrpcCallId call) override {
    health_.forget(call);
    reflecting_.erase(call);
    const std::lock_guard lock(mutex_);
    streams_.erase(call);
  }

  /// From any thread.
  void set_serving(bool serving) {
    for (Health::News& news : health_.set_serving(serving)) server_.send(news.call, std::move(news.message));
  }
  /// Ends the calls that would not end by themselves; from any thread.
  void end_streams() {
    std::vector<os::GrpcAnswer> answers;
    {
      const std::lock_guard lock(mutex_);
      ending_ = true;
      for (const os::GrpcCallId call : streams_) answers.push_back(farewell(call));
    }
    server_.answer(std::move(answers));
  }

 private:
  static os::GrpcAnswer farewell(os::GrpcCallId call) {
    return {call, os::GrpcCode::unavailable, "the agent ends", {}};
  }
  void end(os::GrpcCallId call, os::GrpcCode code, std::string text) {
    on_gone(call);
    answers_.push_back({call, code, std::move(text), {}});
  }

  AgentService& service_;
  Workers& workers_;
  os::GrpcServer& server_;
  const bool reflection_;
  const Clock& clock_;
  Health health_;
  // Of this round.
  std::vector<os::GrpcRequest> releases_;
  std::vector<os::GrpcRequest> assigns_;
  std::vector<os::GrpcAnswer> answers_;
  std::set<os::GrpcCallId> reflecting_;
  std::mutex mutex_;  ///< guards both below
  std::set<os::GrpcCallId> streams_;
  bool ending_ = false;
};

}  // namespace

class AgentServer::Parts {
 public:
  Parts(AgentService& service, std::unique_ptr<os::GrpcServer> server, const AgentServerOptions& options,
        const Clock& clock)
      : server_(std::move(server)),
        workers_(options, service, *server_, clock),
        door_(service, workers_, *server_, options.reflection, clock) {
    server_->serve(door_);
  }

  void stop(Deadline deadline) {
    server_->stop_listening();  // who comes from now on goes to the store at once
    door_.set_serving(false);
    door_.end_streams();
    server_->stop(deadline);
    workers_.stop();
  }

  void set_serving(bool serving) { door_.set_serving(serving); }

  [[nodiscard]] os::GrpcServer::Counts connections() const { return server_->counts(); }

 private:
  std::unique_ptr<os::GrpcServer> server_;
  Workers workers_;
  Door door_;
};

AgentServer::AgentServer(std::unique_ptr<Parts> parts) : parts_(std::move(parts)) {}

AgentServer::~AgentServer() { parts_->stop(Deadline{std::chrono::nanoseconds{0}}); }

Result<std::unique_ptr<AgentServer>> AgentServer::start(AgentService& service,
                                                        std::unique_ptr<os::UnixListener> listener,
                                                        const AgentServerOptions& options, const Clock& clock) {
  // What it says is of a peer's faults, who is told himself, and may quote him.
  google::protobuf::SetLogHandler(nullptr);
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
