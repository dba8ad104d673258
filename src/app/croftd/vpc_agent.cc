// `croftd vpc-agent`: keeps a stock of cloud addresses on a node and serves UK8S' protocol
// (docs/reference/warm-pool.md).

#include <algorithm>
#include <atomic>
#include <chrono>
#include <deque>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <spdlog/logger.h>
#include <spdlog/sinks/rotating_file_sink.h>
#include <spdlog/sinks/stdout_sinks.h>

#include "app/croftd/daemon.h"
#include "app/croftd/log_format.h"
#include "app/croftd/stock_store.h"
#include "app/croftd/store_parts.h"
#include "app/croftd/vpc_demand.h"
#include "app/environment.h"
#include "app/open_store.h"
#include "app/ucloud_place.h"
#include "app/vpc_board.h"
#include "base/printable.h"
#include "core/register/affinity.h"
#include "edge/decision_log.h"
#include "edge/metrics/health.h"
#include "edge/metrics/server.h"
#include "edge/metrics/stock_metrics.h"
#include "edge/vpc/api_pods.h"
#include "edge/vpc/host_view.h"
#include "edge/vpc/peer_agents.h"
#include "edge/vpc/stock_server.h"
#include "edge/vpc/wire_probe.h"
#include "engine/stock_keeper.h"
#include "os/clock.h"
#include "os/files.h"
#include "os/interfaces.h"
#include "os/look_up.h"
#include "os/process.h"
#include "os/tls.h"
#include "os/tls_listener.h"
#include "os/unix_listener.h"
#include "store/cached/cached_store.h"
#include "store/kube/pod_list.h"
#include "store/kube/vpc_objects.h"
#include "store/store_url.h"

namespace croft::app {
namespace {

using std::chrono::seconds;

constexpr const char* kDefaultSocket = "/run/cni-vpc-ipamd.sock";
constexpr const char* kDefaultStore = "sqlite:/var/lib/croft/vpc.db";
constexpr seconds kVpcDrain{10};
constexpr seconds kLostTooOften{10};
/// An operator who puts a file back by hand is not disturbed at the first look.
constexpr int kLossesInARow = 3;
constexpr seconds kVpcApiTime{10};
constexpr std::size_t kAnnotationsMax = 4096;
constexpr std::size_t kLogBytes = std::size_t{50} << 20;
constexpr std::size_t kLogFiles = 3;

struct VpcAgentOptions {
  std::uint32_t low = 3, high = 50;
  std::uint32_t cooldown_s = 30;
  bool calico_policy = false;
  std::string node;
  std::string socket = kDefaultSocket;
  std::string store = kDefaultStore;
  UCloudPlace cloud;
  std::string interface;
  bool no_probe = false;
  std::uint32_t probe_wait_ms = 1000;
  std::uint32_t node_max = 0;
  std::uint32_t reconcile_s = 60, doubt_s = 60, grace_s = 60, young_s = 120;
  std::uint32_t release_unknown_after_s = 0;
  std::vector<std::string> peers;
  std::string listen;
  std::string tls_ca, tls_certificate, tls_key;
  bool operators_over_tcp = false;
  std::string kubernetes;
  std::string metrics;
  std::string log_directory = "/var/log/ucloud";
  std::string demand_file;
  std::vector<std::uint32_t> users = {0};
};

[[nodiscard]] std::string path_of_store(const VpcAgentOptions& options) {
  return std::string(store::behind_scheme(options.store));
}

/// "node-b=10.0.0.2:7312": an agent that needs no board to be found.
[[nodiscard]] Result<engine::PeerAgents::Peer> peer_of(const std::string& text) {
  const std::size_t equals = text.find('=');
  if (equals == 0 || equals == text.npos || equals + 1 == text.size()) {
    return fail(invalid_argument(fmt::format("--peer {} must be NODE=ADDRESS:PORT", printable(text, Printed::line))));
  }
  engine::PeerAgents::Peer peer;
  peer.node = text.substr(0, equals);
  peer.address = text.substr(equals + 1);
  peer.free = 1;  // it says when it is asked
  return peer;
}

/// The wire of the interface that the cloud gives addresses to, once that is known.
class InterfaceProbe final : public engine::AddressProbe {
 public:
  InterfaceProbe(const VpcAgentOptions& options, const Clock& clock, Random& random)
      : options_(options), clock_(clock), random_(random) {}
  /// By MAC, where no name was given.
  std::function<std::optional<cloud::Interface>()> interface;

  [[nodiscard]] Result<std::vector<Answer>> probe(const std::vector<net::Address>& addresses,
                                                  Deadline deadline) override {
    TRY(auto wire, this->wire(deadline));
    return wire.probe(addresses, deadline);
  }
  void announce(const std::vector<net::Address>& addresses) override {
    auto wire = this->wire(Deadline::after(clock_.now(), seconds{5}));
    if (wire) wire->announce(addresses);
  }

 private:
  [[nodiscard]] Result<edge::WireProbe> wire(Deadline deadline) {
    std::string name = options_.interface;
    if (name.empty()) {
      const auto found = interface ? interface() : std::nullopt;
      if (!found) return fail(ErrorCode::unavailable, "the interface is not known yet");
      os::MacBytes mac{};
      std::ranges::copy(found->mac.bytes, mac.begin());
      TRY(const auto one, os::find_interface(mac, clock_, deadline));
      name = one.name;
    }
    os::ProbeTiming timing;
    const std::chrono::nanoseconds unit = std::chrono::milliseconds{options_.probe_wait_ms};
    timing.probe_wait = unit;
    timing.probe_min = unit;
    timing.probe_max = unit * 2;
    timing.announce_wait = unit * 2;
    timing.announce_num = 2;
    timing.announce_interval = unit * 2;
    return edge::WireProbe(name, timing, clock_, random_);
  }

  const VpcAgentOptions& options_;
  const Clock& clock_;
  Random& random_;
};

/// Where the agent finds its cluster; nothing where it has none.
struct ClusterOfStock {
  std::unique_ptr<store::kube::Api> pods_api, board_api, annotations_api, claims_api;
  std::unique_ptr<edge::ApiPods> pods;
  std::unique_ptr<engine::AddressClaims> claims;
  std::unique_ptr<VpcBoard> board;
};

/// Writes pods' addresses where Calico's policy reads them, one after the other, again after a failure.
class PodAnnotations {
 public:
  PodAnnotations(store::kube::Api& api, const Clock& clock, std::function<void(const std::string&)> log)
      : objects_(api), clock_(clock), log_(std::move(log)), thread_([this] { run(); }) {}
  ~PodAnnotations() {
    {
      const std::lock_guard lock(mutex_);
      stopping_ = true;
    }
    wake_.notify_all();
    thread_.join();
  }
  PodAnnotations(const PodAnnotations&) = delete;
  PodAnnotations& operator=(const PodAnnotations&) = delete;
  /// Never blocks. Beyond kAnnotationsMax the oldest are forgotten.
  void add(const core::PodIdentity& pod, const net::Address& address) {
    {
      const std::lock_guard lock(mutex_);
      if (queue_.size() == kAnnotationsMax) queue_.pop_front();
      queue_.push_back({pod, address});
    }
    wake_.notify_all();
  }

 private:
  struct Wanted {
    core::PodIdentity pod;
    net::Address address;
  };
  void run() {
    std::chrono::nanoseconds rest = seconds{1};
    std::unique_lock lock(mutex_);
    while (!stopping_) {
      if (queue_.empty()) {
        wake_.wait(lock);
        continue;
      }
      const Wanted wanted = queue_.front();
      lock.unlock();
      const auto done = objects_.annotate_pod(wanted.pod.namespace_name, wanted.pod.name, wanted.pod.uid,
                                              {wanted.address}, Deadline::after(clock_.now(), kVpcApiTime));
      lock.lock();
      const bool is_over =
          done || done.error().code == ErrorCode::not_found || done.error().code == ErrorCode::conflict;
      if (is_over) {
        if (!queue_.empty()) queue_.pop_front();
        rest = seconds{1};
        continue;
      }
      log_(fmt::format("pod {}/{} is not annotated: {}", wanted.pod.namespace_name, wanted.pod.name,
                       done.error().message));
      wake_.wait_for(lock, rest, [this] { return stopping_; });
      rest = std::min<std::chrono::nanoseconds>(rest * 2, seconds{60});
    }
  }
  store::kube::VpcObjects objects_;
  const Clock& clock_;
  const std::function<void(const std::string&)> log_;
  std::mutex mutex_;
  std::condition_variable wake_;
  bool stopping_ = false;  ///< guarded by mutex_, as below
  std::deque<Wanted> queue_;
  std::thread thread_;
};

/// What VpcIpClaims promise to pods.
class ClusterClaims final : public engine::AddressClaims {
 public:
  explicit ClusterClaims(store::kube::Api& api) : objects_(api) {}
  [[nodiscard]] Result<std::vector<net::Address>> claimed(Deadline deadline) override {
    const auto claims = objects_.claims("", deadline);
    std::vector<net::Address> addresses;
    // A cluster without the kind has none.
    if (!claims && claims.error().code == ErrorCode::not_found) return addresses;
    if (!claims) return fail(claims.error());
    for (const auto& claim : *claims) {
      // One without an address promises none yet; nonsense that could be one is not passed over.
      if (claim.record.ip.empty()) continue;
      auto address = net::Address::parse(claim.record.ip);
      if (!address) return fail(address.error().in("VpcIpClaim " + claim.meta.name));
      addresses.push_back(*address);
    }
    return addresses;
  }

 private:
  store::kube::VpcObjects objects_;
};

class VpcAgentProgram {
 public:
  VpcAgentProgram(const VpcAgentOptions& options, Daemon& daemon, StockStore& opened, cloud::Provider& cloud,
                  const ClusterOfStock& cluster, std::vector<engine::PeerAgents::Peer> fixed_peers)
      : options_(options),
        daemon_(daemon),
        cloud_(cloud),
        cluster_(cluster),
        fixed_peers_(std::move(fixed_peers)),
        log_("croftd"),
        opened_(opened),
        cached_(*opened.store, {core::AffinityOwner::Type::host, options.node}, daemon.clock, memory_options()),
        probe_(options, daemon.clock, daemon.random),
        host_(daemon.clock),
        peers_([this](const std::string& subnet, Deadline deadline) { return directory(subnet, deadline); },
               security(options), daemon.clock),
        metrics_([this] { return figures(); }),
        health_(daemon.clock),
        demand_(demand_file(options), daemon.clock, [this](const std::string& line) { note(line); }) {
    log_.sinks().push_back(std::make_shared<spdlog::sinks::stderr_sink_mt>());
    if (options.log_directory != "none") add_log_file();
    log_.set_formatter(std::make_unique<LogFormat>("vpc-agent"));
    cloud_.on_call([this](const cloud::Provider::Call& call) { metrics_.count(call); });
  }

  enum class End : std::uint8_t { stopped, store_lost };
  /// Until the daemon is told to end, or the files of its store are damaged or gone.
  [[nodiscard]] Result<End> run() {
    TRY(auto listener, os::UnixListener::listen(options_.socket, {options_.users}, daemon_.clock));
    os::make_files_private();
    if (options_.calico_policy && cluster_.annotations_api != nullptr) {
      annotations_ = std::make_unique<PodAnnotations>(*cluster_.annotations_api, daemon_.clock,
                                                      [this](const std::string& line) { note(line); });
    }
    const store::CacheFollower follower(cached_, daemon_.clock);
    engine::StockKeeper keeper(keeper_world(), keeper_options());
    keeper_ = &keeper;
    probe_.interface = [&keeper] { return keeper.interface(); };
    edge::StockServer server(stock_world(keeper), daemon_.clock);
    server_ = &server;
    daemon_.stop.before_forced_end(listener->file_remover());
    TRY_VOID(server.open_door(std::move(listener), {}));
    TRY_VOID(open_to_peers(server));
    std::unique_ptr<edge::MetricsServer> metrics_server;
    if (!options_.metrics.empty()) {
      TRY(const auto address, edge::MetricsAddress::parse(options_.metrics));
      TRY(metrics_server, edge::MetricsServer::start(metrics_, address, &health_));
    }
    tell_of_store();
    demand_.load();
    log_.info("serving node {} on {} from {}; water marks {} and {}, cooldown {} s", options_.node, options_.socket,
              options_.store, options_.low, options_.high, options_.cooldown_s);
    std::thread rounds([&] {
      auto next = daemon_.clock.now().since_boot;
      while (keeper.wait_until(next)) {
        next = keeper.step();
        tend_board();
      }
    });
    End end = End::stopped;
    int losses = 0;
    while (!daemon_.stop.wait_for(seconds{1})) {
      look(server, keeper);
      const auto loss = loss_of(cached_.uncached(), path_of_store(options_), daemon_.clock);
      losses = loss ? losses + 1 : 0;
      if (losses < kLossesInARow) continue;
      log_.error("the store is lost while it is in use, and is begun anew: {}",
                 printable(loss->message, Printed::line));
      end = End::store_lost;
      break;
    }
    if (end == End::stopped) log_.info("ending");
    demand_.save();
    server.stop(Deadline::after(daemon_.clock.now(), kVpcDrain));
    keeper.stop();
    rounds.join();
    server_ = nullptr;
    keeper_ = nullptr;
    annotations_.reset();
    return end;
  }

 private:
  static store::CachedStoreOptions memory_options() {
    store::CachedStoreOptions options;
    options.follower = core::Follower::stock;
    return options;
  }
  static std::shared_ptr<const os::TransportSecurity> security(const VpcAgentOptions& options) {
    if (options.tls_ca.empty()) return nullptr;
    os::TlsFiles files;
    files.ca_file = options.tls_ca;
    files.certificate_file = options.tls_certificate;
    files.key_file = options.tls_key;
    files.any_name = true;  // the CA signs for agents alone
    return os::make_tls(std::move(files));
  }

  /// Beside the store, unless it is said where, or "none".
  static std::string demand_file(const VpcAgentOptions& options) {
    if (options.demand_file == "none") return "";
    if (!options.demand_file.empty()) return options.demand_file;
    const auto store = store::file_of_store(options.store);
    return store ? os::directory_of(*store) + "/vpc-demand.json" : "";
  }

  void add_log_file() {
    try {
      log_.sinks().push_back(std::make_shared<spdlog::sinks::rotating_file_sink_mt>(
          options_.log_directory + "/cni-vpc-ipamd.log", kLogBytes, kLogFiles));
      log_.flush_on(spdlog::level::info);
    } catch (const spdlog::spdlog_ex& error) {
      log_.warn("no log file: {}", printable(error.what(), Printed::line));
    }
  }

  void tell_of_store() {
    if (opened_.aside) {
      log_.error("the store was damaged and is set aside as {}: {}", printable(opened_.aside->path, Printed::line),
                 printable(opened_.aside->why, Printed::line));
    }
    if (!opened_.begins_anew) return;
    log_.warn(
        "nothing is known of this node's addresses: what the cloud has on its interface is compared with the "
        "pods and the host, and no address of before is given to a pod until nothing has used it for {} s",
        std::max(options_.doubt_s, options_.cooldown_s));
  }

  void note(const std::string& line) { log_.info("{}", printable(line, Printed::line)); }

  engine::KeeperOptions keeper_options() const {
    engine::KeeperOptions options;
    options.marks.low = options_.low;
    options.marks.high = options_.high;
    options.marks.node_max = options_.node_max;
    options.marks.batch_max = 110;
    options.reconcile.grace = seconds{options_.grace_s};
    options.reconcile.young = seconds{options_.young_s};
    options.node = options_.node;
    options.subnet = options_.cloud.subnet;
    options.cooldown = seconds{options_.cooldown_s};
    options.reconcile_every = seconds{options_.reconcile_s};
    options.doubt = seconds{options_.doubt_s};
    options.release_unknown_after = seconds{options_.release_unknown_after_s};
    const os::ProcessName self = os::own_process();
    options.process = self.id;
    options.process_started = self.began;
    return options;
  }

  engine::KeeperWorld keeper_world() {
    engine::KeeperWorld world{cached_.uncached(), daemon_.clock, daemon_.random, cloud_};
    world.probe = options_.no_probe ? nullptr : &probe_;
    world.peers = &peers_;
    world.board = cluster_.board.get();
    world.pods = cluster_.pods.get();
    world.host = &host_;
    world.claims = cluster_.claims.get();
    world.is_alive = [](std::uint32_t process, std::uint64_t began) { return os::is_running({process, began}); };
    world.log = [this](const std::string& line) { note(line); };
    world.stocked = [this] {
      if (edge::StockServer* server = server_) server->service().stocked();
    };
    return world;
  }

  edge::StockWorld stock_world(engine::StockKeeper& keeper) {
    edge::StockWorld world{cached_, cached_.uncached(), daemon_.clock, daemon_.random, keeper};
    world.log = [this](const std::string& line) { note(line); };
    if (annotations_ != nullptr) {
      world.assigned = [this](const core::PodIdentity& pod, const net::Address& address) {
        if (!pod.name.empty()) annotations_->add(pod, address);
      };
    }
    return world;
  }

  [[nodiscard]] Result<void> open_to_peers(edge::StockServer& server) {
    if (options_.listen.empty()) return {};
    os::TlsListenerOptions how;
    TRY(const auto address, edge::MetricsAddress::parse(options_.listen));
    how.host = address.host.to_string();
    how.port = address.port;
    how.files.ca_file = options_.tls_ca;
    how.files.certificate_file = options_.tls_certificate;
    how.files.key_file = options_.tls_key;
    how.tell = [this](const std::string& line) { note(line); };
    TRY(auto listener, os::TlsListener::listen(std::move(how), daemon_.clock));
    return server.open_door(std::move(listener), {.plugin = false, .operators = options_.operators_over_tcp});
  }

  [[nodiscard]] Result<std::vector<engine::PeerAgents::Peer>> directory(const std::string& subnet, Deadline deadline) {
    std::vector<engine::PeerAgents::Peer> all = fixed_peers_;
    for (auto& peer : all) peer.subnet = subnet;
    if (cluster_.board != nullptr) {
      TRY(auto said, cluster_.board->peers(subnet, deadline));
      std::ranges::move(said, std::back_inserter(all));
    }
    return all;
  }

  /// In the thread of rounds.
  void tend_board() {
    const auto now = daemon_.clock.now().since_boot;
    if (cluster_.board == nullptr || now < next_clean_up_) return;
    next_clean_up_ = now + std::chrono::minutes{10};
    const auto cleaned = cluster_.board->clean_up(Deadline::after(daemon_.clock.now(), kVpcApiTime));
    if (!cleaned)
      log_.warn("the board of agents is not cleaned up: {}", printable(cleaned.error().message, Printed::line));
  }

  /// Once a second: what others ask about this agent.
  void look(edge::StockServer& server, const engine::StockKeeper& keeper) {
    const auto figures = this->figures();
    if (figures) {
      demand_.look({figures->adds, figures->waiting, figures->counts.free,
                    figures->keeper.allocated + figures->keeper.borrowed, figures->keeper.last_fill});
    }
    const auto trouble = keeper.trouble();
    const bool has_interface = keeper.interface().has_value();
    const bool is_ready =
        figures && (figures->counts.free + figures->counts.held > 0 || options_.high == 0) && has_interface;
    health_.set("stock", is_ready ? "" : trouble ? trouble->message : "no address is in stock yet");
    if (is_ready == serving_) return;
    serving_ = is_ready;
    server.set_serving(serving_);
    log_.info("{}", serving_ ? "ready" : "not ready: nothing is in stock");
  }

  [[nodiscard]] std::optional<edge::StockFigures> figures() {
    engine::StockKeeper* const keeper = keeper_;
    edge::StockServer* const server = server_;
    if (keeper == nullptr || server == nullptr) return std::nullopt;
    const auto view = engine::view_stock({cached_, daemon_.clock, daemon_.random, seconds{1}});
    if (!view) return std::nullopt;
    edge::StockFigures figures;
    const Instant now = daemon_.clock.now();
    for (const core::WarmAddress& one : view->addresses) core::warm::count(figures.counts, one, now);
    figures.low = options_.low;
    figures.high = options_.high;
    figures.keeper = keeper->tally();
    const edge::StockServiceTally tally = server->service().tally();
    figures.adds = tally.adds;
    figures.adds_failed = tally.adds_failed;
    figures.dels = tally.dels;
    figures.dels_failed = tally.dels_failed;
    figures.waited = tally.waited;
    figures.commits = tally.commits;
    figures.waiting = tally.waiting;
    static_assert(edge::kDelayBuckets == std::tuple_size_v<decltype(figures.add_delays)>);
    figures.add_delays = tally.add_delays;
    figures.add_delay_first = edge::kDelayFirst;
    figures.add_delay_sum = tally.add_delay_sum;
    figures.throttled = cloud_.throttled();
    return figures;
  }

  const VpcAgentOptions& options_;
  Daemon& daemon_;
  cloud::Provider& cloud_;
  const ClusterOfStock& cluster_;
  const std::vector<engine::PeerAgents::Peer> fixed_peers_;
  spdlog::logger log_;
  const StockStore& opened_;
  store::CachedStore cached_;
  InterfaceProbe probe_;
  edge::HostView host_;
  edge::GrpcPeers peers_;
  edge::StockMetrics metrics_;
  edge::Health health_;
  DemandRecord demand_;
  std::unique_ptr<PodAnnotations> annotations_;
  std::atomic<engine::StockKeeper*> keeper_ = nullptr;
  std::atomic<edge::StockServer*> server_ = nullptr;
  std::chrono::nanoseconds next_clean_up_{0};
  bool serving_ = false;
};

[[nodiscard]] Result<ClusterOfStock> cluster_of(const VpcAgentOptions& options, Daemon& daemon) {
  ClusterOfStock cluster;
  if (options.kubernetes.empty()) return cluster;
  if (store::scheme_of(options.kubernetes) != store::Scheme::kube) {
    return fail(invalid_argument("--kubernetes must be kube: or kube:/path/to/kubeconfig"));
  }
  TRY(cluster.pods_api, open_kube_api(options.kubernetes, daemon.clock, kDaemonParts, kVpcApiTime));
  TRY(cluster.board_api, open_kube_api(options.kubernetes, daemon.clock, kDaemonParts, kVpcApiTime));
  TRY(cluster.annotations_api, open_kube_api(options.kubernetes, daemon.clock, kDaemonParts, kVpcApiTime));
  cluster.pods = std::make_unique<edge::ApiPods>([&api = *cluster.pods_api, &clock = daemon.clock, node = options.node](
                                                     Deadline deadline, const std::function<void()>& begin,
                                                     const std::function<void(const core::collect::PodFact&)>& take) {
    return store::kube::for_each_pod_of_node(api, clock, node, deadline, begin, take);
  });
  TRY(cluster.claims_api, open_kube_api(options.kubernetes, daemon.clock, kDaemonParts, kVpcApiTime));
  cluster.claims = std::make_unique<ClusterClaims>(*cluster.claims_api);
  cluster.board = std::make_unique<VpcBoard>(*cluster.board_api, daemon.clock, options.node, options.listen);
  return cluster;
}

[[nodiscard]] Result<int> run_vpc_agent(const VpcAgentOptions& given, Daemon& daemon) {
  VpcAgentOptions options = given;
  core::warm::Marks marks;
  marks.low = options.low;
  marks.high = options.high;
  TRY_VOID(core::warm::check_marks(marks));
  if (options.node.empty()) {
    TRY(options.node, os::host_name());
  }
  TRY_VOID(core::check_node_name(options.node));
  if (store::scheme_of(options.store) != store::Scheme::sqlite) {
    return fail(
        invalid_argument("--store must be sqlite:/path: the stock is the node's own, and has to be there when "
                         "nothing else is"));
  }
  if (!options.listen.empty() &&
      (options.tls_ca.empty() || options.tls_certificate.empty() || options.tls_key.empty())) {
    return fail(
        invalid_argument("--listen needs --tls-ca, --tls-certificate and --tls-key: peers are spoken to with "
                         "certificates only (croft vpc certificates makes them)"));
  }
  std::vector<engine::PeerAgents::Peer> peers;
  for (const std::string& text : options.peers) {
    TRY(auto peer, peer_of(text));
    peers.push_back(std::move(peer));
  }
  options.cloud.environment = ucloud_environment();
  TRY(const auto cloud, open_ucloud(options.cloud, os::look_up_host, daemon.clock));
  TRY(const ClusterOfStock cluster, cluster_of(options, daemon));
  const std::string path = path_of_store(options);
  if (!path.starts_with('/')) {
    return fail(invalid_argument("--store must be sqlite:/ and an absolute path"));
  }
  bool was_lost = false;
  for (;;) {
    const auto begun = daemon.clock.now().since_boot;
    TRY(StockStore stock, open_stock_store(path, was_lost, daemon.clock, daemon.random));
    VpcAgentProgram program(options, daemon, stock, *cloud, cluster, peers);
    TRY(const auto end, program.run());
    if (end == VpcAgentProgram::End::stopped) return 0;
    if (was_lost && daemon.clock.now().since_boot - begun < kLostTooOften) {
      // Who started this program waits longer each time.
      return fail(ErrorCode::corrupt, fmt::format("the store {} is lost again and again; look at its disk", path));
    }
    was_lost = true;
  }
}

}  // namespace

void add_vpc_agent_command(CLI::App& app, Daemon& daemon) {
  CLI::App* command = app.add_subcommand(
      "vpc-agent", "Keep a stock of cloud addresses on this node and serve its pods from it (UK8S' cni-vpc-ipamd)");
  command->footer(
      "The plugin croft-vpc does not need it: without the agent it asks the cloud itself, and the pod waits.");
  const auto options = std::make_shared<VpcAgentOptions>();
  command
      ->add_option("--low-water-mark,--availablePodIPLowWatermark", options->low,
                   "As many free addresses there are at least; 0 with a high mark of 0: none is asked for ahead")
      ->capture_default_str();
  command
      ->add_option("--high-water-mark,--availablePodIPHighWatermark", options->high,
                   "More free addresses than this go back to the cloud")
      ->capture_default_str();
  command
      ->add_option("--cooldown-seconds,--cooldownPeriodSeconds", options->cooldown_s,
                   "How long a released address rests before another pod gets it; 0: not at all")
      ->check(CLI::Range(0, 1200))
      ->capture_default_str();
  command->add_flag("--calico-policy,--calicoPolicyFlag", options->calico_policy,
                    "Write each pod's address into its annotation cni.projectcalico.org/podIP");
  command->add_option("--node", options->node, "Name of this node (default: its host name)")->envname("KUBE_NODE_NAME");
  command->add_option("--socket", options->socket, "Unix socket of plugins and operators")->capture_default_str();
  command->add_option("--user", options->users, "User IDs that may connect to it")->capture_default_str();
  command->add_option("--store", options->store, "Where the stock is recorded: a file of this node's own")
      ->envname("CROFT_VPC_STORE")
      ->capture_default_str();
  command->add_option("--api", options->cloud.api, "URL of UCloud's API (default: the one inside a VPC)")
      ->envname("UCLOUD_API_ENDPOINT");
  command->add_option("--metadata", options->cloud.metadata, "URL of the instance's metadata (default: UCloud's)");
  command->add_option("--region", options->cloud.region, "Where the metadata do not say")->envname("UCLOUD_REGION_ID");
  command->add_option("--project", options->cloud.project, "Where the metadata do not say")
      ->envname("UCLOUD_PROJECT_ID");
  command->add_option("--vpc", options->cloud.vpc, "Where the metadata do not say")->envname("UCLOUD_VPC_ID");
  command->add_option("--subnet", options->cloud.subnet, "Subnet to take addresses from (default: the interface's)")
      ->envname("UCLOUD_SUBNET_ID");
  command->add_option("--interface", options->interface,
                      "Interface to probe on (default: the one with the cloud's MAC)");
  command->add_flag("--no-probe", options->no_probe,
                    "Take what the cloud gives for nobody else's, without asking the wire");
  command
      ->add_option("--probe-unit-milliseconds", options->probe_wait_ms,
                   "RFC 5227's PROBE_WAIT, by which the whole window is scaled")
      ->check(CLI::Range(10, 10000))
      ->capture_default_str();
  command->add_option("--max-addresses", options->node_max, "What this node may have of all sorts; 0: no limit")
      ->capture_default_str();
  command->add_option("--reconcile-seconds", options->reconcile_s, "Between looks for differences")
      ->check(CLI::Range(1, 86400))
      ->capture_default_str();
  command->add_option("--grace-seconds", options->grace_s, "How long a difference has to be seen before it is acted on")
      ->check(CLI::Range(1, 86400))
      ->capture_default_str();
  command->add_option("--young-seconds", options->young_s, "Records younger than this are left alone")
      ->check(CLI::Range(1, 86400))
      ->capture_default_str();
  command->add_option("--doubt-seconds", options->doubt_s, "How late the cloud may still do what it never answered")
      ->check(CLI::Range(1, 86400))
      ->capture_default_str();
  command
      ->add_option("--release-unknown-after-seconds", options->release_unknown_after_s,
                   "Give back what nobody knows a use of after so long; 0: an operator does")
      ->capture_default_str();
  command->add_option(
      "--peer", options->peers,
      "Another node's agent, NODE=ADDRESS:PORT; may be given several times. Others are found in the cluster");
  command->add_option("--listen", options->listen, "ADDRESS:PORT for the agents of other nodes, with certificates")
      ->envname("LISTEN_TCP_ADDR");
  command->add_option("--tls-ca", options->tls_ca, "Who signs the agents' certificates");
  command->add_option("--tls-certificate", options->tls_certificate, "This agent's certificate");
  command->add_option("--tls-key", options->tls_key, "Its key, readable to its user only");
  command->add_flag("--operators-over-tcp", options->operators_over_tcp,
                    "Let operators in over --listen too, for croft vpc from another node");
  command->add_option("--kubernetes", options->kubernetes,
                      "kube: or kube:/path/kubeconfig: the cluster's pods, and where the agents find each other");
  command->add_option("--metrics", options->metrics, "ADDRESS:PORT for /metrics, /healthz and /readyz");
  command
      ->add_option("--log-directory", options->log_directory, "Directory of the log file; 'none': standard error alone")
      ->capture_default_str();
  command->add_option("--demand-file", options->demand_file,
                      "What was asked for in the last day, for croft vpc advise; 'none': it is not kept (default: "
                      "vpc-demand.json beside the store)");
  command->callback(
      [options, &daemon] { daemon.run = [options, &daemon] { return run_vpc_agent(*options, daemon); }; });
}

}  // namespace croft::app
