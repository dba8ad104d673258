#include <algorithm>
#include <array>
#include <atomic>
#include <cstdio>
#include <functional>
#include <iterator>
#include <map>
#include <memory>
#include <set>
#include <thread>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/printable.h"
#include "cli/build_commit.h"
#include "cli/croft/command_line.h"
#include "cli/croft/listing.h"
#include "cli/program.h"
#include "cli/stores/open_store.h"
#include "cni/error_table.h"
#include "http/grpc_channel.h"
#include "http/tls.h"
#include "http/transport.h"
#include "os/files.h"
#include "os/look_up.h"
#include "os/process.h"
#include "store/kube/vpc_objects.h"
#include "store/store_url.h"
#include "vpc/commands/vpc_views.h"
#include "vpc/format/messages.h"

namespace croft::app {
namespace {

using wire::vpc::Method;
using wire::vpc::NetworksAnswer;
using wire::vpc::PodNetwork;
using wire::vpc::ShowAnswer;
using wire::vpc::StockAnswer;

constexpr const char* kOwnSocket = "/run/cni-vpc-ipamd.sock";
constexpr std::size_t kAskedAtOnce = 20;

struct VpcOptions {
  std::vector<std::string> agents;
  std::string kubernetes;
  std::string ca, certificate, key;
  std::string node;    ///< of lists: only this one
  std::string part;    ///< of lists: what a node or an address has in it
  std::string target;  ///< the node that something is done to
  std::string ip;
  bool yes = false, dry_run = false;
};

// ---------------------------------------------------------------- one agent

constexpr std::chrono::seconds kConnect{1};
constexpr std::chrono::seconds kCall{10};

/// One node's agent.
struct AgentPlace {
  std::string node;
  std::string address;                 ///< "unix:/run/cni-vpc-ipamd.sock", "10.0.0.2:7312", "[fd00::2]:7312"
  std::string subnet{};                ///< as the cluster says; empty: it does not
  std::optional<std::int64_t> pool{};  ///< free addresses as the cluster says; absent: it does not
  /// The address is what an object of the cluster says: a numeric one, never a socket of this machine.
  bool is_of_board = false;
  /// Nothing: nothing is encrypted. A Unix socket never is. An agent's certificate has to have its node's name: what is
  /// meant for one node's stock is told to no other node.
  std::optional<os::TlsFiles> tls{};
};

/// Go's names of gRPC's codes, by number.
constexpr std::array<std::string_view, 17> kGoCodes = {
    "OK",       "Canceled",       "Unknown",          "InvalidArgument",   "DeadlineExceeded",
    "NotFound", "AlreadyExists",  "PermissionDenied", "ResourceExhausted", "FailedPrecondition",
    "Aborted",  "OutOfRange",     "Unimplemented",    "Internal",          "Unavailable",
    "DataLoss", "Unauthenticated"};
constexpr std::string_view kBeforeReason = " desc = ";

/// As Go's clients say it, which operators know.
std::string go_text(os::GrpcCode code, std::string_view message) {
  return fmt::format("rpc error: code = {}{}{}", kGoCodes.at(static_cast<std::size_t>(code)), kBeforeReason, message);
}

[[nodiscard]] Result<os::Endpoint> endpoint_of(const std::string& address, bool secure) {
  const bool is_socket = address.starts_with("unix:");
  auto endpoint = os::Endpoint::parse(is_socket ? address : fmt::format("http{}://{}", secure ? "s" : "", address));
  if (!endpoint) {
    return fail(ErrorCode::invalid_argument,
                fmt::format("address of an agent {}: {}; it is unix:/path, 10.0.0.2:7312 or [fd00::2]:7312",
                            echo(address), endpoint.error().message));
  }
  return *endpoint;
}

/// The bytes of an agent's answer, on a connection of its own. Errors: unavailable when the agent cannot be reached or
/// does not answer, internal with its own words when it answers that it failed; as go_text() has them.
[[nodiscard]] Result<std::string> call(const AgentPlace& agent, const Clock& clock, Method method,
                                       std::string_view request) {
  if (agent.is_of_board && !os::Endpoint::parse_numeric(agent.address, true)) {
    return fail(
        ErrorCode::invalid_argument,
        fmt::format("spec.addr of the ipamds object of node {} is {}, no numeric ADDRESS:PORT; its agent writes "
                    "it anew, or delete the object",
                    echo(agent.node), echo(agent.address)));
  }
  TRY(os::Endpoint endpoint, endpoint_of(agent.address, agent.tls.has_value()));
  std::shared_ptr<const os::TransportSecurity> security;
  if (agent.tls) {
    os::TlsFiles files = *agent.tls;
    files.server_name = agent.node;
    security = os::make_tls(std::move(files));
  }
  os::GrpcOptions options;
  options.message_bytes_max = wire::vpc::kAnswerBytesMax;
  const auto channel =
      os::GrpcChannel::connect(endpoint, security.get(), options, clock, Deadline::after(clock.now(), kConnect));
  if (!channel) {
    return fail(channel.error().code, go_text(os::GrpcCode::unavailable, channel.error().message));
  }
  const os::GrpcReply reply =
      (*channel)->call(wire::vpc::path_of(method), request, Deadline::after(clock.now(), kCall));
  if (reply.status.ok()) return reply.message;
  const ErrorCode code = reply.status.from_server                               ? ErrorCode::internal
                         : reply.status.code == os::GrpcCode::deadline_exceeded ? ErrorCode::deadline_exceeded
                                                                                : ErrorCode::unavailable;
  const bool is_for_operators = reply.status.code == os::GrpcCode::unimplemented && !agent.address.starts_with("unix:");
  return fail(code, go_text(reply.status.code, reply.status.message) +
                        (is_for_operators ? "; over TCP it answers operators with --operators-over-tcp" : ""));
}

template <class Answer>
[[nodiscard]] Result<Answer> ask(const AgentPlace& agent, const Clock& clock, Method method,
                                 std::string_view request = "") {
  TRY(const std::string bytes, call(agent, clock, method, request));
  return wire::vpc::decode<Answer>(bytes);
}

// ---------------------------------------------------------------- the agents of a cluster

/// The agents that a command line names: each text `NODE=ADDRESS`, or `ADDRESS` alone for that of `own_node`. Error:
/// invalid_argument for an address that is none, for two agents of one node.
[[nodiscard]] Result<std::vector<AgentPlace>> named_agents(const std::vector<std::string>& texts,
                                                           const std::string& own_node) {
  std::vector<AgentPlace> agents;
  for (const std::string& text : texts) {
    // A path may have a `=` in it, an address of the network has none.
    const std::size_t equals = text.starts_with("unix:") ? std::string::npos : text.find('=');
    const bool has_node = equals != std::string::npos;
    AgentPlace place{has_node ? text.substr(0, equals) : own_node, has_node ? text.substr(equals + 1) : text};
    if (place.node.empty()) {
      return fail(ErrorCode::invalid_argument,
                  fmt::format("--agent {}: it names no node; give NODE=ADDRESS", echo(text)));
    }
    TRY_VOID(endpoint_of(place.address, false));
    if (std::ranges::any_of(agents, [&](const AgentPlace& other) { return other.node == place.node; })) {
      return fail(ErrorCode::invalid_argument,
                  fmt::format("--agent: node {} has two; give each node's agent once", echo(place.node)));
    }
    agents.push_back(std::move(place));
  }
  return agents;
}

/// The agents that say so in a cluster, by their objects `ipamds`. A node that the cluster does not have is left out,
/// where nodes may be listed; of a node with several objects the stocks are added up. That of `own_node` is reached by
/// `own_socket` where that is not empty. Errors: those of the API.
[[nodiscard]] Result<std::vector<AgentPlace>> cluster_agents(store::kube::Api& api, const std::string& own_node,
                                                             const std::string& own_socket, Deadline deadline) {
  store::kube::VpcObjects<wire::kube::IpamdRecord> stocks(api);
  TRY(const auto all, stocks.all(deadline));
  const auto nodes = store::kube::node_names(api, deadline);
  if (!nodes && nodes.error().code != ErrorCode::permission_denied) return fail(nodes.error());
  std::map<std::string, AgentPlace> by_node;
  for (const auto& one : all) {
    const wire::kube::IpamdRecord& record = one.record;
    if (record.node.empty() || (nodes && !nodes->contains(record.node))) continue;
    const auto [place, is_new] = by_node.try_emplace(record.node);
    AgentPlace& agent = place->second;
    if (is_new) agent = {record.node, record.address, record.subnet, 0, true};
    agent.pool = agent.pool.value_or(0) + record.current;
    if (record.node != own_node || own_socket.empty()) continue;
    agent.address = "unix:" + own_socket;
    agent.is_of_board = false;
  }
  std::vector<AgentPlace> agents;
  for (auto& [node, agent] : by_node) agents.push_back(std::move(agent));
  return agents;
}

/// The name that the agent behind a socket of this machine has for its node; empty: it does not say it, as UK8S' own
/// agent.
std::string name_by_agent(const std::string& address, const Clock& clock) {
  const auto answer = ask<ShowAnswer>({"", address}, clock, Method::show_stock);
  if (!answer) return "";
  const auto node = std::ranges::find(answer->properties, "node", &std::pair<std::string, std::string>::first);
  return node == answer->properties.end() ? "" : node->second;
}

/// The name of this machine's node is not always its host name. `socket` is its agent's, "unix:/path"; empty: it has
/// none that is asked.
[[nodiscard]] Result<std::string> own_node(const std::string& socket, const Clock& clock) {
  if (std::string given = os::from_environment("KUBE_NODE_NAME"); !given.empty()) return given;
  std::string named = socket.empty() ? "" : name_by_agent(socket, clock);
  if (!named.empty()) return named;
  return os::host_name();
}

bool is_there(const std::string& path) {
  const auto status = os::file_status(path);
  return status && *status;
}

/// The cluster whose objects name the agents, as a `kube:` URL; empty: none is known. As cnivpctl looks for it
/// (docs/notes/warm-pool.md#cnivpctl), but that the agent of this machine goes before files that nobody named.
[[nodiscard]] Result<std::string> cluster_of(const VpcOptions& options) {
  if (!options.kubernetes.empty()) {
    if (store::scheme_of(options.kubernetes) == store::Scheme::kube) return options.kubernetes;
    return fail(ErrorCode::invalid_argument, "--kubernetes must be kube: or kube:/path/to/kubeconfig");
  }
  if (!os::from_environment("KUBECONFIG").empty()) return std::string("kube:");
  if (is_there(kOwnSocket)) return std::string();
  std::vector<std::string> files = {"/etc/kubernetes/cnivpc.kubeconfig", "/etc/kubernetes/kubelet.kubeconfig"};
  if (const std::string home = os::from_environment("HOME"); !home.empty()) {
    files.insert(files.begin(), home + "/.kube/config");
  }
  for (const std::string& file : files) {
    if (is_there(file)) return "kube:" + file;
  }
  return std::string();
}

/// Those on the command line, else the cluster's, else the agent of this machine.
[[nodiscard]] Result<std::vector<AgentPlace>> all_agents(const VpcOptions& options, const Clock& clock) {
  if (!options.agents.empty()) {
    const auto own = std::ranges::find_if(options.agents, [](const auto& text) { return text.starts_with("unix:"); });
    TRY(const std::string node, own_node(own == options.agents.end() ? "" : *own, clock));
    return named_agents(options.agents, node);
  }
  const std::string socket = is_there(kOwnSocket) ? kOwnSocket : "";
  TRY(const std::string node, own_node(socket.empty() ? "" : "unix:" + socket, clock));
  TRY(const std::string cluster, cluster_of(options));
  if (!cluster.empty()) {
    TRY(const auto api, open_kube_api(cluster, clock, {nullptr, os::look_up_host}, kCall));
    return cluster_agents(*api, node, socket, Deadline::after(clock.now(), kCall));
  }
  if (!socket.empty()) return named_agents({"unix:" + socket}, node);
  return fail(ErrorCode::not_found,
              fmt::format("no agent is known: this machine has no {}, and no kubeconfig names a cluster; give --agent "
                          "NODE=ADDRESS for each, or --kubernetes kube:/path/kubeconfig",
                          kOwnSocket));
}

[[nodiscard]] Result<std::optional<os::TlsFiles>> tls_of(const VpcOptions& options) {
  if (options.ca.empty()) {
    if (options.certificate.empty() && options.key.empty()) return std::optional<os::TlsFiles>();
    return fail(ErrorCode::invalid_argument, "--cert and --key need --ca, who signed the agents' certificates");
  }
  if (options.certificate.empty() != options.key.empty()) {
    return fail(ErrorCode::invalid_argument, "--cert and --key go together");
  }
  os::TlsFiles files;
  files.ca_file = options.ca;
  files.certificate_file = options.certificate;
  files.key_file = options.key;
  return std::optional(std::move(files));
}

/// All of them, or the one of `node`; by node.
[[nodiscard]] Result<std::vector<AgentPlace>> agents_of(const VpcOptions& options, const std::string& node,
                                                        const Clock& clock) {
  TRY(const auto tls, tls_of(options));
  TRY(std::vector<AgentPlace> agents, all_agents(options, clock));
  if (!node.empty()) std::erase_if(agents, [&](const AgentPlace& agent) { return agent.node != node; });
  if (!node.empty() && agents.empty()) {
    return fail(ErrorCode::not_found, fmt::format("Could not find node \"{}\"", node));
  }
  for (AgentPlace& agent : agents) agent.tls = tls;
  return agents;
}

// ---------------------------------------------------------------- lists

/// One agent's answer, as rows.
[[nodiscard]] Result<std::vector<VpcRow>> rows_of(VpcKind kind, const AgentPlace& agent, const Clock& clock,
                                                  std::int64_t now) {
  std::vector<VpcRow> rows;
  if (kind == VpcKind::node && agent.pool) {
    return std::vector{vpc_node_row(agent.node, agent.address, agent.subnet, *agent.pool)};
  }
  if (kind == VpcKind::node || kind == VpcKind::pool) {
    TRY(const auto answer, ask<StockAnswer>(agent, clock, Method::describe_pool));
    if (kind == VpcKind::node) {
      std::string subnet = agent.subnet;
      for (const auto* list : {&answer.cooldown, &answer.pool}) {
        if (!list->empty()) subnet = list->front().subnet;
      }
      return std::vector{
          vpc_node_row(agent.node, agent.address, subnet, static_cast<std::int64_t>(answer.pool.size()))};
    }
    for (const PodNetwork& network : answer.pool) rows.push_back(vpc_pool_row(agent.node, network, false, now));
    for (const PodNetwork& network : answer.cooldown) rows.push_back(vpc_pool_row(agent.node, network, true, now));
    return rows;
  }
  const bool pods = kind == VpcKind::pod;
  TRY(const auto answer,
      ask<NetworksAnswer>(agent, clock, pods ? Method::list_pod_network_record : Method::list_unuse));
  for (const PodNetwork& network : answer.networks) {
    rows.push_back(pods ? vpc_pod_row(agent.node, network, now) : vpc_unuse_row(agent.node, network));
  }
  return rows;
}

struct Gathered {
  std::vector<VpcRow> rows;
  std::vector<std::string> failures;  ///< a line each
};

/// Asks all agents, kAskedAtOnce at a time; one that fails does not keep the others from being shown.
[[nodiscard]] Result<Gathered> look(VpcKind kind, const VpcOptions& options, const Clock& clock) {
  TRY(const std::vector<AgentPlace> agents, agents_of(options, options.node, clock));
  const auto now = std::chrono::floor<std::chrono::seconds>(clock.now().wall).time_since_epoch().count();
  std::vector<Result<std::vector<VpcRow>>> answers(agents.size());
  std::atomic<std::size_t> next{0};
  const auto work = [&] {
    for (std::size_t i = next++; i < agents.size(); i = next++) answers[i] = rows_of(kind, agents[i], clock, now);
  };
  {
    std::vector<std::jthread> threads;
    for (std::size_t i = 1; i < std::min(kAskedAtOnce, agents.size()); ++i) threads.emplace_back(work);
    work();
  }
  Gathered gathered;
  for (std::size_t i = 0; i < agents.size(); ++i) {
    if (answers[i]) {
      std::ranges::move(*answers[i], std::back_inserter(gathered.rows));
      continue;
    }
    // One agent leaves no rest to be shown.
    if (agents.size() == 1) return fail(answers[i].error());
    gathered.failures.push_back(fmt::format("node {}: {}", agents[i].node, answers[i].error().message));
  }
  std::ranges::sort(gathered.failures);
  filter_vpc_rows(gathered.rows, options.part);
  sort_vpc_rows(gathered.rows);
  return gathered;
}

/// In Croft's manner.
[[nodiscard]] Result<int> get(CommandLine& line, VpcKind kind, const VpcOptions& options) {
  std::vector<std::string> told;
  bool failed = false;
  const auto one_look = [&]() -> Result<Listing> {
    TRY(const Gathered gathered, look(kind, options, line.clock));
    failed = !gathered.failures.empty();
    if (told != gathered.failures) {
      for (const std::string& failure : gathered.failures) tell("croft: warning: " + failure);
    }
    told = gathered.failures;
    return Listing{"No record", vpc_table(kind, gathered.rows, line.wide()), vpc_data(gathered.rows), ""};
  };
  TRY(const int code, list_without_store(line, one_look));
  return failed ? static_cast<int>(edge::ExitCode::error) : code;
}

// ---------------------------------------------------------------- what is done to one node's stock

/// Exactly `y` is yes; the end of the input is no.
bool is_confirmed(const std::string& question) {
  print(question);
  std::string answer;
  constexpr std::size_t kAnswerMax = 16;
  for (int c = std::getchar(); c != EOF && c != '\n'; c = std::getchar()) {
    if (answer.size() < kAnswerMax) answer += static_cast<char>(c);
  }
  return answer == "y";
}

[[nodiscard]] Result<AgentPlace> target_of(const VpcOptions& options, const Clock& clock) {
  if (!options.ip.empty() && !net::Address::parse(options.ip)) {
    return fail(ErrorCode::invalid_argument, fmt::format("IP: {} is no address", echo(options.ip)));
  }
  TRY(std::vector<AgentPlace> agents, agents_of(options, options.target, clock));
  return std::move(agents.front());
}

/// Takes an address out of a stock, or puts one into it.
[[nodiscard]] Result<int> move_one(bool is_pop, const VpcOptions& options, const Clock& clock) {
  TRY(const AgentPlace agent, target_of(options, clock));
  const std::string& node = agent.node;
  if (options.dry_run && !is_pop) {
    print(fmt::format("Would push {} into the pool of {}\n",
                      options.ip.empty() ? "an address of the cloud" : options.ip, node));
    return 0;
  }
  if (options.dry_run) {
    TRY(const auto stock, ask<StockAnswer>(agent, clock, Method::describe_pool));
    const bool there = std::ranges::any_of(
        stock.pool, [&](const PodNetwork& network) { return options.ip.empty() || network.ip == options.ip; });
    if (!there) {
      return fail(ErrorCode::not_found,
                  fmt::format("the pool of {} has no {}", node, options.ip.empty() ? "address" : options.ip));
    }
    print(fmt::format("Would pop {} and give it back to the cloud\n", options.ip.empty() ? "an address" : options.ip));
    return 0;
  }
  TRY(const auto answer, ask<wire::vpc::NetworkAnswer>(agent, clock, is_pop ? Method::pop_pool : Method::push_pool,
                                                       encode(wire::vpc::StockRequest{options.ip})));
  if (!answer.network || answer.network->ip.empty()) {
    return fail(ErrorCode::internal, fmt::format("the agent of {} names no address in its answer", node));
  }
  print(fmt::format("{} IP: {}\n", is_pop ? "Pop" : "Push", answer.network->ip));
  return 0;
}

/// The addresses that an agent lists as unused, but for those on their way, which it sees to itself.
[[nodiscard]] Result<std::vector<std::string>> unused_of(const AgentPlace& agent, const Clock& clock) {
  TRY(const auto answer, ask<NetworksAnswer>(agent, clock, Method::list_unuse));
  std::vector<VpcRow> rows;
  for (const PodNetwork& network : answer.networks) {
    if (!network.why.ends_with(wire::vpc::kNotConfirmed)) rows.push_back(vpc_unuse_row(agent.node, network));
  }
  sort_vpc_rows(rows);
  std::vector<std::string> ips;
  for (const VpcRow& row : rows) ips.push_back(row.ip);
  return ips;
}

constexpr std::size_t kReleasedAtOnce = 30;

[[nodiscard]] Result<int> release(const VpcOptions& options, const Clock& clock) {
  TRY(const AgentPlace agent, target_of(options, clock));
  std::vector<std::string> ips{options.ip};
  std::string question = fmt::format("Are you sure to release \"{}\"? (y/n) ", options.ip), done;
  if (options.ip.empty()) {
    TRY(ips, unused_of(agent, clock));
    if (ips.empty()) {
      print("No IP to release\n");
      return 0;
    }
    print(fmt::format("{} release:\n{}\n", options.dry_run ? "Would" : "About to", fmt::join(ips, "\n")));
    question = "Continue? (y/n) ";
    done = fmt::format("Done, released {} IP(s)\n", ips.size());
  } else if (options.dry_run) {
    print(fmt::format("Would release {}, if its agent finds that nothing uses it\n", options.ip));
  }
  if (options.dry_run) return 0;
  if (!options.yes && !is_confirmed(question)) return static_cast<int>(edge::ExitCode::error);
  // The agent asks the cloud for each; what is released by then stays so where a later part fails, which says that.
  for (std::size_t from = 0; from < ips.size(); from += kReleasedAtOnce) {
    const auto begin = ips.begin() + static_cast<std::ptrdiff_t>(from);
    const auto count = static_cast<std::ptrdiff_t>(std::min(kReleasedAtOnce, ips.size() - from));
    const wire::vpc::ReleaseRequest part{{begin, begin + count}};
    auto answer = call(agent, clock, Method::release_ip, encode(part));
    if (!answer && from > 0)
      answer.error().message += fmt::format("; at least {} of {} were released before", from, ips.size());
    TRY_VOID(answer);
  }
  print(done);
  return 0;
}

/// One agent of this machine, over its socket: over TCP none shows it.
[[nodiscard]] Result<int> show(const CommandLine& line, const VpcOptions& options) {
  // Whatever its node is called.
  TRY(const auto agents,
      named_agents(options.agents.empty() ? std::vector{std::string("unix:") + kOwnSocket} : options.agents, "this"));
  if (agents.size() != 1 || !agents.front().address.starts_with("unix:")) {
    return fail(
        ErrorCode::invalid_argument,
        fmt::format("--agent: an agent shows itself to its own machine alone; give one, as unix:/path (default: "
                    "unix:{})",
                    kOwnSocket));
  }
  const auto answer = ask<ShowAnswer>(agents.front(), line.clock, Method::show_stock);
  if (!answer) {
    const std::string& text = answer.error().message;
    const std::size_t reason = text.find(kBeforeReason);
    const std::string why = reason == std::string::npos ? text : text.substr(reason + kBeforeReason.size());
    const bool has_answered = answer.error().code == ErrorCode::internal;
    // No store is away: the exit code is an error's, as of `croft agent status`.
    return fail(ErrorCode::not_found,
                has_answered ? fmt::format("the agent at {} does not show itself: {}", agents.front().address, why)
                             : fmt::format("no agent answers at {}: {}. Start `croftd vpc-agent` on this machine, or "
                                           "name its socket with --agent unix:/path",
                                           agents.front().address, why));
  }
  Table table({"PROPERTY", "VALUE"});
  nlohmann::ordered_json object;
  for (const auto& [name, value] : answer->properties) {
    table.add({name, value});
    object[name] = value;
  }
  print(line.wants_data() ? line.data_text(Data(nlohmann::ordered_json::array({object}))) : table.to_string());
  return 0;
}

std::string version_lines() {
#if defined(__aarch64__)
  constexpr const char* kMachine = "linux/arm64";
#else
  constexpr const char* kMachine = "linux/amd64";
#endif
  std::string commit = commit_text();
  constexpr std::string_view kBefore = " (commit ";
  if (commit.starts_with(kBefore) && commit.ends_with(')')) {
    commit = commit.substr(kBefore.size(), commit.size() - kBefore.size() - 1);
  }
  // Builds are reproducible: they know no time.
  return fmt::format(
      "CNI Version:\tcroft {}\nGo Version:\tnone (C++, {})\nOS/Arch:\t{}\nBuild Time:\tnot recorded\nCommit:\t{}\n",
      CROFT_VERSION, __VERSION__, kMachine, commit.empty() ? "unknown" : commit);
}

// ---------------------------------------------------------------- the tree of commands, for both names

using Get = std::function<Result<int>(VpcKind)>;

void add_connection_options(CLI::App& app, VpcOptions& options) {
  app.add_option("--agent", options.agents,
                 "Agent to ask: NODE=ADDRESS, or an address alone for this node's; more than once for several. An "
                 "address is unix:/path or 10.0.0.2:7312 (default: unix:/run/cni-vpc-ipamd.sock)")
      ->type_name("AGENT")
      ->allow_extra_args(false);
  app.add_option("--kubernetes", options.kubernetes,
                 "kube: or kube:/path/kubeconfig: ask the agents that this cluster's ipamds objects name (default: "
                 "where KUBECONFIG says, or, without an agent on this machine, ~/.kube/config)")
      ->type_name("URL");
  app.add_option("--ca", options.ca, "PEM file of who signed the agents' certificates; TCP is encrypted then")
      ->type_name("FILE");
  app.add_option("--cert", options.certificate, "PEM file of our certificate")->type_name("FILE");
  app.add_option("--key", options.key, "PEM file of its key")->type_name("FILE");
}

void add_verbs(CLI::App& vpc, const std::shared_ptr<VpcOptions>& options, const Clock& clock, const SetRun& set_run,
               const Get& get_kind, bool own_node_option) {
  CLI::App* getting = vpc.add_subcommand("get", "List what the agents have");
  getting->require_subcommand(1);
  getting->fallthrough();
  const auto add_kind = [&](const char* name, const char* what, VpcKind kind) {
    CLI::App* command = getting->add_subcommand(name, what);
    command->add_option("ID", options->part, "Only rows with this text in their node or address");
    if (own_node_option) command->add_option("-n,--node", options->node, "Only this node")->type_name("NODE");
    command->callback([set_run, get_kind, kind] { set_run([get_kind, kind] { return get_kind(kind); }); });
    return command;
  };
  add_kind("node", "List the nodes with an agent and how many addresses are free there", VpcKind::node)
      ->alias("no")
      ->alias("nodes");
  add_kind("pool", "List the addresses in the pools, free and cooling", VpcKind::pool);
  add_kind("pod", "List the pods that have an address of the cloud", VpcKind::pod)->alias("po")->alias("pods");
  add_kind("unuse", "List addresses that the cloud counts as the node's and nobody uses", VpcKind::unuse);

  const auto add_action = [&](const char* name, const char* what, auto action) {
    CLI::App* command = vpc.add_subcommand(name, what);
    command->add_option("NODE", options->target, "Node whose agent does it")->required();
    command->add_option("IP", options->ip, "The address");
    command->add_flag("--dry-run", options->dry_run, "Say what would be done, and do nothing");
    command->callback(
        [set_run, options, &clock, action] { set_run([options, &clock, action] { return action(*options, clock); }); });
    return command;
  };
  add_action("pop", "Take an address out of a node's pool and give it back to the cloud",
             std::bind_front(move_one, true))
      ->footer("Without IP the agent chooses. It does not ask before.");
  add_action("push", "Put an address into a node's pool", std::bind_front(move_one, false))
      ->footer("Without IP a new one is allocated. One that the node has already is only recorded.");
  CLI::App* releasing = add_action("release", "Give addresses that nobody uses back to the cloud", release);
  releasing->add_flag("-y,--yes", options->yes, "Do not ask");
  releasing->footer("Without IP all that `get unuse` lists for the node. Exit code 1 when the answer is not y.");
  CLI::App* version = vpc.add_subcommand("version", "Print the version");
  version->callback([set_run] {
    set_run([]() -> Result<int> {
      print(version_lines());
      return 0;
    });
  });
}

// ---------------------------------------------------------------- cnivpctl's manner

int tell_error(const std::string& message) {
  print(fmt::format("error: {}\n", printable(message, Printed::line)));
  return static_cast<int>(edge::ExitCode::error);
}

[[nodiscard]] Result<int> cnivpctl_get(VpcKind kind, const VpcOptions& options, const std::string& output,
                                       const Clock& clock) {
  static const std::set<std::string> kOutputs = {"", "wide", "yaml", "yml", "json"};
  if (!kOutputs.contains(output)) {
    return fail(ErrorCode::invalid_argument, fmt::format("Unknown output \"{}\"", output));
  }
  TRY(const Gathered gathered, look(kind, options, clock));
  for (const std::string& failure : gathered.failures) tell("warning: " + printable(failure, Printed::line));
  if (gathered.rows.empty()) {
    print("No record\n");
  } else if (output == "json") {
    print(cnivpctl_data(gathered.rows).json(), Printed::json);
  } else if (output == "yaml" || output == "yml") {
    print(cnivpctl_data(gathered.rows).yaml(), Printed::json);
  } else {
    print(cnivpctl_table(kind, gathered.rows, output == "wide"));
  }
  return static_cast<int>(gathered.failures.empty() ? edge::ExitCode::fine : edge::ExitCode::error);
}

}  // namespace

void add_vpc_commands(CLI::App& app, CommandLine& line) {
  CLI::App* vpc = app.add_subcommand("vpc", "The stocks of cloud addresses that nodes keep, as their agents tell");
  vpc->require_subcommand(1);
  vpc->fallthrough();
  const auto options = std::make_shared<VpcOptions>();
  add_connection_options(*vpc, *options);
  const SetRun set_run = [&line](std::function<Result<int>()> run) {
    line.run = [run = std::move(run)](CommandLine&) { return run(); };
  };
  add_verbs(
      *vpc, options, line.clock, set_run, [&line, options](VpcKind kind) { return get(line, kind, *options); }, true);
  CLI::App* showing = vpc->add_subcommand("show", "Show this machine's agent and its stock");
  showing->footer("Asks the agent over its Unix socket, which is root's.");
  showing->callback([&line, options] { line.run = [options](CommandLine& all) { return show(all, *options); }; });
  CLI::App* getting = vpc->get_subcommand("get");
  for (CLI::App* kind : getting->get_subcommands([](CLI::App*) { return true; })) add_list_options(*kind, line);
  vpc->footer(
      "Asks the agents, not the store. Called as `cnivpctl` the program takes these commands as UK8S' own does.");
}

int run_cnivpctl(int argc, char** argv, const Clock& clock) {
  const auto options = std::make_shared<VpcOptions>();
  std::string output;
  std::function<Result<int>()> run;
  CLI::App app("Look at and mend the pools of VPC addresses that nodes keep.", "cnivpctl");
  app.set_version_flag("--version", std::string("croft ") + CROFT_VERSION);
  app.require_subcommand(1);
  app.fallthrough();
  app.add_option("-n,--node", options->node, "Only this node")->type_name("NODE");
  app.add_option("-o,--output", output, "wide, json or yaml")->type_name("FORMAT");
  add_connection_options(app, *options);
  add_verbs(
      app, options, clock, [&run](std::function<Result<int>()> chosen) { run = std::move(chosen); },
      [&](VpcKind kind) { return cnivpctl_get(kind, *options, output, clock); }, false);
  try {
    app.parse(argc, argv);
  } catch (const CLI::CallForVersion& asked) {
    print(std::string(asked.what()) + "\n");
    return 0;
  } catch (const CLI::ParseError& error) {
    if (error.get_exit_code() != 0) return tell_error(error.what());
    // Help: of the command that was chosen.
    const CLI::App* chosen = &app;
    while (!chosen->get_subcommands().empty()) chosen = chosen->get_subcommands().front();
    print(chosen->help());
    return 0;
  }
  const Result<int> code = run();
  return code ? *code : tell_error(code.error().message);
}

}  // namespace croft::app
