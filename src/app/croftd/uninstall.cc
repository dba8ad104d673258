#include "app/croftd/uninstall.h"

#include <string>

#include <fmt/format.h>

#include "app/croftd/living_addresses.h"
#include "app/croftd/store_parts.h"
#include "app/open_store.h"
#include "edge/install/installation.h"
#include "edge/install/takeover.h"
#include "edge/install/turn.h"
#include "engine/transact.h"
#include "net/echo.h"
#include "os/files.h"
#include "store/store_url.h"
#include "wire/cni/network_list.h"

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
    const std::string url = url_seen_from_here(options_, before.store.empty() ? options_.store : before.store);
    const auto not_seen = [](const Error& error) {
      return fmt::format("which of them live can't be seen from here: {}", error.message);
    };
    const auto opened = open_store(url, store::OpenMode::existing, daemon_.clock, kDaemonParts);
    if (!opened && opened.error().code == ErrorCode::not_found && store::file_of_store(url)) return "";
    if (!opened) return not_seen(opened.error());
    engine::Context context{**opened, daemon_.clock, daemon_.random};
    context.time_limit = kInstallProbeTime;
    const auto held = held_in(context, next.ranges);
    if (!held) return not_seen(held.error());
    return *held ? fmt::format("{} is held in {}", (*held)->to_string(), net::echo(store::without_user(url))) : "";
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
  using Stays = edge::Installation::Stays;
  TRY_VOID(files.take_back(options.dry_run, options.is_forced ? Stays::broken : Stays::whole));
  return 0;
}

}  // namespace croft::app
