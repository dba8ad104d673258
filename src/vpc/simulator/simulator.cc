#include "vpc/simulator/simulator.h"

#include <mutex>
#include <optional>

namespace croft::cloud::simulator {
namespace {

using Exchange = os::Http1Server::Exchange;
constexpr std::chrono::hours kForever{24};

std::optional<os::HttpResponse> response_of(const Reply& reply) {
  if (reply.lost) return std::nullopt;
  return os::HttpResponse{reply.status, {{"Content-Type", "application/json"}}, reply.body};
}

class Running final : public Simulator {
 public:
  Running(Config config, wire::ucloud::Sha1 sha1, const Clock& clock, Random& random)
      : clock_(clock), world_(std::move(config), std::move(sha1), random) {}

  [[nodiscard]] Result<void> listen(std::string_view where) {
    TRY(server_,
        os::Http1Server::listen(
            where, [this](const os::HttpRequest& request, Exchange& exchange) { return answer(request, exchange); },
            clock_));
    return {};
  }
  [[nodiscard]] std::string where() const override { return server_->where(); }

 private:
  std::optional<os::HttpResponse> answer(const os::HttpRequest& request, Exchange& exchange) {
    if (request.target.starts_with("/sim/")) {
      const std::lock_guard lock(mutex_);
      return response_of(world_.control(request.target, request.body, clock_.now()));
    }
    World::Outage outage{};
    {
      const std::lock_guard lock(mutex_);
      outage = world_.outage;
    }
    if (outage == World::Outage::hang) static_cast<void>(exchange.wait(kForever, true));
    if (outage != World::Outage::none) return std::nullopt;
    if (request.method == "GET") {
      const std::lock_guard lock(mutex_);
      const auto reply = world_.metadata(request.target, clock_.now());
      return response_of(reply.value_or(Reply{404, {}, false}));
    }
    const auto parameters = wire::ucloud::parse_form(request.body);
    if (!parameters) return os::HttpResponse{400, {}, parameters.error().message};
    const std::string* action = wire::ucloud::find(*parameters, "Action");
    World::Plan plan;
    {
      const std::lock_guard lock(mutex_);
      plan = world_.plan(action == nullptr ? std::string() : *action);
    }
    // What was asked is done even when who asked has gone.
    if (exchange.wait(plan.before, false) == os::Http1Server::Waited::stopping) return std::nullopt;
    Reply reply;
    {
      const std::lock_guard lock(mutex_);
      reply = world_.api(*parameters, plan, clock_.now());
    }
    const bool hangs = plan.fault && plan.fault->kind == Fault::Kind::hang;
    static_cast<void>(exchange.wait(hangs ? Span(kForever) : plan.after, true));
    return response_of(reply);
  }

  const Clock& clock_;
  std::mutex mutex_;
  World world_;                              ///< guarded by mutex_
  std::unique_ptr<os::Http1Server> server_;  ///< last: its threads use all of the above
};

}  // namespace

Result<std::unique_ptr<Simulator>> Simulator::start(Config config, std::string_view where, wire::ucloud::Sha1 sha1,
                                                    const Clock& clock, Random& random) {
  auto running = std::make_unique<Running>(std::move(config), std::move(sha1), clock, random);
  TRY_VOID(running->listen(where));
  return running;
}

}  // namespace croft::cloud::simulator
