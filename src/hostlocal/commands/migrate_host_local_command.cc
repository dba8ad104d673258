#include <algorithm>
#include <limits>
#include <map>
#include <memory>
#include <utility>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "base/counted.h"
#include "base/net/count.h"
#include "cli/croft/command_line.h"
#include "cli/croft/filters.h"
#include "cli/croft/json_text.h"
#include "cli/croft/table.h"
#include "cni/error_table.h"
#include "hostlocal/commands/host_local_place.h"
#include "hostlocal/decide/audit.h"
#include "hostlocal/directory/open_reservations.h"
#include "hostlocal/door/host_local_facts.h"
#include "hostlocal/door/host_local_sets.h"
#include "hostlocal/use/host_local_import.h"
#include "ipam/commands/pod_ranges.h"
#include "ipam/use/inspect.h"
#include "os/process.h"

namespace croft::app {
namespace {

using Json = nlohmann::ordered_json;
using engine::MovedHolder;
using Outcome = MovedHolder::Outcome;

struct MigrateHostLocalOptions {
  std::vector<std::string> directories, caches, ranges, gateways;
  std::string config_file;
  std::int64_t grace_seconds = 60;
  bool in_container = false, apply = false, force = false;
  engine::MoveRequest request;
};

/// One directory, locked, and what became, or would become, of it.
struct MovedDirectory {
  std::string path;
  std::vector<MovedHolder> holders;
  [[nodiscard]] std::size_t count(Outcome outcome) const {
    net::Count count;
    for (const MovedHolder& holder : holders) {
      if (holder.outcome != outcome) continue;
      count += holder.addresses.size();
      for (const net::Prefix& range : holder.ranges) count += net::Count::of(range);
    }
    return count.fits_64() ? count.as_64() : std::numeric_limits<std::size_t>::max();
  }
  [[nodiscard]] std::size_t at_risk() const {
    std::size_t count = 0;
    for (const MovedHolder& holder : holders) count += holder.at_risk ? holder.addresses.size() : 0;
    return count;
  }
};

const std::vector<std::string>& caches_of(const MigrateHostLocalOptions& options) {
  static const std::vector<std::string> kUsual = {"/var/lib/cni", "/var/lib/cni/cache"};
  return options.caches.empty() ? kUsual : options.caches;
}

[[nodiscard]] Result<core::host_local::SignsOfLife> look_for_life(const MigrateHostLocalOptions& options) {
  core::host_local::SignsOfLife life;
  for (const std::string& directory : caches_of(options)) {
    const auto read = edge::read_cached_attachments(directory, life);
    if (!read && !options.caches.empty()) {
      return fail(ErrorCode::invalid_argument,
                  fmt::format("--cni-cache: {}; name the directory that has `results`", read.error().message));
    }
  }
  edge::look_at_namespaces(options.in_container, life);
  return life;
}

/// The addresses whose holders are proven to be gone, and why.
[[nodiscard]] Result<std::vector<core::host_local::Finding>> proven_leaks(const CommandLine& line,
                                                                          const MigrateHostLocalOptions& options,
                                                                          const HostLocalPlace& place,
                                                                          store::Reservations& reservations) {
  core::host_local::Directory directory;
  TRY(directory.reservations, reservations.list());
  TRY(const core::host_local::SignsOfLife life, look_for_life(options));
  auto findings = core::host_local::audit_host_local(
      {place.network, directory, life, {}, line.clock.now(), std::chrono::seconds(options.grace_seconds)});
  std::erase_if(findings, [](const auto& finding) {
    return !finding.proven || finding.kind != core::host_local::Finding::Kind::leak;
  });
  return findings;
}

/// What the network's configuration lets host-local give, and its gateways, where none of the range was named.
[[nodiscard]] Result<void> read_configuration(const MigrateHostLocalOptions& options, engine::MoveRequest& request) {
  if (request.only_in.empty()) return {};
  const auto found = edge::find_range_sets(
      {options.config_file, request.network, caches_of(options), edge::SetSources{}.config_directory});
  if (!found) return fail(ErrorCode::invalid_argument, "--config: " + found.error().message);
  if (request.dry_run) {
    for (const std::string& text : found->unusable) warn("passed over " + text);
    if (found->sets.empty()) {
      tell(
          fmt::format("croft: no configuration of network {} was found; of what its rangeStart and rangeEnd keep out "
                      "nothing is reserved: name it with --config",
                      request.network));
    }
  }
  const std::vector<net::Address> named = request.gateways;
  for (const auto& set : found->sets) {
    for (const core::host_local::Range& range : set.ranges()) {
      request.given.push_back(range.addresses);
      const auto in =
          std::ranges::find_if(request.only_in, [&](const auto& one) { return one.contains(range.gateway); });
      const bool is_wanted = in != request.only_in.end() &&
                             std::ranges::none_of(named, [&](const auto& gateway) { return in->contains(gateway); });
      if (is_wanted) request.gateways.push_back(range.gateway);
    }
  }
  return {};
}

[[nodiscard]] Result<MovedDirectory> move_directory(CommandLine& line, const engine::Context& context,
                                                    const MigrateHostLocalOptions& options,
                                                    const std::string& directory, bool dry_run) {
  engine::MoveRequest request = options.request;
  TRY(const HostLocalPlace place, host_local_place(directory, request.network));
  request.network = place.network;
  request.dry_run = dry_run;
  TRY_VOID(read_configuration(options, request));
  TRY(const auto reservations,
      store::hostlocal::open_reservations(place.data_dir, place.directory_name, store::OpenMode::existing, line.clock));
  // Both looks are made under the lock: no ADD of the old plugin comes in between.
  TRY(const auto first, proven_leaks(line, options, place, *reservations));
  TRY(const auto second, proven_leaks(line, options, place, *reservations));
  for (const auto& finding : core::host_local::proven_by_both(first, second)) {
    request.gone.emplace(finding.reservation->address,
                         "its holder is proven to be gone: not imported; croft host-local repair removes it");
  }
  TRY(auto holders, engine::move_into_pools(context, *reservations, request));
  return MovedDirectory{place.path, std::move(holders)};
}

std::string moved_directories_text(const std::vector<MovedDirectory>& all, bool is_done) {
  std::string text;
  for (const MovedDirectory& one : all) {
    Table table({"ADDRESSES", "CONTAINER", "IFNAME", "OUTCOME", "REASON"});
    for (const MovedHolder& holder : one.holders) {
      std::string addresses;
      for (const net::Address& address : holder.addresses) {
        addresses += (addresses.empty() ? "" : ",") + address.to_string();
      }
      for (const net::Prefix& range : holder.ranges) addresses += (addresses.empty() ? "" : ",") + range.to_string();
      table.add({addresses, holder.holder.container_id.substr(0, 13), holder.holder.interface_name,
                 std::string(engine::name_of(holder.outcome)), holder.reason});
    }
    text += one.path + "\n" + (one.holders.empty() ? "" : table.to_string());
    text += fmt::format("{} {} into the pools, {} reserved, {} left, {} clash\n", is_done ? "moved" : "would move",
                        counted(one.count(Outcome::moved), "address", "es"), one.count(Outcome::reserved),
                        one.count(Outcome::left), one.count(Outcome::clashes));
  }
  return text;
}

Data moved_directories_json(const std::vector<MovedDirectory>& all) {
  Json array = Json::array();
  for (const MovedDirectory& one : all) {
    for (const MovedHolder& holder : one.holders) {
      Json addresses = Json::array();
      for (const net::Address& address : holder.addresses) addresses.push_back(address.to_string());
      Json ranges = Json::array();
      for (const net::Prefix& range : holder.ranges) ranges.push_back(range.to_string());
      array.push_back({{"directory", one.path},
                       {"addresses", std::move(addresses)},
                       {"ranges", std::move(ranges)},
                       {"containerId", holder.holder.container_id},
                       {"ifname", holder.holder.interface_name},
                       {"outcome", engine::name_of(holder.outcome)},
                       {"reason", holder.reason},
                       {"atRisk", holder.at_risk}});
    }
  }
  return Data(std::move(array));
}

[[nodiscard]] Result<std::vector<MovedDirectory>> move_directories(CommandLine& line, const engine::Context& context,
                                                                   const MigrateHostLocalOptions& options,
                                                                   bool dry_run) {
  std::vector<MovedDirectory> all;
  for (const std::string& directory : options.directories) {
    TRY(MovedDirectory moved, move_directory(line, context, options, directory, dry_run));
    all.push_back(std::move(moved));
  }
  return all;
}

struct Totals {
  std::size_t to_move = 0, reserved = 0, clashes = 0, at_risk = 0;
};
[[nodiscard]] Totals totals_of(const std::vector<MovedDirectory>& all) {
  Totals totals;
  for (const MovedDirectory& one : all) {
    totals.at_risk += one.at_risk();
    totals.to_move += one.count(Outcome::moved);
    totals.reserved += one.count(Outcome::reserved);
    totals.clashes += one.count(Outcome::clashes);
  }
  return totals;
}

/// Blocks of other nodes in this node's ranges: host-local and those nodes give the same addresses. It is told, and
/// what clashes already is in the plan.
[[nodiscard]] Result<void> tell_of_blocks_of_others(const engine::Context& context,
                                                    const engine::MoveRequest& request) {
  if (request.only_in.empty()) return {};
  TRY(const engine::Overview overview, engine::look(context));
  for (const engine::PoolView& pool : overview.pools) {
    for (const engine::BlockView& view : pool.blocks) {
      const auto& owner = view.block.affinity;
      const auto is_in = [&](const net::Prefix& range) { return range.overlaps(view.block.cidr); };
      if (!owner || *owner == request.node || std::ranges::none_of(request.only_in, is_in)) continue;
      tell(fmt::format(
          "croft: block {0} in --pod-cidr is {1}'s, whose pods get addresses of it as host-local's here do: "
          "drain {1}, `croft affinity release --node {1} --cidr {0}`, then `croft affinity claim {0} --node "
          "{2}` and the same command again",
          view.block.cidr.to_string(), owner->name, request.node.name));
    }
  }
  return {};
}

[[nodiscard]] Result<int> migrate_host_local(CommandLine& line, MigrateHostLocalOptions options) {
  for (const std::string& range : options.ranges) {
    TRY(const net::Prefix prefix, prefix_argument("--pod-cidr", range));
    options.request.only_in.push_back(prefix);
  }
  for (const std::string& gateway : options.gateways) {
    TRY(const net::Address address, address_argument("--gateway", gateway));
    if (std::ranges::none_of(options.request.only_in, [&](const auto& range) { return range.contains(address); })) {
      return fail(ErrorCode::invalid_argument,
                  fmt::format("--gateway {} is in no --pod-cidr: give the range whose gateway it is", gateway));
    }
    options.request.gateways.push_back(address);
  }
  if (options.directories.size() > 1 && !options.request.network.empty()) {
    return fail(ErrorCode::invalid_argument, "--network: it is one directory's; give one --dir with it");
  }
  if (options.directories.size() > 1 && !options.config_file.empty()) {
    return fail(ErrorCode::invalid_argument, "--config: it is one directory's; give one --dir with it");
  }
  if (options.request.node.name.empty()) {
    TRY(options.request.node.name, os::host_name());
  }
  TRY(const engine::Context context, line.open());
  TRY_VOID(tell_of_blocks_of_others(context, options.request));
  tell_of_pod_ranges(line, options.request.only_in, options.request.node.name);
  TRY(auto all, move_directories(line, context, options, true));
  Totals totals = totals_of(all);
  const std::size_t to_move = totals.to_move;
  const bool knows_range = !options.request.only_in.empty();
  const bool is_done = options.apply && ((totals.at_risk == 0 && knows_range) || options.force);
  if (is_done) {
    TRY(all, move_directories(line, context, options, false));
    totals = totals_of(all);  // what a plan could not foresee
  }
  print(line.json() ? line.data(moved_directories_json(all)) : moved_directories_text(all, is_done));
  if (!line.json() && !knows_range) {
    print(
        "--pod-cidr is missing: what host-local gives to nobody of its range, as the gateway, which is this node's "
        "own, "
        "is not reserved\n");
  }
  if (options.apply && !is_done && totals.at_risk == 0) {
    return fail(ErrorCode::refused_for_safety,
                "nothing was changed: the pool could give the gateway of the directory's range, which is this node's "
                "own, to a pod; name the range with --pod-cidr (and --gateway, where that is not its first address), "
                "or --force when the pools give none of the range's own addresses");
  }
  if (options.apply && !is_done) {
    return fail(
        ErrorCode::refused_for_safety,
        fmt::format(
            "nothing was changed: {}; mend what REASON says, or --force when nobody uses them",
            counted_as(totals.at_risk, "address would stay in the directory and lies in a pool that gives it to others",
                       "addresses would stay in the directory and lie in a pool that gives them to others")));
  }
  if (!line.json()) {
    if (!options.apply && to_move > 0) print("--apply moves them\n");
    if (!options.apply && to_move == 0 && totals.reserved > 0) print("--apply reserves them\n");
    if (is_done && to_move > 0) {
      print("host-local would hand these addresses out again: configure the network for croft-ipam.\n");
    }
  }
  const bool is_fine = totals.clashes == 0 && totals.at_risk == 0;
  return static_cast<int>(is_fine ? edge::ExitCode::fine : edge::ExitCode::findings);
}

}  // namespace

void add_migrate_host_local_command(CLI::App& migrate, CommandLine& line) {
  const auto options = std::make_shared<MigrateHostLocalOptions>();
  options->request.node.type = core::AffinityOwner::Type::host;
  CLI::App* command = migrate.add_subcommand(
      "host-local", "Move this node's host-local directories, as of a podCIDR, into pools of the store");
  command
      ->add_option("--dir", options->directories,
                   "A network's directory, e.g. /var/lib/cni/networks/cbr0; may be repeated")
      ->required()
      ->allow_extra_args(false);
  command->add_option("--pool", options->request.pools, "Pool to move into; may be repeated")
      ->required()
      ->allow_extra_args(false);
  command
      ->add_option(
          "--pod-cidr", options->ranges,
          "Move only addresses of this range, this node's podCIDR, and reserve what host-local gives to nobody "
          "of it: network address, gateway, broadcast address, what is outside rangeStart and rangeEnd; may be "
          "repeated")
      ->allow_extra_args(false);
  command
      ->add_option("--gateway", options->gateways,
                   "Gateway of such a range, where that is not its first address, nor the configuration's; may be "
                   "repeated")
      ->allow_extra_args(false);
  command->add_option("--config", options->config_file,
                      "host-local's configuration of the network (.conf, .conflist), for its ranges and gateways "
                      "(default: from the runtime's cache, then flannel's, then /etc/cni/net.d)");
  command->add_option("--node", options->request.node.name, "Node that the addresses are on (default: the host name)");
  command->add_option("--network", options->request.network,
                      "Name of the CNI network in the store (default: the name of the directory)");
  command->add_option("--interface", options->request.interface_name,
                      "Interface of reservations without one (plugins before v0.8.0)");
  command
      ->add_option("--cni-cache", options->caches,
                   "Cache directory of the runtime; may be repeated (default: /var/lib/cni and /var/lib/cni/cache)")
      ->allow_extra_args(false);
  command->add_option("--grace", options->grace_seconds, "Call no file younger than this a leak (60s, 5m, 1h)")
      ->transform(CLI::AsNumberWithUnit(std::map<std::string, std::int64_t>{{"s", 1}, {"m", 60}, {"h", 3600}}))
      ->check(CLI::Range(std::int64_t{0}, std::int64_t{7} * 86400))
      ->type_name("DURATION")
      ->default_str("60s");
  command->add_flag(
      "--in-container", options->in_container,
      "This container is the node (kind, k3d): treat the processes visible here as all processes of the node");
  command->add_flag("--apply", options->apply, "Move them; without, only show what would be moved");
  command->add_flag("--force", options->force,
                    "Move what can be moved, even if a pool could then give the rest to other pods");
  command->footer(
      "A reservation whose holder is proven to be gone (croft host-local check) is named and left. What was "
      "interrupted "
      "goes on with the same command. The exit code is 3 if something clashes or stays at risk.");
  command->callback(
      [&line, options] { line.run = [options](CommandLine& l) { return migrate_host_local(l, *options); }; });
}

}  // namespace croft::app
