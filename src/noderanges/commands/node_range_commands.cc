
#include <fmt/format.h>

#include "base/net/prefix.h"
#include "base/printable.h"
#include "base/texts.h"
#include "cli/croft/command_line.h"
#include "cli/croft/listing.h"
#include "cni/error_table.h"
#include "ipam/use/nodes.h"
#include "noderanges/commands/node_range_inputs.h"
#include "noderanges/commands/node_range_views.h"
#include "noderanges/use/node_range.h"
#include "os/files.h"

namespace croft::app {
namespace {

constexpr int kMtuMin = 68;  // RFC 791
constexpr int kMtuMax = 65535;

struct AssignRangeOptions {
  std::string node, cidr;
};

struct ReleaseRangeOptions {
  std::string node;
  bool force = false, dry_run = false;
};

struct SubnetEnvOptions {
  std::string node, out;
  int mtu = 1450;
  bool ip_masquerade = true;
};

/// Nothing of a store whose nodes have no objects.
[[nodiscard]] Result<engine::NodeCidrsLook> look_at_said(const CommandLine& line) {
  TRY(const auto cidrs, open_node_cidrs(line.store_url, line.clock, operator_parts()));
  if (cidrs == nullptr) return engine::NodeCidrsLook();
  return engine::look_at_node_cidrs(*cidrs);
}

[[nodiscard]] Result<int> list_node_ranges(CommandLine& line) {
  return list(line, [&line](const engine::Context& context) -> Result<Listing> {
    TRY(const core::NodeRangeOverview seen, engine::read_node_range_overview(context));
    return Listing{"No node ranges.", table_of(seen.ranges, line.wide()),
                   line.wants_data() ? json_of(seen.ranges) : Data(), ""};
  });
}

[[nodiscard]] Result<int> show_ranges_of_node(CommandLine& line, const core::NodeRangeOverview& seen,
                                              const std::string& node) {
  std::vector<core::NodeRangeSeen> ranges = seen.ranges;
  std::erase_if(ranges, [&](const core::NodeRangeSeen& one) { return one.range.node != node; });
  if (ranges.empty()) return fail(ErrorCode::not_found, "node {} has no range", echo(node));
  print(line.wants_data() ? line.data_text(json_of(ranges)) : table_of(ranges, true).to_string());
  return 0;
}

[[nodiscard]] Result<int> show_node_ranges(CommandLine& line, const std::string& node) {
  TRY(const engine::Context context, line.open_to_look());
  TRY(const core::NodeRangeOverview seen, engine::read_node_range_overview(context));
  if (!node.empty()) return show_ranges_of_node(line, seen, node);
  engine::NodeCidrsLook look;
  if (seen.set) {
    TRY(look, look_at_said(line));
  }
  print(line.wants_data() ? line.data_text(json_of(seen, look.said)) : text_of(seen, look.said));
  return 0;
}

[[nodiscard]] Result<int> configure_node_ranges(CommandLine& line, const NodeRangeFlags& flags) {
  TRY(const NodeRangeFlagsRead read, read_node_range_flags(flags));
  for (const std::string& warning : read.warnings) warn("warning: " + warning);
  TRY(const engine::Context context, line.open(true));
  TRY(const core::NodeRangesConfigured done, engine::configure_node_ranges(context, read.spec));
  if (line.wants_data()) {
    TRY(const core::NodeRangeOverview seen, engine::read_node_range_overview(context));
    print(line.data_text(json_of(seen)));
    return 0;
  }
  print(done.changed ? "node ranges configured\n" : "node ranges unchanged\n");
  for (const core::NodeRange& range : done.outside) {
    print(fmt::format("node/{} keeps {}, which lies in no cluster CIDR\n", range.node, range.cidr));
  }
  return 0;
}

[[nodiscard]] Result<int> assign_node_range(CommandLine& line, const AssignRangeOptions& options) {
  net::Prefix cidr;
  if (!options.cidr.empty()) {
    TRY(cidr, prefix_argument("--cidr", options.cidr));
  }
  TRY(const engine::Context context, line.open());
  TRY(const engine::NodeCidrsLook look, look_at_said(line));
  TRY(const core::NodeRangesAssigned assigned, cidr.is_valid()
                                                   ? engine::adopt_node_range(context, options.node, cidr, look.said)
                                                   : engine::assign_node_ranges(context, options.node, look.said));
  if (line.wants_data()) {
    print(line.data_text(json_of(assigned)));
  } else {
    print(fmt::format("node/{} {} {}\n", assigned.node, assigned.added.empty() ? "has" : "got",
                      net::joined(assigned.cidrs)));
  }
  return 0;
}

[[nodiscard]] Result<int> release_node_range(CommandLine& line, const ReleaseRangeOptions& options) {
  TRY(const engine::Context context, line.open());
  const auto if_recorded = options.force ? core::IfRecorded::release : core::IfRecorded::refuse;
  TRY(const core::NodeRangesReleased released,
      engine::release_node_ranges(context, options.node, if_recorded, !options.dry_run));
  if (released.cidrs.empty()) TRY_VOID(engine::check_node_known(context, options.node));
  if (line.wants_data()) {
    print(line.data_text(json_of(released)));
  } else if (released.cidrs.empty()) {
    print(fmt::format("node/{} has no range\n", options.node));
  } else {
    print(fmt::format("node/{} {} {}\n", options.node, options.dry_run ? "would give back" : "gave back",
                      net::joined(released.cidrs)));
  }
  return 0;
}

[[nodiscard]] Result<int> subnet_env(CommandLine& line, const SubnetEnvOptions& options) {
  TRY(const engine::Context context, line.open());
  TRY(const core::NodeRangeOverview seen, engine::read_node_range_overview(context));
  TRY(const engine::NodeCidrsLook look, look_at_said(line));
  TRY(const std::string text, subnet_env_of(seen, options.node, options.mtu, options.ip_masquerade, look.said));
  if (options.out.empty()) {
    print(text);
    return 0;
  }
  // The network's plugins read it whoever they run as: a directory and a file for all to read.
  TRY_VOID(os::make_shared_directories(os::directory_of(options.out)));
  const auto written = os::write_output_file(options.out, text, os::FileMode::readable_by_all);
  if (!written) return fail(written.error().in("--out"));
  print(fmt::format("{} written\n", options.out));
  return 0;
}

}  // namespace

void add_node_range_commands(CLI::App& node, CommandLine& line) {
  CLI::App* range = node.add_subcommand("range", "Node ranges: the prefix that a node's pod addresses come from");
  range->require_subcommand(1);
  range->fallthrough();
  CLI::App* listing = range->add_subcommand("list", "List all ranges; -o wide adds the cluster CIDR");
  add_list_options(*listing, line);
  listing->callback([&line] { line.run = list_node_ranges; });

  const auto [showing, shown] = add_command(
      *range, line, "show", "Show the cluster CIDRs and how full they are, or the ranges of a node", show_node_ranges);
  showing->add_option("NODE", *shown, "Name of the node");
  showing->footer("`croft check` finds ranges that collide and nodes that say another range than their record.");

  const auto [configuring, flags] =
      add_command(*range, line, "config", "Set the cluster CIDRs that ranges are cut from; replaces the previous ones",
                  configure_node_ranges);
  add_node_range_flags(*configuring, *flags);
  configuring->get_option("--cluster-cidr")->required();
  configuring->footer(
      "The flags are those of kube-controller-manager; several cluster CIDRs per family are allowed. Nodes keep their "
      "ranges.");

  const auto [assigning, options] = add_command(
      *range, line, "assign", "Give a node a range of each family, or show the ones it has", assign_node_range);
  assigning
      ->add_option("NODE", options->node,
                   "Name of the node; creates its record if it has none, but not in etcd, where Calico creates nodes")
      ->required();
  assigning->add_option("--cidr", options->cidr, "Record this range, which the node got from elsewhere");

  const auto [releasing, released] =
      add_command(*range, line, "release", "Release the ranges of a node that has no more pods", release_node_range);
  releasing->add_option("NODE", released->node, "Name of the node")->required();
  releasing->add_flag("--force", released->force,
                      "Release them even if the node has a record: you know that no pod there has an address");
  releasing->add_flag("--dry-run", released->dry_run, "Show what would be released and change nothing");

  const auto [writing, env] =
      add_command(*range, line, "subnet-env", "flannel's subnet.env for a node, on standard output", subnet_env);
  writing->add_option("NODE", env->node, "Name of the node")->required();
  writing->add_option("--mtu", env->mtu, "FLANNEL_MTU")->check(CLI::Range(kMtuMin, kMtuMax))->capture_default_str();
  writing->add_option("--ip-masq", env->ip_masquerade, "FLANNEL_IPMASQ: true if another program masquerades")
      ->default_str("true");
  writing->add_option("--out", env->out, "Write to this file, atomically and durably, e.g. /run/flannel/subnet.env");
}

}  // namespace croft::app
