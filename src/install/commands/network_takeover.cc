#include "install/commands/network_takeover.h"

#include <algorithm>
#include <chrono>
#include <iterator>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <variant>
#include <vector>

#include <fmt/format.h>

#include "agent/daemon/store_parts.h"
#include "base/net/echo.h"
#include "cli/stores/open_store.h"
#include "install/format/record.h"
#include "ipam/door/croft_ipam.h"
#include "ipam/use/transact.h"
#include "os/files.h"
#include "register/pause.h"
#include "store/kube/node_objects.h"
#include "store/pause.h"
#include "store/store_url.h"

namespace croft::app {
namespace {

/// As of `croft check`: a container on its way out, or in, seems to live with an address that nobody holds; not so
/// long.
constexpr std::chrono::seconds kSecondLook{3};

}  // namespace

Result<void> NetworkTakeover::check_who_gave() {
  replaced_.clear();
  const edge::NextGiver next = next_giver();
  // Of another cluster's register nothing was asked when the file was written.
  TRY(const auto in_use, cluster_ == OneCluster::no
                             ? files_.networks_in_use()
                             : files_.networks_to_replace(next, wire::cni::encode_network_list(options_.network)));
  pools_.reset();
  TRY(const edge::RecordedNetwork recorded, files_.recorded_network());
  wire::cni::AddressGiver before{recorded.addresses_from, recorded.name, {}, {}, recorded.store};
  for (const edge::NodeNetwork& there : in_use) {
    // The record does not say it, and this does.
    if (recorded.is_inferred && there.is_ours && !there.calls.givers.empty()) before.program.clear();
    const std::string& other = there.calls.other;
    const bool is_there = other == recorded.name ||
                          other.ends_with(fmt::format("{}/{}", next.directory, options_.network_file)) ||
                          std::ranges::any_of(in_use, [&](const auto& one) { return one.calls.name == other; });
    if (!other.empty() && !is_there) {  // in a file elsewhere, or in the API
      TRY_VOID(check_giver(next, {"the network " + other, there.calls.name}, source_of(there)));
    }
    for (wire::cni::AddressGiver& giver : there.calls.all_givers()) {
      if (giver.program == kPluginName && giver.store.empty()) giver.store = edge::kDefaultStoreUrl;
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

Result<void> NetworkTakeover::check_cluster() {
  if (cluster_ != OneCluster::no) return {};
  return check_register(next_giver(), options_.network.store, net::echo(options_.kubeconfig.file));
}

NetworkTakeover::Source NetworkTakeover::source_of(const edge::NodeNetwork& there) {
  return {net::echo(there.file), there.is_ours, there.is_behind};
}

edge::NextGiver NetworkTakeover::next_giver() const {
  edge::NextGiver next{ipam_name_of(options_.network.main) == kPluginName, options_.network.name};
  next.store = options_.network.store;
  // A container has the node's directory under a mount.
  next.directory = options_.configurations_on_host.substr(options_.configurations_on_host.rfind('/') + 1);
  next.directory.insert(0, "/");
  const auto scheme = store::scheme_of(options_.store);
  if (scheme == store::Scheme::kube) next.calicos = "kubernetes";
  if (scheme == store::Scheme::etcd) next.calicos = "etcdv3";
  return next;
}

Result<void> NetworkTakeover::check_giver(const edge::NextGiver& next, const wire::cni::AddressGiver& giver,
                                          const Source& source) {
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
    // Where the register can be asked, it is.
    const bool is_passed_over = source.is_behind && !overlap.is_proven && (!next.is_register || options_.skip_probe);
    if (overlap.why.empty() || is_passed_over) {
      if (giver.ranges->empty()) return {};
      told_(fmt::format("{}/{} {}: pods of {} keep their addresses, which {} does not have{}", options_.configurations,
                        file, source.is_behind ? "is there too" : "is the network of this node by now",
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

Result<void> NetworkTakeover::check_register(const edge::NextGiver& next, const std::string& before,
                                             const std::string& file) {
  if (!options_.replaced_store.empty() && store::name_one_store(before, options_.replaced_store)) {
    replaced_.push_back({kPluginName, {}, {}, {}, before});
    return {};
  }
  const auto name = [](const std::string& url) { return net::echo(store::without_user(url)); };
  switch (store::name_one_register(next.store, before)) {
    case store::OneRegister::yes:
      // One file's name, by which another cluster's API is asked from now on.
      if (cluster_ == OneCluster::no && store::scheme_of(before) == store::Scheme::kube) break;
      return {};
    case store::OneRegister::not_said:
      // By its pause it is neither this one nor that to which it was moved.
      if (!look_at_move(before).to.empty() && !why_not_moved(before).empty()) break;
      told_(
          fmt::format("{}/{} has the register {}, and {} will have {}: make sure that this is the same one, as "
                      "another knows nothing of the addresses that pods of this node keep",
                      options_.configurations, file, name(before), options_.network_file, name(next.store)));
      return {};
    case store::OneRegister::no:
      break;
  }
  const std::string why = why_not_moved(before);
  if (why.empty()) return {};
  return fail(
      ErrorCode::refused_for_safety,
      fmt::format("{} has {}, by which the register is {}, and {} would have another one, {}: there nothing "
                  "is known of the addresses that pods keep, and they would be given again ({}). Leave "
                  "--store as it was, or move the register (croft store copy, docs/runbooks/migrate.md), "
                  "or drain each node that has it, and delete there what a drain leaves, the pods of "
                  "DaemonSets and static pods; "
                  "then give --replace-store {}",
                  options_.configurations, file, name(before), options_.network_file,
                  cluster_ == OneCluster::no ? "that of another cluster" : name(next.store), why, name(before)));
}

NetworkTakeover::Move NetworkTakeover::look_at_move(const std::string& before) const {
  if (options_.skip_probe) return {"", "with --no-probe nobody looks whether it was moved"};
  const auto not_seen = [](const Error& error) {
    return Move{"", fmt::format("whether it was moved can't be seen from here: {}", error.message)};
  };
  const auto opened =
      open_store(url_seen_from_here(options_, before), store::OpenMode::existing, daemon_.clock, kDaemonParts);
  if (!opened) return not_seen(opened.error());
  auto* const pausable = dynamic_cast<store::Pausable*>(opened->get());
  if (pausable == nullptr) return {"", "such a one can't be moved"};
  const auto found = pausable->pause(Deadline::after(daemon_.clock.now(), kInstallProbeTime));
  if (!found) return not_seen(found.error());
  const bool is_moved = *found && (*found)->pause.phase == core::Pause::Phase::moved;
  return is_moved ? Move{(*found)->pause.other, ""} : Move{"", "it was not moved to any other"};
}

std::string NetworkTakeover::why_not_moved(const std::string& before) const {
  const Move move = look_at_move(before);
  if (move.to.empty()) return move.why_not;
  if (store::name_one_register(move.to, options_.network.store) == store::OneRegister::yes) return {};
  const std::string to = store::without_user(move.to);
  const bool is_api =
      store::scheme_of(move.to) == store::Scheme::kube && store::scheme_of(options_.store) == store::Scheme::kube;
  if (!is_api) return fmt::format("it was moved to {}", to);
  // The cluster of a node has one API, under whatever path its kubeconfig is.
  told_(
      fmt::format("the register of before was moved to {}: make sure that {} leads to the same API, as another knows "
                  "nothing of the addresses that pods of this node keep",
                  to, net::echo(store::without_user(options_.store))));
  return {};
}

std::string NetworkTakeover::name_of(const edge::NextGiver& next) {
  if (next.is_register) return "Croft's register";
  return fmt::format("host-local's directory {}", net::echo(next.network));
}

Result<NetworkTakeover::Overlap> NetworkTakeover::overlap_with(const edge::NextGiver& next,
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
    return Overlap{is_register ? "the register has no pool yet, so nobody knows; make the pools first and run it again"
                               : fmt::format("no podCIDR of this node is known here, so nobody knows{}", why_none)};
  }
  const auto common = edge::common_range(theirs, ours);
  if (!common) return is_register ? overlap_of_others(theirs, pools) : Result<Overlap>(Overlap());
  return Overlap{fmt::format("{} overlaps {} {}", common->before.to_string(),
                             is_register ? "the pool" : "the node's podCIDR", common->next.to_string()),
                 true};
}

Result<NetworkTakeover::Overlap> NetworkTakeover::overlap_of_others(const std::vector<net::Prefix>& theirs,
                                                                    const std::vector<core::Pool>& pools) const {
  if (store::scheme_of(options_.store) != store::Scheme::kube) return Overlap();
  TRY(const auto api, open_kube_api(options_.store, daemon_.clock, kDaemonParts, kInstallProbeTime));
  auto said = store::kube::list_nodes(*api, daemon_.clock, Deadline::after(daemon_.clock.now(), kInstallListTime));
  if (!said && said.error().code == ErrorCode::permission_denied) {
    TRY(const std::optional<std::vector<net::Prefix>> own, ranges_of_node());
    if (!own) {
      return Overlap{
          fmt::format("whether it gave from this node's podCIDR, as on other nodes, whose pods live too, "
                      "can't be seen: {}",
                      said.error().message)};
    }
    const auto common = edge::common_range(theirs, *own);
    if (!common) return Overlap();
    return Overlap{
        fmt::format("{} is of this node's podCIDR {}, and whether a pool has the podCIDR of another node, "
                    "whose pods live too, can't be seen: {}",
                    common->before.to_string(), common->next.to_string(), said.error().message)};
  }
  if (!said) return fail(Error(said.error()).in("nothing was changed on this node: the podCIDRs of nodes"));
  std::vector<edge::NodeCidrs> nodes;
  for (auto& one : *said) nodes.push_back({std::move(one.name), std::move(one.cidrs)});
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

Result<std::vector<core::Pool>> NetworkTakeover::read_pools() const {
  if (pools_) return *pools_;
  std::vector<core::Pool> pools;
  const Deadline end = Deadline::after(daemon_.clock.now(), kInstallListTime);
  const auto until = [this, &end] {
    const Deadline of_page = Deadline::after(daemon_.clock.now(), kInstallProbeTime);
    return Deadline{std::min(of_page.at_since_boot, end.at_since_boot)};
  };
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
  auto done =
      opened ? (*opened)->for_each({core::Kind::pool, "", ""}, until, take) : Result<void>(fail(Error(opened.error())));
  if (!done) return fail(done.error().in("nothing was changed on this node: the register's pools"));
  pools_ = pools;
  return pools;
}

std::vector<net::Prefix> NetworkTakeover::ranges_of_host_local(std::string& why_none) const {
  std::vector<net::Prefix> ranges = ranges_of_flannels_agent(options_);
  if (!ranges.empty()) return ranges;
  constexpr const char* kRemedy =
      "run it again where flannel's agent runs (--flannel-subnet-env), or with a --store kube:/path/kubeconfig that "
      "can "
      "read this node's object";
  auto said = ranges_of_node();
  if (said && *said && !(*said)->empty()) return **std::move(said);
  why_none = said ? fmt::format("; {}", kRemedy) : fmt::format(" ({}); {}", said.error().message, kRemedy);
  return ranges;
}

Result<std::optional<std::vector<net::Prefix>>> NetworkTakeover::ranges_of_node() const {
  using Ranges = std::optional<std::vector<net::Prefix>>;
  if (options_.skip_probe || store::scheme_of(options_.store) != store::Scheme::kube) return Ranges();
  TRY(const auto api, open_kube_api(options_.store, daemon_.clock, kDaemonParts, kInstallProbeTime));
  auto said = store::kube::find_node(*api, options_.node, Deadline::after(daemon_.clock.now(), kInstallProbeTime));
  if (!said || said->damage) return Ranges();
  return Ranges(std::move(said->cidrs));
}

Result<void> NetworkTakeover::look_at_the_living(Looks looks) const {
  if (replaced_.empty()) return {};
  TRY(std::vector<LivingAddress> living, living_not_known());
  if (living.empty()) return {};
  if (looks == Looks::two) {
    // Who came or went between the two looks is in one of them only.
    if (!options_.dry_run) std::this_thread::sleep_for(kSecondLook);
    TRY(const std::vector<LivingAddress> again, living_not_known());
    std::erase_if(living, [&](const LivingAddress& one) {
      return std::ranges::find(again, one.address, &LivingAddress::address) == again.end();
    });
  }
  if (living.empty()) return {};
  return fail(
      ErrorCode::refused_for_safety,
      fmt::format(
          "nothing was changed on this node: what is to be replaced still has addresses here that {} "
          "knows nothing of, and would give again: {}. A drain leaves the pods of DaemonSets and "
          "static pods: take the old network's configuration away first, so that new ones wait, and "
          "delete them too; or "
          "move them (docs/runbooks/migrate.md). Of a container that is gone a file can be removed, and an address "
          "in a register released (croft ip release)",
          name_of(next_giver()), text_of(living)));
}

Result<std::vector<LivingAddress>> NetworkTakeover::living_not_known() const {
  std::vector<LivingAddress> living;
  for (const wire::cni::AddressGiver& giver : replaced_) {
    if (!giver.store.empty() || giver.program == kPluginName)
      std::ranges::move(held_before(giver.store), std::back_inserter(living));
    if (giver.program != "host-local") continue;
    const std::string directory =
        fmt::format("{}/{}", giver.directory.empty() ? kHostLocalDirectory : giver.directory, giver.network);
    TRY(auto given, addresses_in_directory(directory));
    std::ranges::move(given, std::back_inserter(living));
  }
  TRY(auto pods, addresses_of_own_pods());
  std::ranges::move(pods, std::back_inserter(living));
  if (living.empty()) return living;
  return next_giver().is_register ? not_in_register(std::move(living)) : not_in_directory(std::move(living));
}

void NetworkTakeover::tell_not_looked(const Error& error) const {
  told_(fmt::format("whether pods of this node live with addresses that {} does not have is not looked at: {}",
                    name_of(next_giver()), error.message));
}

std::vector<LivingAddress> NetworkTakeover::held_before(const std::string& url) const {
  if (options_.skip_probe) return {};
  const std::string named = url.empty() ? edge::kDefaultStoreUrl : url;
  const auto opened =
      open_store(url_seen_from_here(options_, named), store::OpenMode::existing, daemon_.clock, kDaemonParts);
  if (!opened) {
    if (opened.error().code != ErrorCode::not_found) tell_not_looked(opened.error());
    return {};
  }
  engine::Context context{**opened, daemon_.clock, daemon_.random};
  context.time_limit = kInstallProbeTime;
  // A file is of one machine, whatever that is called.
  auto held = held_on_node(context, store::file_of_store(named) ? "" : options_.node);
  if (!held) tell_not_looked(held.error());
  return held ? *std::move(held) : std::vector<LivingAddress>();
}

Result<std::vector<LivingAddress>> NetworkTakeover::addresses_of_own_pods() const {
  if (options_.skip_probe || store::scheme_of(options_.store) != store::Scheme::kube)
    return std::vector<LivingAddress>();
  const auto api = open_kube_api(options_.store, daemon_.clock, kDaemonParts, kInstallProbeTime);
  if (!api) {  // as by hand under flannel, where nothing else asks it
    tell_not_looked(api.error());
    return std::vector<LivingAddress>();
  }
  auto pods =
      addresses_of_pods(**api, daemon_.clock, options_.node, Deadline::after(daemon_.clock.now(), kInstallProbeTime));
  if (!pods && pods.error().code == ErrorCode::permission_denied) {
    tell_not_looked(pods.error());
    return std::vector<LivingAddress>();
  }
  if (!pods) return fail(pods.error().in("nothing was changed on this node: the pods of this node"));
  return pods;
}

Result<std::vector<LivingAddress>> NetworkTakeover::not_in_directory(std::vector<LivingAddress> living) const {
  const std::string directory = fmt::format("{}/{}", kHostLocalDirectory, options_.network.name);
  TRY(const std::vector<LivingAddress> known, addresses_in_directory(directory));
  std::string why_none;
  const std::vector<net::Prefix> ranges = ranges_of_host_local(why_none);
  std::erase_if(living, [&](const LivingAddress& one) {
    const bool is_known = std::ranges::find(known, one.address, &LivingAddress::address) != known.end();
    const bool is_given =
        ranges.empty() || std::ranges::any_of(ranges, [&](const auto& range) { return range.contains(one.address); });
    return is_known || !is_given;
  });
  return living;
}

Result<std::vector<LivingAddress>> NetworkTakeover::not_in_register(std::vector<LivingAddress> living) const {
  if (options_.skip_probe) return std::vector<LivingAddress>();
  TRY(const std::vector<core::Pool> pools, read_pools());
  if (pools.empty()) return std::vector<LivingAddress>();
  TRY(const auto store, open_store(options_.store, store::OpenMode::existing, daemon_.clock, kDaemonParts));
  engine::Context context{*store, daemon_.clock, daemon_.random};
  context.time_limit = kInstallProbeTime;
  auto found = not_held(context, pools, std::move(living));
  if (!found) return fail(found.error().in("nothing was changed on this node: the register's blocks"));
  return found;
}

}  // namespace croft::app
