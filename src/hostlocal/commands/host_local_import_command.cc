#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <nlohmann/json.hpp>

#include "base/counted.h"
#include "cli/croft/command_line.h"
#include "cli/croft/filters.h"
#include "cli/croft/json_text.h"
#include "cli/croft/table.h"
#include "cni/error_table.h"
#include "hostlocal/commands/host_local_place.h"
#include "hostlocal/directory/open_reservations.h"
#include "hostlocal/door/host_local_sets.h"
#include "hostlocal/use/host_local_import.h"
#include "ipam/commands/pod_ranges.h"
#include "os/process.h"

namespace croft::app {
namespace {

using engine::ImportedHolder;
using Outcome = ImportedHolder::Outcome;
using Rows = std::vector<ImportedHolder>;

struct ImportOptions {
  std::string directory, config_file;
  std::vector<std::string> ranges;
  bool force = false;
  engine::ImportRequest request;
};

std::vector<std::string> texts_of(const ImportedHolder& row) {
  std::vector<std::string> texts;
  for (const net::Address& address : row.addresses) texts.push_back(address.to_string());
  for (const net::Prefix& range : row.ranges) texts.push_back(range.to_string());
  return texts;
}

std::size_t count_of(const Rows& rows, Outcome outcome) {
  std::size_t count = 0;
  for (const ImportedHolder& row : rows) count += row.outcome == outcome ? row.addresses.size() : 0;
  return count;
}

std::size_t count_at_risk(const Rows& rows) {
  std::size_t count = 0;
  for (const ImportedHolder& row : rows) count += row.at_risk ? row.addresses.size() : 0;
  return count;
}

/// Reads the addresses that the network's configuration lets host-local give, and the gateways of its ranges.
[[nodiscard]] Result<void> read_configuration(const ImportOptions& options, engine::ImportRequest& request) {
  const auto found = edge::find_range_sets({options.config_file,
                                            request.network,
                                            {"/var/lib/cni", "/var/lib/cni/cache"},
                                            edge::SetSources{}.config_directory});
  if (!found) return fail(ErrorCode::invalid_argument, "--config: " + found.error().message);
  for (const std::string& text : found->unusable) warn("passed over " + text);
  if (found->sets.empty()) {
    tell(
        fmt::format("croft: no configuration of network {} was found; what its rangeStart and rangeEnd keep out is not "
                    "reserved: name it with --config",
                    request.network));
  }
  for (const auto& set : found->sets) {
    for (const core::host_local::Range& range : set.ranges()) {
      request.given.push_back(range.addresses);
      request.gateways.push_back(range.gateway);
    }
  }
  return {};
}

std::string rows_text(const Rows& rows, bool is_dry_run) {
  Table table({"ADDRESSES", "CONTAINER", "IFNAME", "OUTCOME", "REASON"});
  for (const ImportedHolder& row : rows) {
    table.add({fmt::format("{}", fmt::join(texts_of(row), ",")), row.holder.container_id.substr(0, 13),
               row.holder.interface_name, std::string(name_of(row.outcome)), row.reason});
  }
  std::string text = rows.empty() ? "" : table.to_string();
  text += fmt::format("{} {}, {} left, {} clash\n", is_dry_run ? "would import" : "imported",
                      counted(count_of(rows, Outcome::imported), "address", "es"), count_of(rows, Outcome::left),
                      count_of(rows, Outcome::clashes));
  if (!is_dry_run && count_of(rows, Outcome::imported) > 0) {
    text += "host-local would hand these addresses out again: configure the network for croft-ipam.\n";
  }
  return text;
}

Data rows_json(const Rows& rows) {
  nlohmann::ordered_json array = nlohmann::ordered_json::array();
  for (const ImportedHolder& row : rows) {
    array.push_back({{"addresses", texts_of(row)},
                     {"containerId", row.holder.container_id},
                     {"ifname", row.holder.interface_name},
                     {"outcome", name_of(row.outcome)},
                     {"reason", row.reason},
                     {"atRisk", row.at_risk}});
  }
  return Data(std::move(array));
}

[[nodiscard]] Result<int> import_directory(CommandLine& line, ImportOptions options) {
  engine::ImportRequest& request = options.request;
  for (const std::string& range : options.ranges) {
    TRY(const net::Prefix prefix, prefix_argument("--pod-cidr", range));
    request.ranges.push_back(prefix);
  }
  TRY(const HostLocalPlace place, host_local_place(options.directory, request.network));
  request.network = place.network;
  if (request.node.name.empty()) {
    TRY(request.node.name, os::host_name());
  }
  TRY_VOID(read_configuration(options, request));
  TRY(const auto reservations,
      store::hostlocal::open_reservations(place.data_dir, place.directory_name, store::OpenMode::existing, line.clock));
  TRY(const engine::Context context, line.open());
  tell_of_pod_ranges(line, request.ranges, request.node.name);
  const bool is_dry_run = std::exchange(request.dry_run, true);
  TRY(Rows rows, engine::import_reservations(context, *reservations, request));
  const bool is_refused = !is_dry_run && !options.force && count_at_risk(rows) > 0;
  if (!is_dry_run && !is_refused) {
    request.dry_run = false;
    TRY(rows, engine::import_reservations(context, *reservations, request));
  }
  print(line.json() ? line.data(rows_json(rows)) : rows_text(rows, request.dry_run));
  if (is_refused) {
    return fail(ErrorCode::refused_for_safety,
                fmt::format("nothing was changed: {}; mend what REASON says, or --force when nobody uses them",
                            counted_as(count_at_risk(rows),
                                       "address would stay in the directory and lies in a pool that gives it to others",
                                       "addresses would stay in the directory and lie in a pool that gives them to "
                                       "others")));
  }
  const bool is_fine = count_of(rows, Outcome::clashes) == 0 && count_at_risk(rows) == 0;
  return static_cast<int>(is_fine ? edge::ExitCode::fine : edge::ExitCode::findings);
}

}  // namespace

void add_host_local_import_command(CLI::App& host_local, CommandLine& line) {
  const auto options = std::make_shared<ImportOptions>();
  options->request.node.type = core::AffinityOwner::Type::host;
  CLI::App* command =
      host_local.add_subcommand("import", "Import this node's host-local reservations into pools of the store");
  command->add_option("--dir", options->directory, "The network's directory, e.g. /var/lib/cni/networks/cbr0")
      ->required();
  command->add_option("--pool", options->request.pools, "Pool to import into; may be repeated")
      ->required()
      ->allow_extra_args(false);
  command
      ->add_option("--pod-cidr", options->ranges,
                   "This node's podCIDR: import its addresses, and reserve what host-local gives to nobody of it; may "
                   "be repeated")
      ->required()
      ->allow_extra_args(false);
  command->add_option("--config", options->config_file,
                      "host-local's configuration of the network (.conf, .conflist), for its ranges and gateways "
                      "(default: from the runtime's cache, then flannel's, then /etc/cni/net.d)");
  command->add_option("--node", options->request.node.name, "Node that the addresses are on (default: the host name)");
  command->add_option("--network", options->request.network,
                      "Name of the CNI network in the store (default: the name of the directory)");
  command->add_option("--interface", options->request.interface_name,
                      "Interface of reservations without one (plugins before v0.8.0)");
  command->add_flag("--force", options->force, "Import what can be, even if a pool could give the rest to other pods");
  command->add_flag("--dry-run", options->request.dry_run, "Show what would happen and change nothing");
  command->footer(
      "Remove what is dead first, with `croft host-local repair --apply`. The same command continues an interrupted "
      "import. The exit code is 3 if something clashes or stays at risk. To leave Croft again, drain the node.");
  command->callback(
      [&line, options] { line.run = [options](CommandLine& l) { return import_directory(l, *options); }; });
}

}  // namespace croft::app
