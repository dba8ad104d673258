#include "install/commands/uninstall.h"

#include <algorithm>
#include <optional>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "agent/daemon/store_parts.h"
#include "base/net/echo.h"
#include "cli/stores/kube_url.h"
#include "cli/stores/open_store.h"
#include "cni/format/network_list.h"
#include "collector/daemon/living_addresses.h"
#include "install/commands/installed_cluster.h"
#include "install/door/installation.h"
#include "install/door/takeover.h"
#include "install/door/turn.h"
#include "ipam/use/transact.h"
#include "os/files.h"
#include "os/process.h"
#include "store/store_url.h"

namespace croft::app {
namespace {

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
      // What it calls without a name is one of the others here, or ours, with which it gives none.
      const std::string& other = there.calls.other;
      TRY(const bool is_ours, is_of_ours(other, before));
      if (!other.empty() && !is_ours) TRY_VOID(check_giver(before, {other, there.calls.name}, there.file));
      for (const wire::cni::AddressGiver& giver : there.calls.all_givers()) {
        TRY_VOID(check_giver(before, giver, there.file));
      }
    }
    return {};
  }

  /// Whether pods of this node live with addresses of Croft's, or that can't be seen: whoever gives next has to know.
  [[nodiscard]] Result<bool> has_living() const {
    TRY(const wire::cni::AddressGiver before, giver_of_ours());
    if (before.program.empty()) return false;
    if (before.program == "host-local") return !what_lives_by_directory(before, {}).empty();
    const std::string url = url_seen_from_here(options_, before.store.empty() ? options_.store : before.store);
    const auto opened = open_store(url, store::OpenMode::existing, daemon_.clock, kDaemonParts);
    if (!opened) return opened.error().code != ErrorCode::not_found || !store::file_of_store(url);
    engine::Context context{**opened, daemon_.clock, daemon_.random};
    context.time_limit = kInstallProbeTime;
    std::string node = options_.node;
    if (node.empty() && !store::file_of_store(url)) {
      TRY(node, os::host_name());
    }
    const auto held = held_on_node(context, node);
    return !held || !held->empty();
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

  /// Whether multus' clusterNetwork is what goes: by its name, or its file's.
  [[nodiscard]] Result<bool> is_of_ours(const std::string& other, const wire::cni::AddressGiver& before) const {
    if (other == before.network) return true;
    TRY(const auto networks, files_.networks());
    return std::ranges::any_of(
        networks, [&](const edge::NodeNetwork& there) { return there.is_ours && other.ends_with("/" + there.file); });
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
    return before.program == "host-local" ? what_lives_by_directory(before, next)
                                          : what_lives_by_register(before, next);
  }

  [[nodiscard]] std::string what_lives_by_directory(const wire::cni::AddressGiver& before,
                                                    const wire::cni::AddressGiver& next) const {
    // host-local gives from what flannel's agent says, under which alone Croft has its name.
    const std::vector<net::Prefix> given = ranges_of_flannels_agent(options_);
    if (next.ranges && !given.empty() && !edge::common_range(given, *next.ranges)) return "";
    const bool is_container = !options_.programs_on_host.empty() && options_.programs_on_host != options_.programs;
    if (is_container) return "which of them live can't be seen from this container";
    auto living = addresses_in_directory(fmt::format("{}/{}", kHostLocalDirectory, before.network));
    if (!living) return living.error().message;
    std::erase_if(*living, [&](const LivingAddress& one) {
      return next.ranges &&
             std::ranges::none_of(*next.ranges, [&](const auto& range) { return range.contains(one.address); });
    });
    return living->empty() ? "" : text_of(*living);
  }

  [[nodiscard]] std::string what_lives_by_register(const wire::cni::AddressGiver& before,
                                                   const wire::cni::AddressGiver& next) const {
    const std::string url = url_seen_from_here(options_, before.store.empty() ? options_.store : before.store);
    const auto held = held_by(url, next);
    if (!held) {
      // The plugin's account may be gone, with its release or its Node; --store may have another to the same cluster.
      const auto other = held_by_own_account(url, next);
      return other ? *other : fmt::format("which of them live can't be seen from here: {}", held.error().message);
    }
    return *held;
  }

  /// Where the register is by that URL; empty: nothing that the next one gives.
  [[nodiscard]] Result<std::string> held_by(const std::string& url, const wire::cni::AddressGiver& next) const {
    const auto opened = open_store(url, store::OpenMode::existing, daemon_.clock, kDaemonParts);
    if (!opened && opened.error().code == ErrorCode::not_found && store::file_of_store(url)) return std::string();
    if (!opened) return fail(Error(opened.error()));
    engine::Context context{**opened, daemon_.clock, daemon_.random};
    context.time_limit = kInstallProbeTime;
    TRY(const auto held, held_in(context, next.ranges));
    if (!held) return std::string();
    return fmt::format("{} is held in {}", held->to_string(), net::echo(store::without_user(url)));
  }

  [[nodiscard]] std::optional<std::string> held_by_own_account(const std::string& url,
                                                               const wire::cni::AddressGiver& next) const {
    const auto before = parse_kube_url(url);
    const auto own = parse_kube_url(options_.store);
    if (!before || !own || before->kubeconfig.empty()) return std::nullopt;
    const auto access = kube_access(*own);
    if (!access) return std::nullopt;
    const OneCluster cluster = compare_cluster(before->kubeconfig, *access);
    if (cluster != OneCluster::yes && cluster != OneCluster::by_its_ca) return std::nullopt;
    const bool says_more = options_.store.find('?') != options_.store.npos;
    const auto held = held_by(says_more ? options_.store : options_.store + group_part(*before), next);
    return held ? std::optional(*held) : std::nullopt;
  }

  const InstallOptions& options_;
  const Daemon& daemon_;
  const edge::Installation& files_;
};

}  // namespace

Result<int> uninstall(const InstallOptions& options, const Daemon& daemon) {
  edge::Installation files({options.programs, options.configurations, options.programs_on_host}, tell);
  edge::InstallTurn turn(options.configurations);
  TRY(const auto directory, os::file_status(options.configurations));
  if (directory && !options.dry_run) {
    TRY_VOID(turn.begin(daemon.clock, Deadline::after(daemon.clock.now(), kInstallTurnTime)));
  }
  if (!options.is_forced) TRY_VOID(Uninstall(options, daemon, files).check());
  using edge::Installation;
  TRY(const bool has_living, Uninstall(options, daemon, files).has_living());
  TRY_VOID(files.take_back(options.dry_run,
                           options.is_forced ? Installation::Stays::broken : Installation::Stays::whole,
                           has_living ? Installation::Giver::kept : Installation::Giver::dropped));
  return 0;
}

}  // namespace croft::app
