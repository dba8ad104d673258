#include <memory>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "base/counted.h"
#include "cli/croft/command_line.h"
#include "cli/croft/filters.h"
#include "cli/croft/json_text.h"
#include "cli/croft/table.h"
#include "cni/error_table.h"
#include "hostlocal/commands/host_local_place.h"
#include "hostlocal/directory/open_reservations.h"
#include "hostlocal/use/host_local_import.h"
#include "os/process.h"

namespace croft::app {
namespace {

struct ImportOptions {
  std::string directory;
  bool back = false;
  bool force = false;
  bool leave_behind = false;
  std::vector<std::string> networks, ranges;
  engine::MoveRequest request;
};

std::string addresses_text(const std::vector<net::Address>& addresses) {
  std::string text;
  for (const net::Address& address : addresses) text += (text.empty() ? "" : ",") + address.to_string();
  return text;
}

std::size_t count_of(const std::vector<engine::MovedHolder>& all, engine::MovedHolder::Outcome outcome) {
  std::size_t count = 0;
  for (const engine::MovedHolder& moved : all) count += moved.outcome == outcome ? moved.addresses.size() : 0;
  return count;
}

std::size_t count_at_risk(const std::vector<engine::MovedHolder>& all) {
  std::size_t count = 0;
  for (const engine::MovedHolder& moved : all) count += moved.at_risk ? moved.addresses.size() : 0;
  return count;
}

/// Why nothing may be changed; empty: it may.
std::string why_refused(const std::vector<engine::MovedHolder>& all, const ImportOptions& options) {
  const std::size_t at_risk = count_at_risk(all);
  if (!options.back) {
    if (options.force) return {};
    if (at_risk > 0) {
      return fmt::format(
          "nothing was changed: {}; mend what REASON says, or --force when nobody uses them",
          counted_as(at_risk, "address would stay in the directory and lies in a pool that gives it to others",
                     "addresses would stay in the directory and lie in a pool that gives them to others"));
    }
    if (!options.ranges.empty()) return {};
    return "nothing was changed: the pool could give the gateway of the directory's range, which is this node's own, "
           "to a pod; name the range with --pod-cidr, or take croft migrate host-local, which knows another gateway, "
           "and what the configuration leaves out, too; --force when the pools give none of the range's own addresses";
  }
  std::size_t stay = 0;
  for (const engine::MovedHolder& one : all) {
    stay += one.at_risk && one.outcome == engine::MovedHolder::Outcome::left ? one.addresses.size() : 0;
  }
  const std::size_t of_pools = options.force ? 0 : at_risk - stay;
  if (options.leave_behind) stay = 0;
  if (stay == 0 && of_pools == 0) return {};
  std::string text = "nothing was changed";
  if (stay > 0) {
    text += fmt::format(
        ": {} would stay in the register and host-local give {} to others too; mend what REASON says{}, or "
        "--leave-behind when nobody uses them",
        counted(stay, "address", "es"), stay == 1 ? "it" : "them",
        options.ranges.empty() ? ", or name what host-local is to give with --pod-cidr, where that is less than "
                                 "this node's blocks"
                               : "");
  }
  if (of_pools > 0) {
    text += fmt::format(
        "{} a pool that gives addresses could give {} of these to others too; `croft pool disable NAME` first, after "
        "which no node gets an address of it, or --force when it will not, as while strict affinity is on and the "
        "block is this node's alone",
        stay > 0 ? "; and" : ":", of_pools);
  }
  return text;
}

/// Of `--network` and `--pod-cidr`; the rest is in the request.
[[nodiscard]] Result<HostLocalPlace> read_options(ImportOptions& options) {
  if (!options.back && options.leave_behind) {
    return fail(ErrorCode::invalid_argument, "--leave-behind: it goes with --back");
  }
  if (!options.back && options.networks.size() > 1) {
    return fail(ErrorCode::invalid_argument, "--network: it is the directory's; only with --back give more of them");
  }
  for (const std::string& range : options.ranges) {
    TRY(const net::Prefix prefix, prefix_argument("--pod-cidr", range));
    options.request.only_in.push_back(prefix);
  }
  TRY(HostLocalPlace place,
      host_local_place(options.directory, options.networks.empty() ? std::string() : options.networks.front()));
  options.request.network = place.network;
  for (std::size_t i = 1; i < options.networks.size(); ++i) {
    TRY(const HostLocalPlace more, host_local_place(options.directory, options.networks[i]));
    options.request.more_networks.push_back(more.network);
  }
  return place;
}

std::string moved_table(const std::vector<engine::MovedHolder>& all, const ImportOptions& options) {
  using Outcome = engine::MovedHolder::Outcome;
  Table table({"ADDRESSES", "CONTAINER", "IFNAME", "OUTCOME", "REASON"});
  for (const engine::MovedHolder& moved : all) {
    table.add({addresses_text(moved.addresses), moved.holder.container_id.substr(0, 13), moved.holder.interface_name,
               std::string(name_of(moved.outcome)), moved.reason});
  }
  std::string text = all.empty() ? "" : table.to_string();
  const std::string reserved = options.back ? "" : fmt::format("{} reserved, ", count_of(all, Outcome::reserved));
  text += fmt::format("{} {} {}, {}{} left, {} clash\n", options.request.dry_run ? "would move" : "moved",
                      counted(count_of(all, Outcome::moved), "address", "es"),
                      options.back ? "back into the directory" : "into the pools", reserved,
                      count_of(all, Outcome::left), count_of(all, Outcome::clashes));
  if (!options.back && options.ranges.empty()) {
    text +=
        "--pod-cidr is missing: what host-local gives to nobody of its range, as the gateway, which is this node's "
        "own, is not reserved\n";
  }
  if (options.request.dry_run || count_of(all, Outcome::moved) == 0) return text;
  text += options.back ? "host-local hands addresses of these ranges out from now on.\n"
                       : "host-local would hand these addresses out again: configure the network for croft-ipam.\n";
  return text;
}

Data moved_json(const std::vector<engine::MovedHolder>& all) {
  nlohmann::ordered_json array = nlohmann::ordered_json::array();
  for (const engine::MovedHolder& moved : all) {
    nlohmann::ordered_json addresses = nlohmann::ordered_json::array();
    for (const net::Address& address : moved.addresses) addresses.push_back(address.to_string());
    array.push_back({{"addresses", std::move(addresses)},
                     {"containerId", moved.holder.container_id},
                     {"ifname", moved.holder.interface_name},
                     {"outcome", name_of(moved.outcome)},
                     {"reason", moved.reason},
                     {"atRisk", moved.at_risk}});
  }
  return Data(std::move(array));
}

[[nodiscard]] Result<int> import_directory(CommandLine& line, ImportOptions options) {
  engine::MoveRequest& request = options.request;
  TRY(const HostLocalPlace place, read_options(options));
  if (request.node.name.empty()) {
    TRY(request.node.name, os::host_name());
  }
  const bool may_make = options.back && !request.dry_run;
  TRY(const auto reservations,
      store::hostlocal::open_reservations(place.data_dir, place.directory_name,
                                          may_make ? store::OpenMode::create : store::OpenMode::existing, line.clock));
  TRY(const engine::Context context, line.open());
  const auto move = [&]() {
    return options.back ? engine::move_out_of_pools(context, *reservations, request)
                        : engine::move_into_pools(context, *reservations, request);
  };
  const bool dry_run = request.dry_run;
  request.dry_run = true;
  TRY(auto moved, move());
  const std::string refused = why_refused(moved, options);
  if (!dry_run && !refused.empty()) {
    print(line.json() ? line.data(moved_json(moved)) : moved_table(moved, options));
    return fail(ErrorCode::refused_for_safety, refused);
  }
  if (request.dry_run != dry_run) {
    request.dry_run = dry_run;
    TRY(moved, move());
  }
  print(line.json() ? line.data(moved_json(moved)) : moved_table(moved, options));
  const bool clashes = count_of(moved, engine::MovedHolder::Outcome::clashes) > 0;
  const bool is_fine = !clashes && count_at_risk(moved) == 0;
  return static_cast<int>(is_fine ? edge::ExitCode::fine : edge::ExitCode::findings);
}

}  // namespace

void add_host_local_import_command(CLI::App& host_local, CommandLine& line) {
  const auto options = std::make_shared<ImportOptions>();
  options->request.node.type = core::AffinityOwner::Type::host;
  CLI::App* command = host_local.add_subcommand(
      "import", "Move a directory's reservations into pools of the store, or back with --back");
  command->add_option("--dir", options->directory, "The network's directory, e.g. /var/lib/cni/networks/cbr0")
      ->required();
  command->add_option("--pool", options->request.pools, "Pool to move into, or out of; may be repeated")->required();
  command->add_flag("--back", options->back, "Move from the pools into the directory");
  command->add_option("--node", options->request.node.name, "Node that the addresses are on (default: the host name)");
  command
      ->add_option("--network", options->networks,
                   "Name of the CNI network in the store (default: the name of the directory); with --back it may be "
                   "repeated")
      ->allow_extra_args(false);
  command
      ->add_option("--pod-cidr", options->ranges,
                   "Move only addresses of this range, this node's podCIDR, and reserve its network address, its "
                   "first one, the gateway, and its broadcast address; with --back it is what host-local gives from "
                   "then on, of which nothing may stay in the register (default: this node's blocks); may be repeated")
      ->allow_extra_args(false);
  command->add_option("--interface", options->request.interface_name,
                      "Interface of reservations without one (plugins before v0.8.0)");
  command->add_flag(
      "--force", options->force,
      "Move what can be moved, even if a pool could then give the rest, or what came back, to other pods");
  command->add_flag("--leave-behind", options->leave_behind,
                    "With --back: go on although host-local could give what stays in the register to other pods");
  command->add_flag("--dry-run", options->request.dry_run, "Show what would happen and change nothing");
  command->callback(
      [&line, options] { line.run = [options](CommandLine& l) { return import_directory(l, *options); }; });
}

}  // namespace croft::app
