// croftd agent: serves the plugins of one node over a Unix socket (docs/adr/0007-agent.md).

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <spdlog/sinks/stdout_sinks.h>
#include <spdlog/spdlog.h>

#include "agent/daemon/daemon.h"
#include "agent/daemon/plugin_kubeconfig.h"
#include "agent/daemon/predecessors.h"
#include "agent/door/server.h"
#include "agent/metrics/metrics.h"
#include "agent/metrics/web_server.h"
#include "base/printable.h"
#include "base/texts.h"
#include "cli/stores/open_store.h"
#include "cni/door/tombstones.h"
#include "ipam/use/damage_reporting_store.h"
#include "os/host_route.h"
#include "os/process.h"
#include "store/cached/cached_store.h"
#include "store/kube/cluster_facts.h"
#include "store/kube/events.h"
#include "store/kube/pod_wishes.h"
#include "store/pause.h"
#include "store/sqlite/sqlite_store.h"
#include "store/store_url.h"

namespace croft::app {
namespace {

using std::chrono::seconds;

/// How long calls that are under way may take when the agent is told to end.
constexpr seconds kDrain{3};
/// How often it looks at its own state.
constexpr seconds kLookEvery{1};
/// How often it asks its store something when nothing points to trouble, and how long it waits for the answer.
constexpr seconds kProbeEvery{15};
constexpr seconds kProbeWait{1};
/// How many DELs that were left for later it makes up for in one look, and in how long.
constexpr std::size_t kReplayedMax = 100;
constexpr seconds kReplayWait{2};
/// How often it looks at what its node says of its network.
constexpr seconds kConditionEvery{30};
/// After a replay that found the store away, or one that takes no writes.
constexpr seconds kReplayAgain{5};
constexpr seconds kConditionWait{2};
/// The kernel answers in microseconds, or while somebody else changes its tables a little later.
constexpr seconds kKernelTime{1};

struct AgentOptions {
  std::string store_url = edge::kDefaultStoreUrl;
  std::vector<std::string> plugin_stores;
  std::string socket = edge::kDefaultAgentSocket;
  std::string node;
  std::vector<std::uint32_t> users = {0};
  std::uint32_t claim_ahead_below = 8;
  std::uint32_t claim_ahead_hold_s = 300;
  std::string tombstones = edge::kDefaultTombstones;
  PluginKubeconfigOptions kubeconfig;  ///< without a file: somebody else keeps it
  bool clear_network_unavailable = false;
  bool log_calls = false;
  std::string metrics_bind_address;
};

/// A watch of a Kubernetes API loses nothing that it does not tell of, and to read all claims of a large cluster costs
/// its server seconds. So it happens some hours apart, and not for all agents at once.
store::CachedStoreOptions memory_options(const AgentOptions& options, Random& random) {
  store::CachedStoreOptions memory;
  if (store::scheme_of(options.store_url) != store::Scheme::kube) return memory;
  constexpr std::uint64_t kHourSeconds = 3600;
  memory.relist_interval = seconds(6 * kHourSeconds + random.next() % (2 * kHourSeconds));
  return memory;
}

/// The agent's side of a Kubernetes API besides the register. Null: nothing.
struct ClusterOfAgent {
  std::unique_ptr<store::kube::Events> events;
  std::unique_ptr<store::kube::WishFollower> wishes;
  std::unique_ptr<PluginKubeconfig> kubeconfig;
  std::unique_ptr<store::kube::Api> condition;  ///< by which a node's condition is taken back
};

/// Which file a store has open, where it is one.
std::function<Result<wire::agent::StoreFile>(Deadline)> file_of(store::Store& opened) {
  auto* const sqlite = dynamic_cast<store::SqliteStore*>(&opened);
  if (sqlite == nullptr) return nullptr;
  return [sqlite](Deadline deadline) -> Result<wire::agent::StoreFile> {
    TRY(const os::FileId id, sqlite->file(deadline));
    return wire::agent::StoreFile{id.device, id.inode};
  };
}

class AgentProgram {
 public:
  /// `cluster`: empty where the register is in no Kubernetes API.
  AgentProgram(const AgentOptions& options, Daemon& daemon, store::Store& opened, const ClusterOfAgent& cluster)
      : options_(options),
        daemon_(daemon),
        cluster_(cluster),
        telling_(opened,
                 [this](const store::Key&, const Error& damage) {
                   log_.warn("damaged record, set aside: {}", one_line(damage.message));
                 }),
        cached_(telling_, {core::AffinityOwner::Type::host, options.node}, daemon.clock,
                memory_options(options, daemon.random)),
        log_("croftd", std::make_shared<spdlog::sinks::stderr_sink_mt>()),
        health_(daemon.clock),
        world_{cached_,
               cached_.uncached(),
               daemon.clock,
               daemon.random,
               options.store_url,
               options.node,
               [this](wire::agent::AgentStatus& status) { describe_cache(status); },
               [this](const std::string& line) {
                 if (options_.log_calls) log_.info("{}", one_line(line));
               },
               file_of(opened),
               options.claim_ahead_below,
               seconds(options.claim_ahead_hold_s),
               options.plugin_stores},
        service_(world_),
        tombstones_(options.tombstones, daemon.clock) {
    log_.set_formatter(std::make_unique<LogFormat>("agent"));
    world_.living = living();
    if (!options.metrics_bind_address.empty()) {
      world_.added = [this](auto took, const core::AssignAnswer* answer) { metrics_.count(took, answer); };
    }
    if (cluster_.events != nullptr) {
      world_.refused = [this](const core::PodIdentity& pod, const Error& why) {
        cluster_.events->tell_of_refusal(pod, why);
      };
    }
    if (cluster_.wishes == nullptr) return;
    world_.remembered_wishes = [this](const core::PodIdentity& pod) { return cluster_.wishes->remembered(pod); };
    world_.ask_for_wishes = [this](const core::PodIdentity& pod, Deadline until) {
      return cluster_.wishes->ask(pod, until);
    };
  }

  [[nodiscard]] Result<int> run() {
    TRY(auto listener, os::UnixListener::listen(options_.socket, {options_.users}, daemon_.clock));
    // From here on what is made is for this user alone.
    os::make_files_private();
    const store::CacheFollower follower(cached_, daemon_.clock);
    const auto remove_socket = listener->closer();
    daemon_.stop.before_forced_end(remove_socket);
    TRY(const auto server, edge::AgentServer::start(service_, std::move(listener), daemon_.clock));
    TRY(const auto metrics_server, serve_metrics());
    log_.info("serving node {} on {} from {}", options_.node, options_.socket, options_.store_url);
    os::tell_service_manager("READY=1");
    std::vector<Periodic> tasks = periodics(follower, *server);
    while (!daemon_.stop.wait_for(kLookEvery)) {
      run_due(tasks, daemon_, log_);
      os::tell_service_manager("WATCHDOG=1");
    }
    os::tell_service_manager("STOPPING=1");
    log_.info("ending");
    server->stop(Deadline::after(daemon_.clock.now(), kDrain));
    // All calls are answered. Followers may read for a long time yet, from a store that is away.
    daemon_.stop.before_forced_end(remove_socket, os::StopSignal::CutsOff::reading);
    service_.give_back(true);
    return 0;
  }

 private:
  /// As AgentWorld::living has it. In another network namespace than the plugins' the kernel leads to nobody, however
  /// many live.
  engine::Living living() {
    const auto device_of =
        [this, own = os::own_network_namespace()](const net::Address& address) -> Result<std::optional<std::string>> {
      const std::uint64_t callers = service_.network_of_callers();
      if (callers != 0 && callers != own) {
        return fail(ErrorCode::refused_by_configuration,
                    "the plugins run in another network namespace than this agent; run it in the node's");
      }
      return os::device_of_living(address, daemon_.clock, Deadline::after(daemon_.clock.now(), kKernelTime));
    };
    return {device_of, [this](const std::string& line) { tell_of_living(line); }};
  }

  /// Once for the calls that find the same.
  void tell_of_living(const std::string& line) {
    {
      const std::lock_guard lock(living_mutex_);
      if (line == living_told_) return;
      living_told_ = line;
    }
    log_.warn("{}", one_line(line));
    if (cluster_.events == nullptr) return;
    cluster_.events->tell({"v1", "Node", "", options_.node, options_.node},
                          {store::kube::Events::Type::warning, "LivingAddresses", "", line});
  }

  /// Null where nobody asked for one.
  [[nodiscard]] Result<std::unique_ptr<edge::WebServer>> serve_metrics() {
    if (options_.metrics_bind_address.empty()) return nullptr;
    TRY(const auto address, edge::MetricsAddress::parse(options_.metrics_bind_address));
    health_.set("store", "");
    auto server = edge::serve_metrics([this] { return metrics_.text(); }, address, &health_);
    if (!server) {
      // Pods wait for this node's addresses, and nobody for its metrics.
      log_.error("{}; addresses are given without them", server.error().message);
      return nullptr;
    }
    log_.info("metrics at http://{}/metrics, health at /healthz and /readyz", address.text());
    return server;
  }

  void describe_cache(wire::agent::AgentStatus& status) const {
    const store::CachedStore::State state = cached_.state();
    status.cache_in_use = state.in_use;
    status.own_blocks = state.own_blocks;
    status.known_affinities = state.affinities;
  }

  /// The tasks beside serving. Both outlive them.
  std::vector<Periodic> periodics(const store::CacheFollower& follower, edge::AgentServer& server) {
    std::vector<Periodic> tasks;
    tasks.push_back({{}, [this, &follower] { return trouble_of(follower); }, "following the store"});
    tasks.push_back({{}, [this, &server] { return probe(server); }});
    tasks.push_back({{}, [this] {
                       service_.give_back(false);
                       return std::string();
                     }});
    tasks.push_back({{}, [this] { return make_up(); }});
    if (cluster_.events != nullptr) {
      tasks.push_back(
          {{}, [this] { return cluster_.events->trouble(); }, "pods are not told why they have no address"});
    }
    if (cluster_.wishes != nullptr) {
      tasks.push_back(
          {{}, [this] { return cluster_.wishes->refusal(); }, "annotations are not followed, each pod's is asked for"});
    }
    if (cluster_.kubeconfig != nullptr)
      tasks.push_back({{}, [this] { return tend_kubeconfig(); }, "the plugin's kubeconfig"});
    if (cluster_.condition != nullptr) {
      tasks.push_back({{}, [this] { return tend_condition(); }, "the node's condition"});
    }
    tasks.push_back({{}, [this, &server] { return count_refused(server); }});
    return tasks;
  }

  std::string trouble_of(const store::CacheFollower& follower) {
    std::string trouble = follower.trouble();
    if (trouble.empty() && is_behind_) log_.info("following the store again");
    is_behind_ = !trouble.empty();
    return trouble;
  }

  std::string count_refused(const edge::AgentServer& server) {
    const os::GrpcServer::Counts counts = server.connections();
    const std::uint64_t refused = counts.foreign_users + counts.too_many + counts.no_descriptors;
    if (std::exchange(refused_, refused) != refused) {
      log_.warn("refused connections so far: {} of other users, {} over the limit, {} without a descriptor left",
                counts.foreign_users, counts.too_many, counts.no_descriptors);
    }
    return {};
  }

  /// Asks the store, now and then or when there are signs of trouble, and says to who watches whether it is there.
  std::string probe(edge::AgentServer& server) {
    const auto now = daemon_.clock.now();
    const std::uint64_t failed = service_.failed();
    const bool due = now.since_boot >= next_probe_ || failed != failed_ || is_behind_ || !serving_;
    failed_ = failed;
    if (!due) return {};
    next_probe_ = now.since_boot + kProbeEvery;
    const auto there = cached_.uncached().position(Deadline::after(now, kProbeWait));
    if (there.has_value() == serving_) return {};
    serving_ = there.has_value();
    server.set_serving(serving_);
    health_.set("store", serving_ ? std::string() : there.error().message);
    if (serving_) log_.info("the store answers again: serving");
    if (!serving_) log_.warn("the store is away: not serving: {}", one_line(there.error().message));
    return {};
  }

  /// Releases what DELs of this node left for later.
  std::string make_up() {
    const Instant now = daemon_.clock.now();
    if (!serving_ || now.since_boot < next_replay_) return {};
    edge::Tombstones::Replay replay;
    replay.is_ours = [&](std::string_view url) { return is_own(url) || predecessors_.has(url); };
    replay.log = [&](const std::string& line) { log_.info("{}", one_line(line)); };
    replay.count_max = kReplayedMax;
    replay.deadline = Deadline::after(now, kReplayWait);
    const engine::Context context{cached_.uncached(), daemon_.clock, daemon_.random, kReplayWait};
    if (tombstones_.replay(context, replay).is_store_away) next_replay_ = now.since_boot + kReplayAgain;
    predecessors_.look(now.since_boot);
    return {};
  }

  /// The pause of another store, for which a DEL before a move left a tombstone.
  [[nodiscard]] Result<std::optional<core::Pause>> pause_of(const std::string& url) const {
    TRY(const auto store, open_store(url, store::OpenMode::existing, daemon_.clock, kDaemonParts));
    auto* const pausable = dynamic_cast<store::Pausable*>(store.get());
    if (pausable == nullptr) return std::optional<core::Pause>();
    TRY(const auto there, pausable->pause(Deadline::after(daemon_.clock.now(), kReplayWait)));
    return there ? std::optional(there->pause) : std::nullopt;
  }
  /// A node's cluster has one API, under whatever path an operator's kubeconfig is.
  [[nodiscard]] bool is_own(std::string_view url) const {
    const bool is_api = store::scheme_of(url) == store::Scheme::kube;
    return edge::serves_store_at(world_, url) || (is_api && store::scheme_of(world_.store) == store::Scheme::kube);
  }

  std::string tend_kubeconfig() {
    auto tended = cluster_.kubeconfig->renew_if_due();
    if (!tended) return kubeconfig_trouble_;
    if (!tended->is_failure) log_.info("the plugin's kubeconfig: {}", one_line(tended->line));
    return kubeconfig_trouble_ = tended->is_failure ? std::move(tended->line) : std::string();
  }

  /// Says that the node's network is there, as long as the register is: not while the store is away, at once when it is
  /// back, then every 30 s.
  std::string tend_condition() {
    const Instant now = daemon_.clock.now();
    if (!serving_ || now.since_boot < next_condition_) return condition_trouble_;
    next_condition_ = now.since_boot + kConditionEvery;
    const auto cleared = store::kube::clear_network_unavailable(*cluster_.condition, options_.node, now.wall,
                                                                Deadline::after(now, kConditionWait));
    if (cleared && *cleared) log_.info("node {}: NetworkUnavailable taken back", options_.node);
    return condition_trouble_ = cleared ? std::string() : cleared.error().message;
  }

  const AgentOptions& options_;
  Daemon& daemon_;
  const ClusterOfAgent& cluster_;
  std::string kubeconfig_trouble_;
  engine::DamageReportingStore telling_;
  store::CachedStore cached_;
  spdlog::logger log_;
  edge::AgentMetrics metrics_;
  edge::Health health_;
  edge::AgentWorld world_;
  edge::AgentService service_;
  std::mutex living_mutex_;
  std::string living_told_;
  edge::Tombstones tombstones_;
  Predecessors predecessors_{[this](const std::string& url) { return pause_of(url); },
                             [this](std::string_view url) { return is_own(url); }};
  bool is_behind_ = false;  ///< following the store
  std::uint64_t refused_ = 0;
  bool serving_ = true;
  std::chrono::nanoseconds next_replay_{0};
  std::chrono::nanoseconds next_condition_{0};
  std::string condition_trouble_;
  std::uint64_t failed_ = 0;
  std::chrono::nanoseconds next_probe_{0};
};

/// For a read of annotations that memory does not have.
constexpr std::chrono::seconds kWishesTime{5};

/// The memory that a full batch uses.
constexpr std::size_t kKeptBytes = std::size_t{2} << 20;

[[nodiscard]] Result<ClusterOfAgent> cluster_of(const AgentOptions& options, Daemon& daemon) {
  ClusterOfAgent cluster;
  if (store::scheme_of(options.store_url) != store::Scheme::kube) return cluster;
  if (!options.kubeconfig.file.empty()) {
    TRY(cluster.kubeconfig, PluginKubeconfig::make(options.kubeconfig, options.store_url, daemon.clock, daemon.random));
  }
  if (options.clear_network_unavailable) {
    TRY(cluster.condition, open_kube_api(options.store_url, daemon.clock, kDaemonParts, kConditionWait));
  }
  TRY(auto wishes, open_kube_api(options.store_url, daemon.clock, kDaemonParts, kWishesTime));
  cluster.wishes = std::make_unique<store::kube::WishFollower>(std::move(wishes), options.node, daemon.clock);
  store::kube::Events::Options how;
  how.node = options.node;
  TRY(auto api, open_kube_api(options.store_url, daemon.clock, kDaemonParts, store::kube::Events::kRequestTime));
  cluster.events = std::make_unique<store::kube::Events>(std::move(api), daemon.clock, daemon.random, std::move(how));
  return cluster;
}

/// The plugins, which find it by the same text, are called from other directories.
[[nodiscard]] Result<void> check_place(const char* flag, const char* variable, const std::string& path) {
  if (path.empty() || path.front() == '/' || path == edge::kNoTombstones) return {};
  return fail(invalid_argument(
      fmt::format("{} (or {}): {} is no absolute path; give one that begins with /", flag, variable, echo(path))));
}

/// Calico's kinds may lie in two groups of one API, which are two registers: a node that uses both has two holders.
[[nodiscard]] Result<void> check_groups(const AgentOptions& options) {
  if (store::scheme_of(options.store_url) != store::Scheme::kube) return {};
  TRY(const KubePlace own, parse_kube_url(options.store_url));
  for (const std::string& url : options.plugin_stores) {
    if (store::scheme_of(url) != store::Scheme::kube) continue;
    TRY(const KubePlace plugins, parse_kube_url(url));
    if (plugins.group == own.group) continue;
    const auto said = [](const KubePlace& place) {
      const std::string group = group_part(place);
      return group.empty() ? std::string("none") : echo(group);
    };
    return fail(ErrorCode::invalid_argument,
                "--plugin-store {} and --store {} name another group of Calico's kinds ({} and {}), which "
                "may be another register: name the same in both, and in the plugin's configuration "
                "(croftd install --store writes it there)",
                echo(store::without_user(url)), echo(store::without_user(options.store_url)), said(plugins), said(own));
  }
  return {};
}

[[nodiscard]] Result<int> run_agent(const AgentOptions& given, Daemon& daemon) {
  AgentOptions options = given;
  TRY_VOID(check_place("--socket", "CROFT_AGENT", options.socket));
  TRY_VOID(check_place("--tombstones", "CROFT_TOMBSTONES", options.tombstones));
  os::keep_freed_memory(kKeptBytes);
  // Until it serves, it looks whether its store is there.
  daemon.stop.before_forced_end({}, os::StopSignal::CutsOff::reading);
  if (options.node.empty()) {
    TRY(options.node, os::host_name());
  }
  TRY_VOID(core::check_node_name(options.node));
  TRY_VOID(check_groups(options));
  TRY(const auto opened, open_store(options.store_url, store::OpenMode::create, daemon.clock, kDaemonParts));
  TRY(const ClusterOfAgent cluster, cluster_of(options, daemon));
  return AgentProgram(options, daemon, *opened, cluster).run();
}

}  // namespace

void add_agent_command(CLI::App& app, Daemon& daemon) {
  CLI::App* command = app.add_subcommand("agent", "Serve the plugins of this node over a Unix socket");
  command->footer(
      "The plugin does not need an agent: without one it uses the store directly and gets the same answer.");
  const auto options = std::make_shared<AgentOptions>();
  command->add_option("--store", options->store_url, "Store URL, as in the configuration of the plugins")
      ->envname("CROFT_STORE")
      ->capture_default_str();
  command
      ->add_option("--plugin-store", options->plugin_stores,
                   "Another URL by which the configuration of the plugins names this very store, for example with a "
                   "kubeconfig of their own; may be given several times. Calls that name any other are not served")
      ->envname("CROFT_PLUGIN_STORE");
  command->add_option("--socket", options->socket, "Unix socket to listen on")
      ->envname("CROFT_AGENT")
      ->capture_default_str();
  command->add_option("--node", options->node, "Name of this node (default: its host name)")->envname("CROFT_NODE");
  command->add_option("--user", options->users, "User IDs that may connect; the socket is made accessible to them")
      ->capture_default_str();
  command
      ->add_option("--claim-ahead-below", options->claim_ahead_below,
                   "Claim the node's next block when fewer addresses than this are free in its blocks; 0: only when an "
                   "ADD needs one. Never under a limit of blocks per node")
      ->check(CLI::Range(0, 65536))
      ->capture_default_str();
  command
      ->add_option("--claim-ahead-hold-seconds", options->claim_ahead_hold_s,
                   "Give a block that was claimed ahead back after this time without use")
      ->check(CLI::Range(1, 86400))
      ->capture_default_str();
  command
      ->add_option("--tombstones", options->tombstones,
                   "Directory of the releases that DELs could not make; 'none': no such directory")
      ->envname("CROFT_TOMBSTONES")
      ->capture_default_str();
  command
      ->add_option("--plugin-kubeconfig", options->kubeconfig.file,
                   "Kubeconfig of the plugin to renew, as `croftd install` wrote it (default: none)")
      ->envname("CROFT_PLUGIN_KUBECONFIG");
  add_plugin_kubeconfig_options(*command, options->kubeconfig);
  command->add_flag(
      "--clear-network-unavailable", options->clear_network_unavailable,
      "Take back this node's condition NetworkUnavailable while the register is there (on a kube: store); "
      "not where somebody else makes routes first");
  add_metrics_option(*command, options->metrics_bind_address);
  command->add_flag("--log-calls", options->log_calls, "Log one line per call");
  command->callback([options, &daemon] { daemon.run = [options, &daemon] { return run_agent(*options, daemon); }; });
}

}  // namespace croft::app
