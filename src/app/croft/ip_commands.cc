#include <algorithm>
#include <memory>

#include <fmt/format.h>

#include "app/croft/command_line.h"
#include "app/croft/filters.h"
#include "app/croft/json_output.h"
#include "app/croft/table.h"
#include "engine/inspect.h"

namespace croft::app {
namespace {

struct AddressFilter {
  std::string pool, node, state, pod, handle;
  bool borrowed = false;
};

std::string address_table(const std::vector<engine::AddressView>& addresses, bool wide) {
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

/// "pod" or "namespace/pod".
bool is_pod(const engine::AddressView& a, const std::string& wanted) {
  return a.pod == wanted || (!a.pod.empty() && a.namespace_name + "/" + a.pod == wanted);
}

bool is_wanted(const engine::AddressView& a, const AddressFilter& filter) {
  return (filter.pool.empty() || a.pool == filter.pool) && (filter.node.empty() || a.node == filter.node) &&
         (filter.state.empty() || core::name_of(a.state) == filter.state) &&
         (filter.pod.empty() || is_pod(a, filter.pod)) && (filter.handle.empty() || a.handle_id == filter.handle) &&
         (!filter.borrowed || a.borrowed());
}

std::string borrowed_table(const std::vector<engine::AddressView>& addresses, std::size_t without_node) {
  Table table({"ADDRESS", "BORROWING-NODE", "BLOCK", "BLOCK OWNER", "TYPE", "ALLOCATED-TO"});
  for (const engine::AddressView& a : addresses) {
    const std::string owner = a.pod.empty() ? a.handle_id : a.namespace_name + "/" + a.pod;
    table.add({a.address.to_string(), a.node, a.block ? a.block->to_string() : "",
               a.block_owner ? to_string(*a.block_owner) : "", a.type(), owner});
  }
  std::string text = table.to_string();
  if (without_node > 0) {
    text += fmt::format("{} held addresses record no node: whether they are borrowed is unknown\n", without_node);
  }
  return text;
}

[[nodiscard]] Result<int> list_addresses(CommandLine& line, const AddressFilter& filter) {
  TRY(const engine::Context context, line.open());
  TRY(std::vector<engine::AddressView> addresses, engine::list_addresses(context));
  const auto without_node =
      static_cast<std::size_t>(std::count_if(addresses.begin(), addresses.end(), [](const engine::AddressView& a) {
        return a.state == core::AddressState::held && a.node.empty();
      }));
  std::erase_if(addresses, [&](const engine::AddressView& a) { return !is_wanted(a, filter); });
  if (addresses.empty()) warn_of_unknown(context, filter.node, filter.pool);
  if (line.json()) {
    print(line.data(json_of(addresses)));
  } else {
    print(filter.borrowed ? borrowed_table(addresses, without_node) : address_table(addresses, line.wide()));
  }
  return 0;
}

std::string address_details(const engine::AddressView& a) {
  std::string text;
  const auto add = [&](const char* name, const std::string& value) {
    if (!value.empty()) text += fmt::format("{:<11}{}\n", name, value);
  };
  add("Address:", a.address.to_string());
  add("State:", std::string(core::name_of(a.state)));
  add("Pool:", a.pool);
  add("Block:", a.block ? a.block->to_string() : "none claimed yet");
  if (a.block)
    add("Owner:", (a.block_owner ? to_string(*a.block_owner) : "nobody") + (a.borrowed() ? " (borrowed)" : ""));
  add("Network:", a.owner ? a.owner->network : "");
  add("Container:", a.owner ? a.owner->container_id : "");
  add("Interface:", a.owner ? a.owner->interface_name : "");
  add("Handle:", a.handle_id);
  add("Sequence:", a.sequence_number.value == 0 ? "" : std::to_string(a.sequence_number.value));
  add("Node:", a.node);
  add("Pod:", a.pod.empty() ? "" : a.namespace_name + "/" + a.pod);
  add("Since:", a.since);
  add("Until:", a.until);
  for (const auto& [key, value] : a.attributes) text += fmt::format("  {}: {}\n", key, value);
  for (const auto& [key, value] : a.alternate_owner) text += fmt::format("  (second owner) {}: {}\n", key, value);
  return text;
}

[[nodiscard]] Result<int> show_address(CommandLine& line, const std::string& text) {
  TRY(const net::Address address, address_argument("ADDRESS", text));
  TRY(const engine::Context context, line.open());
  TRY(const engine::AddressView view, engine::show_address(context, address));
  print(line.json() ? line.data(json_of(std::vector{view})) : address_details(view));
  return 0;
}

}  // namespace

void add_ip_commands(CLI::App& app, CommandLine& line) {
  CLI::App* ip = app.add_subcommand("ip", "Addresses: who holds what");
  ip->require_subcommand(1);
  ip->fallthrough();

  const auto filter = std::make_shared<AddressFilter>();
  CLI::App* listing = ip->add_subcommand("list", "Addresses that are held, cooling or reserved");
  listing->add_option("--pool", filter->pool, "Only addresses of this pool");
  listing->add_option("--node", filter->node, "Only addresses held on this node");
  listing->add_option("--pod", filter->pod, "Only addresses of this pod: POD or NAMESPACE/POD");
  listing->add_option("--handle", filter->handle, "Only addresses of this handle");
  listing->add_flag("--borrowed", filter->borrowed, "Only addresses held on a node that does not own their block");
  listing->add_option("--state", filter->state, "Only this state")
      ->check(CLI::IsMember({"held", "cooling", "reserved", "quarantined"}));
  listing->callback([&line, filter] { line.run = [filter](CommandLine& l) { return list_addresses(l, *filter); }; });

  const auto address = std::make_shared<std::string>();
  CLI::App* showing = ip->add_subcommand("show", "Everything about one address");
  showing->add_option("ADDRESS", *address, "The address")->required();
  showing->callback([&line, address] { line.run = [address](CommandLine& l) { return show_address(l, *address); }; });

  add_ip_release_command(*ip, line);
}

}  // namespace croft::app
