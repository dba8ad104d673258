#include "sim/run/cluster.h"

#include <algorithm>
#include <array>
#include <iterator>
#include <utility>

#include <fmt/format.h>

#include "agent/format/messages.h"
#include "base/assert.h"
#include "base/pacing.h"
#include "base/planted.h"
#include "ipam/use/assign.h"
#include "ipam/use/pools.h"
#include "ipam/use/release.h"

namespace croft::sim {
namespace {

using namespace std::chrono_literals;

constexpr const char* kNetwork = "pods";
constexpr std::size_t kAlone = 2;
constexpr Span kGiveBackEvery = 60s;
/// As long as a plugin waits for its agent, without a sign of life and with (cni/door, agent/door/client).
constexpr Span kPatience = 1s, kSignsEvery = 500ms, kAnswerTime = 14s;
constexpr Span kKubeletRetry = 2s, kReportTime = 300ms;
constexpr int kRedoTries = 5;
constexpr Span kAskApi = 5ms;
/// A DEL's time for its work, and an ADD's for DELs that wait (ipam/door, cni/door).
constexpr Span kDelWork = 14s, kMakeUpTime = 1s;
/// After that a node knows of a change, unless something kept the news from it.
constexpr Span kNewsTime = 15s;

void pause(std::chrono::nanoseconds span) { sleep(span); }

/// A caller that is gone when this is.
struct HangsUp {
  std::shared_ptr<std::atomic<bool>> flag;
  explicit HangsUp(std::shared_ptr<std::atomic<bool>> of) : flag(std::move(of)) {}
  ~HangsUp() { flag->store(true); }
  HangsUp(const HangsUp&) = delete;
  HangsUp& operator=(const HangsUp&) = delete;
};

/// The change of a record by a commit, for people.
std::string text_of(const Changed& changed) {
  if (!changed.after) return "gone";
  if (const auto* block = std::get_if<core::Block>(&*changed.after)) {
    std::string text = fmt::format("#{} of {}", block->sequence_number.value % 100000,
                                   block->affinity ? block->affinity->name : "nobody");
    for (std::size_t i = 0; i < block->allocations.size(); ++i) {
      if (!block->allocations[i]) continue;
      const core::Attribute& attribute = block->attributes[*block->allocations[i]];
      text += attribute.handle_id ? fmt::format(" {}={}", i, *attribute.handle_id)
                                  : fmt::format(" {} rests {}s", i, attribute.cooling->cooldown.count());
    }
    return text;
  }
  if (const auto* handle = std::get_if<core::Handle>(&*changed.after)) {
    std::string text = handle->deleted ? "deleted" : "counts";
    for (const auto& [cidr, count] : handle->blocks) text += fmt::format(" {}:{}", cidr, count);
    return text;
  }
  if (const auto* claim = std::get_if<core::Affinity>(&*changed.after)) {
    constexpr std::array kStates{"pending", "confirmed", "to be deleted"};
    return kStates.at(static_cast<std::size_t>(claim->state));
  }
  return "written";
}

}  // namespace

// ---------------------------------------------------------------- a node's agent

Agent::Agent(TroubledServer& server, const MachineClock& clock, Random& random, std::string node, Way& way,
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
             .wait_by = [](std::chrono::nanoseconds span) { sleep(span); },
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
  Backoff pauses(250ms, 4000ms, 7);
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

// ---------------------------------------------------------------- the cluster

Counts& Counts::operator+=(const Counts& other) {
  adds += other.adds;
  refused += other.refused;
  failed += other.failed;
  dels += other.dels;
  collected += other.collected;
  killed += other.killed;
  return *this;
}

// ---------------------------------------------------------------- beginning and end

Cluster::Cluster(Schedule& schedule, const Setup& setup)
    : schedule_(schedule),
      setup_(setup),
      checker_(schedule),
      server_(schedule, manners_of(setup.store).value(), setup.seed),
      control_clock_(schedule, 0),
      control_random_(setup.seed ^ 0x5eed),
      people_(schedule) {
  checker_.booted(control_clock_);
  server_.on_commit([this](const std::vector<Changed>& changes) {
    for (const Changed& changed : changes) {
      note(changed.key.name);
      if (tell_) tell_(fmt::format("{} {}: {}", core::name_of(changed.key.kind), changed.key.name, text_of(changed)));
    }
    checker_.committed(changes);
  });
  // The state before anything goes wrong is made without time.
  const engine::Context context{server_.records(), control_clock_, control_random_};
  for (const Setup::Pool& pool : setup_.pools) {
    const auto made = engine::create_pool(context, spec_of(pool));
    CROFT_ASSERT(made);
  }
  if (setup_.strict) {
    core::IpamConfig config;
    config.strict_affinity = true;
    const store::Write write{core::ipam_config_key(), config, store::Condition::always()};
    (void)server_.records().commit({&write, 1}, {}, {});
  }
  checker_.put_back(server_);
  for (int i = 0; i < setup_.nodes; ++i) {
    const auto number = static_cast<std::uint16_t>(i + 1);
    nodes_.push_back(std::make_unique<Node>(schedule, fmt::format("n{}", number), number, setup.seed * 1000 + number));
    const store::Write write{core::node_key(nodes_.back()->name), core::Node{nodes_.back()->name, {}, {}, {}},
                             store::Condition::always()};
    (void)server_.records().commit({&write, 1}, {}, {});
    start_machine(*nodes_.back());
  }
  restart_controller(0s);
}

Cluster::~Cluster() {
  controller_.reset();
  people_.kill();
  for (const auto& node : nodes_) stop_machine(*node);
}

void Cluster::note(const std::string& what) {
  const auto mix = [&](std::uint64_t value) { trace_ = (trace_ ^ value) * 0x100000001b3; };
  mix(static_cast<std::uint64_t>(schedule_.now().count()));
  for (const char c : what) mix(static_cast<unsigned char>(c));
}

void Cluster::tell(const std::string& what) {
  note(what);
  if (tell_) tell_(what);
}

engine::Context Cluster::context_of(store::Store& store, Node& node) const {
  engine::Context context{store, node.clock, node.random};
  context.wait_by = pause;
  return context;
}

void Cluster::start_machine(Node& node) {
  node.is_up = true;
  checker_.booted(node.clock);
  node.machine = std::make_unique<Process>(schedule_);
  if (setup_.agents) start_agent(node);
  // The runtime's sandboxes of before go; each pod that is bound to the node is made anew.
  for (const auto& [container, sandbox] : node.sandboxes) {
    schedule_.spawn(*node.machine, [this, &node, container = container] { remove_sandbox(node, container); });
  }
  for (const auto& [name, pod] : pods_) {
    if (pod->is_gone || nodes_[pod->node].get() != &node) continue;
    pod->container.clear();
    schedule_.spawn(*node.machine, [this, &node, pod = pod] { run_pod(node, pod); });
  }
}

void Cluster::stop_machine(Node& node) {
  node.is_up = false;
  for (const auto& plugin : node.plugins) plugin->process.kill();
  node.plugins.clear();
  stop_agent(node);
  if (node.machine) node.machine->kill();
  // Nobody on it lives any more.
  for (auto& [container, sandbox] : node.sandboxes) checker_.left(sandbox.owner);
}

void Cluster::start_agent(Node& node) {
  if (!node.is_up || node.agent) return;
  node.agent = std::make_unique<Agent>(server_, node.clock, node.random, node.name, node.way, living_on(node));
  node.agent->run([this, &node, agent = node.agent.get()] {
    for (;;) {
      sleep(5s);
      replay_tombstones(node, agent->direct(), Deadline{});
    }
  });
}

void Cluster::stop_agent(Node& node) {
  if (!node.agent) return;
  node.agent->process().kill();
  node.agent.reset();
}

// ---------------------------------------------------------------- the plugin

std::shared_ptr<Cluster::Plugin> Cluster::start_plugin(Node& node, Span limit, std::function<void(Plugin&)> body) {
  auto plugin = std::make_shared<Plugin>(schedule_);
  node.plugins.push_back(plugin);
  schedule_.spawn(plugin->process, [this, &node, limit, raw = plugin.get(), body = std::move(body)] {
    const Span began = schedule_.now();
    body(*raw);
    if (const Span took = schedule_.now() - began; took > limit) {
      checker_.violate("call took too long", fmt::format("{} ms on {}", took / 1ms, node.name));
    }
    raw->done.notify_all();
    std::erase_if(node.plugins, [&](const auto& other) { return other.get() == raw; });
  });
  return plugin;
}

/// The agent's answer; null when the call was left, and nobody knows what becomes of it.
std::shared_ptr<Agent::Call> Cluster::ask_agent(Node& node, edge::AgentCall call) {
  if (!node.agent || node.agent->process().is_frozen()) {
    if (node.agent) sleep(kPatience);
    if (!node.agent || node.agent->process().is_frozen()) return nullptr;
  }
  const Instant now = node.clock.now();
  call.limit = Deadline::after(now, kAnswerTime);
  call.first = Deadline::after(now, kPatience);
  Agent* const agent = node.agent.get();
  const auto asked = agent->take(std::move(call));
  // Also when this plugin is killed: its socket is closed then.
  const HangsUp hangs_up{asked->hung_up};
  Span last_sign = schedule_.now();
  const Span until = schedule_.now() + kAnswerTime;
  while (!asked->answer && schedule_.now() < until) {
    (void)wait(asked->answered, schedule_.now() + kSignsEvery / 2);
    if (asked->answer) break;
    if (node.agent.get() != agent) break;  // its socket is closed
    if (!agent->process().is_frozen()) {
      last_sign = schedule_.now();
      asked->told->store(node.clock.now().since_boot);
    } else if (schedule_.now() - last_sign > kPatience) {
      break;
    }
  }
  return asked->answer && *asked->answer ? asked : nullptr;
}

Result<core::AssignAnswer> Cluster::assign(Node& node, const core::AssignRequest& request) {
  edge::AgentCall call;
  call.what = wire::agent::AssignCall{{}, {}, request, {}};
  std::get<wire::agent::AssignCall>(call.what).caller.node = node.name;
  call.owner = core::handle_of(request.owner);
  if (const auto asked = ask_agent(node, std::move(call))) {
    TRY(wire::agent::AssignOutcome outcome, wire::agent::decode_assign_outcome(**asked->answer));
    if (auto* assigned = std::get_if<core::Assigned>(&outcome)) return core::AssignAnswer(std::move(*assigned));
    if (auto* refusal = std::get_if<core::Refusal>(&outcome)) return core::AssignAnswer(std::move(*refusal));
    return fail(std::get<Error>(outcome));
  }
  TroubledClient client(server_, node.clock, &node.way);
  const engine::Living living = living_on(node);
  auto answer = engine::assign(context_of(client, node), request, {}, &living);
  if (answer) replay_tombstones(node, client, Deadline::after(node.clock.now(), kMakeUpTime));
  return answer;
}

Result<core::AssignAnswer> Cluster::add(Node& node, const core::AssignRequest& request) {
  // cni/door/tombstones: who finds one waits for the lock.
  const std::string handle = core::handle_of(request.owner);
  if (node.tombstones.contains(handle)) (void)wait_for(node.replayed, [&] { return !node.is_replaying; });
  node.tombstones.erase(handle);
  return assign(node, request);
}

engine::Living Cluster::living_on(const Node& node) const {
  return {[this, &node](const net::Address& address) -> Result<std::optional<std::string>> {
    const std::string handle = checker_.living_with(address);
    for (const auto& [container, sandbox] : node.sandboxes) {
      if (handle == core::handle_of(sandbox.owner)) return std::optional<std::string>("veth0");
    }
    return std::optional<std::string>();
  }};
}

Result<void> Cluster::del(Node& node, const core::Owner& owner) {
  const Instant began = node.clock.now();
  edge::AgentCall call;
  call.what = wire::agent::ReleaseCall{{}, owner};
  std::get<wire::agent::ReleaseCall>(call.what).caller.node = node.name;
  call.owner = core::handle_of(owner);
  Result<void> done;
  if (const auto asked = ask_agent(node, std::move(call))) {
    const auto outcome = wire::agent::decode_release_outcome(**asked->answer);
    if (!outcome) {
      done = fail(outcome.error());
    } else if (const auto* error = std::get_if<Error>(&*outcome)) {
      done = fail(*error);
    }
  } else {
    TroubledClient client(server_, node.clock, &node.way);
    engine::Context context = context_of(client, node);
    if (!is_planted("deadline_ignored")) context.not_after = Deadline::after(began, kDelWork);
    const auto released = engine::release_owner(context, owner);
    if (!released) done = fail(released.error());
  }
  // A DEL that the store does not take now waits on the node's disk.
  if (!done) node.tombstones.insert_or_assign(core::handle_of(owner), owner);
  return {};
}

/// Held by one at a time; a process that is killed lets go of it.
class Cluster::TombstoneLock {
 public:
  explicit TombstoneLock(Node& node) : node_(node) { node_.is_replaying = true; }
  ~TombstoneLock() {
    node_.is_replaying = false;
    node_.replayed.notify_all();
  }
  TombstoneLock(const TombstoneLock&) = delete;
  TombstoneLock& operator=(const TombstoneLock&) = delete;

 private:
  Node& node_;
};

void Cluster::replay_tombstones(Node& node, store::Store& store, Deadline deadline) {
  const auto waiting = node.tombstones;
  engine::Context context = context_of(store, node);
  context.not_after = deadline;
  for (const auto& [handle, owner] : waiting) {
    if (node.is_replaying) return;
    if (!node.tombstones.contains(handle)) continue;
    const TombstoneLock lock(node);
    if (!engine::release_owner(context, owner)) return;
    node.tombstones.erase(handle);
  }
}

// ---------------------------------------------------------------- the kubelet

std::string Cluster::name_of(const Node& node, const std::string& container) {
  const auto found = node.sandboxes.find(container);
  return found == node.sandboxes.end() ? container : fmt::format("{} ({})", container, found->second.pod);
}

core::AssignRequest Cluster::request_for(const Node& node, const Pod& pod, const std::string& container) const {
  core::AssignRequest request;
  request.owner = {kNetwork, container, "eth0"};
  request.node = host(node);
  request.pod = {pod.name, "default", pod.uid};
  request.count.v6 = setup_.dual_stack ? 1 : 0;
  return request;
}

/// A call of this node that begins now knows the commits until then.
Span Cluster::informed(const Node& node) const {
  const TroubledServer::Troubles& troubles = server_.troubles();
  const Span troubled =
      std::max({troubles.down_until, troubles.slow_until, node.way.cut_until, node.way.lag_until, node.frozen_until});
  return troubled + kNewsTime > schedule_.now() ? kUninformed : schedule_.now() - kNewsTime;
}

/// Runs the plugin's ADD for a new sandbox. Whether the pod runs.
bool Cluster::make_sandbox(Node& node, const std::shared_ptr<Pod>& made, std::string container) {
  Pod& pod = *made;
  const bool is_again = !container.empty();
  if (container.empty()) container = fmt::format("c{}", ++containers_);
  const core::AssignRequest request = request_for(node, pod, container);
  // An earlier ADD of the same sandbox may have decided sooner.
  const Span knows = is_again ? kUninformed : informed(node);
  node.sandboxes[container] = {request.owner, pod.name, {}};
  const auto plugin =
      start_plugin(node, kAddTime, [this, &node, request](Plugin& self) { self.assigned = add(node, request); });
  (void)wait_for(plugin->done, [&] { return plugin->assigned || !plugin->process.is_alive(); });
  const auto* answer = plugin->assigned && *plugin->assigned ? &**plugin->assigned : nullptr;
  const auto* assigned = answer != nullptr ? std::get_if<core::Assigned>(answer) : nullptr;
  if (assigned == nullptr) {
    ++(!plugin->assigned ? counts_.killed : answer != nullptr ? counts_.refused : counts_.failed);
    tell(fmt::format("{} got nothing: {}", name_of(node, container),
                     !plugin->assigned   ? "killed"
                     : *plugin->assigned ? "refused"
                                         : plugin->assigned->error().message));
    if (is_again) return false;
    // The runtime sends a DEL for what failed, and goes on sending it.
    schedule_.spawn(*node.machine, [this, &node, container] { remove_sandbox(node, container); });
    return false;
  }
  ++counts_.adds;
  std::vector<net::Address> addresses;
  for (const core::AssignedAddress& one : assigned->addresses) {
    addresses.push_back(one.address);
    tell(fmt::format("{} got {}", name_of(node, container), one.address.to_string()));
  }
  if (addresses.size() != (setup_.dual_stack ? 2U : 1U)) {
    checker_.violate("not all families", fmt::format("{} got {} addresses", container, addresses.size()));
  }
  checker_.given(server_, request.owner, addresses, setup_.strict ? node.name : "", knows);
  node.sandboxes[container].given = addresses;
  pod.container = container;
  schedule_.spawn(*node.machine, [this, &node, made, container, addresses] {
    sleep(std::max<Span>(kReportTime, node.muted_until - schedule_.now()));
    if (made->container == container) made->reported = addresses;
  });
  return true;
}

/// Its containers stop; what they had is for the DEL.
void Cluster::tear_down(Node& node, const std::string& container) {
  const auto found = node.sandboxes.find(container);
  if (found == node.sandboxes.end()) return;
  checker_.left(found->second.owner);
}

void Cluster::remove_sandbox(Node& node, const std::string& container) {
  tear_down(node, container);
  const auto found = node.sandboxes.find(container);
  if (found == node.sandboxes.end()) return;
  const core::Owner owner = found->second.owner;
  tell(fmt::format("{} goes", name_of(node, container)));
  for (;;) {
    const auto plugin =
        start_plugin(node, kDelTime, [this, &node, owner](Plugin& self) { self.released = del(node, owner); });
    (void)wait_for(plugin->done, [&] { return plugin->released || !plugin->process.is_alive(); });
    if (plugin->released && *plugin->released) break;
    sleep(kKubeletRetry);
  }
  ++counts_.dels;
  node.sandboxes.erase(container);
}

void Cluster::run_pod(Node& node, const std::shared_ptr<Pod>& pod) {
  std::uint64_t generation = pod->generation;
  while (!pod->is_deleted) {
    (void)wait_for(goes_on_, [&] { return !is_stopped_; });
    if (pod->container.empty() && !make_sandbox(node, pod, {})) {
      (void)wait_for(
          pod->changed, [&] { return pod->is_deleted; }, schedule_.now() + kKubeletRetry);
      continue;
    }
    (void)wait_for(pod->changed,
                   [&] { return pod->is_deleted || pod->redo_patience > 0s || pod->generation != generation; });
    if (pod->is_deleted) break;
    if (const Span patience = std::exchange(pod->redo_patience, Span{0}); patience > 0s) {
      redo(node, pod, patience);
      continue;
    }
    generation = pod->generation;
    const std::string before = std::exchange(pod->container, {});
    tear_down(node, before);
    schedule_.spawn(*node.machine, [this, &node, before] { remove_sandbox(node, before); });
  }
  if (!pod->container.empty()) remove_sandbox(node, std::exchange(pod->container, {}));
  sleep(kReportTime);
  pod->is_gone = true;
  pods_.erase(pod->name);
}

/// A DEL that the runtime may lose patience with, and sends again until the register has it; then an ADD for the same
/// sandbox.
void Cluster::redo(Node& node, const std::shared_ptr<Pod>& pod, Span patience) {
  const std::string container = std::exchange(pod->container, {});
  tear_down(node, container);
  const auto sandbox = node.sandboxes.find(container);
  if (sandbox == node.sandboxes.end()) return;
  const core::Owner owner = sandbox->second.owner;
  const auto plugin =
      start_plugin(node, kDelTime, [this, &node, owner](Plugin& self) { self.released = del(node, owner); });
  (void)wait_for(
      plugin->done, [&] { return plugin->released || !plugin->process.is_alive(); }, schedule_.now() + patience);
  plugin->process.kill();
  std::erase(node.plugins, plugin);
  sleep(patience / 2);
  for (;;) {
    const auto again =
        start_plugin(node, kDelTime, [this, &node, owner](Plugin& self) { self.released = del(node, owner); });
    (void)wait_for(again->done, [&] { return again->released || !again->process.is_alive(); });
    if (again->released && *again->released && !node.tombstones.contains(core::handle_of(owner))) break;
    sleep(kKubeletRetry);
  }
  for (int tries = 0; tries < kRedoTries && !pod->is_deleted; ++tries) {
    if (make_sandbox(node, pod, container)) return;
    sleep(kKubeletRetry);
  }
}

// ---------------------------------------------------------------- the controller

/// The API's lists, as of a moment within the call.
class Cluster::Facts final : public engine::FactSource {
 public:
  explicit Facts(Cluster& cluster) : cluster_(cluster) {}

  [[nodiscard]] Result<core::collect::Facts> facts() override {
    core::collect::Facts facts;
    facts.taken_at = cluster_.control_clock_.now();
    sleep(kAskApi);
    for (const auto& node : cluster_.nodes_) {
      if (node->is_listed) facts.add_node({node->name, {}, {}});
    }
    facts.set_pods_known();
    cluster_.has_read_stale_ = cluster_.is_stale();
    for (const core::collect::PodFact& pod : cluster_.pod_facts()) facts.add_pod(pod);
    facts.complete = true;
    facts.freeze();
    return facts;
  }
  [[nodiscard]] bool answers_one_by_one() const override { return true; }
  [[nodiscard]] Result<std::optional<core::collect::PodFact>> pod(const std::string& /*namespace_name*/,
                                                                  const std::string& name) override {
    sleep(kAskApi);
    const auto found = cluster_.pods_.find(name);
    const bool is_there = found != cluster_.pods_.end() && !found->second->is_hidden && !cluster_.is_empty_api();
    return is_there ? std::optional(cluster_.fact_of(*found->second)) : std::nullopt;
  }
  [[nodiscard]] Result<bool> has_node(const std::string& name) override {
    sleep(kAskApi);
    return std::ranges::any_of(cluster_.nodes_,
                               [&](const auto& node) { return node->is_listed && node->name == name; });
  }

 private:
  Cluster& cluster_;
};

core::collect::PodFact Cluster::fact_of(const Pod& pod) const {
  const bool is_pending = pod.reported.empty();
  return {"default", pod.name, pod.uid, nodes_[pod.node]->name, is_pending ? "Pending" : "Running", "", pod.reported};
}

std::vector<core::collect::PodFact> Cluster::pod_facts() const {
  if (is_empty_api()) return {};
  if (is_stale()) return stale_;
  std::vector<core::collect::PodFact> facts;
  for (const auto& [name, pod] : pods_) {
    if (!pod->is_hidden) facts.push_back(fact_of(*pod));
  }
  return facts;
}

void Cluster::run_controller() {
  TroubledClient client(server_, control_clock_);
  Facts facts(*this);
  core::collect::Memory memory;
  engine::SweepOptions options;
  options.settings.grace = setup_.grace;
  engine::Context context{client, control_clock_, control_random_};
  context.wait_by = pause;
  context.time_limit = 60s;
  for (;;) {
    sleep(setup_.collect_every);
    const auto report = engine::sweep(context, facts, memory, options);
    if (!report) continue;
    counts_.collected += report->released.size();
    std::string what;
    for (const core::collect::Evidence& one : report->released) {
      what += fmt::format(", {} {}", core::collect::name_of(one.what), one.subject);
    }
    tell(fmt::format("controller: {} suspects, {} released{}", report->candidates, report->released.size(), what));
    const auto freed = static_cast<std::size_t>(
        std::ranges::count(report->released, core::collect::Evidence::What::address, &core::collect::Evidence::what));
    if (freed > std::max<std::size_t>(10, report->held / 100)) {
      checker_.violate("brake ignored", fmt::format("one pass freed {} of {} addresses", freed, report->held));
    }
  }
}

void Cluster::restart_controller(Span down) {
  controller_ = std::make_unique<Process>(schedule_);
  schedule_.spawn(*controller_, [this, down] {
    sleep(down);
    run_controller();
  });
}

}  // namespace croft::sim
