#include "edge/agent/server.h"

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <deque>
#include <functional>
#include <mutex>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <croft/agent.grpc.pb.h>
#include <fmt/format.h>
#include <grpc/support/time.h>
#include <grpcpp/grpcpp.h>
#include <grpcpp/health_check_service_interface.h>
#include <grpcpp/resource_quota.h>
#include <grpcpp/server_posix.h>

#include "os/load_library.h"

namespace croft::edge {
namespace {

using std::chrono::nanoseconds;

constexpr int kMetadataBytesMax = 8 << 10;
constexpr int kStreamsMax = 32;
constexpr int kIdleMs = 30'000;
constexpr std::size_t kMemoryMax = std::size_t{16} << 20;
/// How long the loop that accepts sleeps without anything to do.
constexpr std::chrono::seconds kAcceptWait{60};

grpc::StatusCode status_code_of(ErrorCode code) {
  switch (code) {
    case ErrorCode::invalid_argument:
      return grpc::StatusCode::INVALID_ARGUMENT;
    case ErrorCode::refused_by_configuration:
      return grpc::StatusCode::FAILED_PRECONDITION;
    case ErrorCode::deadline_exceeded:
      return grpc::StatusCode::DEADLINE_EXCEEDED;
    case ErrorCode::unavailable:
      return grpc::StatusCode::UNAVAILABLE;
    default:
      return grpc::StatusCode::INTERNAL;
  }
}

/// The caller's deadline in our clock.
Deadline deadline_of(const grpc::CallbackServerContext& context, const Clock& clock) {
  const gpr_timespec left = gpr_convert_clock_type(context.raw_deadline(), GPR_TIMESPAN);
  if (gpr_time_cmp(left, gpr_inf_future(GPR_TIMESPAN)) == 0) return {};
  return Deadline::after(clock.now(), std::chrono::seconds(left.tv_sec) + nanoseconds(left.tv_nsec));
}

std::string bytes_of(const grpc::ByteBuffer& buffer) {
  std::vector<grpc::Slice> slices;
  if (!buffer.Dump(&slices).ok()) return {};
  std::string bytes;
  for (const grpc::Slice& slice : slices) bytes.append(slice.begin(), slice.end());
  return bytes;
}

/// A few threads and two short queues. What does not fit is refused at once: nobody waits for nothing.
class Workers {
 public:
  using Work = std::function<void()>;

  explicit Workers(const AgentServerOptions& options) : options_(options) {
    for (std::size_t i = 0; i < options.workers; ++i) threads_.emplace_back([this] { run(); });
  }
  ~Workers() { stop(); }

  /// False when too much is waiting.
  [[nodiscard]] bool add_release(Work work) { return add(releases_, options_.releases_max, std::move(work)); }
  [[nodiscard]] bool add_assign(Work work) { return add(assigns_, options_.assigns_max, std::move(work)); }

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
  [[nodiscard]] bool add(std::deque<Work>& queue, std::size_t most, Work work) {
    {
      const std::lock_guard lock(mutex_);
      // What a thread that has nothing to do is about to take does not wait.
      const std::size_t idle = options_.workers - busy_;
      if (stopping_ || queue.size() >= most + idle) return false;
      queue.push_back(std::move(work));
    }
    wake_.notify_one();
    return true;
  }

  void run() {
    std::unique_lock lock(mutex_);
    for (;;) {
      wake_.wait(lock, [&] { return stopping_ || !releases_.empty() || !assigns_.empty(); });
      std::deque<Work>& queue = releases_.empty() ? assigns_ : releases_;
      if (queue.empty()) return;
      const Work work = std::move(queue.front());
      queue.pop_front();
      ++busy_;
      lock.unlock();
      work();
      lock.lock();
      --busy_;
    }
  }

  const AgentServerOptions options_;
  std::mutex mutex_;  ///< guards all below but the threads
  std::condition_variable wake_;
  std::deque<Work> releases_;
  std::deque<Work> assigns_;
  std::size_t busy_ = 0;  ///< threads at work
  bool stopping_ = false;
  std::vector<std::thread> threads_;
};

namespace pb = ::croft::agent::v1;
using AllMethods = pb::Agent::WithRawCallbackMethod_Assign<
    pb::Agent::WithRawCallbackMethod_Release<pb::Agent::WithRawCallbackMethod_Status<pb::Agent::Service>>>;

/// From gRPC's calls to the service's, in bytes: gRPC's threads only take in and hand out.
class Door final : public AllMethods {
 public:
  Door(AgentService& service, Workers& workers, const Clock& clock)
      : service_(service), workers_(workers), clock_(clock) {}

  grpc::ServerUnaryReactor* Assign(grpc::CallbackServerContext* context, const grpc::ByteBuffer* message,
                                   grpc::ByteBuffer* answer) override {
    return serve(context, *message, *answer, &Workers::add_assign,
                 [this](const std::string& bytes, Deadline deadline, const AgentService::HungUp& hung_up) {
                   return service_.assign(bytes, deadline, hung_up);
                 });
  }
  grpc::ServerUnaryReactor* Release(grpc::CallbackServerContext* context, const grpc::ByteBuffer* message,
                                    grpc::ByteBuffer* answer) override {
    return serve(context, *message, *answer, &Workers::add_release,
                 [this](const std::string& bytes, Deadline deadline, const AgentService::HungUp& hung_up) {
                   return service_.release(bytes, deadline, hung_up);
                 });
  }
  grpc::ServerUnaryReactor* Status(grpc::CallbackServerContext* context, const grpc::ByteBuffer* message,
                                   grpc::ByteBuffer* answer) override {
    return serve(
        context, *message, *answer, &Workers::add_assign,
        [this](const std::string& bytes, Deadline, const AgentService::HungUp&) { return service_.status(bytes); });
  }

 private:
  /// `context`, `message` and `answer` live until Finish.
  template <class Ask>
  grpc::ServerUnaryReactor* serve(grpc::CallbackServerContext* context, const grpc::ByteBuffer& message,
                                  grpc::ByteBuffer& answer, bool (Workers::*add)(Workers::Work), Ask ask) {
    grpc::ServerUnaryReactor* reactor = context->DefaultReactor();
    if (message.Length() > wire::agent::kMessageBytesMax) {
      reactor->Finish({grpc::StatusCode::INVALID_ARGUMENT,
                       fmt::format("the message has {} bytes; the agent takes no more than {}: go to the store",
                                   message.Length(), wire::agent::kMessageBytesMax)});
      return reactor;
    }
    const Deadline deadline = deadline_of(*context, clock_);
    const bool taken = (workers_.*add)([this, ask, reactor, context, deadline, &message, &answer] {
      if (deadline.passed(clock_.now())) {
        reactor->Finish({grpc::StatusCode::DEADLINE_EXCEEDED, "it waited too long for its turn"});
        return;
      }
      const auto done = ask(bytes_of(message), deadline, [context] { return context->IsCancelled(); });
      if (!done) {
        reactor->Finish({status_code_of(done.error().code), done.error().message});
        return;
      }
      const grpc::Slice slice(*done);
      grpc::ByteBuffer buffer(&slice, 1);
      answer.Swap(&buffer);
      reactor->Finish(grpc::Status::OK);
    });
    if (!taken) reactor->Finish({grpc::StatusCode::RESOURCE_EXHAUSTED, "too many calls wait; go to the store"});
    return reactor;
  }

  AgentService& service_;
  Workers& workers_;
  const Clock& clock_;
};

std::unique_ptr<grpc::Server> build(Door& door) {
  grpc::EnableDefaultHealthCheckService(true);
  grpc::ServerBuilder builder;
  builder.RegisterService(&door);
  // Above what is taken, so that it is we who say that a message is too long; gRPC's own refusal reads as a full queue.
  builder.SetMaxReceiveMessageSize(static_cast<int>(4 * wire::agent::kMessageBytesMax));
  builder.AddChannelArgument(GRPC_ARG_MAX_METADATA_SIZE, kMetadataBytesMax);
  builder.AddChannelArgument(GRPC_ARG_MAX_CONCURRENT_STREAMS, kStreamsMax);
  builder.AddChannelArgument(GRPC_ARG_MAX_CONNECTION_IDLE_MS, kIdleMs);
  builder.SetResourceQuota(grpc::ResourceQuota("agent").Resize(kMemoryMax));
  // Of the services here only reflection is of the kind that these threads serve.
  builder.SetSyncServerOption(grpc::ServerBuilder::SyncServerOption::NUM_CQS, 1);
  builder.SetSyncServerOption(grpc::ServerBuilder::SyncServerOption::MIN_POLLERS, 1);
  builder.SetSyncServerOption(grpc::ServerBuilder::SyncServerOption::MAX_POLLERS, 2);
  return builder.BuildAndStart();
}

}  // namespace

class AgentServer::Parts {
 public:
  Parts(AgentService& service, std::unique_ptr<os::UnixListener> listener, const AgentServerOptions& options,
        const Clock& clock)
      : options_(options),
        clock_(clock),
        listener_(std::move(listener)),
        workers_(options),
        door_(service, workers_, clock) {}

  [[nodiscard]] Result<void> start() {
    if (options_.reflection) TRY_VOID(os::load_library(CROFT_GRPC_REFLECTION));
    server_ = build(door_);
    if (server_ == nullptr) return fail(ErrorCode::internal, "gRPC's server does not start");
    set_serving(true);
    accepting_ = std::thread([this] { accept(); });
    return {};
  }

  void stop(Deadline deadline) {
    if (!accepting_.joinable()) return;
    stopping_ = true;
    listener_->wake();
    accepting_.join();
    listener_.reset();  // who comes from now on goes to the store at once
    const nanoseconds left = std::clamp(deadline.at_since_boot - clock_.now().since_boot, nanoseconds{0},
                                        nanoseconds(std::chrono::hours{1}));
    server_->GetHealthCheckService()->SetServingStatus(false);
    server_->Shutdown(gpr_time_add(gpr_now(GPR_CLOCK_MONOTONIC), gpr_time_from_nanos(left.count(), GPR_TIMESPAN)));
    workers_.stop();
    server_->Wait();
  }

  void set_serving(bool serving) {
    server_->GetHealthCheckService()->SetServingStatus(wire::agent::kServiceName, serving);
    server_->GetHealthCheckService()->SetServingStatus("", serving);
  }

  [[nodiscard]] os::UnixListener::Counts connections() const {
    const std::lock_guard lock(counts_mutex_);
    return counts_;
  }

 private:
  void accept() {
    while (!stopping_) {
      auto connection = listener_->accept(Deadline::after(clock_.now(), kAcceptWait));
      {
        const std::lock_guard lock(counts_mutex_);
        counts_ = listener_->counts();
      }
      if (connection && !stopping_) grpc::AddInsecureChannelFromFd(server_.get(), connection->release());
    }
  }

  const AgentServerOptions options_;
  const Clock& clock_;
  std::unique_ptr<os::UnixListener> listener_;
  Workers workers_;
  Door door_;
  std::unique_ptr<grpc::Server> server_;
  std::thread accepting_;
  std::atomic<bool> stopping_{false};
  mutable std::mutex counts_mutex_;
  os::UnixListener::Counts counts_;
};

AgentServer::AgentServer(std::unique_ptr<Parts> parts) : parts_(std::move(parts)) {}

AgentServer::~AgentServer() { parts_->stop(Deadline{nanoseconds{0}}); }

Result<std::unique_ptr<AgentServer>> AgentServer::start(AgentService& service,
                                                        std::unique_ptr<os::UnixListener> listener,
                                                        const AgentServerOptions& options, const Clock& clock) {
  auto parts = std::make_unique<Parts>(service, std::move(listener), options, clock);
  TRY_VOID(parts->start());
  return std::unique_ptr<AgentServer>(new AgentServer(std::move(parts)));
}

void AgentServer::stop(Deadline deadline) { parts_->stop(deadline); }

void AgentServer::set_serving(bool serving) { parts_->set_serving(serving); }

os::UnixListener::Counts AgentServer::connections() const { return parts_->connections(); }

}  // namespace croft::edge
