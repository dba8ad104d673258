// `croftd vpc-agent`: keeps a stock of cloud addresses on a node and serves UK8S' protocol
// (docs/notes/warm-pool.md).

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include <CLI/CLI.hpp>
#include <fmt/format.h>
#include <spdlog/logger.h>
#include <spdlog/sinks/rotating_file_sink.h>
#include <spdlog/sinks/stdout_sinks.h>

#include "agent/daemon/daemon.h"
#include "agent/metrics/metrics.h"
#include "agent/metrics/web_server.h"
#include "base/printable.h"
#include "cli/stores/open_store.h"
#include "cni/decision_log.h"
#include "http/tls.h"
#include "http/transport.h"
#include "http/unix_listener.h"
#include "os/clock.h"
#include "os/files.h"
#include "os/look_up.h"
#include "os/process.h"
#include "register/node.h"
#include "store/kube/cluster_facts.h"
#include "store/kube/events.h"
#include "store/store_url.h"
#include "vpc/daemon/stock_store.h"
#include "vpc/daemon/vpc_cluster.h"
#include "vpc/door/adapters.h"
#include "vpc/door/agent_client.h"
#include "vpc/door/stock_server.h"
#include "vpc/ucloud/ucloud.h"
#include "vpc/use/stock_keeper.h"

namespace croft::app {
namespace {

using std::chrono::seconds;

/// The flags of `croftd vpc-agent` (docs/warm-pool.md#flags). Empty texts: not said.
struct VpcAgentOptions {
  std::uint32_t low = 3, high = 50;
  std::uint32_t cooldown_s = 30;
  bool calico_policy = false;
  std::string node;
  std::string socket = "/run/cni-vpc-ipamd.sock";
  std::string store = "sqlite:/var/lib/croft/vpc.db";
  cloud::ucloud::Place cloud;
  std::string interface;
  bool no_probe = false;
  std::uint32_t probe_wait_ms = 1000;
  std::uint32_t node_max = 0;
  std::uint32_t reconcile_s = 60, grace_s = 60, doubt_s = 60;
  std::vector<std::string> peers;
  std::string listen;
  std::string tls_ca, tls_certificate, tls_key;
  bool insecure_peers = false;
  bool operators_over_tcp = false;
  std::string kubernetes;
  std::string metrics;
  std::string log_directory = "/var/log/ucloud";
  std::vector<std::uint32_t> users = {0};
};

/// `options` outlives the command.
void add_vpc_agent_options(CLI::App& command, VpcAgentOptions& options) {
  command.option_defaults()->always_capture_default();
  command.add_option("--low-water-mark,--availablePodIPLowWatermark", options.low,
                     "Minimum number of free addresses to keep. Set both marks to 0 to keep no stock");
  command.add_option("--high-water-mark,--availablePodIPHighWatermark", options.high,
                     "More free addresses than this go back to the cloud");
  command
      .add_option("--cooldown-seconds,--cooldownPeriodSeconds", options.cooldown_s,
                  "Seconds a released address rests before another pod gets it; 0: none")
      ->check(CLI::Range(0, 1200));
  command.add_flag("--calico-policy,--calicoPolicyFlag", options.calico_policy,
                   "Write each pod's address into its annotation cni.projectcalico.org/podIP");
  command.add_option("--node", options.node, "Name of this node (default: its host name)")->envname("KUBE_NODE_NAME");
  command.add_option("--socket", options.socket, "Unix socket of plugins and operators");
  command.add_option("--user", options.users, "User IDs that may connect to it");
  command.add_option("--store", options.store, "Where the stock is recorded: a file of this node's own")
      ->envname("CROFT_VPC_STORE");
  command.add_option("--api", options.cloud.api, "URL of UCloud's API (default: the one inside a VPC)")
      ->envname("UCLOUD_API_ENDPOINT");
  command.add_option("--metadata", options.cloud.metadata, "URL of the instance's metadata (default: UCloud's)");
  command.add_option("--region", options.cloud.region, "Region (default: the metadata's)")->envname("UCLOUD_REGION_ID");
  command.add_option("--project", options.cloud.project, "Project (default: the metadata's)")
      ->envname("UCLOUD_PROJECT_ID");
  command.add_option("--vpc", options.cloud.vpc, "VPC (default: the metadata's)")->envname("UCLOUD_VPC_ID");
  command.add_option("--subnet", options.cloud.subnet, "Subnet to take addresses from (default: the interface's)")
      ->envname("UCLOUD_SUBNET_ID");
  command.add_option("--interface", options.interface, "Interface to probe on (default: the one with the cloud's MAC)");
  command.add_flag("--no-probe", options.no_probe, "Skip the ARP probe of new addresses");
  command
      .add_option("--probe-unit-milliseconds", options.probe_wait_ms,
                  "PROBE_WAIT of RFC 5227; scales the whole window of the probe")
      ->check(CLI::Range(10, 10000));
  command.add_option("--max-addresses", options.node_max,
                     "Maximum number of addresses of this node, of all states; 0: no limit");
  command
      .add_option("--reconcile-seconds", options.reconcile_s,
                  "Seconds between comparisons of records, cloud, pods and host")
      ->check(CLI::Range(1, 86400));
  command.add_option("--grace-seconds", options.grace_s, "Seconds a difference has to be seen before it is acted on")
      ->check(CLI::Range(1, 86400));
  command
      .add_option("--doubt-seconds", options.doubt_s,
                  "Seconds within which the cloud may still do a call that it never answered; a shorter time than it "
                  "takes can give one address to two pods")
      ->check(CLI::Range(1, 86400));
  command
      .add_option(
          "--peer", options.peers,
          "Another node's agent, NODE=ADDRESS:PORT; may be given several times. Others are found in the cluster")
      ->default_str("");
  command.add_option("--listen", options.listen, "ADDRESS:PORT for the agents of other nodes, with certificates")
      ->envname("LISTEN_TCP_ADDR");
  command.add_option("--tls-ca", options.tls_ca, "CA of the agents' certificates");
  command.add_option("--tls-certificate", options.tls_certificate, "This agent's certificate");
  command.add_option("--tls-key", options.tls_key, "Its key, readable to its user only");
  command.add_flag(
      "--insecure-peers", options.insecure_peers,
      "Speak plain gRPC with other nodes' agents and operators, as UK8S' own agent and cnivpctl do: whoever "
      "reaches --listen moves addresses. For the time of an upgrade");
  command.add_flag("--operators-over-tcp", options.operators_over_tcp,
                   "Let operators in over --listen too, for croft vpc from another node");
  command.add_option(
      "--kubernetes", options.kubernetes,
      "kube: or kube:/path/kubeconfig: the cluster's pods, and where the agents find each other (default: "
      "kube: inside a cluster); 'none': no API");
  command.add_option("--metrics", options.metrics, "ADDRESS:PORT for /metrics, /healthz and /readyz");
  command.add_option("--log-directory", options.log_directory,
                     "Directory of the log file; 'none': standard error alone");
  // As Go's flags, of a flag that is given twice the last counts.
  for (CLI::Option* option : command.get_options()) {
    if (option->get_items_expected_max() <= 1) option->take_last();
  }
}

constexpr seconds kVpcDrain{10};
/// For one request to the API server.
constexpr seconds kVpcApiTime{10};
/// For a round that is under way when the agent ends.
constexpr seconds kCloudPatience{1};
/// The board is written between two rounds, which may have to serve ADDs that wait.
constexpr seconds kBoardTime{2};
/// An operator who puts a file back by hand is not disturbed at the first look.
constexpr int kLossesInARow = 3;
constexpr std::size_t kLogBytes = std::size_t{50} << 20;
constexpr std::size_t kLogFiles = 3;
constexpr std::size_t kCertificateBytesMax = std::size_t{64} << 10;

[[nodiscard]] std::string path_of_store(const VpcAgentOptions& options) {
  return std::string(store::behind_scheme(options.store));
}

/// docs/notes/warm-pool.md#deadlines
[[nodiscard]] os::UnixListenerOptions socket_access(const VpcAgentOptions& options) {
  os::UnixListenerOptions access;
  access.users = options.users;
  access.file_mode = 0660;
  const bool is_roots = std::ranges::all_of(options.users, [](std::uint32_t user) { return user == 0; });
  if (is_roots) access.directory_mode = 0750;
  return access;
}

/// Where the agent finds its cluster; nothing where it has none.
struct ClusterOfStock {
  std::unique_ptr<store::kube::Api> api;
  engine::NodePods pods;
  std::unique_ptr<ClusterFixedAddresses> claims;
  std::unique_ptr<VpcBoard> board;
  std::unique_ptr<store::kube::Events> events;
};

/// The cluster that `--kubernetes` names; `daemon` outlives it. Errors: invalid_argument for what is no kube: URL;
/// those of its files.
[[nodiscard]] Result<ClusterOfStock> cluster_of(const VpcAgentOptions& options, Daemon& daemon) {
  ClusterOfStock cluster;
  if (options.kubernetes.empty()) return cluster;
  if (store::scheme_of(options.kubernetes) != store::Scheme::kube) {
    return fail(invalid_argument("--kubernetes must be kube: or kube:/path/to/kubeconfig"));
  }
  TRY(cluster.api, open_kube_api(options.kubernetes, daemon.clock, kDaemonParts, kVpcApiTime));
  cluster.pods = [&api = *cluster.api, &clock = daemon.clock, node = options.node](Deadline deadline) {
    return edge::live_pods([&](const auto& begin, const auto& take) {
      return store::kube::for_each_pod_of_node(api, clock, node, deadline, begin, take);
    });
  };
  cluster.claims = std::make_unique<ClusterFixedAddresses>(*cluster.api, options.node);
  store::kube::Events::Options how;
  how.component = "cni-vpc-ipamd";
  how.node = options.node;
  TRY(auto events_api,
      open_kube_api(options.kubernetes, daemon.clock, kDaemonParts, store::kube::Events::kRequestTime));
  cluster.events =
      std::make_unique<store::kube::Events>(std::move(events_api), daemon.clock, daemon.random, std::move(how));
  cluster.board = std::make_unique<VpcBoard>(*cluster.api, daemon.clock, options.node, options.listen);
  return cluster;
}

/// "node-b=10.0.0.2:7312": an agent that needs no board to be found.
[[nodiscard]] Result<engine::Peer> peer_of(const std::string& text) {
  const std::size_t equals = text.find('=');
  if (equals == 0 || equals == text.npos || equals + 1 == text.size()) {
    return fail(invalid_argument(fmt::format("--peer {} must be NODE=ADDRESS:PORT", printable(text, Printed::line))));
  }
  engine::Peer peer;
  peer.node = text.substr(0, equals);
  peer.address = text.substr(equals + 1);
  if (const auto endpoint = os::Endpoint::parse_numeric(peer.address, true); !endpoint) {
    return fail(
        invalid_argument(fmt::format("--peer {}: {}", printable(text, Printed::line), endpoint.error().message)));
  }
  peer.free = 1;  // it says when it is asked
  return peer;
}

class VpcAgentProgram {
 public:
  VpcAgentProgram(const VpcAgentOptions& options, Daemon& daemon, const StockStore& opened, cloud::Provider& cloud,
                  const ClusterOfStock& cluster, std::vector<engine::Peer> fixed_peers)
      : options_(options),
        daemon_(daemon),
        cloud_(cloud),
        cluster_(cluster),
        fixed_peers_(std::move(fixed_peers)),
        log_("croftd"),
        opened_(opened),
        probe_(
            {options.interface, [this](Deadline) { return mac(); }, std::chrono::milliseconds{options.probe_wait_ms}},
            daemon.clock, daemon.random),
        metrics_([this] { return figures(); }),
        health_(daemon.clock) {
    log_.sinks().push_back(std::make_shared<spdlog::sinks::stderr_sink_mt>());
    if (options.log_directory != "none") add_log_file();
    log_.set_formatter(std::make_unique<LogFormat>("vpc-agent"));
    cloud_.on_call([this](const cloud::Provider::Call& call) { metrics_.count(call); });
  }

  /// Until the daemon is told to end. Error: the files of its store are damaged or gone.
  [[nodiscard]] Result<int> run() {
    TRY(auto listener, os::UnixListener::listen(options_.socket, socket_access(options_), daemon_.clock));
    os::make_files_private();
    if (options_.calico_policy && cluster_.api != nullptr) {
      annotations_ = std::make_unique<engine::Workers>(1);
    }
    std::vector<Periodic> tended;
    engine::StockKeeper keeper(keeper_world(), keeper_options());
    keeper_ = &keeper;
    edge::StockServer server(stock_world(keeper));
    daemon_.stop.before_forced_end(listener->closer());
    TRY_VOID(server.open_door(std::move(listener), {}));
    TRY_VOID(open_to_peers(server));
    std::unique_ptr<edge::WebServer> metrics_server;
    if (!options_.metrics.empty()) {
      TRY(const auto address, edge::MetricsAddress::parse(options_.metrics));
      TRY(metrics_server, edge::serve_metrics([this] { return metrics_.text(); }, address, &health_));
    }
    tell_of_store();
    tell_of_certificate();
    log_.info("serving node {} on {} from {}; water marks {} and {}, cooldown {} s", options_.node, options_.socket,
              options_.store, options_.low, options_.high, options_.cooldown_s);
    tended = this->tended(keeper);
    keeper.actor().start_rounds(
        [&] {
          const auto next = keeper.step();
          run_due(tended, daemon_, log_);
          return next;
        },
        [&] { keeper.look_before_serving(); });
    std::optional<Error> loss;
    int losses = 0;
    while (!daemon_.stop.wait_for(seconds{1})) {
      look(server, keeper);
      loss = loss_of(*opened_.store, path_of_store(options_), daemon_.clock);
      // That look has found out whether the store's files are others by now.
      keeper.actor().tick();
      losses = loss ? losses + 1 : 0;
      if (losses == kLossesInARow) break;
    }
    const bool is_lost = losses == kLossesInARow;
    if (!is_lost) log_.info("ending");
    server.stop(Deadline::after(daemon_.clock.now(), kVpcDrain));
    if (!keeper.actor().end_rounds(kCloudPatience) && !is_lost) {
      // Everybody has an answer. The store has an intent of each question to the cloud: the next start finds out what
      // came of it, as after a crash.
      log_.warn("the cloud does not answer: what it was asked for is looked up at the next start");
      log_.flush();
      os::end_process(0);
    }
    keeper_ = nullptr;
    is_ending_ = true;
    annotations_.reset();
    if (is_lost) return fail(loss->in("the store is lost while it is in use, and begins anew with the next start"));
    return 0;
  }

 private:
  static os::TlsFiles files_of(const VpcAgentOptions& options) {
    os::TlsFiles files;
    files.ca_file = options.tls_ca;
    files.certificate_file = options.tls_certificate;
    files.key_file = options.tls_key;
    return files;
  }
  static edge::SecurityFor security_of_peers(const VpcAgentOptions& options) {
    if (options.insecure_peers) return [](const std::string&) { return nullptr; };
    if (options.tls_ca.empty()) return nullptr;
    return [files = files_of(options)](const std::string& node) {
      os::TlsFiles of_node = files;
      of_node.server_name = node;
      return os::make_tls(std::move(of_node));
    };
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

  void note(const std::string& line) { log_.info("{}", printable(line, Printed::line)); }

  /// For the interface that the cloud gives addresses to, once that is known.
  [[nodiscard]] Result<net::Mac> mac() const {
    const engine::StockKeeper* const keeper = keeper_;
    const auto interface = keeper != nullptr ? keeper->interface() : std::nullopt;
    if (!interface) return fail(ErrorCode::unavailable, "the interface is not known yet");
    return interface->mac;
  }

  void tell_of_store() {
    if (opened_.aside.empty()) return;
    log_.error(
        "the store was damaged and is set aside as {}: {}; what pods have is recorded as theirs, and what else the "
        "cloud has on this node's interface is quarantined (croft vpc release)",
        printable(opened_.aside, Printed::line), printable(opened_.why, Printed::line));
  }

  engine::KeeperOptions keeper_options() const {
    engine::KeeperOptions options;
    options.marks = {.low = options_.low, .high = options_.high, .node_max = options_.node_max};
    options.reconcile = {.grace = seconds{options_.grace_s}, .cooldown = seconds{options_.cooldown_s}};
    options.doubt = seconds{options_.doubt_s};
    options.node = options_.node;
    options.subnet = options_.cloud.subnet;
    options.reconcile_every = seconds{options_.reconcile_s};
    options.looks_first = true;
    return options;
  }

  engine::KeeperWorld keeper_world() {
    engine::KeeperWorld world{*opened_.store, daemon_.clock, daemon_.random, cloud_};
    world.probe = options_.no_probe ? nullptr : &probe_;
    world.peers.list = [this](const std::string& subnet, Deadline deadline) { return directory(subnet, deadline); };
    world.peers.borrow = [&clock = daemon_.clock, security = security_of_peers(options_)](
                             const engine::Peer& peer, const net::Mac& mac, const std::string& subnet,
                             const std::string& request, Deadline deadline) {
      return edge::borrow_by_agent(peer, mac, subnet, request, security, clock, deadline);
    };
    world.pods = cluster_.pods;
    world.host = [&clock = daemon_.clock](Deadline deadline) { return edge::host_use(clock, deadline); };
    world.fixed = cluster_.claims.get();
    world.log = [this](const std::string& line) { note(line); };
    world.warn = [this](const std::string& line) { log_.warn("{}", printable(line, Printed::line)); };
    if (cluster_.events != nullptr) {
      world.conflicted = [this](const core::StockAddress& address) {
        // As its UID the field says the node's name, and `kubectl describe node` asks for that.
        cluster_.events->tell({"v1", "Node", "", options_.node, options_.node},
                              {store::kube::Events::Type::warning, "AddressConflict", "Quarantine",
                               fmt::format("{} is given to no pod: {}; croft vpc get unuse -n {} lists it",
                                           address.address.to_string(), address.why, options_.node)});
      };
    }
    return world;
  }

  edge::StockWorld stock_world(engine::StockKeeper& keeper) {
    edge::StockWorld world{daemon_.clock, daemon_.random, keeper};
    world.log = [this](const std::string& line) { note(line); };
    world.show = [this, &keeper] { return show(keeper); };
    world.fixed = cluster_.claims.get();
    if (annotations_ != nullptr) {
      world.assigned = [this](const core::PodIdentity& pod, const net::Address& address) {
        if (!pod.name.empty()) annotate(pod, address);
      };
    }
    if (cluster_.events != nullptr) {
      world.refused = [this](const core::PodIdentity& pod, const Error& why) {
        cluster_.events->tell_of_refusal(pod, why);
      };
    }
    return world;
  }

  /// A failure is not tried again: Calico reads the address in the pod's status then. Never blocks.
  void annotate(const core::PodIdentity& pod, const net::Address& address) {
    const auto done = annotations_->run([this, pod, address] {
      if (is_ending_) return;
      const auto written = annotate_pod(*cluster_.api, pod, address, Deadline::after(daemon_.clock.now(), kVpcApiTime));
      if (written || written.error().code == ErrorCode::not_found || written.error().code == ErrorCode::conflict)
        return;
      note(fmt::format("pod {}/{} is not annotated: {}", pod.namespace_name, pod.name, written.error().message));
    });
    if (!done) note(fmt::format("pod {}/{} is not annotated: too many wait", pod.namespace_name, pod.name));
  }

  /// A certificate of another name is one that no other agent takes for this node's.
  void tell_of_certificate() {
    if (options_.tls_certificate.empty()) return;
    const auto pem = os::read_file(options_.tls_certificate, kCertificateBytesMax);
    const auto names = pem ? os::certificate_names(*pem) : Result<std::vector<std::string>>(fail(pem.error()));
    if (!names || names->empty() || names->front() == options_.node) return;
    log_.error(
        "{} is of {}, and this node is {}: other nodes' agents neither lend to this one nor borrow from it; make one "
        "with this node's name (docs/runbooks/vpc-certificates.md)",
        options_.tls_certificate, printable(names->front(), Printed::line), options_.node);
  }

  [[nodiscard]] Result<void> open_to_peers(edge::StockServer& server) {
    if (options_.listen.empty()) return {};
    os::TlsListenerOptions how;
    TRY(const auto address, edge::MetricsAddress::parse(options_.listen));
    how.host = address.host.to_string();
    how.port = address.port;
    how.is_plain = options_.insecure_peers;
    how.files = files_of(options_);
    how.tell = [this](const std::string& line) { note(line); };
    TRY(auto listener, os::TlsListener::listen(std::move(how), daemon_.clock));
    return server.open_door(std::move(listener),
                            {.plugin = false, .operators = options_.operators_over_tcp || options_.insecure_peers});
  }

  [[nodiscard]] Result<std::vector<engine::Peer>> directory(const std::string& subnet, Deadline deadline) {
    std::vector<engine::Peer> all = fixed_peers_;
    if (cluster_.board != nullptr) {
      TRY(auto said, cluster_.board->peers(subnet, deadline));
      std::ranges::move(said, std::back_inserter(all));
    }
    return all;
  }

  /// As `croft vpc show` prints it.
  [[nodiscard]] Result<wire::vpc::ShowAnswer> show(engine::StockKeeper& keeper) {
    TRY(const auto view, engine::view_stock({*opened_.store, daemon_.clock, daemon_.random, seconds{1}}));
    const Instant now = daemon_.clock.now();
    const engine::StockSeen seen = keeper.actor().seen();
    const cloud::Interface interface = seen.interface.value_or(cloud::Interface{});
    core::warm::Counts counts = core::warm::counts_of(view.addresses, now);
    for (const core::StockIntent& one : view.intents) counts.asked += one.count;
    const auto number = [](auto value) { return std::to_string(value); };
    const auto rest = std::chrono::ceil<seconds>(seen.grow_not_before - now.since_boot);
    return wire::vpc::ShowAnswer{{{"version", CROFT_VERSION},
                                  {"node", options_.node},
                                  {"interface", seen.interface ? interface.mac.to_string() : "not known yet"},
                                  {"object", interface.object},
                                  {"vpc", interface.vpc},
                                  {"subnet", interface.subnet},
                                  {"store", options_.store},
                                  {"listens", options_.listen},
                                  {"lowWaterMark", number(options_.low)},
                                  {"highWaterMark", number(options_.high)},
                                  {"maxAddresses", options_.node_max == 0 ? "no limit" : number(options_.node_max)},
                                  {"cooldownSeconds", number(options_.cooldown_s)},
                                  {"free", number(counts.free)},
                                  {"held", number(counts.held)},
                                  {"cooling", number(counts.cooling)},
                                  {"probing", number(counts.probing)},
                                  {"asked", number(counts.asked)},
                                  {"leaving", number(counts.leaving)},
                                  {"quarantined", number(counts.quarantined)},
                                  {"doubted", number(counts.doubted)},
                                  {"damaged", number(view.damaged.size())},
                                  {"waitingAdds", number(seen.calls.waiting)},
                                  {"adds", fmt::format("{} ok, {} failed", seen.calls.adds, seen.calls.adds_failed)},
                                  {"dels", fmt::format("{} ok, {} failed", seen.calls.dels, seen.calls.dels_failed)},
                                  {"wish", seen.wish},
                                  {"asksAgainInSeconds", number(std::max(rest, seconds{0}).count())},
                                  {"trouble", seen.last_problem ? seen.last_problem->message : ""}}};
  }

  /// The work between rounds.
  [[nodiscard]] std::vector<Periodic> tended(engine::StockKeeper& keeper) {
    std::vector<Periodic> all;
    const auto in = [this](std::chrono::nanoseconds span) { return Deadline::after(daemon_.clock.now(), span); };
    if (cluster_.board != nullptr) {
      const auto why_not = [](const Result<void>& done) { return done ? std::string() : done.error().message; };
      const auto publish = [this, &keeper, in, why_not] {
        const auto interface = keeper.actor().seen().interface;
        const auto figures = this->figures();
        if (!interface || !figures) return std::string();
        const VpcBoard::Status status{figures->counts.free, options_.low, options_.high,
                                      core::warm::status_of(figures->counts, keeper.options().marks)};
        return why_not(cluster_.board->publish(*interface, status, in(kBoardTime)));
      };
      all.push_back({seconds{0}, publish, "other agents are not told of this stock"});
      all.push_back({std::chrono::minutes{10},
                     [this, in, why_not] { return why_not(cluster_.board->clean_up(in(kVpcApiTime))); },
                     "the board of agents is not cleaned up"});
    }
    if (cluster_.claims == nullptr) return all;
    // Claims that somebody deleted go when nobody lives with their address.
    const auto let_go = [this, in] {
      const auto view = engine::view_stock({*opened_.store, daemon_.clock, daemon_.random, seconds{1}});
      if (!view) return std::string();
      std::set<net::Address> held;
      for (const core::StockAddress& one : view->addresses) {
        if (one.state == core::StockAddressState::held) held.insert(one.address);
      }
      const auto gone =
          cluster_.claims->let_go([&](const net::Address& address) { return held.contains(address); }, in(kVpcApiTime));
      if (!gone) return gone.error().message;
      if (*gone > 0) log_.info("{} deleted VpcIpClaims are let go: no pod lives with their addresses", *gone);
      return std::string();
    };
    all.push_back({seconds{options_.reconcile_s}, let_go, "deleted VpcIpClaims stay for now"});
    return all;
  }

  /// Once a second: what others ask about this agent.
  void look(edge::StockServer& server, engine::StockKeeper& keeper) {
    const auto figures = this->figures();
    const engine::StockSeen seen = keeper.actor().seen();
    const auto& trouble = seen.last_problem;
    const bool has_interface = seen.interface.has_value();
    const bool is_ready =
        figures && (figures->counts.free + figures->counts.held > 0 || options_.low == 0) && has_interface;
    health_.set("stock", is_ready ? "" : trouble ? trouble->message : "no address is in stock yet");
    if (is_ready == serving_) return;
    serving_ = is_ready;
    server.set_serving(serving_);
    log_.info("{}", serving_ ? "ready" : "not ready: nothing is in stock");
  }

  [[nodiscard]] std::optional<edge::StockFigures> figures() {
    engine::StockKeeper* const keeper = keeper_;
    if (keeper == nullptr) return std::nullopt;
    const auto view = engine::view_stock({*opened_.store, daemon_.clock, daemon_.random, seconds{1}});
    if (!view) return std::nullopt;
    const engine::StockSeen seen = keeper->actor().seen();
    return edge::StockFigures{core::warm::counts_of(view->addresses, daemon_.clock.now()), options_.low, options_.high,
                              seen.keeper, seen.calls};
  }

  const VpcAgentOptions& options_;
  Daemon& daemon_;
  cloud::Provider& cloud_;
  const ClusterOfStock& cluster_;
  const std::vector<engine::Peer> fixed_peers_;
  spdlog::logger log_;
  const StockStore& opened_;
  edge::WireProbe probe_;
  edge::StockMetrics metrics_;
  edge::Health health_;
  std::atomic<bool> is_ending_ = false;
  std::unique_ptr<engine::Workers> annotations_;  ///< writes them one after the other
  std::atomic<engine::StockKeeper*> keeper_ = nullptr;
  bool serving_ = false;
};

[[nodiscard]] Result<int> run_vpc_agent(VpcAgentOptions options, Daemon& daemon) {
  const auto wrong = [](const char* why) { return fail(invalid_argument(why)); };
  TRY_VOID(core::warm::check_marks({.low = options.low, .high = options.high}));
  if (options.node.empty()) {
    TRY(options.node, os::host_name());
  }
  TRY_VOID(core::check_node_name(options.node));
  // UK8S' DaemonSet gives four flags and no API, which its agent finds as each pod does.
  if (options.kubernetes.empty() && !os::from_environment("KUBERNETES_SERVICE_HOST").empty())
    options.kubernetes = "kube:";
  if (options.kubernetes == "none") options.kubernetes.clear();
  if (options.calico_policy && options.kubernetes.empty()) {
    return wrong("--calicoPolicyFlag writes annotations, and there is no API: give --kubernetes kube:/path");
  }
  if (store::scheme_of(options.store) != store::Scheme::sqlite) {
    return wrong("--store must be sqlite:/path: the stock is the node's own, and has to be there when nothing else is");
  }
  const bool has_tls = !options.tls_ca.empty() && !options.tls_certificate.empty() && !options.tls_key.empty();
  const bool has_part = !options.tls_ca.empty() || !options.tls_certificate.empty() || !options.tls_key.empty();
  if (options.insecure_peers && (has_part || options.listen.empty())) {
    return wrong(
        "--insecure-peers needs --listen ADDRESS:7312, and goes with no certificate: leave the --tls flags out, or "
        "this one");
  }
  if (!options.listen.empty() && !has_tls && !options.insecure_peers) {
    return wrong(
        "--listen needs --tls-ca, --tls-certificate and --tls-key (docs/runbooks/vpc-certificates.md), or "
        "--insecure-peers");
  }
  std::vector<engine::Peer> peers;
  for (const std::string& text : options.peers) {
    TRY(auto peer, peer_of(text));
    peers.push_back(std::move(peer));
  }
  const std::string path = path_of_store(options);
  if (!path.starts_with('/')) return wrong("--store must be sqlite:/ and an absolute path");
  namespace ucloud = cloud::ucloud;
  TRY(const ClusterOfStock cluster, cluster_of(options, daemon));
  TRY(const auto cloud, ucloud::open_ucloud(options.cloud, ucloud::keys_of_environment(os::from_environment),
                                            os::look_up_host, daemon.clock));
  TRY(const StockStore stock, open_stock_store(path, daemon.clock));
  VpcAgentProgram program(options, daemon, stock, *cloud, cluster, std::move(peers));
  return program.run();
}

}  // namespace

void add_vpc_agent_command(CLI::App& app, Daemon& daemon) {
  CLI::App* command = app.add_subcommand(
      "vpc-agent", "Keep a stock of cloud addresses on this node and serve its pods from it (UK8S' cni-vpc-ipamd)");
  command->footer(
      "The plugin croft-vpc does not need it: without the agent it asks the cloud itself, and the pod waits.");
  const auto options = std::make_shared<VpcAgentOptions>();
  add_vpc_agent_options(*command, *options);
  command->callback(
      [options, &daemon] { daemon.run = [options, &daemon] { return run_vpc_agent(*options, daemon); }; });
}

}  // namespace croft::app
