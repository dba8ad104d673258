#pragma once

#include <atomic>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>

#include "agent/door/service.h"
#include "sim/schedule.h"
#include "sim/server.h"
#include "store/cached/cached_store.h"

namespace croft::sim {

/// A node's agent: its memory, its service, and in the place of the threads that the real one has (agent/door/lanes.h)
/// actors of one process.
class Agent {
 public:
  /// The referenced objects outlive it; the schedule does nothing of it once it is dead.
  Agent(Server& server, const MachineClock& clock, Random& random, std::string node, Way& way, engine::Living living);

  /// A call on its way: the plugin waits for `answered`, and says when it has gone its own way.
  struct Call {
    std::shared_ptr<std::atomic<bool>> hung_up = std::make_shared<std::atomic<bool>>(false);
    std::shared_ptr<std::atomic<std::chrono::nanoseconds>> told =
        std::make_shared<std::atomic<std::chrono::nanoseconds>>(std::chrono::nanoseconds{0});
    std::optional<Result<std::string>> answer;
    Signal answered;
  };
  [[nodiscard]] std::shared_ptr<Call> take(edge::AgentCall call);

  [[nodiscard]] Process& process() { return process_; }
  /// Begins another actor of it.
  void run(std::function<void()> body) { server_.schedule().spawn(process_, std::move(body)); }
  [[nodiscard]] store::Store& direct() { return direct_; }

 private:
  /// The store's turns, taken beneath the memory: the memory's own are for threads.
  class WithTurns final : public store::ForwardingStore {
   public:
    WithTurns(store::Store& beneath, Client& client) : ForwardingStore(beneath), client_(client) {}
    [[nodiscard]] Result<std::unique_ptr<Turn>> take_turn(Deadline deadline) override {
      return client_.take_turn(deadline);
    }
    [[nodiscard]] std::vector<Result<store::Revision>> commit_each(std::span<const store::Write> writes,
                                                                   const store::WriteToken& token,
                                                                   Deadline deadline) override {
      return beneath().commit_each(writes, token, deadline);
    }

   private:
    Client& client_;
  };

  void follow();
  void commit();
  void serve_alone();
  void answer(const edge::AgentAnswer& answer);

  Server& server_;
  const MachineClock& clock_;
  Client client_;
  store::CachedStore cached_;
  WithTurns remembered_, direct_;
  edge::AgentWorld world_;
  edge::AgentService service_;
  std::map<std::uint64_t, std::shared_ptr<Call>> calls_;
  std::uint64_t last_id_ = 0;
  std::deque<edge::AgentCall> waiting_, alone_;
  std::set<std::string> at_work_;
  Signal something_waits_, something_is_alone_;
  Process process_;  ///< first to go
};

}  // namespace croft::sim
