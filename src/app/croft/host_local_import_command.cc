#include <memory>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "app/croft/command_line.h"
#include "app/croft/host_local_place.h"
#include "app/croft/table.h"
#include "edge/error_table.h"
#include "engine/host_local_import.h"
#include "os/process.h"
#include "store/hostlocal/open_reservations.h"

namespace croft::app {
namespace {

struct ImportOptions {
  std::string directory;
  bool back = false;
  engine::MoveRequest request;
};

std::string text_of(const std::vector<net::Address>& addresses) {
  std::string text;
  for (const net::Address& address : addresses) text += (text.empty() ? "" : ",") + address.to_string();
  return text;
}

std::size_t count_of(const std::vector<engine::MovedHolder>& all, engine::MovedHolder::Outcome outcome) {
  std::size_t count = 0;
  for (const engine::MovedHolder& moved : all) count += moved.outcome == outcome ? moved.addresses.size() : 0;
  return count;
}

std::string table_of(const std::vector<engine::MovedHolder>& all, const ImportOptions& options) {
  using Outcome = engine::MovedHolder::Outcome;
  Table table({"ADDRESSES", "CONTAINER", "IFNAME", "OUTCOME", "REASON"});
  for (const engine::MovedHolder& moved : all) {
    table.add({text_of(moved.addresses), moved.holder.container_id.substr(0, 13), moved.holder.interface_name,
               std::string(name_of(moved.outcome)), moved.reason});
  }
  std::string text = all.empty() ? "" : table.to_string();
  text += fmt::format("{} {} addresses {}, {} left, {} clash\n", options.request.dry_run ? "would move" : "moved",
                      count_of(all, Outcome::moved), options.back ? "back into the directory" : "into the pools",
                      count_of(all, Outcome::left), count_of(all, Outcome::clashes));
  if (options.request.dry_run || count_of(all, Outcome::moved) == 0) return text;
  text += options.back ? "The pool may hand these addresses out again: disable it, or keep the ranges out of it.\n"
                       : "host-local would hand these addresses out again: configure the network for croft-ipam.\n";
  return text;
}

std::string json_of(const std::vector<engine::MovedHolder>& all) {
  nlohmann::ordered_json array = nlohmann::ordered_json::array();
  for (const engine::MovedHolder& moved : all) {
    nlohmann::ordered_json addresses = nlohmann::ordered_json::array();
    for (const net::Address& address : moved.addresses) addresses.push_back(address.to_string());
    array.push_back({{"addresses", std::move(addresses)},
                     {"containerId", moved.holder.container_id},
                     {"ifname", moved.holder.interface_name},
                     {"outcome", name_of(moved.outcome)},
                     {"reason", moved.reason}});
  }
  return array.dump(2, ' ', false, nlohmann::ordered_json::error_handler_t::replace) + "\n";
}

[[nodiscard]] Result<int> import(CommandLine& line, ImportOptions options) {
  engine::MoveRequest& request = options.request;
  TRY(const HostLocalPlace place, host_local_place(options.directory, request.network));
  request.network = place.network;
  if (request.node.name.empty()) {
    TRY(request.node.name, os::host_name());
  }
  const bool may_make = options.back && !request.dry_run;
  TRY(const auto reservations,
      store::hostlocal::open_reservations(
          place.data_dir, place.directory_name,
          may_make ? store::hostlocal::OpenMode::make : store::hostlocal::OpenMode::existing, line.clock));
  TRY(const engine::Context context, line.open());
  TRY(const auto moved, options.back ? engine::move_out_of_pools(context, *reservations, request)
                                     : engine::move_into_pools(context, *reservations, request));
  print(line.json() ? line.data(json_of(moved)) : table_of(moved, options));
  const bool clashes = count_of(moved, engine::MovedHolder::Outcome::clashes) > 0;
  return static_cast<int>(clashes ? edge::ExitCode::findings : edge::ExitCode::fine);
}

}  // namespace

void add_host_local_import_command(CLI::App& host_local, CommandLine& line) {
  const auto options = std::make_shared<ImportOptions>();
  options->request.node.type = core::AffinityOwner::Type::host;
  CLI::App* command = host_local.add_subcommand(
      "import", "Move a directory's reservations into pools of the store, or back with --back");
  command->add_option("--dir", options->directory, "The network's directory, e.g. /var/lib/cni/networks/cbr0")
      ->required();
  command->add_option("--pool", options->request.pools, "A pool to move into, or out of; may be given again")
      ->required();
  command->add_flag("--back", options->back, "From the pools into the directory");
  command->add_option("--node", options->request.node.name, "The node the addresses are on; default: the host name");
  command->add_option("--network", options->request.network,
                      "The CNI network in the store; default: the directory's name");
  command->add_option("--interface", options->request.interface_name,
                      "The interface of reservations that name none (plugins before v0.8.0)");
  command->add_flag("--dry-run", options->request.dry_run, "Say what would happen and change nothing");
  command->callback([&line, options] { line.run = [options](CommandLine& l) { return import(l, *options); }; });
}

}  // namespace croft::app
