#pragma once

#include <atomic>
#include <chrono>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "agent/door/service.h"
#include "ipam/use/test_world.h"
#include "os/clock.h"
#include "store/cached/cached_store.h"

namespace croft::edge {

/// A memory store whose commits can be held up.
class SlowStore final : public store::MemoryStore {
 public:
  [[nodiscard]] Result<store::Revision> commit(std::span<const store::Write> writes, const store::WriteToken& token,
                                               Deadline deadline) override {
    ++waiting;
    while (held) std::this_thread::sleep_for(std::chrono::milliseconds(1));
    --waiting;
    return MemoryStore::commit(writes, token, deadline);
  }
  std::atomic<bool> held{false};
  std::atomic<int> waiting{0};
};

/// This machine's clock, which can be stopped: a test that counts commits does so on a slow machine too.
class StoppableClock final : public Clock {
 public:
  [[nodiscard]] Instant now() const override {
    const std::lock_guard lock(mutex_);
    return stopped_ ? *stopped_ : clock_.now();
  }
  void stop() {
    const std::lock_guard lock(mutex_);
    stopped_ = clock_.now();
  }

 private:
  os::SystemClock clock_;
  mutable std::mutex mutex_;
  std::optional<Instant> stopped_;  ///< guarded by mutex_
};

/// Serves one call to its end, as Lanes does.
inline Result<std::string> serve(AgentService& service, Result<AgentCall> taken) {
  if (!taken) return fail(taken.error());
  std::vector<AgentCall> calls;
  calls.push_back(*std::move(taken));
  AgentService::Together served = service.serve_together(std::move(calls));
  EXPECT_EQ(served.answers.size() + served.alone.size(), 1U);
  if (!served.answers.empty()) return std::move(served.answers.front().message);
  return service.serve_alone(served.alone.front()).message;
}

/// The agent of node-a over a store in memory, with one pool.
struct AgentOnMemory {
  AgentOnMemory() {
    EXPECT_TRUE(engine::create_pool(context, engine::World::spec("a", "10.0.0.0/16", 26)));
    EXPECT_TRUE(cached.step(in(std::chrono::seconds(5))));
  }

  [[nodiscard]] Deadline in(std::chrono::nanoseconds span) const { return Deadline::after(clock.now(), span); }
  /// What a plugin says that waits so long.
  [[nodiscard]] wire::agent::Caller caller(std::chrono::nanoseconds patience = std::chrono::seconds(20)) const {
    return {"memory:", "node-a", clock.now().boot, in(patience), {}};
  }
  [[nodiscard]] std::string assign_message(const std::string& container,
                                           std::chrono::nanoseconds patience = std::chrono::seconds(20)) const {
    return wire::agent::encode(wire::agent::AssignCall{caller(patience), {}, engine::World::request(container)});
  }
  [[nodiscard]] std::string release_message(const std::string& container) const {
    return wire::agent::encode(wire::agent::ReleaseCall{caller(), core::Owner{"net", container, "eth0"}});
  }
  /// The answers, as they go to the plugin.
  Result<std::string> add(const wire::agent::AssignCall& call) {
    return serve(service, service.take_assign(wire::agent::encode(call), {}));
  }
  Result<std::string> add(const std::string& container) {
    return serve(service, service.take_assign(assign_message(container), {}));
  }
  Result<std::string> del(const wire::agent::ReleaseCall& call) {
    return serve(service, service.take_release(wire::agent::encode(call), {}));
  }
  Result<std::string> del(const std::string& container) {
    return serve(service, service.take_release(release_message(container), {}));
  }
  [[nodiscard]] std::size_t held(const std::string& container) const {
    return engine::held_addresses(context, {"net", container, "eth0"})->size();
  }

  StoppableClock clock;
  os::SystemRandom random;
  SlowStore store;
  engine::Context context{store, clock, random};
  store::CachedStore cached{store, {core::AffinityOwner::Type::host, "node-a"}, clock};
  AgentWorld world{cached, cached.uncached(), clock, random, "memory:", "node-a", {}, [](const std::string&) {}};
  AgentService service{world};
};

}  // namespace croft::edge
