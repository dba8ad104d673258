#include <algorithm>
#include <chrono>
#include <memory>
#include <set>
#include <string>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "agent/daemon/daemon.h"
#include "agent/daemon/plugin_kubeconfig.h"
#include "base/letters.h"
#include "base/printable.h"
#include "base/texts.h"
#include "cli/stores/open_sqlite.h"
#include "cli/stores/open_store.h"
#include "cni/format/conflist.h"
#include "install/commands/plugin_status.h"
#include "install/decide/node_network.h"
#include "install/door/node_files.h"
#include "os/files.h"
#include "os/process.h"
#include "store/kube/cluster_facts.h"
#include "store/store_url.h"

namespace croft::app {
namespace {

using std::chrono::seconds;
using wire::cni::MainPlugin;

constexpr const char* kPluginName = "croft-ipam";
constexpr seconds kNodeTime{10};
constexpr seconds kAskAgain{1};
/// Another one may wait for an API meanwhile.
constexpr seconds kTurnTime{60};

void tell(const std::string& line) {
  static_cast<void>(os::write_standard_output(printable(line, Printed::line) + "\n"));
}

/// The flags of `croftd install` (docs/runbooks/kubernetes-node.md).
struct InstallOptions {
  std::string programs = edge::kDefaultPrograms;
  std::string configurations = "/etc/cni/net.d";
  std::string configurations_on_host;  ///< empty: the same
  std::string source;
  std::string main;
  std::string network_name;  ///< empty: name_of_network()
  std::string replaced;      ///< a network's name, or a file's
  std::string network_file;  ///< empty: network_file_of the main plugin
  std::vector<std::string> also_as;
  std::int64_t wait_s = 0;  ///< for STATUS
  bool no_v4 = false, no_masquerade = false;
  bool no_network = false;  ///< the node's own configuration calls the plugin (docs/runbooks/migrate.md)
  bool skip_status = false, uninstall = false, dry_run = false, is_forced = false;
  std::string store = "kube:";  ///< as this process sees it
  wire::cni::NetworkList network;
  PluginKubeconfigOptions kubeconfig;
};

/// Writes the plugin, its kubeconfig and the network configuration, or nothing. Errors: those of judge_networks() and
/// ask_plugin_status(); invalid_argument, of a flag; of the files and the API.
class Install {
 public:
  Install(InstallOptions options, const Daemon& daemon) : options_(std::move(options)), daemon_(daemon) {}

  [[nodiscard]] Result<int> run() {
    TRY_VOID(complete_options());
    edge::InstallTurn turn(options_.configurations);
    if (!options_.dry_run) TRY_VOID(turn.begin(daemon_.clock, Deadline::after(daemon_.clock.now(), kTurnTime)));
    TRY_VOID(judge());
    TRY_VOID(wire::cni::network_as_called(options_.network));
    TRY_VOID(check_main_plugin());
    TRY_VOID(read_programs());
    plan_.network_file = options_.network_file;
    plan_.network_name = options_.network.name;
    plan_.main = options_.main;
    if (!options_.no_network) plan_.network = encode_network_list(options_.network);
    if (options_.dry_run) return show();
    const auto done = write();
    if (!done) return fail(Error(done.error()).in("the node's network is as it was"));
    return 0;
  }

 private:
  [[nodiscard]] bool asks_register() const { return ipam_name_of(options_.network.main) == kPluginName; }
  /// host-local keeps files on the node, and asks nobody.
  [[nodiscard]] bool has_kubeconfig() const {
    const bool has_plugin = asks_register() || std::ranges::any_of(options_.also_as, [](const std::string& name) {
                              return name != "host-local";
                            });
    return has_plugin && store::scheme_of(options_.store) == store::Scheme::kube;
  }

  [[nodiscard]] Result<void> complete_options() {
    wire::cni::NetworkList& network = options_.network;
    TRY_VOID(choose_main_plugin());
    if (options_.network_file.empty()) options_.network_file = network_file_of(network.main);
    // A runtime takes a .conf or .json for one plugin, not for a list of them.
    if (!wire::is_install_name(options_.network_file) || !options_.network_file.ends_with(".conflist")) {
      return fail(ErrorCode::invalid_argument, "--conflist-name {}: give a plain name that ends with .conflist",
                  echo(options_.network_file));
    }
    network.assign_v4 = !options_.no_v4;
    network.masquerades = !options_.no_masquerade;
    if (!network.assign_v4 && !network.assign_v6) {
      return fail(ErrorCode::invalid_argument, "--no-ipv4 without --ipv6: pods would get no address");
    }
    if (network.node.empty()) {
      TRY(network.node, os::host_name());
    }
    TRY_VOID(core::check_node_name(network.node));
    std::string& on_host = options_.configurations_on_host;
    if (on_host.empty()) on_host = options_.configurations;
    if (network.calico_kubeconfig.empty()) network.calico_kubeconfig = on_host + "/calico-kubeconfig";
    TRY(const auto directory, os::file_status(options_.configurations));
    if (!directory) {
      return fail(ErrorCode::not_found, "{} is not there: name the runtime's directory with --cni-conf-dir",
                  options_.configurations);
    }
    network.store = options_.store;
    if (asks_register()) {
      const auto scheme = store::scheme_of(options_.store);
      if (!scheme) return fail(unknown_store(options_.store));
      if (scheme == store::Scheme::etcd) TRY_VOID(parse_etcd_url(options_.store));
    }
    if (!has_kubeconfig()) return {};
    TRY(const KubePlace place, parse_kube_url(options_.store));
    group_ = group_part(place);
    network.store = fmt::format("kube:{}/{}{}", on_host, wire::kKubeconfigName, group_);
    TRY_VOID(parse_kube_url(network.store));
    options_.kubeconfig.file = fmt::format("{}/{}", options_.configurations, wire::kKubeconfigName);
    return {};
  }

  [[nodiscard]] Result<void> choose_main_plugin() {
    std::vector<std::string_view> names;
    for (const auto& known : wire::cni::kMainPlugins) {
      names.push_back(known.text);
      if (known.text == options_.main) options_.network.main = known.plugin;
    }
    const bool is_known = std::ranges::find(names, options_.main) != names.end();
    if (is_known != options_.no_network) return {};
    return fail(ErrorCode::invalid_argument,
                is_known ? "--main-plugin with --no-conflist: no configuration is written that would name it"
                         : fmt::format("{}: Croft gives addresses, and another plugin interfaces. Name that one with "
                                       "--main-plugin: {}",
                                       options_.main.empty() ? "--main-plugin is missing"
                                                             : "--main-plugin " + echo(options_.main) + " is not known",
                                       fmt::join(names, ", ")));
  }

  /// Several times: others write there too.
  [[nodiscard]] Result<void> judge() {
    if (options_.no_network) return {};
    wire::cni::NetworkList& network = options_.network;
    TRY(const wire::InstallRecord record, edge::read_record(options_.configurations));
    network.name = options_.network_name;
    if (network.name.empty()) {
      TRY(const auto there, edge::read_networks(options_.configurations, ""));
      network.name = core::name_of_network(there, record.network, options_.main);
    }
    const std::string text = encode_network_list(network);
    TRY(const auto there, edge::read_networks(options_.configurations, text));
    const core::WantedNetwork own{
        .file = options_.network_file,
        .name = network.name,
        .node = network.node,
        .giver = {std::string(ipam_name_of(network.main)), asks_register() ? network.store : network.name},
        .replaced = options_.replaced,
        .written = record.networks};
    TRY(verdict_, core::judge_networks(there, own));
    for (const std::string& line : verdict_.told) tell_once(line);
    return {};
  }

  /// STATUS does not try the main plugin: whether it is there, and has what it asks with, is all that is looked at.
  [[nodiscard]] Result<void> check_main_plugin() {
    if (options_.no_network) return {};
    for (const std::string& name : plugins_of(options_.network.main)) {
      TRY(const os::Runnable is, os::runnable(fmt::format("{}/{}", options_.programs, name)));
      if (is == os::Runnable::yes) continue;
      return fail(ErrorCode::refused_by_configuration,
                  "{}/{} is {}, and without it no pod would start. Install it, or name the runtime's directory with "
                  "--cni-bin-dir (Debian's is /usr/lib/cni)",
                  options_.programs, name, is == os::Runnable::absent ? "not there" : "no program that can be run");
    }
    std::string kubeconfig = options_.network.calico_kubeconfig;
    const std::string& on_host = options_.configurations_on_host;
    if (options_.network.main != MainPlugin::calico || options_.skip_status) return {};
    if (kubeconfig.starts_with(on_host + "/")) kubeconfig.replace(0, on_host.size(), options_.configurations);
    // A link may lead where only the node sees it.
    TRY(const auto there, os::entry_status(kubeconfig));
    const bool is_unseen = on_host != options_.configurations && kubeconfig == options_.network.calico_kubeconfig;
    if (there || is_unseen) return {};
    return fail(ErrorCode::unavailable,
                "Calico's plugin would ask with {}, which is not there. Calico's installer writes it: run this again "
                "then, or name the file with --calico-kubeconfig",
                options_.network.calico_kubeconfig);
  }

  [[nodiscard]] static Result<std::string> read_program(const std::string& name,
                                                        const std::vector<std::string>& directories) {
    const std::string file = name == "calico-ipam" ? wire::cni::kSiblingName : name;
    for (const std::string& directory : directories) {
      auto program = os::read_file(fmt::format("{}/{}", directory, file), edge::kProgramBytesMax);
      // Where a runtime looks, a host-local may be somebody else's.
      if (program && edge::is_program_of_croft(*program)) return program;
    }
    return fail(ErrorCode::not_found, "Croft's {} is not in {}: name its directory with --source", file,
                fmt::join(directories, " or "));
  }

  [[nodiscard]] Result<void> read_programs() {
    std::vector<std::string> directories{options_.source};
    if (options_.source.empty()) {
      TRY(const std::string own, os::resolved_path("/proc/self/exe"));
      // Packages put croft-ipam where the runtime looks, and host-local apart.
      const std::string beside = os::directory_of(own);
      directories = {beside, os::directory_of(beside) + "/libexec/croft", options_.programs, edge::kDefaultPrograms};
    }
    std::set<std::string> wanted(options_.also_as.begin(), options_.also_as.end());
    wanted.insert(std::string(ipam_name_of(options_.network.main)));
    // The sibling before croft-ipam, which is never there without it.
    std::vector<std::string> names(wanted.begin(), wanted.end());
    if (wanted.contains(kPluginName)) names.insert(names.begin(), wire::cni::kSiblingName);
    for (const std::string& name : names) {
      TRY(std::string content, read_program(name, directories));
      plan_.programs.push_back({name, std::move(content)});
    }
    return {};
  }

  [[nodiscard]] Result<void> write() {
    if (has_kubeconfig()) {
      TRY(const auto kubeconfig,
          PluginKubeconfig::make(options_.kubeconfig, options_.store, daemon_.clock, daemon_.random));
      TRY(plan_.kubeconfig, kubeconfig->text());
    }
    edge::Drafts drafts({options_.programs, options_.configurations}, plan_);
    TRY_VOID(drafts.write());
    if (!options_.skip_status && asks_register()) {
      TRY_VOID(check_node_is_there());
      TRY_VOID(await_status(drafts.kubeconfig()));
    }
    // Another network may have come while an API was asked.
    TRY_VOID(judge());
    return drafts.take_effect(verdict_.set_aside, tell);
  }

  /// Blocks are claimed for the node of this name: nobody routes or frees those of a wrong one.
  [[nodiscard]] Result<void> check_node_is_there() const {
    if (!has_kubeconfig() || options_.no_network) return {};
    TRY(const auto api, open_kube_api(options_.store, daemon_.clock, kDaemonParts, kNodeTime));
    const auto found =
        store::kube::find_node(*api, options_.network.node, Deadline::after(daemon_.clock.now(), kNodeTime));
    if (found || found.error().code != ErrorCode::not_found) return {};
    return fail(ErrorCode::refused_by_configuration,
                "--node {}: the cluster has no such node. Give the name that `kubectl get nodes` shows, or --no-probe "
                "where the node joins later",
                echo(options_.network.node));
  }

  [[nodiscard]] Result<void> ask_status(const wire::cni::NetworkList& drafted) const {
    TRY(wire::cni::Network network, network_as_called(drafted));
    TRY_VOID(ask_plugin_status(std::move(network), daemon_.clock, daemon_.random));
    const bool wants_gateways =
        !options_.no_network && (drafted.main == MainPlugin::ptp || drafted.main == MainPlugin::bridge);
    return wants_gateways ? check_gateways(drafted, daemon_.clock, daemon_.random) : Result<void>();
  }

  [[nodiscard]] Result<void> await_status(const std::string& kubeconfig) {
    wire::cni::NetworkList drafted = options_.network;
    if (has_kubeconfig()) drafted.store = fmt::format("kube:{}{}", kubeconfig, group_);
    const Deadline patience = Deadline::after(daemon_.clock.now(), seconds(options_.wait_s));
    for (;;) {
      const auto able = ask_status(drafted);
      const bool is_soon = !able && able.error().code == ErrorCode::unavailable;
      if (!is_soon || patience.passed(daemon_.clock.now())) return able;
      tell_once(fmt::format("{}: asking again for up to {} s", able.error().message, options_.wait_s));
      if (daemon_.stop.wait_for(kAskAgain)) return able;
    }
  }

  static void tell_change(const std::string& path, const std::string& wanted) {
    const auto is = os::read_file(path, edge::kProgramBytesMax);
    tell(path + (is && *is == wanted ? " is as it should be" : " would be written"));
  }

  [[nodiscard]] Result<int> show() const {
    for (const auto& one : plan_.programs) tell_change(fmt::format("{}/{}", options_.programs, one.name), one.content);
    if (has_kubeconfig()) tell(fmt::format("{} would be written with a new token", options_.kubeconfig.file));
    for (const std::string& file : verdict_.set_aside) tell(fmt::format("{} would be set aside", echo(file)));
    if (options_.no_network) return 0;
    tell_change(fmt::format("{}/{}", options_.configurations, options_.network_file), plan_.network);
    static_cast<void>(os::write_standard_output(plan_.network));
    return 0;
  }

  void tell_once(const std::string& line) {
    if (told_.insert(line).second) tell(line);
  }

  InstallOptions options_;
  const Daemon& daemon_;
  std::string group_;  ///< of URLs: the register that was named is the plugin's too
  edge::InstallPlan plan_;
  core::NetworkVerdict verdict_;
  std::set<std::string> told_;
};

/// Takes back what the record names. Errors: those of judge_uninstall(); of the files.
[[nodiscard]] Result<int> uninstall(const InstallOptions& options, const Daemon& daemon) {
  edge::InstallTurn turn(options.configurations);
  TRY(const auto names, os::list_directory(options.configurations, edge::kNamesMax));
  if (!options.dry_run) TRY_VOID(turn.begin(daemon.clock, Deadline::after(daemon.clock.now(), kTurnTime)));
  TRY(const wire::InstallRecord record, edge::read_record(options.configurations));
  if (!options.is_forced) {
    auto judged = core::judge_uninstall(names, record.networks, record.main);
    if (!judged) return fail(judged.error().in("nothing was changed on this node"));
  }
  TRY_VOID(edge::take_back({options.programs, options.configurations}, options.dry_run, tell));
  return 0;
}

}  // namespace

void add_install_command(CLI::App& app, Daemon& daemon) {
  CLI::App* command =
      app.add_subcommand("install", "Put Croft's plugin and its configuration on this node, or take them back");
  command->footer(
      "All files are drafted, the plugin answers STATUS with the drafts, and then they take their places: programs "
      "first, the network configuration, which makes the node ready, last. Run it again at any time.");
  const auto options = std::make_shared<InstallOptions>();
  command
      ->add_option("--main-plugin", options->main,
                   "Plugin that gives pods their interfaces: ptp, bridge, calico or flannel. There is no default")
      ->envname("CROFT_MAIN_PLUGIN");
  command->add_option("--cni-bin-dir", options->programs, "The runtime's directory of plugins")
      ->envname("CROFT_CNI_BIN_DIR")
      ->capture_default_str();
  command->add_option("--cni-conf-dir", options->configurations, "The runtime's directory of network configurations")
      ->envname("CROFT_CNI_CONF_DIR")
      ->capture_default_str();
  command
      ->add_option("--cni-conf-dir-on-host", options->configurations_on_host,
                   "The same directory as the node sees it, where a container sees it elsewhere (default: the same)")
      ->envname("CNI_NET_DIR");
  command
      ->add_option("--conflist-name", options->network_file,
                   "Name of the network configuration's file (default: 10-croft.conflist; under calico "
                   "05-croft.conflist, which comes before Calico's own)")
      ->envname("CNI_CONF_NAME");
  command->add_option("--network-name", options->network_name,
                      "Name of the network, part of every owner in the register (default: that of the installation "
                      "before; under calico and flannel that of their own configuration; k8s-pod-network)");
  CLI::Option* const replace = command->add_option(
      "--replace", options->replaced,
      "Set aside another network of this node, by its name or its file's: its pods keep addresses that "
      "Croft does not know (docs/runbooks/kubernetes-node.md)");
  command->add_option(
      "--source", options->source,
      "Directory that has croft-ipam, croft-ipam-cluster and host-local (default: that of this program, else "
      "libexec and the runtime's, where packages put them)");
  command
      ->add_option("--also-as", options->also_as,
                   "Install this plugin too: host-local, calico-ipam or croft-ipam; may be repeated")
      ->check(CLI::IsMember({"host-local", "calico-ipam", "croft-ipam"}));
  command->add_option("--store", options->store, "Store URL; of a kube: store the plugin gets a kubeconfig of its own")
      ->envname("CROFT_STORE")
      ->capture_default_str();
  command->add_option("--node", options->network.node, "Name of this node (default: its host name)")
      ->envname("CROFT_NODE");
  command->add_option("--ipv4-pool", options->network.pools_v4,
                      "Pool for IPv4; may be given several times (default: any)");
  command->add_option("--ipv6-pool", options->network.pools_v6,
                      "Pool for IPv6; may be given several times (default: any)");
  command->add_flag("--ipv6", options->network.assign_v6, "Give pods an IPv6 address too");
  command->add_flag("--no-ipv4", options->no_v4, "Give pods no IPv4 address");
  command->add_option("--mtu", options->network.mtu, "MTU of the pods' interfaces; 0: the plugin's own choice")
      ->check(CLI::Range(0, 65535))
      ->capture_default_str();
  command->add_flag("--no-masquerade", options->no_masquerade,
                    "Leave what leaves the pods' network as it is (ptp, bridge)");
  command->add_option(
      "--calico-kubeconfig", options->network.calico_kubeconfig,
      "Kubeconfig of Calico's plugin, as the node sees it (default: calico-kubeconfig beside the configuration)");
  add_plugin_kubeconfig_options(*command, options->kubeconfig);
  CLI::Option* const no_conflist = command->add_flag(
      "--no-conflist", options->no_network,
      "Write the plugin and its kubeconfig, and no network configuration: for a node whose own one is to "
      "call croft-ipam (croft migrate calico); instead of --main-plugin");
  command->add_flag("--no-probe", options->skip_status,
                    "Write the network configuration without asking the plugin STATUS, or whether the node is there");
  command
      ->add_option("--await-pools", options->wait_s,
                   "Seconds to ask STATUS again while it says \"try again later\", as before the first pool is made")
      ->check(CLI::Range(0, 3600))
      ->capture_default_str();
  CLI::Option* const uninstalls =
      command->add_flag("--uninstall", options->uninstall, "Take back all that was installed, and nothing else");
  replace->excludes(no_conflist)->excludes(uninstalls);
  command
      ->add_flag("--force", options->is_forced,
                 "With --uninstall: also where the runtime would go by another network then")
      ->needs(uninstalls);
  command->add_flag("--dry-run", options->dry_run, "Only tell what would be done");
  command->callback([options, &daemon] {
    daemon.run = [options, &daemon] {
      for (std::string* path : {&options->programs, &options->configurations, &options->configurations_on_host}) {
        while (path->size() > 1 && path->ends_with('/')) path->pop_back();
      }
      return options->uninstall ? uninstall(*options, daemon) : Install(*options, daemon).run();
    };
  });
}

}  // namespace croft::app
