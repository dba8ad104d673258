#include "sim/run/agent.h"

#include <iterator>
#include <utility>

#include "base/pauses.h"

namespace croft::sim {
namespace {

using namespace std::chrono_literals;

constexpr std::size_t kAlone = 2;
constexpr Span kGiveBackEvery = 60s;

}  // namespace

Agent::Agent(Server& server, const MachineClock& clock, Random& random, std::string node, Way& way,
             engine::Living living)
    : server_(server),
      clock_(clock),
      client_(server, clock, &way),
      cached_(client_, {core::AffinityOwner::Type::host, node}, clock),
      remembered_(cached_, client_),
      direct_(cached_.uncached(), client_),
      world_{.cached = remembered_,
             .direct = direct_,
             .clock = clock,
             .random = random,
             .store = "sim:" + server.manners().name,
             .node = std::move(node),
             .describe_cache = nullptr,
             .log = [](const std::string& /*line*/) {},
             .claim_ahead_hold = 30s,
             .pause_by = [](std::chrono::nanoseconds span) { sleep(span); },
             .living = std::move(living)},
      service_(world_),
      process_(server.schedule()) {
  run([this] { follow(); });
  run([this] { commit(); });
  for (std::size_t i = 0; i < kAlone; ++i) run([this] { serve_alone(); });
  run([this] {
    for (;;) {
      sleep(kGiveBackEvery);
      service_.give_back(false);
    }
  });
}

void Agent::follow() {
  // As store::CacheFollower does in a thread.
  Pauses pauses(250ms, 4000ms, 7);
  for (;;) {
    const auto done = cached_.step(Deadline::after(clock_.now(), 500ms));
    if (done) {
      pauses.reset();
    } else {
      sleep(pauses.next());
    }
  }
}

std::shared_ptr<Agent::Call> Agent::take(edge::AgentCall call) {
  auto taken = std::make_shared<Call>();
  call.id = ++last_id_;
  call.hung_up = taken->hung_up;
  call.told = taken->told;
  call.came_since_boot = clock_.now().since_boot;
  calls_[call.id] = taken;
  waiting_.push_back(std::move(call));
  something_waits_.notify_all();
  return taken;
}

void Agent::answer(const edge::AgentAnswer& answer) {
  const auto found = calls_.find(answer.id);
  if (found == calls_.end()) return;
  found->second->answer = answer.message;
  found->second->answered.notify_all();
  calls_.erase(found);
}

void Agent::commit() {
  for (;;) {
    std::vector<edge::AgentCall> batch;
    std::deque<edge::AgentCall> unready;
    for (edge::AgentCall& call : waiting_) {
      if (at_work_.contains(call.owner)) {
        unready.push_back(std::move(call));
      } else {
        batch.push_back(std::move(call));
      }
    }
    waiting_.swap(unready);
    if (batch.empty()) {
      (void)wait(something_waits_);
      continue;
    }
    edge::AgentService::Together served = service_.serve_together(std::move(batch));
    for (const edge::AgentAnswer& one : served.answers) answer(one);
    if (waiting_.empty() && served.waiting.empty()) service_.claim_ahead();
    waiting_.insert(waiting_.begin(), std::make_move_iterator(served.waiting.begin()),
                    std::make_move_iterator(served.waiting.end()));
    std::deque<edge::AgentCall> behind;
    for (edge::AgentCall& call : served.alone) {
      (at_work_.insert(call.owner).second ? alone_ : behind).push_back(std::move(call));
    }
    waiting_.insert(waiting_.begin(), std::make_move_iterator(behind.begin()), std::make_move_iterator(behind.end()));
    if (!alone_.empty()) something_is_alone_.notify_all();
  }
}

void Agent::serve_alone() {
  for (;;) {
    if (alone_.empty()) {
      (void)wait(something_is_alone_);
      continue;
    }
    const edge::AgentCall call = std::move(alone_.front());
    alone_.pop_front();
    answer(service_.serve_alone(call));
    at_work_.erase(call.owner);
    something_waits_.notify_all();
  }
}

}  // namespace croft::sim
