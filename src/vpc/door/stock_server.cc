#include "vpc/door/stock_server.h"

#include <utility>

#include "agent/door/server.h"
#include "http/grpc_server.h"

namespace croft::edge {
namespace {

namespace vpc = wire::vpc;

/// The service knows one kind of number for a call; the door is in its upper bits.
constexpr unsigned kDoorShift = 60;

bool is_let_in(const DoorRules& rules, vpc::Method method) {
  switch (method) {
    case vpc::Method::ping:
    case vpc::Method::support_multi_subnet:
    case vpc::Method::borrow_ip:
      return true;
    case vpc::Method::list_pod_network_record:
    case vpc::Method::describe_pool:
    case vpc::Method::push_pool:
    case vpc::Method::pop_pool:
    case vpc::Method::list_unuse:
    case vpc::Method::release_ip:
      return rules.operators;
    default:
      return rules.plugin;
  }
}

}  // namespace

/// One listener's calls, in its server's thread.
class StockServer::Door final : public os::GrpcHandler {
 public:
  Door(StockService& service, std::unique_ptr<os::GrpcServer> server, const DoorRules& rules, std::uint64_t number)
      : service_(service), server_(std::move(server)), rules_(rules), number_(number) {
    health_.set_serving(false);
  }
  void serve() { server_->serve(*this); }

  [[nodiscard]] bool serves(std::string_view method) override {
    const auto known = vpc::method_of(method);
    return (known && is_let_in(rules_, *known)) || method == GrpcHealth::kCheckMethod;
  }
  /// A client with a certificate of the cluster's CA is another agent, or an operator where those are let in.
  [[nodiscard]] bool serves_peer(const os::GrpcPeer&, std::string_view method) override { return serves(method); }
  void on_request(os::GrpcRequest request) override {
    const auto method = vpc::method_of(request.method);
    if (!method) return answers_.push_back(health_.check(request.call, request.message));
    const os::GrpcCallId own = request.call;
    request.call |= number_ << kDoorShift;
    if (auto answer = service_.take(*method, std::move(request))) {
      answer->call = own;
      answers_.push_back(*std::move(answer));
    }
  }
  void on_batch_end() override {
    service_.go();
    if (!answers_.empty()) server_->answer(std::exchange(answers_, {}));
  }

  // From any thread.

  void answer(std::vector<os::GrpcAnswer> answers) { server_->answer(std::move(answers)); }
  void set_serving(bool serving) { health_.set_serving(serving); }
  void stop_listening() { server_->stop_listening(); }
  void stop(Deadline deadline) { server_->stop(deadline); }

 private:
  StockService& service_;
  const std::unique_ptr<os::GrpcServer> server_;
  const DoorRules rules_;
  const std::uint64_t number_;
  GrpcHealth health_;
  std::vector<os::GrpcAnswer> answers_;  ///< of this round
};

StockServer::StockServer(const StockWorld& world, const Clock& clock)
    : clock_(clock), service_(world, [this](std::vector<os::GrpcAnswer> answers) { send(std::move(answers)); }) {}

StockServer::~StockServer() { stop(Deadline{std::chrono::nanoseconds{0}}); }

Result<void> StockServer::open_door(std::unique_ptr<os::GrpcListener> listener, const DoorRules& rules) {
  os::GrpcServerOptions options;
  options.session.message_bytes_max = vpc::kRequestBytesMax;
  options.idle_max = std::chrono::minutes{5};
  TRY(auto server, os::GrpcServer::make(std::move(listener), options, clock_));
  Door* door = nullptr;
  {
    const std::lock_guard lock(mutex_);
    doors_.push_back(std::make_unique<Door>(service_, std::move(server), rules, doors_.size()));
    door = doors_.back().get();
    door->set_serving(serving_);
  }
  door->serve();
  return {};
}

void StockServer::set_serving(bool serving) {
  const std::lock_guard lock(mutex_);
  serving_ = serving;
  for (const auto& door : doors_) door->set_serving(serving);
}

void StockServer::stop(Deadline deadline) {
  set_serving(false);
  // No door is opened any more; the answers below need the lock themselves.
  for (const auto& door : doors_) door->stop_listening();
  // Those that wait are told; the rest is done. Then their callers are waited for.
  service_.stop();
  for (const auto& door : doors_) door->stop(deadline);
}

void StockServer::send(std::vector<os::GrpcAnswer> answers) {
  const std::lock_guard lock(mutex_);
  std::vector<std::vector<os::GrpcAnswer>> by_door(doors_.size());
  for (os::GrpcAnswer& answer : answers) {
    const std::size_t door = static_cast<std::size_t>(answer.call >> kDoorShift);
    answer.call &= (std::uint64_t{1} << kDoorShift) - 1;
    by_door.at(door).push_back(std::move(answer));
  }
  for (std::size_t i = 0; i < by_door.size(); ++i) {
    if (!by_door[i].empty()) doors_[i]->answer(std::move(by_door[i]));
  }
}

}  // namespace croft::edge
