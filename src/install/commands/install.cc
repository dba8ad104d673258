#include "install/commands/install.h"

#include <algorithm>
#include <chrono>
#include <iterator>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "agent/daemon/daemon.h"
#include "agent/daemon/open_register.h"
#include "agent/daemon/pools_of_pods.h"
#include "agent/daemon/store_parts.h"
#include "base/net/echo.h"
#include "base/text/go_text.h"
#include "calico/crd.h"
#include "cli/stores/kube_url.h"
#include "cli/stores/open_store.h"
#include "cni/format/containerd.h"
#include "cni/format/network_list.h"
#include "install/commands/calicos_plugin.h"
#include "install/commands/install_options.h"
#include "install/commands/network_takeover.h"
#include "install/commands/plugin_kubeconfig.h"
#include "install/commands/pool_families.h"
#include "install/door/installation.h"
#include "install/door/node_files.h"
#include "install/door/takeover.h"
#include "install/door/turn.h"
#include "install/format/record.h"
#include "ipam/decide/draft.h"
#include "ipam/door/croft_ipam.h"
#include "ipam/use/register.h"
#include "os/digest.h"
#include "os/files.h"
#include "os/process.h"
#include "register/affinity.h"
#include "register/snapshot.h"
#include "store/kube/account.h"
#include "store/kube/calico_cluster.h"
#include "store/kube/format/requests.h"
#include "store/store_url.h"

namespace croft::app {
namespace {

using wire::cni::MainPlugin;

constexpr const char* kKubeconfigName = "croft-kubeconfig";
/// As kube-flannel's own configuration calls it.
constexpr const char* kFlannelsNetwork = "cbr0";

[[nodiscard]] Result<MainPlugin> main_plugin(const std::string& text) {
  std::string all;
  for (const auto& known : wire::cni::kMainPlugins) {
    if (known.text == text) return known.plugin;
    all += fmt::format("{}{}", all.empty() ? "" : ", ", known.text);
  }
  return fail(ErrorCode::invalid_argument,
              text.empty()
                  ? fmt::format("--main-plugin is missing: which plugin gives pods their interfaces? One of {}; Croft "
                                "gives addresses only",
                                all)
                  : fmt::format("--main-plugin {} is none of {}", net::echo(text), all));
}

/// What an ADD and a DEL need, as croft-plugin has it (deploy/kubernetes/access.yaml). What is Croft's own kind of
/// objects the plugin uses under its own name alone.
[[nodiscard]] std::vector<store::kube::NeededRights> rights_of_plugin(wire::calico::ApiGroup group, bool has_own) {
  const auto of = [&](core::Kind kind, std::vector<std::string_view> verbs) {
    const auto crd = wire::calico::crd_kind_of(kind, group);
    return store::kube::NeededRights{crd.group, crd.plural, std::move(verbs)};
  };
  std::vector<store::kube::NeededRights> needed{of(core::Kind::pool, {"get", "list"}),
                                                of(core::Kind::reservation, {"list"}),
                                                of(core::Kind::ipam_config, {"get"}),
                                                of(core::Kind::affinity, {"get", "list", "create", "update", "delete"}),
                                                of(core::Kind::block, {"get", "list", "create", "update", "delete"}),
                                                of(core::Kind::handle, {"get", "create", "update", "delete"})};
  if (!has_own) return needed;
  needed.push_back({"ipam.croft.dev", "crofthighwatermarks", {"get", "create", "update"}});
  needed.push_back({"ipam.croft.dev", "croftpoolsets", {"get", "list"}});
  return needed;
}

/// Who holds what is told by names of objects, which are not of any text. Error: invalid_argument, with the remedy.
[[nodiscard]] Result<void> check_object_names(const std::string& network, const std::string& node) {
  const wire::calico::Digests digests{os::sha256, os::sha3_256};
  // As long as those of all known runtimes.
  const core::Key handle = core::handle_key(network + "." + std::string(64, '0'));
  if (!wire::calico::crd_name(handle, digests)) {
    return fail(
        ErrorCode::invalid_argument,
        fmt::format("--network-name {}: the plugin would refuse every pod, as a Kubernetes API has no place for "
                    "addresses of a network of this name; give one of letters, digits, '-' and '.', with a "
                    "letter or digit at both ends and beside each '.', of at most 188 bytes",
                    net::echo(network)));
  }
  const core::Key affinity =
      core::affinity_key({core::AffinityOwner::Type::host, node}, net::Prefix::parse("10.0.0.0/26").value());
  if (!wire::calico::crd_name(affinity, digests)) {
    return fail(ErrorCode::invalid_argument,
                fmt::format("--node {}: the plugin would refuse every pod, as a Kubernetes API has no place for blocks "
                            "of a node of this name; give the name of the Node object (of a-z, 0-9, '-' and '.')",
                            net::echo(node)));
  }
  return {};
}

/// What the plugin would refuse of its store's URL, each time it is called. Error: invalid_argument.
[[nodiscard]] Result<void> check_store_url(const std::string& url, const Clock& clock) {
  switch (store::scheme_of(url).value_or(store::Scheme::sqlite)) {
    case store::Scheme::kube:
      TRY_VOID(parse_kube_url(url));
      return {};
    case store::Scheme::etcd: {
      const auto opened = open_store(url, store::OpenMode::existing, clock);  // which connects nothing
      // The files that it names may be there later.
      if (!opened && opened.error().code == ErrorCode::invalid_argument) return fail(opened.error().in("--store"));
      return {};
    }
    case store::Scheme::sqlite:
      break;
  }
  const auto path = store::file_of_store(url);
  if (path && path->starts_with('/')) return {};
  return fail(
      ErrorCode::invalid_argument,
      fmt::format("--store {} is not a store that the plugin knows: give kube:, etcd:https://10.0.0.1:2379,… or "
                  "sqlite:/absolute/path.db",
                  net::echo(store::without_user(url))));
}

class Install {
 public:
  Install(InstallOptions options, const Daemon& daemon)
      : options_(std::move(options)),
        daemon_(daemon),
        files_({options_.programs, options_.configurations, options_.programs_on_host}, tell),
        takeover_(options_, daemon_, files_, told_) {}

  [[nodiscard]] Result<int> run() {
    TRY_VOID(decide());
    TRY_VOID(look());
    if (options_.no_network) TRY_VOID(takeover_.check_cluster());
    std::unique_ptr<PluginKubeconfig> kubeconfig;
    if (has_kubeconfig()) {
      TRY(kubeconfig, PluginKubeconfig::make(options_.kubeconfig, options_.store, daemon_.clock, daemon_.random));
    }
    if (!kubeconfig) TRY_VOID(probe_other_store());
    if (options_.dry_run) return dry_run();
    edge::InstallTurn turn(options_.configurations);
    TRY_VOID(turn.begin(daemon_.clock, Deadline::after(daemon_.clock.now(), kInstallTurnTime)));
    if (kubeconfig) {
      // With a token, and nobody may install here again.
      daemon_.stop.before_forced_end(
          [draft = files_.draft_of_kubeconfig(plan_)] { static_cast<void>(os::remove_file_durably(draft)); });
    }
    // Who had the turn may have written another network.
    TRY_VOID(look());
    std::string access;
    if (kubeconfig) {
      auto made = kubeconfig->text();
      if (!made) return fail(Error(made.error()).in("nothing was changed on this node"));
      access = *std::move(made);
      TRY_VOID(check_node_is_there());
    }
    const std::string network = options_.no_network ? "" : wire::cni::encode_network_list(options_.network);
    auto done = files_.write(
        plan_, {access, network}, [this](const std::string& draft) { return probe(draft); },
        [this] { return look_for_the_last_time(); });
    if (!done) return fail(Error(done.error()).in("nothing was changed on this node"));
    return 0;
  }

 private:
  /// host-local, under which name Croft's plugin too keeps files on the node, asks no register.
  [[nodiscard]] bool has_kubeconfig() const {
    const bool asks_register =
        ipam_name_of(options_.network.main) == kPluginName ||
        std::ranges::any_of(options_.also_as, [](const auto& name) { return name != "host-local"; });
    return asks_register && store::scheme_of(options_.store) == store::Scheme::kube;
  }

  /// What is on the node, and whether ours may take its place. Several times: others write there too.
  [[nodiscard]] Result<void> look() {
    if (!options_.no_network) {
      TRY_VOID(decide_network_name());
      TRY_VOID(check_what_the_plugin_reads());
      TRY_VOID(takeover_.check_who_gave());
      TRY_VOID(takeover_.look_at_the_living(NetworkTakeover::Looks::two));
      plan_.giver = takeover_.next_giver();
    }
    tell_of_runtime();
    TRY_VOID(files_.check(plan_));
    if (options_.no_network) return {};
    if (options_.network.main == MainPlugin::calico) {
      TRY(const auto networks, files_.networks());
      TRY_VOID(check_calicos_plugin(options_, networks, told_));
    }
    return tell_of_networks();
  }

  /// After the token and the probe, which wait for an API: right before all is renamed into place.
  [[nodiscard]] Result<void> look_for_the_last_time() {
    TRY_VOID(check_all_is_read());
    TRY_VOID(takeover_.check_who_gave());
    // What came since the look before is reason enough.
    TRY_VOID(takeover_.look_at_the_living(NetworkTakeover::Looks::one));
    return files_.check(plan_);
  }

  /// What is written, and under which names.
  [[nodiscard]] Result<void> decide() {
    if (options_.no_network && !options_.main.empty()) {
      return fail(ErrorCode::invalid_argument,
                  "--main-plugin with --no-conflist: no configuration is written that would name it; give one of both");
    }
    if (!options_.no_network) {
      TRY(options_.network.main, main_plugin(options_.main));
    }
    if (options_.network_file.empty()) options_.network_file = wire::cni::network_file_of(options_.network.main);
    // A runtime takes a .conf or .json for one plugin, not for a list of them.
    if (!wire::is_install_name(options_.network_file) || !options_.network_file.ends_with(".conflist")) {
      return fail(ErrorCode::invalid_argument,
                  fmt::format("--conflist-name {}: give a plain name that ends with .conflist",
                              net::echo(options_.network_file)));
    }
    if (options_.no_v4 && !options_.assign_v6) {
      return fail(ErrorCode::invalid_argument, "--no-ipv4 without --ipv6: pods would get no address");
    }
    if (options_.node.empty()) {
      TRY(options_.node, os::host_name());
    }
    TRY_VOID(core::check_node_name(options_.node));
    if (options_.configurations_on_host.empty()) options_.configurations_on_host = options_.configurations;
    trim_path(options_.configurations_on_host);
    TRY_VOID(read_programs());
    wire::cni::NetworkList& network = options_.network;
    network.node = options_.node;
    network.assign_v4 = !options_.no_v4;
    network.assign_v6 = options_.assign_v6;
    network.masquerades = !options_.no_masquerade;
    network.store = options_.store;
    if (network.calico_kubeconfig.empty()) {
      network.calico_kubeconfig = options_.configurations_on_host + "/calico-kubeconfig";
    }
    if (!options_.no_network) {
      plan_.others = wire::cni::plugins_of(network.main);
      plan_.network_name = options_.network_file;
    }
    if (has_kubeconfig()) {
      plan_.kubeconfig_name = kKubeconfigName;
      TRY(const KubePlace place, parse_kube_url(options_.store));
      group_part_ = group_part(place);
      network.store = fmt::format("kube:{}/{}{}", options_.configurations_on_host, kKubeconfigName, group_part_);
      options_.kubeconfig.file = fmt::format("{}/{}", options_.configurations, kKubeconfigName);
      note_cluster(place);
    }
    return options_.no_network ? check_what_the_plugin_reads() : Result<void>();
  }

  /// Of a kubeconfig that can't be read nothing is known yet: to write the plugin's is an error then.
  void note_cluster(const KubePlace& place) {
    auto access = kube_access(place);
    if (!access) return;
    for (const std::string& url : options_.kubeconfig.servers) {
      if (auto server = wire::kube::parse_kube_server(url)) access->servers.push_back(*std::move(server));
    }
    takeover_.note_cluster(compare_cluster(options_.kubeconfig.file, *access));
  }

  /// What host-local has given lies under the network's name: under another one it, and Croft in its place, would
  /// give these addresses again. So the name of a network that is in use stays, also where its file is lost. What can't
  /// be read may be flannel's.
  [[nodiscard]] Result<void> decide_network_name() {
    TRY(const auto in_use, files_.networks_in_use());
    TRY(const edge::RecordedNetwork record, files_.recorded_network());
    const std::string& recorded = record.name;
    const std::string& name_said = options_.network_name;
    const bool is_flannel = options_.network.main == MainPlugin::flannel;
    std::string& name = options_.network.name;
    name = wire::cni::NetworkList().name;
    if (!name_said.empty()) {
      name = name_said;
    } else if (const auto found = name_of_before(in_use, recorded)) {
      name = *found;
    } else if (is_flannel) {
      name = kFlannelsNetwork;
    }
    return check_all_is_read();
  }

  /// Of what can't be read, and may be the network of this node, somebody has to say the name.
  [[nodiscard]] Result<void> check_all_is_read() const {
    TRY(const auto in_use,
        files_.networks_to_replace(takeover_.next_giver(), wire::cni::encode_network_list(options_.network)));
    TRY(const edge::RecordedNetwork recorded, files_.recorded_network());
    const bool is_flannel = options_.network.main == MainPlugin::flannel;
    const std::string& name = options_.network.name;
    for (const edge::NodeNetwork& there : in_use) {
      const bool is_said = !options_.network_name.empty() && (is_flannel || !options_.replaced_network.empty());
      if (there.is_ours || there.trouble.empty() || there.is_behind || is_said) continue;
      if (there.has_our_name && !recorded.name.empty()) {
        told_(fmt::format("{}/{} can't be read ({}): the network keeps the name of the installation before, {}",
                          options_.configurations, there.file, there.trouble, net::echo(name)));
        continue;
      }
      return fail(
          ErrorCode::refused_for_safety,
          fmt::format("{0} has {1}, which can't be read ({2}) and may be the network of this node, and {3} would take "
                      "its place with the name {4}: {5}, addresses of its pods would be given again. "
                      "Give its name with --network-name ({4} if it has none){6}, or remove it if no pod got its "
                      "address by it",
                      options_.configurations, net::echo(there.file), there.trouble, options_.network_file,
                      net::echo(name),
                      is_flannel ? "were its own another" : "did another give its addresses than Croft's register",
                      is_flannel ? "" : " and, once no pod has its address from another, with --replace-network"));
    }
    return {};
  }

  /// That of the installation before, though its file or the record may be lost; else of the main plugin's own
  /// configuration.
  [[nodiscard]] std::optional<std::string> name_of_before(const std::vector<edge::NodeNetwork>& in_use,
                                                          const std::string& recorded) const {
    for (const edge::NodeNetwork& there : in_use) {
      const bool is_ours = there.is_ours || (there.has_our_name && there.calls.is_of_croft());
      if (is_ours && !there.calls.name.empty()) return there.calls.name;
    }
    if (!recorded.empty()) return recorded;
    const bool brings_its_own =
        options_.network.main == MainPlugin::flannel || options_.network.main == MainPlugin::calico;
    for (const edge::NodeNetwork& there : in_use) {
      if (auto crofts = name_of_crofts(there)) return crofts;
      auto theirs = brings_its_own ? there.calls.name_with(options_.main) : std::nullopt;
      if (theirs && !theirs->empty()) return theirs;
    }
    return {};
  }

  /// Of a network by which a register of Croft gives, whoever wrote it: as where the record was removed.
  [[nodiscard]] static std::optional<std::string> name_of_crofts(const edge::NodeNetwork& there) {
    if (there.is_behind) return {};
    for (const wire::cni::AddressGiver& giver : there.calls.all_givers()) {
      if ((giver.program == kPluginName || !giver.store.empty()) && !giver.network.empty()) return giver.network;
    }
    return {};
  }

  [[nodiscard]] Result<store::kube::Answer> node_object() const {
    store::kube::Request request;
    TRY(request.path, wire::kube::object_path({"", "v1", "nodes"}, "", options_.node));
    TRY(const auto api, open_kube_api(options_.store, daemon_.clock, kDaemonParts, kInstallProbeTime));
    return api->call(request, Deadline::after(daemon_.clock.now(), kInstallProbeTime));
  }

  /// What somebody should know of the configurations that are there.
  [[nodiscard]] Result<void> tell_of_networks() const {
    const wire::cni::NetworkList& own = options_.network;
    TRY(const auto networks, files_.networks());
    TRY(const edge::RecordedNetwork recorded, files_.recorded_network());
    std::string before = recorded.name;
    for (const edge::NodeNetwork& there : networks) {
      if (there.is_ours) before = there.calls.name;
    }
    TRY(const auto in_use, files_.networks_in_use());
    for (const edge::NodeNetwork& there : in_use) {
      if (before.empty()) before = name_of_crofts(there).value_or("");
    }
    if (!before.empty() && before != own.name) {
      told_(
          fmt::format("the network was {0} and is {1} now: the DEL of a pod that was made before does not find its "
                      "address, which stays held until the controller sees that the pod is gone; --network-name {0} "
                      "keeps the name",
                      net::echo(before), net::echo(own.name)));
    }
    tell_of_interfaces(networks);
    if (options_.is_forced) told_("--force is for --uninstall, and does nothing here");
    if (!options_.replaced_network.empty() && !takeover_.replaces_any()) {
      told_(
          fmt::format("--replace-network {} names no network here that another gives the addresses of: take it out "
                      "once every node has Croft's configuration",
                      net::echo(options_.replaced_network)));
    }
    for (const edge::NodeNetwork& there : networks) {
      if (there.is_ours) continue;
      if (there.file < options_.network_file) {
        told_(fmt::format("{}/{} comes before {}, and calls it, or Croft: left as it is", options_.configurations,
                          net::echo(there.file), options_.network_file));
      }
      const bool brings_its_own = own.main == MainPlugin::calico || own.main == MainPlugin::flannel;
      if (!brings_its_own || !there.calls.has(options_.main)) continue;
      const std::vector<std::string> lost = wire::cni::members_lost(wire::cni::encode_network_list(own), there.text);
      if (lost.empty()) continue;
      told_(fmt::format("{}/{} is {}'s own; {} comes before it, and lacks what that has: {}. --mtu says an mtu{}",
                        options_.configurations, there.file, options_.main, options_.network_file,
                        fmt::join(lost, ", "),
                        own.main == MainPlugin::calico
                            ? "; `croft migrate calico` in place of this keeps all of it (docs/runbooks/migrate.md)"
                            : ""));
    }
    return {};
  }

  /// A runtime that looks elsewhere finds no plugin, and no pod starts. A container sees no runtime's configuration.
  void tell_of_runtime() const {
    if (!options_.programs_on_host.empty() && options_.programs_on_host != options_.programs) return;
    const auto text = os::read_file(options_.containerd, wire::cni::kContainerdConfigBytesMax);
    if (!text) return;
    const std::vector<std::string> all = wire::cni::plugin_directories_of_containerd(*text);
    const auto here = os::file_status(options_.programs);
    const auto is_here = [&](const std::string& directory) {
      const auto there = os::file_status(directory);
      return here && *here && there && *there && (*here)->id == (*there)->id;
    };
    if (all.empty() || std::ranges::any_of(all, is_here)) return;
    told_(fmt::format(
        "containerd looks for plugins in {0}, by {1}, and not in {2}: where it is the runtime of this node, "
        "no pod would start; run it again with --cni-bin-dir {3}",
        fmt::join(all, " and "), options_.containerd, options_.programs, all.back()));
  }

  /// To a pod behind the bridge the host answers for its neighbours alone, and one of ptp is none.
  void tell_of_interfaces(const std::vector<edge::NodeNetwork>& networks) const {
    const bool is_bridge = options_.network.main == MainPlugin::bridge;
    if (!is_bridge && options_.network.main != MainPlugin::ptp) return;
    const char* const other = is_bridge ? "ptp" : "bridge";
    const bool is_change = std::ranges::any_of(
        networks, [&](const edge::NodeNetwork& there) { return there.is_ours && there.calls.has(other); });
    if (!is_change) return;
    told_(
        fmt::format("pods get their interfaces from {} now and had them from {}: pods of this node that were made "
                    "before and those made from now on do not reach each other until the former are made anew "
                    "(drain the node, and delete the pods of DaemonSets there)",
                    options_.main, other));
  }

  /// Blocks are claimed for the node of this name: for one that is none nobody routes them, and nobody frees them. An
  /// API that does not say so says nothing.
  [[nodiscard]] Result<void> check_node_is_there() const {
    if (options_.skip_probe || !asks_register()) return {};
    TRY(const store::kube::Answer answer, node_object());
    if (answer.http_status != 404) return {};
    return fail(ErrorCode::refused_by_configuration,
                fmt::format("--node {}: the cluster has no node of this name, for which the plugin would claim blocks; "
                            "give the name that `kubectl get nodes` shows (the host name where none is given), or "
                            "--no-probe where the node joins later",
                            net::echo(options_.node)));
  }

  [[nodiscard]] static Result<void> check_path_on_host(const char* flag, const std::string& path) {
    if (path.starts_with('/') && wire::is_plain_text(path)) return {};
    return fail(ErrorCode::invalid_argument,
                fmt::format("{} {}: give an absolute path in UTF-8 without control characters, as the node sees it",
                            flag, net::echo(path)));
  }

  /// That the plugin takes what it will be told.
  [[nodiscard]] Result<void> check_what_the_plugin_reads() const {
    const bool is_calico = options_.network.main == MainPlugin::calico;
    if (has_kubeconfig() || is_calico) {
      TRY_VOID(check_path_on_host("--cni-conf-dir-on-host", options_.configurations_on_host));
    }
    if (is_calico) TRY_VOID(check_path_on_host("--calico-kubeconfig", options_.network.calico_kubeconfig));
    TRY_VOID(wire::cni::check_network_list(options_.network));
    if (!asks_register()) return {};
    TRY_VOID(check_store_url(options_.network.store, daemon_.clock));
    if (store::scheme_of(options_.network.store) != store::Scheme::kube) return {};
    return check_object_names(options_.network.name, options_.network.node);
  }

  /// What flannel's plugin calls asks no register, and of a node's own configuration nothing is known.
  [[nodiscard]] bool asks_register() const {
    return !options_.no_network && ipam_name_of(options_.network.main) == kPluginName;
  }

  /// The program that is installed under a name, out of the first of `directories` that has it.
  [[nodiscard]] static Result<std::string> read_program(const std::string& name,
                                                        const std::vector<std::string>& directories) {
    const std::string file = name == "calico-ipam" ? wire::cni::kSiblingName : name;
    const bool is_search = directories.size() > 1;
    std::optional<Error> trouble;
    for (const std::string& directory : directories) {
      auto program = os::read_file(fmt::format("{}/{}", directory, file), edge::kProgramBytesMax);
      // Where a runtime looks, a host-local may be somebody else's.
      if (program && name == kHostLocalName && !edge::is_program_of_croft(*program)) continue;
      if (program && program->starts_with("\x7f"
                                          "ELF")) {
        return *std::move(program);
      }
      if (program) {
        trouble = Error{ErrorCode::invalid_argument, fmt::format("{}/{} is no program", directory, file), {}};
        break;
      }
      const bool is_missing = program.error().code == ErrorCode::not_found;
      if (!trouble || !is_missing) trouble = program.error();
      if (!is_missing) break;
    }
    if (!trouble)
      trouble = Error{ErrorCode::not_found, fmt::format("{} has no {} of Croft", directories.front(), file), {}};
    if (is_search && trouble->code == ErrorCode::not_found) {
      trouble->message +=
          fmt::format(", nor is it in {}", fmt::join(directories.begin() + 1, directories.end(), " or "));
    }
    trouble->message += "; name the directory that has it with --source";
    return fail(*std::move(trouble));
  }

  [[nodiscard]] Result<void> read_programs() {
    std::vector<std::string> directories{options_.source};
    if (options_.source.empty()) {
      TRY(const std::string own, os::resolved_path("/proc/self/exe"));
      // Packages put croft-ipam where the runtime looks and host-local, which may be somebody else's there, apart.
      const std::string beside = os::directory_of(own);
      directories = {beside, os::directory_of(beside) + "/libexec/croft", options_.programs};
      if (options_.programs != kDefaultPrograms) directories.emplace_back(kDefaultPrograms);
    } else {
      trim_path(directories.front());
    }
    // Each once, however often it was said; the sibling before croft-ipam, which is never there without it.
    std::set<std::string> wanted{std::string(wire::cni::ipam_name_of(options_.network.main))};
    wanted.insert(options_.also_as.begin(), options_.also_as.end());
    std::vector<std::string> names(wanted.begin(), wanted.end());
    if (wanted.contains(kPluginName)) names.insert(names.begin(), wire::cni::kSiblingName);
    for (const std::string& name : names) {
      TRY(programs_[name], read_program(name, directories));
      plan_.programs.push_back({name, programs_[name]});
    }
    return {};
  }

  /// The plugin's own way to the register, with the kubeconfig that it is to get.
  [[nodiscard]] Result<void> probe(const std::string& kubeconfig) {
    if (options_.skip_probe) return {};
    const auto there = probe_register("kube:" + kubeconfig + group_part_);
    if (there) return {};
    Error error = there.error().in("the plugin could not work on the register");
    const bool is_of_name = error.message.find("certificate of") != error.message.npos;
    if (is_of_name && options_.kubeconfig.server_name.empty()) {
      error.message += "; where it has another name than the address that is asked, say it with --api-server-name";
    }
    return fail(std::move(error));
  }

  /// The same of a register that needs no kubeconfig. A file may be made later, by `croft pool create`.
  [[nodiscard]] Result<void> probe_other_store() {
    if (options_.skip_probe || options_.dry_run || !asks_register()) return {};
    const std::string& url = options_.network.store;
    const Deadline deadline = Deadline::after(daemon_.clock.now(), kInstallProbeTime);
    auto opened = open_store(url, store::OpenMode::existing, daemon_.clock);
    const bool is_file = store::scheme_of(url) == store::Scheme::sqlite;
    if (!opened && is_file && opened.error().code == ErrorCode::not_found) return {};
    std::optional<Error> trouble;
    if (!opened) trouble = opened.error();
    if (opened) {
      const auto there = (*opened)->position(deadline);
      if (!there) trouble = there.error();
    }
    if (!trouble) {
      const auto is_open = check_open(**opened);
      const auto fit = is_open ? check_pools(**opened) : Result<void>();
      if (is_open) return fit ? Result<void>() : fail(Error(fit.error()).in("nothing was changed on this node"));
      return fail(is_open.error().in("nothing was changed on this node: the plugin could not work on the register"));
    }
    trouble->message += "; --no-probe installs without this look";
    return fail(trouble->in("nothing was changed on this node: the plugin could not work on the register"));
  }

  [[nodiscard]] Result<void> probe_register(const std::string& url) {
    const Deadline deadline = Deadline::after(daemon_.clock.now(), kInstallProbeTime);
    // As the plugin opens it: no YAML, no look-up of names.
    TRY(const auto store, open_store(url, store::OpenMode::existing, daemon_.clock));
    TRY_VOID(store->position(deadline));
    TRY(const auto api, open_kube_api(url, daemon_.clock, {}, kInstallProbeTime));
    TRY(const KubePlace place, parse_kube_url(url));
    std::optional<wire::calico::ApiGroup> group = place.group;
    if (!group) {
      TRY(group, store::kube::discover_calico_group(*api, deadline));
    }
    const bool has_own =
        std::ranges::any_of(plan_.programs, [](const auto& program) { return program.name == kPluginName; });
    auto done = store::kube::check_rights(*api, rights_of_plugin(*group, has_own), deadline);
    if (done) {
      TRY_VOID(check_open(*store));
      return check_pools(*store);
    }
    if (done.error().code != ErrorCode::permission_denied) return done;
    done.error().message += fmt::format(
        " (the service account {}); deploy/kubernetes/access.yaml has an account with all that a plugin needs, "
        "croft-plugin",
        options_.kubeconfig.service_account);
    return done;
  }

  [[nodiscard]] Result<void> check_open(store::Store& store) const {
    if (!asks_register()) return {};
    engine::Context context{store, daemon_.clock, daemon_.random};
    context.time_limit = kInstallProbeTime;
    return check_is_open(context);
  }

  /// That the register has pools of what pods are to get, as the main plugin wants them; that it has others too is
  /// told. Where pools can't be read nothing is said.
  [[nodiscard]] Result<void> check_pools(store::Store& store) const {
    if (!asks_register()) return {};
    engine::Context context{store, daemon_.clock, daemon_.random};
    context.time_limit = kInstallProbeTime;
    const wire::cni::NetworkList& network = options_.network;
    TRY(const auto found, await_pools(context));
    if (!found) return {};
    std::vector<core::Pool> pools;
    for (const auto& [key, value] : *found->snapshot.list({core::Kind::pool, ""})) {
      pools.push_back(std::get<core::Pool>(value));
    }
    TRY(auto lines, compare_families({network.assign_v4, network.assign_v6}, pools));
    PodNeeds needs;
    needs.node = network.node;
    if (!std::ranges::all_of(pools, core::is_for_all_nodes)) needs.node_labels = labels_of_node(context);
    needs.families = {network.assign_v4, network.assign_v6};
    for (const std::string& text : network.pools_v4) needs.asked.v4.push_back(core::asked_pool(text));
    for (const std::string& text : network.pools_v6) needs.asked.v6.push_back(core::asked_pool(text));
    // Calico's plugin takes a /32 and makes its own routes.
    const bool is_plain = network.main == MainPlugin::ptp || network.main == MainPlugin::bridge;
    if (is_plain) needs.wants_gateways = options_.main;
    core::Reader reader(found->snapshot);  // what is reserved has no part in the choice of pools
    TRY(auto more, compare_pools(needs, core::PoolTable(reader)));
    std::ranges::move(more, std::back_inserter(lines));
    for (const std::string& line : lines) tell(line);
    return {};
  }

  /// nullopt: they can't be read.
  [[nodiscard]] static std::optional<engine::Register> read_pools(const engine::Context& context) {
    core::Missing wanted;
    wanted.lists.insert({core::Kind::pool, ""});
    auto found = engine::read_register(context, wanted);
    if (!found || !found->unreadable.empty() || found->snapshot.list({core::Kind::pool, ""}) == nullptr) return {};
    return *std::move(found);
  }
  /// The same, once there are any where they are expected. Error: told to end.
  [[nodiscard]] Result<std::optional<engine::Register>> await_pools(const engine::Context& context) const {
    const std::chrono::seconds wait{options_.pools_wait_s};
    const Deadline patience = Deadline::after(daemon_.clock.now(), wait);
    for (;;) {
      auto found = read_pools(context);
      const bool is_to_wait = found && found->snapshot.list({core::Kind::pool, ""})->empty() && wait.count() > 0;
      if (!is_to_wait) return std::optional<engine::Register>(std::move(found));
      if (patience.passed(daemon_.clock.now())) {
        tell(
            fmt::format("the register has no pool after {} s (croft pool list): the node gets its network, and "
                        "its pods start once there is one",
                        wait.count()));
        return std::optional<engine::Register>(std::move(found));
      }
      told_(fmt::format("the register has no pool yet: waiting up to {} s for the first one", wait.count()));
      if (daemon_.stop.wait_for(kPoolsLookEvery)) return fail(ErrorCode::unavailable, "told to end before pools came");
    }
  }

  /// As an ADD takes them: of a node that is not recorded none. nullopt: they can't be read.
  [[nodiscard]] std::optional<core::Labels> labels_of_node(const engine::Context& context) const {
    const auto key = core::node_key(options_.network.node);
    core::Missing wanted;
    wanted.records = {key};
    const auto found = engine::read_register(context, wanted);
    if (!found || !found->unreadable.empty()) return {};
    const core::Node* const node = core::Reader(found->snapshot).find(key);
    return node != nullptr ? node->labels : core::Labels();
  }

  [[nodiscard]] Result<int> dry_run() const {
    for (const auto& program : plan_.programs)
      tell(fmt::format("{}/{} would be written", options_.programs, program.name));
    if (!plan_.kubeconfig_name.empty()) tell(fmt::format("{} would be written", options_.kubeconfig.file));
    if (options_.no_network) return 0;
    tell(fmt::format("{}/{} would be written:", options_.configurations, plan_.network_name));
    static_cast<void>(os::write_standard_output(wire::cni::encode_network_list(options_.network)));
    return 0;
  }

  InstallOptions options_;
  const Daemon& daemon_;
  std::map<std::string, std::string> programs_;  ///< what is installed under each name
  std::string group_part_;                       ///< of URLs: the register that was named is the plugin's too
  edge::InstallPlan plan_;
  edge::Installation files_;
  mutable ToldOnce told_;
  NetworkTakeover takeover_;
};

}  // namespace

Result<int> install(InstallOptions options, const Daemon& daemon) { return Install(std::move(options), daemon).run(); }

}  // namespace croft::app
