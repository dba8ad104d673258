// croftd install: Croft's files on a node (docs/runbooks/kubernetes-node.md).

#include <algorithm>
#include <chrono>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "app/croftd/daemon.h"
#include "app/croftd/living_addresses.h"
#include "app/croftd/plugin_kubeconfig.h"
#include "app/croftd/pool_families.h"
#include "app/croftd/store_parts.h"
#include "app/kube_url.h"
#include "app/open_store.h"
#include "base/printable.h"
#include "core/register/affinity.h"
#include "core/register/seal.h"
#include "edge/cni/croft_ipam.h"
#include "edge/install/installation.h"
#include "edge/install/takeover.h"
#include "edge/install/turn.h"
#include "engine/register.h"
#include "net/echo.h"
#include "os/digest.h"
#include "os/files.h"
#include "os/process.h"
#include "store/kube/access_review.h"
#include "store/kube/calico_cluster.h"
#include "store/kube/node_cidrs.h"
#include "store/seal.h"
#include "store/store_url.h"
#include "wire/calico/crd.h"
#include "wire/cni/network_list.h"
#include "wire/flannel/subnet_env.h"
#include "wire/install/record.h"
#include "wire/kube/requests.h"

namespace croft::app {
namespace {

using wire::cni::MainPlugin;

constexpr const char* kKubeconfigName = "croft-kubeconfig";
constexpr const char* kProgram = "croft-ipam";
/// As kube-flannel's own configuration calls it.
constexpr const char* kFlannelsNetwork = "cbr0";
constexpr const char* kDefaultPrograms = "/opt/cni/bin";
constexpr const char* kDefaultConfigurations = "/etc/cni/net.d";
constexpr std::chrono::seconds kProbeTime{10};
/// Another one waits for an API meanwhile.
constexpr std::chrono::seconds kLockTime{60};
/// As of `croft check`: a container on its way out, or in, seems to live with an address that nobody holds; not so
/// long.
constexpr std::chrono::seconds kSecondLook{3};
constexpr const char* kHostLocalDirectory = "/var/lib/cni/networks";

struct InstallOptions {
  std::string programs = kDefaultPrograms;
  std::string configurations = kDefaultConfigurations;
  std::string programs_on_host, configurations_on_host;
  std::string subnet_env = "/run/flannel/subnet.env";
  std::string source;
  std::string main;
  std::string network_name;      ///< empty: see Install::decide_network_name
  std::string replaced_network;  ///< the name of one whose pods are gone, or known
  std::string replaced_store;    ///< the URL of a register of which the same is so
  std::string network_file;      ///< empty: network_file_of the main plugin
  std::vector<std::string> also_as;
  std::string store = "kube:";
  std::string node;
  bool assign_v6 = false, no_v4 = false, no_masquerade = false;
  bool skip_probe = false, uninstall = false, dry_run = false, is_forced = false;
  bool no_network = false;  ///< the node's own configuration calls the plugin (docs/runbooks/migrate.md)
  wire::cni::NetworkList network;
  PluginKubeconfigOptions kubeconfig;
};

void tell(const std::string& line) {
  static_cast<void>(os::write_standard_output(printable(line, Printed::line) + "\n"));
}

/// Directories of the host as a path without a slash behind it.
void trim(std::string& path) {
  while (path.size() > 1 && path.ends_with('/')) path.pop_back();
}

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
  needed.push_back({"ipam.croft.dev", "croftpoolsets", {"get", "list", "create", "update"}});
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
        files_({options_.programs, options_.configurations, options_.programs_on_host}, tell) {}

  [[nodiscard]] Result<int> run() {
    TRY_VOID(decide());
    TRY_VOID(look());
    std::unique_ptr<PluginKubeconfig> kubeconfig;
    if (has_kubeconfig()) {
      TRY(kubeconfig, PluginKubeconfig::make(options_.kubeconfig, options_.store, daemon_.clock, daemon_.random));
    }
    if (!kubeconfig) TRY_VOID(probe_other_store());
    if (options_.dry_run) return dry_run();
    edge::InstallTurn turn(options_.configurations);
    TRY_VOID(turn.begin(daemon_.clock, Deadline::after(daemon_.clock.now(), kLockTime)));
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
        ipam_name_of(options_.network.main) == kProgram ||
        std::ranges::any_of(options_.also_as, [](const auto& name) { return name != "host-local"; });
    return asks_register && store::scheme_of(options_.store) == store::Scheme::kube;
  }

  void tell_once(std::string line) const {
    if (told_.insert(line).second) tell(line);
  }

  /// What is on the node, and whether ours may take its place. Several times: others write there too.
  [[nodiscard]] Result<void> look() {
    if (!options_.no_network) {
      TRY_VOID(decide_network_name());
      TRY_VOID(check_what_the_plugin_reads());
      TRY_VOID(check_who_gave());
      TRY_VOID(look_at_the_living());
      plan_.giver = next_giver();
    }
    TRY_VOID(files_.check(plan_));
    return options_.no_network ? Result<void>() : tell_of_networks();
  }

  /// After the token and the probe, which wait for an API: right before all is renamed into place.
  [[nodiscard]] Result<void> look_for_the_last_time() {
    TRY(const auto in_use, files_.networks_in_use());
    TRY_VOID(check_all_is_read(in_use));
    TRY_VOID(check_who_gave());
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
    trim(options_.configurations_on_host);
    TRY_VOID(read_program());
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
    }
    return options_.no_network ? check_what_the_plugin_reads() : Result<void>();
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
    return check_all_is_read(in_use);
  }

  /// Of what can't be read, and may be the network of this node, somebody has to say the name.
  [[nodiscard]] Result<void> check_all_is_read(const std::vector<edge::NodeNetwork>& in_use) const {
    TRY(const edge::RecordedNetwork recorded, files_.recorded_network());
    const bool is_flannel = options_.network.main == MainPlugin::flannel;
    const std::string& name = options_.network.name;
    for (const edge::NodeNetwork& there : in_use) {
      const bool is_said = !options_.network_name.empty() && (is_flannel || !options_.replaced_network.empty());
      if (there.is_ours || there.trouble.empty() || there.is_behind || is_said) continue;
      if (there.has_our_name && !recorded.name.empty()) {
        tell_once(fmt::format("{}/{} can't be read ({}): the network keeps the name of the installation before, {}",
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
      if ((giver.program == kProgram || !giver.store.empty()) && !giver.network.empty()) return giver.network;
    }
    return {};
  }

  /// Pods of the network in use keep their addresses. Whoever gives addresses from now on knows of them where it goes
  /// by the same records, or where it has none of them to give; else somebody has to say that they are gone, or known.
  [[nodiscard]] Result<void> check_who_gave() const {
    replaced_.clear();
    TRY(const auto in_use, files_.networks_in_use());
    TRY(const edge::RecordedNetwork recorded, files_.recorded_network());
    const edge::NextGiver next = next_giver();
    wire::cni::AddressGiver before{recorded.addresses_from, recorded.name, {}, {}, recorded.store};
    for (const edge::NodeNetwork& there : in_use) {
      // The record does not say it, and this does.
      if (recorded.is_inferred && there.is_ours && !there.calls.givers.empty()) before.program.clear();
      const std::string& other = there.calls.other;
      const bool is_there = other == recorded.name || other.ends_with("/" + options_.network_file) ||
                            std::ranges::any_of(in_use, [&](const auto& one) { return one.calls.name == other; });
      if (!other.empty() && !is_there) {  // in a file elsewhere, or in the API
        TRY_VOID(check_giver(next, {"the network " + other, there.calls.name}, source_of(there)));
      }
      for (wire::cni::AddressGiver& giver : there.calls.all_givers()) {
        if (giver.program == kProgram && giver.store.empty()) giver.store = edge::kDefaultStoreUrl;
        TRY_VOID(check_giver(next, giver, source_of(there)));
        if (giver.program == before.program && giver.network == before.network && giver.store == before.store) {
          before.program.clear();
        }
      }
    }
    // Of whom no file says it any more: somebody emptied, damaged or removed it, or took its plugins out.
    if (before.program.empty()) return {};
    return check_giver(next, before, {wire::kInstallRecordName, true, false});
  }

  /// Who says that a network has pods here.
  struct Source {
    std::string file;
    bool is_ours = false;
    bool is_behind = false;  ///< the runtime surely goes by another
  };
  [[nodiscard]] static Source source_of(const edge::NodeNetwork& there) {
    return {net::echo(there.file), there.is_ours, there.is_behind};
  }

  [[nodiscard]] edge::NextGiver next_giver() const {
    edge::NextGiver next{ipam_name_of(options_.network.main) == kProgram, options_.network.name};
    next.store = options_.network.store;
    const auto scheme = store::scheme_of(options_.store);
    if (scheme == store::Scheme::kube) next.calicos = "kubernetes";
    if (scheme == store::Scheme::etcd) next.calicos = "etcdv3";
    return next;
  }

  /// A network without a name no runtime takes.
  [[nodiscard]] Result<void> check_giver(const edge::NextGiver& next, const wire::cni::AddressGiver& giver,
                                         const Source& source) const {
    const std::string& theirs = giver.network;
    const std::string& file = source.file;
    if (theirs.empty()) return {};
    if (theirs == options_.replaced_network) {
      if (!edge::knows(next, giver)) replaced_.push_back(giver);
      return {};
    }
    if (next.is_register && !giver.store.empty()) return check_register(next, giver.store, file);
    if (edge::knows(next, giver)) return {};
    std::string why;
    if (giver.ranges) {
      TRY(const Overlap overlap, overlap_with(next, *giver.ranges));
      if (overlap.why.empty() || (source.is_behind && !overlap.is_proven)) {
        if (giver.ranges->empty()) return {};
        tell_once(fmt::format("{}/{} {}: pods of {} keep their addresses, which {} does not have{}",
                              options_.configurations, file,
                              source.is_behind ? "is there too" : "is the network of this node by now",
                              net::echo(theirs), name_of(next), overlap.why.empty() ? "" : "; " + overlap.why));
        return {};
      }
      why = ": " + overlap.why;
    }
    const bool may_keep_name = !options_.network_name.empty() && edge::knows({next.is_register, theirs}, giver);
    return fail(
        ErrorCode::refused_for_safety,
        fmt::format(
            "{} has {}, the network {} of this node, whose addresses {} gives, and {}, the network {}, would take "
            "its place with addresses of {}: there nothing is known of those that pods of {} keep, and they "
            "would be given again{}. {}Move them (docs/runbooks/migrate.md) and keep the name with --network-name {}, "
            "or drain each node that has this network, and delete there what a drain leaves, the pods of DaemonSets "
            "and "
            "static pods; then give --replace-network {}{}",
            options_.configurations, file, net::echo(theirs), net::echo(giver.program), options_.network_file,
            net::echo(next.network), name_of(next), net::echo(theirs), why,
            may_keep_name ? "Leave --network-name out, so that the name stays, or: " : "", net::echo(theirs),
            net::echo(theirs), source.is_ours ? "" : fmt::format(". Remove {} if no pod got its address by it", file)));
  }

  /// The same of a register of Croft's, which `file` names.
  [[nodiscard]] Result<void> check_register(const edge::NextGiver& next, const std::string& before,
                                            const std::string& file) const {
    if (!options_.replaced_store.empty() && store::name_one_store(before, options_.replaced_store)) {
      replaced_.push_back({kProgram, {}, {}, {}, before});
      return {};
    }
    const auto name = [](const std::string& url) { return net::echo(store::without_user(url)); };
    switch (store::name_one_register(next.store, before)) {
      case store::OneRegister::yes:
        return {};
      case store::OneRegister::not_said:
        tell_once(
            fmt::format("{}/{} has the register {}, and {} will have {}: make sure that this is the same one, as "
                        "another knows nothing of the addresses that pods of this node keep",
                        options_.configurations, file, name(before), options_.network_file, name(next.store)));
        return {};
      case store::OneRegister::no:
        break;
    }
    const std::string why = why_not_moved(before);
    if (why.empty()) return {};
    return fail(ErrorCode::refused_for_safety,
                fmt::format("{} has {}, by which the register is {}, and {} would have another one, {}: there nothing "
                            "is known of the addresses that pods keep, and they would be given again ({}). Leave "
                            "--store as it was, or move the register (croft migrate store, docs/runbooks/migrate.md), "
                            "or drain each node that has it, and delete there what a drain leaves, the pods of "
                            "DaemonSets and static pods; "
                            "then give --replace-store {}",
                            options_.configurations, file, name(before), options_.network_file, name(next.store), why,
                            name(before)));
  }

  /// Empty: by its seal all that the register had is in ours by now, and it gives nothing any more.
  [[nodiscard]] std::string why_not_moved(const std::string& before) const {
    if (options_.skip_probe) return "with --no-probe nobody looks whether it was moved";
    std::string url = before;
    const std::string on_host = fmt::format("kube:{}/", options_.configurations_on_host);
    if (url.starts_with(on_host)) url.replace(0, on_host.size(), fmt::format("kube:{}/", options_.configurations));
    const auto not_seen = [](const Error& error) {
      return fmt::format("whether it was moved can't be seen from here: {}", error.message);
    };
    const auto opened = open_store(url, store::OpenMode::existing, daemon_.clock, kDaemonParts);
    if (!opened) return not_seen(opened.error());
    auto* const sealable = dynamic_cast<store::Sealable*>(opened->get());
    if (sealable == nullptr) return "such a one can't be moved";
    const auto found = sealable->seal(Deadline::after(daemon_.clock.now(), kProbeTime));
    if (!found) return not_seen(found.error());
    using core::Seal;
    const bool is_moved =
        *found && (*found)->seal.end == Seal::End::source && (*found)->seal.phase == Seal::Phase::moved;
    if (!is_moved) return "it was not moved to any other";
    const std::string& other = (*found)->seal.other;
    if (store::name_one_register(other, options_.network.store) == store::OneRegister::yes) return {};
    // The cluster of a node has one API, under whatever path its kubeconfig is.
    const bool is_api =
        store::scheme_of(other) == store::Scheme::kube && store::scheme_of(options_.store) == store::Scheme::kube;
    return is_api ? "" : fmt::format("it was moved to {}", store::without_user(other));
  }

  [[nodiscard]] static std::string name_of(const edge::NextGiver& next) {
    if (next.is_register) return "Croft's register";
    return fmt::format("host-local's directory {}", net::echo(next.network));
  }

  struct Overlap {
    std::string why;         ///< empty: none of these addresses will be given by ours
    bool is_proven = false;  ///< else nobody knows
  };
  [[nodiscard]] Result<Overlap> overlap_with(const edge::NextGiver& next,
                                             const std::vector<net::Prefix>& theirs) const {
    if (theirs.empty()) return Overlap();
    const bool is_register = next.is_register;
    if (is_register && options_.skip_probe) return Overlap{"with --no-probe the register's pools are not looked at"};
    TRY(const std::vector<core::Pool> pools, is_register ? read_pools() : Result<std::vector<core::Pool>>());
    std::vector<net::Prefix> ours;
    for (const core::Pool& pool : pools) ours.push_back(pool.cidr);
    std::string why_none;
    if (!is_register) ours = ranges_of_host_local(why_none);
    if (ours.empty()) {
      return Overlap{is_register
                         ? "the register has no pool yet, so nobody knows; make the pools first and run it again"
                         : fmt::format("no podCIDR of this node is known here, so nobody knows{}", why_none)};
    }
    const auto common = edge::common_range(theirs, ours);
    if (!common) return is_register ? overlap_of_others(theirs, pools) : Result<Overlap>(Overlap());
    return Overlap{fmt::format("{} overlaps {} {}", common->before.to_string(),
                               is_register ? "the pool" : "the node's podCIDR", common->next.to_string()),
                   true};
  }

  /// Where the network of before gave from the node's podCIDRs, pods of other nodes have addresses of theirs.
  [[nodiscard]] Result<Overlap> overlap_of_others(const std::vector<net::Prefix>& theirs,
                                                  const std::vector<core::Pool>& pools) const {
    if (store::scheme_of(options_.store) != store::Scheme::kube) return Overlap();
    TRY(const auto api, open_kube_api(options_.store, daemon_.clock, kDaemonParts, kProbeTime));
    auto said = store::kube::list_node_cidrs(*api, daemon_.clock);
    if (!said && said.error().code == ErrorCode::permission_denied) {
      TRY(const std::vector<net::Prefix> own, ranges_of_node());
      const auto common = edge::common_range(theirs, own);
      if (!common) return Overlap();
      return Overlap{
          fmt::format("{} is of this node's podCIDR {}, and whether a pool has the podCIDR of another node, "
                      "whose pods live too, can't be seen: {}",
                      common->before.to_string(), common->next.to_string(), said.error().message)};
    }
    if (!said) return fail(Error(said.error()).in("nothing was changed on this node: the podCIDRs of nodes"));
    std::vector<edge::NodeCidrs> nodes;
    for (auto& one : *said) nodes.push_back({std::move(one.node), std::move(one.cidrs)});
    std::vector<net::Prefix> ours;
    for (const core::Pool& pool : pools) ours.push_back(pool.cidr);
    const auto found = edge::common_range_of_others(theirs, nodes, options_.node, ours);
    if (!found) return Overlap();
    const auto pool = std::ranges::find(pools, found->common.next, &core::Pool::cidr);
    return Overlap{fmt::format("it gave from this node's podCIDR, as on other nodes, and {} of node {} overlaps the "
                               "pool {} ({})",
                               found->common.before.to_string(), net::echo(found->node), net::echo(pool->name),
                               pool->cidr.to_string()),
                   true};
  }

  /// None where the register is a file that is not there yet.
  [[nodiscard]] Result<std::vector<core::Pool>> read_pools() const {
    std::vector<core::Pool> pools;
    const auto until = [this] { return Deadline::after(daemon_.clock.now(), kProbeTime); };
    auto opened = open_store(options_.store, store::OpenMode::existing, daemon_.clock, kDaemonParts);
    if (!opened && opened.error().code == ErrorCode::not_found) return pools;
    const auto take = [&](store::Record& record) -> Result<void> {
      const auto* pool = std::get_if<core::Pool>(&record.value);
      if (pool == nullptr) {
        return fail(ErrorCode::refused_for_safety, fmt::format("{} can't be read", net::echo(record.key.name)));
      }
      pools.push_back(*pool);
      return {};
    };
    auto done = opened ? (*opened)->for_each({core::Kind::pool, "", ""}, until, take)
                       : Result<void>(fail(Error(opened.error())));
    if (!done) return fail(done.error().in("nothing was changed on this node: the register's pools"));
    return pools;
  }

  /// From which host-local gives under flannel: flannel's agent says it where it runs, also where it has it from an
  /// etcd; else the node's podCIDRs are it. `why_none` gets the words where nobody says it.
  [[nodiscard]] std::vector<net::Prefix> ranges_of_host_local(std::string& why_none) const {
    std::vector<net::Prefix> ranges;
    const auto text = os::read_file(options_.subnet_env, wire::kSubnetEnvBytesMax);
    const auto env = text ? wire::decode_subnet_env(*text) : Result<wire::SubnetEnv>(fail(Error(text.error())));
    if (env) {
      for (const wire::SubnetEnvFamily& family : env->families) ranges.push_back(family.subnet.network());
      return ranges;
    }
    constexpr const char* kRemedy =
        "run it again where flannel's agent runs (--flannel-subnet-env), or with a --store kube:/path/kubeconfig that "
        "can "
        "read this node's object";
    auto said = ranges_of_node();
    if (said && !said->empty()) return *std::move(said);
    why_none = said ? fmt::format("; {}", kRemedy) : fmt::format(" ({}); {}", said.error().message, kRemedy);
    return ranges;
  }

  /// The node's podCIDRs; none where no API says them.
  [[nodiscard]] Result<std::vector<net::Prefix>> ranges_of_node() const {
    if (options_.skip_probe || store::scheme_of(options_.store) != store::Scheme::kube)
      return std::vector<net::Prefix>();
    TRY(const auto api, open_kube_api(options_.store, daemon_.clock, kDaemonParts, kProbeTime));
    auto said = store::kube::find_node_cidrs(*api, options_.node, Deadline::after(daemon_.clock.now(), kProbeTime));
    // Of what can't be read nobody knows where it is.
    if (!said || said->damage) return std::vector<net::Prefix>();
    return std::move(said->cidrs);
  }

  [[nodiscard]] Result<store::kube::Answer> node_object() const {
    store::kube::Request request;
    TRY(request.path, wire::kube::object_path({"", "v1", "nodes"}, "", options_.node));
    TRY(const auto api, open_kube_api(options_.store, daemon_.clock, kDaemonParts, kProbeTime));
    return api->call(request, Deadline::after(daemon_.clock.now(), kProbeTime));
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
      tell_once(
          fmt::format("the network was {0} and is {1} now: the DEL of a pod that was made before does not find its "
                      "address, which stays held until the controller sees that the pod is gone; --network-name {0} "
                      "keeps the name",
                      net::echo(before), net::echo(own.name)));
    }
    tell_of_interfaces(networks);
    if (options_.is_forced) tell_once("--force is for --uninstall, and does nothing here");
    if (!options_.replaced_network.empty() && replaced_.empty()) {
      tell_once(
          fmt::format("--replace-network {} names no network here that another gives the addresses of: take it out "
                      "once every node has Croft's configuration",
                      net::echo(options_.replaced_network)));
    }
    for (const edge::NodeNetwork& there : networks) {
      if (there.is_ours) continue;
      if (there.file < options_.network_file) {
        tell_once(fmt::format("{}/{} comes before {}, and calls it, or Croft: left as it is", options_.configurations,
                              net::echo(there.file), options_.network_file));
      }
      const bool brings_its_own = own.main == MainPlugin::calico || own.main == MainPlugin::flannel;
      if (!brings_its_own || !there.calls.has(options_.main)) continue;
      const std::vector<std::string> lost = wire::cni::members_lost(wire::cni::encode_network_list(own), there.text);
      if (lost.empty()) continue;
      tell_once(fmt::format("{}/{} is {}'s own; {} comes before it, and lacks what that has: {}. --mtu says an mtu{}",
                            options_.configurations, there.file, options_.main, options_.network_file,
                            fmt::join(lost, ", "),
                            own.main == MainPlugin::calico
                                ? "; `croft migrate calico` in place of this keeps all of it (docs/runbooks/migrate.md)"
                                : ""));
    }
    return {};
  }

  /// To a pod behind the bridge the host answers for its neighbours alone, and one of ptp is none.
  void tell_of_interfaces(const std::vector<edge::NodeNetwork>& networks) const {
    const bool is_bridge = options_.network.main == MainPlugin::bridge;
    if (!is_bridge && options_.network.main != MainPlugin::ptp) return;
    const char* const other = is_bridge ? "ptp" : "bridge";
    const bool is_change = std::ranges::any_of(
        networks, [&](const edge::NodeNetwork& there) { return there.is_ours && there.calls.has(other); });
    if (!is_change) return;
    tell_once(
        fmt::format("pods get their interfaces from {} now and had them from {}: pods of this node that were made "
                    "before and those made from now on do not reach each other until the former are made anew "
                    "(drain the node, and delete the pods of DaemonSets there)",
                    options_.main, other));
  }

  /// Somebody says that no pod of a network lives any more. What a drain leaves, DaemonSets' pods and static pods, can
  /// be seen on its node: what they have and the register may give again is a reason. Other nodes' are for them to see.
  [[nodiscard]] Result<void> look_at_the_living() const {
    if (replaced_.empty()) return {};
    TRY(std::vector<LivingAddress> living, living_not_known());
    if (living.empty()) return {};
    // Who came or went between the two looks is in one of them only.
    if (!options_.dry_run) std::this_thread::sleep_for(kSecondLook);
    TRY(const std::vector<LivingAddress> again, living_not_known());
    std::erase_if(living, [&](const LivingAddress& one) {
      return std::ranges::none_of(again, [&](const LivingAddress& other) { return other.address == one.address; });
    });
    if (living.empty()) return {};
    return fail(ErrorCode::refused_for_safety,
                fmt::format("nothing was changed on this node: what is to be replaced still has addresses here that {} "
                            "knows nothing of, and would give again: {}. A drain leaves the pods of DaemonSets and "
                            "static pods: take the old network's configuration away first, so that new ones wait, and "
                            "delete them too; or "
                            "move them (docs/runbooks/migrate.md). A file whose container is gone can be removed",
                            name_of(next_giver()), text_of(living)));
  }

  [[nodiscard]] Result<std::vector<LivingAddress>> living_not_known() const {
    const edge::NextGiver next = next_giver();
    std::vector<LivingAddress> living;
    for (const wire::cni::AddressGiver& giver : replaced_) {
      if (giver.program != "host-local") continue;
      const std::string directory =
          fmt::format("{}/{}", giver.directory.empty() ? kHostLocalDirectory : giver.directory, giver.network);
      std::ranges::move(addresses_in_directory(directory), std::back_inserter(living));
    }
    if (!next.is_register) {
      std::string why_none;
      const std::vector<net::Prefix> ranges = ranges_of_host_local(why_none);
      std::erase_if(living, [&](const LivingAddress& one) {
        return !ranges.empty() &&
               std::ranges::none_of(ranges, [&](const auto& range) { return range.contains(one.address); });
      });
      return living;
    }
    const auto not_looked = [&](const Error& error) {
      tell_once(fmt::format(
          "whether pods of this node live with addresses that the register does not have is not looked at: {}",
          error.message));
    };
    if (options_.skip_probe) return std::vector<LivingAddress>();
    const Deadline deadline = Deadline::after(daemon_.clock.now(), kProbeTime);
    if (store::scheme_of(options_.store) == store::Scheme::kube) {
      TRY(const auto api, open_kube_api(options_.store, daemon_.clock, kDaemonParts, kProbeTime));
      auto pods = addresses_of_pods(*api, daemon_.clock, options_.node, deadline);
      if (!pods) not_looked(pods.error());
      if (pods) std::ranges::move(*pods, std::back_inserter(living));
    }
    if (living.empty()) return living;
    TRY(const std::vector<core::Pool> pools, read_pools());
    if (pools.empty()) return std::vector<LivingAddress>();
    TRY(const auto store, open_store(options_.store, store::OpenMode::existing, daemon_.clock, kDaemonParts));
    engine::Context context{*store, daemon_.clock, daemon_.random};
    context.time_limit = kProbeTime;
    auto found = not_held(context, pools, std::move(living));
    if (!found) return fail(found.error().in("nothing was changed on this node: the register's blocks"));
    return found;
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

  /// That the plugin takes what it will be told.
  [[nodiscard]] Result<void> check_what_the_plugin_reads() const {
    const std::string& directory = options_.configurations_on_host;
    const auto is_control = [](char c) { return static_cast<unsigned char>(c) < 0x20 || c == 0x7f; };
    const bool names_it = has_kubeconfig() || options_.network.main == MainPlugin::calico;
    if (names_it && (!directory.starts_with('/') || std::ranges::any_of(directory, is_control))) {
      return fail(
          ErrorCode::invalid_argument,
          fmt::format("--cni-conf-dir-on-host {}: give an absolute path without control characters, as the node "
                      "sees it",
                      net::echo(directory)));
    }
    TRY_VOID(wire::cni::check_network_list(options_.network));
    if (!asks_register()) return {};
    TRY_VOID(check_store_url(options_.network.store, daemon_.clock));
    if (store::scheme_of(options_.network.store) != store::Scheme::kube) return {};
    return check_object_names(options_.network.name, options_.network.node);
  }

  /// What flannel's plugin calls asks no register, and of a node's own configuration nothing is known.
  [[nodiscard]] bool asks_register() const {
    return !options_.no_network && ipam_name_of(options_.network.main) == kProgram;
  }

  [[nodiscard]] Result<void> read_program() {
    const bool is_own = options_.source.empty();
    const auto read_from = [](const std::string& directory) {
      return os::read_file(fmt::format("{}/{}", directory, kProgram), edge::kProgramBytesMax);
    };
    if (is_own) {
      TRY(const std::string own, os::resolved_path("/proc/self/exe"));
      options_.source = os::directory_of(own);
    }
    trim(options_.source);
    auto program = read_from(options_.source);
    // Packages put it where the runtime looks, and this program elsewhere.
    if (!program && is_own && program.error().code == ErrorCode::not_found) {
      for (const std::string& directory : {options_.programs, std::string(kDefaultPrograms)}) {
        auto other = read_from(directory);
        if (!other) continue;
        options_.source = directory;
        program = std::move(other);
        break;
      }
    }
    if (!program) {
      Error error = program.error();
      error.message += is_own ? fmt::format(", nor is it in {} or {}; name the directory that has it with --source",
                                            options_.programs, kDefaultPrograms)
                              : "; name the directory that has it with --source";
      return fail(std::move(error));
    }
    program_ = *std::move(program);
    if (!program_.starts_with("\x7f"
                              "ELF")) {
      return fail(
          ErrorCode::invalid_argument,
          fmt::format("{}/{} is no program; name the directory that has it with --source", options_.source, kProgram));
    }
    // Each once, however often it was said.
    std::set<std::string> names{std::string(wire::cni::ipam_name_of(options_.network.main))};
    names.insert(options_.also_as.begin(), options_.also_as.end());
    for (const std::string& name : names) plan_.programs.push_back({name, program_});
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
    const Deadline deadline = Deadline::after(daemon_.clock.now(), kProbeTime);
    auto opened = open_store(url, store::OpenMode::existing, daemon_.clock);
    const bool is_file = store::scheme_of(url) == store::Scheme::sqlite;
    if (!opened && is_file && opened.error().code == ErrorCode::not_found) return {};
    std::optional<Error> trouble;
    if (!opened) trouble = opened.error();
    if (opened) {
      const auto there = (*opened)->position(deadline);
      if (!there) trouble = there.error();
    }
    if (!trouble) return check_families(**opened);
    trouble->message += "; --no-probe installs without this look";
    return fail(trouble->in("nothing was changed on this node: the plugin could not work on the register"));
  }

  [[nodiscard]] Result<void> probe_register(const std::string& url) {
    const Deadline deadline = Deadline::after(daemon_.clock.now(), kProbeTime);
    // As the plugin opens it: no YAML, no look-up of names.
    TRY(const auto store, open_store(url, store::OpenMode::existing, daemon_.clock));
    TRY_VOID(store->position(deadline));
    TRY(const auto api, open_kube_api(url, daemon_.clock, {}, kProbeTime));
    TRY(const KubePlace place, parse_kube_url(url));
    std::optional<wire::calico::ApiGroup> group = place.group;
    if (!group) {
      TRY(group, store::kube::discover_calico_group(*api, deadline));
    }
    const bool has_own =
        std::ranges::any_of(plan_.programs, [](const auto& program) { return program.name == kProgram; });
    auto done = store::kube::check_rights(*api, rights_of_plugin(*group, has_own), deadline);
    if (done) return check_families(*store);
    if (done.error().code != ErrorCode::permission_denied) return done;
    done.error().message += fmt::format(
        " (the service account {}); deploy/kubernetes/access.yaml has an account with all that a plugin needs, "
        "croft-plugin",
        options_.kubeconfig.service_account);
    return done;
  }

  /// That the register has pools of what pods are to get; that it has others too is told. Where pools can't be read
  /// nothing is said.
  [[nodiscard]] Result<void> check_families(store::Store& store) const {
    if (!asks_register()) return {};
    engine::Context context{store, daemon_.clock, daemon_.random};
    context.time_limit = kProbeTime;
    core::Missing wanted;
    wanted.lists.insert({core::Kind::pool, ""});
    const auto found = engine::read_register(context, wanted);
    const auto* const records = found ? found->snapshot.list({core::Kind::pool, ""}) : nullptr;
    if (records == nullptr || !found->unreadable.empty()) return {};
    std::vector<core::Pool> pools;
    for (const auto& [key, value] : *records) pools.push_back(std::get<core::Pool>(value));
    TRY(const auto lines, compare_families({options_.network.assign_v4, options_.network.assign_v6}, pools));
    for (const std::string& line : lines) tell(line);
    return {};
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
  std::string program_;
  std::string group_part_;  ///< of URLs: the register that was named is the plugin's too
  edge::InstallPlan plan_;
  edge::Installation files_;
  mutable std::set<std::string> told_;
  mutable std::vector<wire::cni::AddressGiver> replaced_;  ///< whose pods somebody says are gone, or known
};

/// What is in use once Croft's own is taken back gives addresses too: it has to know of Croft's pods, or there is none.
class Uninstall {
 public:
  Uninstall(const InstallOptions& options, const Daemon& daemon, const edge::Installation& files)
      : options_(options), daemon_(daemon), files_(files) {}

  [[nodiscard]] Result<void> check() const {
    TRY(const auto next, files_.networks_to_come());
    if (next.empty()) return {};
    TRY(const wire::cni::AddressGiver before, giver_of_ours());
    if (before.program.empty()) return {};
    for (const edge::NodeNetwork& there : next) {
      if (there.calls.names_another) TRY_VOID(check_giver(before, {there.calls.other, there.calls.name}, there.file));
      for (const wire::cni::AddressGiver& giver : there.calls.all_givers()) {
        TRY_VOID(check_giver(before, giver, there.file));
      }
    }
    return {};
  }

 private:
  /// By the configuration, which says more; by the record where that is lost.
  [[nodiscard]] Result<wire::cni::AddressGiver> giver_of_ours() const {
    TRY(const auto networks, files_.networks());
    for (const edge::NodeNetwork& there : networks) {
      const auto givers = there.calls.all_givers();
      if (there.is_ours && !givers.empty()) return givers.front();
    }
    TRY(const edge::RecordedNetwork recorded, files_.recorded_network());
    return wire::cni::AddressGiver{recorded.addresses_from, recorded.name, {}, {}, recorded.store};
  }

  [[nodiscard]] Result<void> check_giver(const wire::cni::AddressGiver& before, const wire::cni::AddressGiver& next,
                                         const std::string& file) const {
    const bool gives_none = next.ranges && next.ranges->empty();
    if (gives_none || goes_on(before, next)) return {};
    const std::string why = what_lives(before, next);
    if (why.empty()) return {};
    return fail(
        ErrorCode::refused_for_safety,
        fmt::format("nothing was changed on this node: with {} taken away {}/{} is the network of this node, "
                    "whose addresses {} gives: there nothing is known of those that pods of Croft keep, and they "
                    "would be given again ({}). Drain each node first, and delete there what a drain leaves, the "
                    "pods of DaemonSets and static pods; or remove that file; --force takes Croft away all the same",
                    net::echo(before.network), options_.configurations, net::echo(file), net::echo(next.program), why));
  }

  /// Whether the next one goes by the records of Croft's.
  [[nodiscard]] static bool goes_on(const wire::cni::AddressGiver& before, const wire::cni::AddressGiver& next) {
    if (before.program == "host-local") return edge::knows({false, before.network}, next);
    const auto scheme = store::scheme_of(before.store);
    edge::NextGiver ours{true, before.network};
    ours.store = before.store;
    if (scheme == store::Scheme::kube || !scheme) ours.calicos = "kubernetes";
    if (scheme == store::Scheme::etcd) ours.calicos = "etcdv3";
    return edge::knows(ours, next);
  }

  /// Empty: no pod can have an address that the next one gives.
  [[nodiscard]] std::string what_lives(const wire::cni::AddressGiver& before,
                                       const wire::cni::AddressGiver& next) const {
    if (before.program == "host-local") {
      const bool is_container = !options_.programs_on_host.empty() && options_.programs_on_host != options_.programs;
      if (is_container) return "which of them live can't be seen from this container";
      const auto living = addresses_in_directory(fmt::format("{}/{}", kHostLocalDirectory, before.network));
      return living.empty() ? "" : text_of(living);
    }
    std::string url = before.store.empty() ? options_.store : before.store;
    const std::string on_host =
        fmt::format("kube:{}/", options_.configurations_on_host.empty() ? options_.configurations
                                                                        : options_.configurations_on_host);
    if (url.starts_with(on_host)) url.replace(0, on_host.size(), fmt::format("kube:{}/", options_.configurations));
    const auto not_seen = [](const Error& error) {
      return fmt::format("which of them live can't be seen from here: {}", error.message);
    };
    const auto opened = open_store(url, store::OpenMode::existing, daemon_.clock, kDaemonParts);
    if (!opened && opened.error().code == ErrorCode::not_found && store::file_of_store(url)) return "";
    if (!opened) return not_seen(opened.error());
    engine::Context context{**opened, daemon_.clock, daemon_.random};
    context.time_limit = kProbeTime;
    const auto held = held_in(context, next.ranges);
    if (!held) return not_seen(held.error());
    return *held ? fmt::format("{} is held in {}", (*held)->to_string(), net::echo(store::without_user(url))) : "";
  }

  const InstallOptions& options_;
  const Daemon& daemon_;
  const edge::Installation& files_;
};

[[nodiscard]] Result<int> run_install(InstallOptions options, const Daemon& daemon) {
  for (std::string* path : {&options.programs, &options.configurations, &options.programs_on_host}) trim(*path);
  if (options.uninstall) {
    edge::Installation files({options.programs, options.configurations, options.programs_on_host}, tell);
    edge::InstallTurn turn(options.configurations);
    TRY(const auto directory, os::file_status(options.configurations));
    if (directory && !options.dry_run) {
      TRY_VOID(turn.begin(daemon.clock, Deadline::after(daemon.clock.now(), kLockTime)));
    }
    if (!options.is_forced) TRY_VOID(Uninstall(options, daemon, files).check());
    using Stays = edge::Installation::Stays;
    TRY_VOID(files.take_back(options.dry_run, options.is_forced ? Stays::broken : Stays::whole));
    return 0;
  }
  return Install(std::move(options), daemon).run();
}

}  // namespace

void add_plugin_kubeconfig_options(CLI::App& command, PluginKubeconfigOptions& options) {
  command
      .add_option("--api-server", options.servers,
                  "URL of an API server with a numeric address, for the plugin to ask; may be given several times "
                  "(default: those of the store's URL)")
      ->envname("CROFT_API_SERVER");
  command
      .add_option("--api-server-name", options.server_name,
                  "Name that the certificates of these servers have, where they have not their addresses "
                  "(tls-server-name)")
      ->envname("CROFT_API_SERVER_NAME");
  command.add_option("--plugin-service-account", options.service_account, "Service account as which the plugin works")
      ->capture_default_str();
  command.add_option("--plugin-namespace", options.name_space,
                     "Namespace of that service account (default: that of this process, else croft-system)");
  command
      .add_option("--plugin-token-seconds", options.token_seconds,
                  "How long a token of the plugin is good; it is renewed after a quarter to half of it")
      ->check(CLI::Range(600, 31536000))
      ->capture_default_str();
}

void add_install_command(CLI::App& app, Daemon& daemon) {
  CLI::App* command =
      app.add_subcommand("install", "Put Croft's plugin and its configuration on this node, or take them back");
  command->footer(
      "Programs come first, each in place of the old one at once; the network configuration, which makes the node "
      "ready, comes last. Run it again at any time: what is there is left as it is, and where it fails the node is as "
      "it was.");
  const auto options = std::make_shared<InstallOptions>();
  command
      ->add_option("--main-plugin", options->main,
                   "Which plugin gives pods their interfaces: ptp, bridge, calico or flannel. There is no default")
      ->envname("CROFT_MAIN_PLUGIN");
  command->add_option("--cni-bin-dir", options->programs, "The runtime's directory of plugins")
      ->envname("CROFT_CNI_BIN_DIR")
      ->capture_default_str();
  command->add_option("--cni-conf-dir", options->configurations, "The runtime's directory of network configurations")
      ->envname("CROFT_CNI_CONF_DIR")
      ->capture_default_str();
  command
      ->add_option("--cni-bin-dir-on-host", options->programs_on_host,
                   "The directory of plugins as the node sees it, where a container sees it elsewhere: for the record "
                   "(default: the same)")
      ->envname("CROFT_CNI_BIN_DIR_ON_HOST");
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
                      "Name of the network; part of every owner in the register, and of host-local's directory "
                      "(default: that of the installation before; under calico and flannel that of their own "
                      "configuration, under flannel else cbr0; k8s-pod-network)");
  command->add_option(
      "--replace-network", options->replaced_network,
      "Take the place of the network of this name, of whose addresses ours knows nothing: when no pod "
      "of it lives on any node, a DaemonSet's and static ones neither, or all were moved (docs/runbooks/migrate.md)");
  command->add_option("--replace-store", options->replaced_store,
                      "Take the place of the register of this URL, of whose addresses ours knows nothing: when no pod "
                      "has its address from it any more, or all of it was moved (docs/runbooks/migrate.md)");
  command
      ->add_option("--flannel-subnet-env", options->subnet_env,
                   "Where flannel's agent says the node's range, which host-local gives under flannel")
      ->capture_default_str();
  command->add_option("--source", options->source,
                      "Directory that has croft-ipam (default: that of this program, else the runtime's, where a "
                      "package puts it)");
  command
      ->add_option("--also-as", options->also_as,
                   "Another name for the plugin: host-local, calico-ipam; may be given several times")
      ->check(CLI::IsMember({"host-local", "calico-ipam", "croft-ipam"}));
  command->add_option("--store", options->store, "Store URL; of a kube: store the plugin gets a kubeconfig of its own")
      ->envname("CROFT_STORE")
      ->capture_default_str();
  command->add_option("--node", options->node, "Name of this node (default: its host name)")->envname("CROFT_NODE");
  command->add_option("--ipv4-pool", options->network.pools_v4,
                      "Pool for IPv4; may be given several times (default: any)");
  command->add_option("--ipv6-pool", options->network.pools_v6,
                      "Pool for IPv6; may be given several times (default: any)");
  command->add_flag("--ipv6", options->assign_v6, "Give pods an IPv6 address too");
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
  command->add_flag("--no-conflist", options->no_network,
                    "Write the plugin and its kubeconfig, and no network configuration: for a node whose own one is to "
                    "call croft-ipam (croft migrate calico); instead of --main-plugin");
  command->add_flag("--no-probe", options->skip_probe,
                    "Write the network configuration though the plugin's way to the register was not tried, nor "
                    "looked whether the node is there");
  command->add_flag("--uninstall", options->uninstall, "Take back all that was installed, and nothing else");
  command->add_flag(
      "--force", options->is_forced,
      "With --uninstall: also while a network configuration that stays calls the plugin, or one comes to the "
      "front that knows nothing of Croft's pods");
  command->add_flag("--dry-run", options->dry_run, "Only tell what would be done");
  command->callback([options, &daemon] { daemon.run = [options, &daemon] { return run_install(*options, daemon); }; });
}

}  // namespace croft::app
