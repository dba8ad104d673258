#pragma once

#include <atomic>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "agent/door/service.h"
#include "collector/use/node_facts.h"
#include "collector/use/sweep.h"
#include "ipam/decide/assign.h"
#include "ipam/use/transact.h"
#include "register/pool.h"
#include "sim/run/checker.h"
#include "sim/run/troubled_server.h"
#include "sim/schedule.h"
#include "store/cached/cached_store.h"

namespace croft::sim {

/// A node's agent: its memory, its service, and in the place of the threads that the real one has
/// (agent/door/service.h) actors of one process.
class Agent {
 public:
  /// The referenced objects outlive it; the schedule does nothing of it once it is dead.
  Agent(TroubledServer& server, const MachineClock& clock, Random& random, std::string node, Way& way,
        engine::Living living);

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

  TroubledServer& server_;
  const MachineClock& clock_;
  TroubledClient client_;
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

/// The beginning of a run.
struct Setup {
  std::string store = "etcd";
  std::uint64_t seed = 1;  ///< of the times that calls take, and of chance in the engine
  int nodes = 3;
  bool agents = true;
  bool dual_stack = false;
  bool strict = false;  ///< strict affinity
  Span collect_every = std::chrono::seconds(20);
  Span grace = std::chrono::seconds(60);  ///< of the collector
  struct Pool {
    std::string name;
    net::Prefix cidr;
    int block_length = 28;
    std::chrono::seconds cooldown{0};
  };
  std::vector<Pool> pools;
  std::vector<Pool> later;  ///< made by create-pool
};

/// Something that happens in a run.
struct Step {
  Span at{0};
  std::string verb;
  std::string name;      ///< of a pod or pool
  std::size_t node = 0;  ///< counted from 0; written n1, n2, …
  Span span{0};
};
[[nodiscard]] std::string to_text(const Step& step);

[[nodiscard]] inline core::PoolSpec spec_of(const Setup::Pool& pool) {
  return {pool.name, pool.cidr, pool.block_length, {}, pool.cooldown, {}};
}
/// How long a call of the plugin may take; then a DEL leaves a tombstone (ipam/door).
inline constexpr Span kAddTime = std::chrono::seconds(90), kDelTime = std::chrono::seconds(15);

/// The result of a run, beside the checker's word.
struct Counts {
  std::uint64_t adds = 0, refused = 0, failed = 0, dels = 0, collected = 0, killed = 0;
  Counts& operator+=(const Counts& other);
};

/// A simulated cluster: nodes with kubelets, plugins and agents, the API's pods, a controller, one register; all of
/// Croft's decisions and commits are the production's.
class Cluster {
 public:
  Cluster(Schedule& schedule, const Setup& setup);
  ~Cluster();
  Cluster(const Cluster&) = delete;
  Cluster& operator=(const Cluster&) = delete;

  [[nodiscard]] Checker& checker() { return checker_; }
  [[nodiscard]] TroubledServer& server() { return server_; }
  [[nodiscard]] const Counts& counts() const { return counts_; }
  /// A digest of all that happened so far: two runs of one script have the same.
  [[nodiscard]] std::uint64_t trace() const { return trace_; }
  /// Takes a line for each thing that happens; empty: nobody reads it.
  void tell_to(std::function<void(const std::string&)> tell) { tell_ = std::move(tell); }

  struct Verb;
  /// All that may happen. The load comes first.
  [[nodiscard]] static const std::vector<Verb>& verbs();
  /// Null: there is none of this name.
  [[nodiscard]] static const Verb* verb_of(std::string_view name);
  /// Names that are not there do nothing: so a part of a script is a script.
  void act(const Step& step);

  /// Every trouble ends, and every pod is deleted but one on each node: from an empty list nothing would be concluded.
  void end();
  /// Whether only these are left and run, and the register holds nothing else.
  [[nodiscard]] bool is_at_rest() const;
  /// There was time: what keeps it from rest is a violation.
  void expect_rest();

 private:
  struct Sandbox {
    core::Owner owner;
    std::string pod;
    std::vector<net::Address> given;  ///< by its ADD; empty: that was not answered
  };
  struct Pod {
    std::string name, uid;
    std::size_t node = 0;
    bool is_deleted = false;       ///< in the API: to be deleted
    bool is_gone = false;          ///< from the API
    bool is_hidden = false;        ///< likewise, though its containers run
    Span redo_patience{0};         ///< how long its DEL may take; 0: it is not to be made again
    std::uint64_t generation = 0;  ///< grows with each restart
    std::string container;         ///< the one that lives; empty: none
    std::vector<net::Address> reported;
    Signal changed;
  };
  /// A run of the plugin.
  struct Plugin {
    explicit Plugin(Schedule& schedule) : process(schedule) {}
    Signal done;
    std::optional<Result<core::AssignAnswer>> assigned;
    std::optional<Result<void>> released;
    Process process;
  };
  struct Node {
    Node(Schedule& schedule, std::string name_of, std::uint16_t number, std::uint64_t seed)
        : name(std::move(name_of)), clock(schedule, number), random(seed) {}
    std::string name;
    MachineClock clock;
    SeededRandom random;
    Way way;
    bool is_lost = false, is_listed = true, is_up = true;
    Span muted_until{0}, frozen_until{0};
    std::map<std::string, Sandbox> sandboxes;       ///< by container, on its disk
    std::map<std::string, core::Owner> tombstones;  ///< by handle
    bool is_replaying = false;                      ///< the lock of their directory is held
    Signal replayed;
    std::vector<std::shared_ptr<Plugin>> plugins;
    std::unique_ptr<Agent> agent;
    std::unique_ptr<Process> machine;  ///< kubelet and runtime
    std::uint64_t starts = 0;
  };
  class Facts;
  class TombstoneLock;

  [[nodiscard]] Node& node_of(const Step& step) { return *nodes_[step.node % nodes_.size()]; }
  [[nodiscard]] Span until(const Step& step) const { return schedule_.now() + step.span; }
  [[nodiscard]] std::shared_ptr<Pod> pod_of(const std::string& name) const;
  void create_pod(const std::string& name, std::size_t node);
  void delete_pod(const std::string& name);
  void restart_pod(const std::string& name);
  void redo_pod(const std::string& name, Span patience);
  void force_delete_pod(const std::string& name);
  void add_again(const std::string& name);
  void kill_agent(Node& node, Span until_restart);
  void kill_plugins(Node& node);
  void reboot(Node& node, Span down);
  void lose_node(Node& node);
  void restart_controller(Span down);
  void create_pool(const std::string& name);
  void delete_pool(const std::string& name);
  void remove_node(const Node& node);
  void restore();
  void set_pool_disabled(const std::string& name, bool disabled);
  /// A pod that is to run at the end, has room, and does not run; empty: there is none.
  [[nodiscard]] std::string without_address() const;

  void note(const std::string& what);
  void tell(const std::string& what);
  /// "c4 (web-2)".
  [[nodiscard]] static std::string name_of(const Node& node, const std::string& container);
  [[nodiscard]] core::AssignRequest request_for(const Node& node, const Pod& pod, const std::string& container) const;
  [[nodiscard]] Span informed(const Node& node) const;
  [[nodiscard]] bool is_empty_api() const { return empty_until_ > schedule_.now(); }
  [[nodiscard]] core::AffinityOwner host(const Node& node) const {
    return {core::AffinityOwner::Type::host, node.name};
  }
  [[nodiscard]] engine::Context context_of(store::Store& store, Node& node) const;
  void start_machine(Node& node);
  void stop_machine(Node& node);
  void start_agent(Node& node);
  void stop_agent(Node& node);
  void run_pod(Node& node, const std::shared_ptr<Pod>& pod);
  [[nodiscard]] bool make_sandbox(Node& node, const std::shared_ptr<Pod>& pod, std::string container);
  void tear_down(Node& node, const std::string& container);
  void remove_sandbox(Node& node, const std::string& container);
  void redo(Node& node, const std::shared_ptr<Pod>& pod, Span patience);
  [[nodiscard]] std::shared_ptr<Plugin> start_plugin(Node& node, Span limit, std::function<void(Plugin&)> body);
  [[nodiscard]] Result<core::AssignAnswer> add(Node& node, const core::AssignRequest& request);
  [[nodiscard]] Result<core::AssignAnswer> assign(Node& node, const core::AssignRequest& request);
  /// As the node's kernel tells who lives.
  [[nodiscard]] engine::Living living_on(const Node& node) const;
  [[nodiscard]] Result<void> del(Node& node, const core::Owner& owner);
  [[nodiscard]] std::shared_ptr<Agent::Call> ask_agent(Node& node, edge::AgentCall call);
  void replay_tombstones(Node& node, store::Store& store, Deadline deadline);
  void run_controller();
  [[nodiscard]] core::collect::PodFact fact_of(const Pod& pod) const;
  [[nodiscard]] std::vector<core::collect::PodFact> pod_facts() const;
  [[nodiscard]] bool is_stale() const { return stale_until_ > schedule_.now(); }
  void command(std::function<void(const engine::Context&)> body);

  Schedule& schedule_;
  const Setup setup_;
  Checker checker_;
  TroubledServer server_;
  Counts counts_;
  std::uint64_t trace_ = 0xcbf29ce484222325;
  std::function<void(const std::string&)> tell_;
  MachineClock control_clock_;
  SeededRandom control_random_;
  std::map<std::string, std::shared_ptr<Pod>> pods_;
  std::vector<std::unique_ptr<Node>> nodes_;
  std::uint64_t containers_ = 0;
  std::optional<TroubledServer::Copy> copy_;
  std::vector<core::collect::PodFact> stale_;
  Span stale_until_{0}, empty_until_{0};
  bool has_read_stale_ = false;  ///< the controller, in its last look
  bool is_stopped_ = false;      ///< kubelets make nothing
  Signal goes_on_;
  std::unique_ptr<Process> controller_;
  Process people_;
};

/// A kind of step: what it may say, and what it does.
struct Cluster::Verb {
  std::string_view name;
  bool takes_name, takes_node, takes_span;
  int weight;  ///< how often it is chosen, beside the others that a run has
  Span least, most;
  void (*act)(Cluster&, const Step&);
};

}  // namespace croft::sim
