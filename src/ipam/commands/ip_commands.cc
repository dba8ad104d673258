#include <algorithm>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "base/counted.h"
#include "base/printable.h"
#include "cli/croft/command_line.h"
#include "cli/croft/filters.h"
#include "cli/croft/json_output.h"
#include "cli/croft/label_selector.h"
#include "cli/croft/listing.h"
#include "cli/croft/pods.h"
#include "cli/croft/table.h"
#include "ipam/use/inspect.h"
#include "ipam/use/nodes.h"

namespace croft::app {
namespace {

struct AddressFilter {
  std::string pool, node, state, pod, name_space, handle, node_labels;
  bool borrowed = false, all = false;
};

std::string sequence_text(const engine::AddressView& a) {
  return a.sequence_number.value == 0 ? "" : std::to_string(a.sequence_number.value);
}

Table address_table(const std::vector<engine::AddressView>& addresses, bool wide) {
  std::vector<std::string> headings{"ADDRESS", "STATE",     "POOL",   "BLOCK", "NODE",
                                    "POD",     "CONTAINER", "IFNAME", "SINCE", "UNTIL"};
  if (wide) headings.insert(headings.end(), {"TYPE", "HANDLE", "SEQUENCE", "BLOCK-OWNER"});
  Table table(std::move(headings));
  for (const engine::AddressView& a : addresses) {
    const std::string pod = a.pod.empty() ? "" : a.namespace_name + "/" + a.pod;
    // The first 13 characters tell containers apart, as runtimes print them.
    std::vector<std::string> cells{a.address.to_string(),
                                   std::string(core::name_of(a.state)),
                                   a.pool,
                                   a.block ? a.block->to_string() : "",
                                   a.node,
                                   pod,
                                   a.owner ? a.owner->container_id.substr(0, wide ? std::string::npos : 13) : "",
                                   a.owner ? a.owner->interface_name : "",
                                   a.since,
                                   a.until};
    if (wide) {
      cells.insert(cells.end(),
                   {a.type(), a.handle_id, sequence_text(a), a.block_owner ? to_string(*a.block_owner) : ""});
    }
    table.add(std::move(cells));
  }
  return table;
}

/// Reserved addresses are nobody's: a long list of what is not in use, and shown when they are asked for.
bool is_left_out(const engine::AddressView& a, const AddressFilter& filter) {
  return a.state == core::AddressState::reserved && !filter.all && filter.state.empty();
}

bool is_wanted(const engine::AddressView& a, const AddressFilter& filter) {
  return !is_left_out(a, filter) && (filter.name_space.empty() || a.namespace_name == filter.name_space) &&
         (filter.pool.empty() || a.pool == filter.pool) && (filter.node.empty() || a.node == filter.node) &&
         (filter.state.empty() || core::name_of(a.state) == filter.state) &&
         (filter.pod.empty() || is_pod(a, filter.pod)) && (filter.handle.empty() || a.handle_id == filter.handle) &&
         (!filter.borrowed || a.borrowed());
}

Table borrowed_table(const std::vector<engine::AddressView>& addresses) {
  Table table({"ADDRESS", "BORROWING-NODE", "BLOCK", "BLOCK OWNER", "TYPE", "ALLOCATED-TO"});
  for (const engine::AddressView& a : addresses) {
    const std::string owner = a.pod.empty() ? a.handle_id : a.namespace_name + "/" + a.pod;
    table.add({a.address.to_string(), a.node, a.block ? a.block->to_string() : "",
               a.block_owner ? to_string(*a.block_owner) : "", a.type(), owner});
  }
  return table;
}

std::string note_of(const std::vector<engine::AddressView>& all) {
  const auto without_node = std::count_if(all.begin(), all.end(), [](const engine::AddressView& a) {
    return a.state == core::AddressState::held && a.node.empty();
  });
  return without_node == 0 ? ""
                           : counted_as(without_node, "held address records no node: whether it is borrowed is unknown",
                                        "held addresses record no node: whether they are borrowed is unknown");
}

/// Takes out what is held on nodes whose labels are others.
[[nodiscard]] Result<void> keep_labelled(const engine::Context& context, const std::string& text,
                                         std::vector<engine::AddressView>& addresses) {
  TRY(const LabelSelector selector, LabelSelector::parse(text));
  if (selector.is_empty()) return {};
  TRY(const std::vector<engine::NodeView> nodes, engine::list_nodes(context));
  std::set<std::string> labelled;
  for (const engine::NodeView& view : nodes) {
    if (selector.matches(view.node.labels)) labelled.insert(view.node.name);
  }
  std::erase_if(addresses, [&](const engine::AddressView& a) { return !labelled.contains(a.node); });
  return {};
}

[[nodiscard]] Result<Listing> listing_of(const engine::Context& context, const AddressFilter& filter,
                                         const CommandLine& line) {
  TRY(std::vector<engine::AddressView> addresses, engine::list_addresses(context));
  const std::string note = filter.borrowed && !line.json() ? note_of(addresses) : "";
  std::erase_if(addresses, [&](const engine::AddressView& a) { return !is_wanted(a, filter); });
  TRY_VOID(keep_labelled(context, filter.node_labels, addresses));
  if (addresses.empty()) TRY_VOID(check_known(context, filter.node, filter.pool));
  return Listing{filter.borrowed ? "No borrowed addresses." : "No addresses.",
                 filter.borrowed ? borrowed_table(addresses) : address_table(addresses, line.wide()),
                 line.json() ? json_of(addresses) : Data(), note};
}

[[nodiscard]] Result<int> list_addresses(CommandLine& line, const AddressFilter& filter) {
  return list(line, [&](const engine::Context& context) { return listing_of(context, filter, line); });
}

std::string address_details(const engine::AddressView& a) {
  std::string text;
  const auto add = [&](const char* name, const std::string& value) {
    if (!value.empty()) text += fmt::format("{:<11}{}\n", name, printable(value, Printed::line));
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
  add("Sequence:", sequence_text(a));
  add("Node:", a.node);
  add("Pod:", a.pod.empty() ? "" : a.namespace_name + "/" + a.pod);
  add("Since:", a.since);
  add("Until:", a.until);
  const auto add_all = [&](const char* indent, const auto& attributes) {
    for (const auto& [key, value] : attributes) {
      text += fmt::format("{}{}: {}\n", indent, printable(key, Printed::line), printable(value, Printed::line));
    }
  };
  add_all("  ", a.attributes);
  add_all("  (second owner) ", a.alternate_owner);
  return text;
}

[[nodiscard]] Result<int> show_address(CommandLine& line, const std::string& text) {
  TRY(const net::Address address, address_argument("ADDRESS", text));
  TRY(const engine::Context context, line.look());
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
  CLI::App* listing = ip->add_subcommand("list", "List addresses that are held or cooling");
  listing->add_option("--pool", filter->pool, "Only addresses of this pool");
  listing->add_option("--node", filter->node, "Only addresses held on this node");
  listing->add_option("--pod", filter->pod, "Only addresses of this pod: POD or NAMESPACE/POD");
  listing->add_option("-n,--namespace", filter->name_space, "Only addresses of pods of this namespace");
  listing->add_option("-l,--selector", filter->node_labels,
                      "Only addresses held on nodes with these labels: KEY=VALUE, KEY!=VALUE, KEY, !KEY, with commas");
  listing->add_flag("--all", filter->all, "Also list reserved addresses that nobody holds");
  listing->add_option("--handle", filter->handle, "Only addresses of this handle");
  listing->add_flag("--borrowed", filter->borrowed, "Only addresses on a node that does not own their block");
  listing->add_option("--state", filter->state, "Only this state")
      ->check(CLI::IsMember({"held", "cooling", "reserved"}));
  add_list_options(*listing, line);
  listing->callback([&line, filter] { line.run = [filter](CommandLine& l) { return list_addresses(l, *filter); }; });

  const auto address = std::make_shared<std::string>();
  CLI::App* showing = ip->add_subcommand("show", "Show everything about one address");
  showing->add_option("ADDRESS", *address, "The address")->required();
  showing->callback([&line, address] { line.run = [address](CommandLine& l) { return show_address(l, *address); }; });

  add_ip_release_command(*ip, line);
}

}  // namespace croft::app
