#include <algorithm>
#include <memory>

#include <fmt/format.h>

#include "app/croft/command_line.h"
#include "app/croft/json_output.h"
#include "app/croft/table.h"
#include "engine/inspect.h"
#include "engine/release.h"

namespace croft::app {
namespace {

struct Filter {
  std::string pool, node, state;
};

struct ReleaseOptions {
  std::string address;
  std::optional<std::string> handle;
  std::optional<std::uint64_t> sequence;
};

std::string table_of(const std::vector<engine::AddressView>& addresses, bool wide) {
  Table table({"ADDRESS", "STATE", "POOL", "BLOCK", "NODE", "POD", "CONTAINER", "IFNAME", "SINCE", "UNTIL"});
  for (const engine::AddressView& a : addresses) {
    const std::string pod = a.pod.empty() ? "" : a.namespace_name + "/" + a.pod;
    // The first 13 characters tell containers apart, as runtimes print them.
    table.add({a.address.to_string(), std::string(core::name_of(a.state)), a.pool, a.block ? a.block->to_string() : "",
               a.node, pod, a.owner ? a.owner->container_id.substr(0, wide ? std::string::npos : 13) : "",
               a.owner ? a.owner->interface_name : "", a.since, a.until});
  }
  return table.to_string();
}

[[nodiscard]] Result<int> list(CommandLine& line, const Filter& filter) {
  TRY(const engine::Context context, line.open());
  TRY(std::vector<engine::AddressView> addresses, engine::list_addresses(context));
  std::erase_if(addresses, [&](const engine::AddressView& a) {
    return (!filter.pool.empty() && a.pool != filter.pool) || (!filter.node.empty() && a.node != filter.node) ||
           (!filter.state.empty() && core::name_of(a.state) != filter.state);
  });
  print(line.json() ? line.data(json_of(addresses)) : table_of(addresses, line.wide()));
  return 0;
}

std::string details_of(const engine::AddressView& a) {
  std::string text;
  const auto add = [&](const char* name, const std::string& value) {
    if (!value.empty()) text += fmt::format("{:<11}{}\n", name, value);
  };
  add("Address:", a.address.to_string());
  add("State:", std::string(core::name_of(a.state)));
  add("Pool:", a.pool);
  add("Block:", a.block ? a.block->to_string() : "none claimed yet");
  add("Network:", a.owner ? a.owner->network : "");
  add("Container:", a.owner ? a.owner->container_id : "");
  add("Interface:", a.owner ? a.owner->interface_name : "");
  add("Handle:", a.handle_id);
  add("Sequence:", a.sequence_number.value == 0 ? "" : std::to_string(a.sequence_number.value));
  add("Node:", a.node);
  add("Pod:", a.pod.empty() ? "" : a.namespace_name + "/" + a.pod);
  add("Since:", a.since);
  add("Until:", a.until);
  return text;
}

[[nodiscard]] Result<int> show(CommandLine& line, const std::string& text) {
  TRY(const net::Address address, address_argument("ADDRESS", text));
  TRY(const engine::Context context, line.open());
  TRY(const engine::AddressView view, engine::show_address(context, address));
  print(line.json() ? line.data(json_of(std::vector{view})) : details_of(view));
  return 0;
}

[[nodiscard]] Result<int> release(CommandLine& line, const ReleaseOptions& options) {
  TRY(const net::Address address, address_argument("ADDRESS", options.address));
  TRY(const engine::Context context, line.open());
  core::AddressToRelease wanted{address, options.handle, {}};
  if (options.sequence) wanted.sequence_number = core::SequenceNumber(*options.sequence);
  TRY(const core::AddressReleases done, engine::release_addresses(context, {wanted}));
  if (!done.mismatched.empty()) {
    return fail(ErrorCode::refused_for_safety,
                fmt::format("{} has another holder by now: handle or sequence number differ; `croft ip show {}`",
                            options.address, options.address));
  }
  print(fmt::format("{} {}\n", address.to_string(), done.released.empty() ? "is not held" : "released"));
  return 0;
}

}  // namespace

void add_ip_commands(CLI::App& app, CommandLine& line) {
  CLI::App* ip = app.add_subcommand("ip", "Addresses: who holds what");
  ip->require_subcommand(1);
  ip->fallthrough();

  const auto filter = std::make_shared<Filter>();
  CLI::App* listing = ip->add_subcommand("list", "Addresses that are held, cooling or reserved");
  listing->add_option("--pool", filter->pool, "Only addresses of this pool");
  listing->add_option("--node", filter->node, "Only addresses held on this node");
  listing->add_option("--state", filter->state, "Only this state")
      ->check(CLI::IsMember({"held", "cooling", "reserved", "quarantined"}));
  listing->callback([&line, filter] { line.run = [filter](CommandLine& l) { return list(l, *filter); }; });

  const auto address = std::make_shared<std::string>();
  CLI::App* showing = ip->add_subcommand("show", "Everything about one address");
  showing->add_option("ADDRESS", *address, "The address")->required();
  showing->callback([&line, address] { line.run = [address](CommandLine& l) { return show(l, *address); }; });

  const auto options = std::make_shared<ReleaseOptions>();
  CLI::App* releasing = ip->add_subcommand("release", "Release an address whose holder is gone; it cools first");
  releasing->add_option("ADDRESS", options->address, "The address")->required();
  releasing->add_option("--handle", options->handle, "Only if this handle holds it");
  releasing->add_option("--sequence", options->sequence, "Only if it was assigned with this sequence number");
  releasing->callback([&line, options] { line.run = [options](CommandLine& l) { return release(l, *options); }; });
}

}  // namespace croft::app
