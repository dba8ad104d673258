#include <algorithm>
#include <chrono>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "base/printable.h"
#include "base/texts.h"
#include "base/time_text.h"
#include "cli/croft/command_line.h"
#include "cli/croft/json_output.h"
#include "cli/croft/life_sources.h"
#include "cli/croft/listing.h"
#include "cli/croft/table.h"
#include "cli/stores/open_store.h"
#include "cni/error_table.h"
#include "collector/use/holder_life.h"
#include "ipam/commands/operator_warnings.h"
#include "ipam/use/inspect.h"
#include "ipam/use/nodes.h"
#include "ipam/use/release.h"
#include "noderanges/commands/node_range_inputs.h"
#include "noderanges/use/node_range.h"
#include "os/files.h"
#include "store/kube/format/kubeconfig.h"
#include "store/kube/object_list.h"

namespace croft::app {
namespace {

constexpr std::size_t kKubeconfigBytesMax = std::size_t{1} << 20;
/// For the API server's word on a token.
constexpr std::chrono::seconds kTokenTime{5};

struct LabelOptions {
  std::string node;
  std::vector<std::string> changes;
};

struct AffinityOptions {
  std::string node, cidr;
  bool force = false, dry_run = false;
};

std::string labels_text(const std::map<std::string, std::string>& labels) {
  std::string text;
  for (const auto& [key, value] : labels) text += fmt::format("{}{}={}", text.empty() ? "" : ",", key, value);
  return text;
}

/// Wide: also the ranges of nodes, where nodes have such.
[[nodiscard]] Result<Table> node_table(const engine::Context& context, const std::vector<engine::NodeView>& nodes,
                                       bool wide) {
  std::map<std::string, std::vector<net::Prefix>> ranges;
  if (wide) {
    TRY(const core::NodeRangeOverview seen, engine::read_node_range_overview(context));
    ranges = seen.by_node();
  }
  Table table({"NAME", "BLOCKS", "HELD", "BORROWED", "RECORD", "LABELS"}, {"RANGES"}, wide);
  for (const engine::NodeView& view : nodes) {
    table.add({view.node.name, std::to_string(view.blocks), std::to_string(view.held), std::to_string(view.borrowed),
               view.recorded ? "yes" : "no", labels_text(view.node.labels), net::joined(ranges[view.node.name], ",")});
  }
  return table;
}

[[nodiscard]] Result<int> list_nodes(CommandLine& line, const std::string& labels) {
  TRY(const LabelSelector selector, LabelSelector::parse(labels));
  return list(line, [&](const engine::Context& context) -> Result<Listing> {
    TRY(std::vector<engine::NodeView> nodes, engine::list_nodes(context));
    std::erase_if(nodes, [&](const engine::NodeView& view) { return !selector.matches(view.node.labels); });
    TRY(Table table, node_table(context, nodes, line.wide()));
    return Listing{"No nodes.", std::move(table), line.wants_data() ? json_of(nodes) : Data(), ""};
  });
}

struct ShowOptions {
  std::string node, kubeconfig;
};

/// Whether the API server refuses the token in it; nothing where none answers.
[[nodiscard]] std::optional<bool> is_refused(const CommandLine& line, const std::string& file) {
  const auto url = with_kube_flags("kube:", file, "");
  if (!url) return std::nullopt;
  const auto api = open_kube_api(*url, line.clock, operator_parts(), kTokenTime);
  if (!api) return std::nullopt;
  return store::kube::is_token_refused(**api, Deadline::after(line.clock.now(), kTokenTime));
}

/// The token of the kubeconfig that `croftd install` wrote on this machine.
[[nodiscard]] Result<std::optional<TokenShown>> plugin_token(const CommandLine& line, const std::string& file) {
  if (file.empty()) return std::optional<TokenShown>();
  TRY(const std::string text, os::read_secret_file(file, kKubeconfigBytesMax));
  const auto access = wire::kube::decode_kubeconfig(text, os::directory_of(file));
  if (!access) return fail(access.error().in(file));
  const auto life = wire::kube::life_of_token(access->token);
  if (!life) return fail(ErrorCode::not_found, "{} has no token that says its end", echo(file));
  return std::optional(
      TokenShown{file, life->made, life->end, life->end <= line.clock.now().wall, is_refused(line, file)});
}

std::string node_text(const engine::NodeView& view, const std::vector<net::Prefix>& ranges,
                      const std::optional<TokenShown>& token) {
  std::string text;
  const auto add = [&](const char* name, const std::string& value) {
    text += fmt::format("{:<9}{}\n", name, printable(value, Printed::line));
  };
  add("Name:", view.node.name);
  add("Record:", view.recorded ? "yes" : "no");
  add("Labels:", view.node.labels.empty() ? "none" : labels_text(view.node.labels));
  add("Blocks:", std::to_string(view.blocks));
  add("Held:", view.borrowed == 0 ? std::to_string(view.held)
                                  : fmt::format("{}, of them {} borrowed", view.held, view.borrowed));
  if (!ranges.empty()) add("Ranges:", net::joined(ranges, ","));
  if (token) {
    const WallTime from = token->made + (token->end - token->made) / 4;
    const WallTime until = token->made + (token->end - token->made) / 2;
    const std::string good =
        fmt::format("good until {}; the agent renews it between {} and {}", rfc3339_exact(token->end),
                    rfc3339_rounded_up(from), rfc3339_rounded_up(until));
    const std::string ended = fmt::format(
        "ENDED at {}: nobody has renewed it since {}; run croftd agent --plugin-kubeconfig {}, or croftd install",
        rfc3339_exact(token->end), rfc3339_exact(token->made), token->file);
    const std::string refused = fmt::format(
        "REFUSED by the API server (401), though by itself good until {}: its service account was made anew, or the "
        "key of tokens was changed; croftd agent --plugin-kubeconfig {} writes another within two minutes, or croftd "
        "install does",
        rfc3339_exact(token->end), token->file);
    add("Token:", token->has_ended ? ended : token->is_refused.value_or(false) ? refused : good);
  }
  return text;
}

[[nodiscard]] Result<int> show_node(CommandLine& line, const ShowOptions& options) {
  TRY_VOID(core::check_node_name(options.node));
  TRY(const auto token, plugin_token(line, options.kubeconfig));
  TRY(const engine::Context context, line.open_to_look());
  TRY(std::vector<engine::NodeView> nodes, engine::list_nodes(context));
  TRY(const core::NodeRangeOverview seen, engine::read_node_range_overview(context));
  const std::vector<net::Prefix> ranges = seen.by_node()[options.node];
  const auto found =
      std::ranges::find(nodes, options.node, [](const engine::NodeView& view) { return view.node.name; });
  engine::NodeView view;
  view.node.name = options.node;
  if (found != nodes.end()) view = *found;
  if (found == nodes.end() && ranges.empty()) {
    return fail(ErrorCode::not_found,
                "node {} has no record, no block, no address and no range; `croft node list` lists those that have",
                options.node);
  }
  print(line.wants_data() ? line.data_text(json_of(view, ranges, token)) : node_text(view, ranges, token));
  return 0;
}

/// "key=value" sets, "key-" takes away, as kubectl has it.
[[nodiscard]] Result<core::LabelChanges> label_changes(const std::vector<std::string>& texts) {
  core::LabelChanges changes;
  for (const std::string& text : texts) {
    const std::size_t equals = text.find('=');
    if (equals != std::string::npos) {
      changes[text.substr(0, equals)] = text.substr(equals + 1);
    } else if (text.size() > 1 && text.ends_with('-')) {
      changes[text.substr(0, text.size() - 1)] = std::nullopt;
    } else {
      return fail(ErrorCode::invalid_argument, "{} is neither KEY=VALUE nor KEY- (which takes a label away)",
                  echo(text));
    }
  }
  return changes;
}

[[nodiscard]] Result<int> label_node(CommandLine& line, const LabelOptions& options) {
  TRY(const core::LabelChanges changes, label_changes(options.changes));
  TRY(const engine::Context context, line.open());
  const auto known = engine::check_node_known(context, options.node);
  TRY(const core::Node node, engine::label_node(context, options.node, changes));
  if (!known && known.error().code == ErrorCode::not_found) {
    warn(fmt::format("{}: {} is a new one, and a misspelt one should go (`croft node remove {}`)",
                     known.error().message, node.name, node.name));
  }
  if (line.wants_data()) {
    print(line.data_text(json_of(std::vector{engine::NodeView{node, true, 0, 0, 0}})));
  } else {
    print(fmt::format("node/{} labelled: {}\n", node.name, node.labels.empty() ? "none" : labels_text(node.labels)));
  }
  return 0;
}

/// Says what became of blocks; the exit code when some were kept.
[[nodiscard]] Result<int> tell_released(const engine::AffinitiesReleased& released, bool dry_run = false) {
  for (const net::Prefix& cidr : released.released) {
    print(fmt::format("block/{} {}\n", cidr, dry_run ? "would be given up" : "given up"));
  }
  for (const net::Prefix& cidr : released.not_empty) {
    print(fmt::format("block/{} {}: it holds addresses; --force makes it nobody's\n", cidr,
                      dry_run ? "would be kept" : "kept"));
  }
  if (released.failure) return fail(*released.failure);
  return static_cast<int>(released.not_empty.empty() ? edge::ExitCode::fine : edge::ExitCode::refused_for_safety);
}

/// The words of a dry run instead.
std::string plan_of(const engine::NodeRemoved& removed, const std::vector<net::Prefix>& ranges,
                    const std::string& name) {
  std::string text;
  for (const net::Prefix& cidr : removed.affinities.released) text += fmt::format("block/{} would be given up\n", cidr);
  if (removed.record_deleted) text += fmt::format("node/{} record would be deleted\n", name);
  for (const net::Prefix& cidr : ranges) text += fmt::format("node range {} would be given back\n", cidr);
  return text;
}

[[nodiscard]] Result<std::vector<net::Prefix>> ranges_of(const engine::Context& context, const std::string& name) {
  if (context.store.capabilities().foreign_writers) return std::vector<net::Prefix>();
  TRY(const core::NodeRangeOverview seen, engine::read_node_range_overview(context));
  return seen.by_node()[name];
}

/// The addresses held on a node, once its cluster has neither the node nor any of the holders. Error:
/// refused_for_safety, with those that may live.
[[nodiscard]] Result<std::vector<core::AddressToRelease>> held_by_nobody(const CommandLine& line,
                                                                         const engine::Context& context,
                                                                         const std::string& name) {
  // Before the cluster is asked: who comes meanwhile is not among them, or has them by another handle.
  TRY(const std::vector<engine::AddressView> addresses, engine::list_addresses(context));
  LifeSources life;
  TRY_VOID(life.read(line, context, {}));
  if (!life.known().nodes || !life.knows_pods()) {
    return fail(ErrorCode::refused_for_safety,
                line.cluster_url.empty()
                    ? "--release asks the cluster whether the node and its pods are gone: name it with --kubeconfig, "
                      "with the right to list nodes and pods"
                    : "the cluster tells of no node or of no pod, and nothing is concluded from that. --release takes "
                      "the right to list nodes and pods, in a cluster that has some");
  }
  if (life.has_node(name)) {
    return fail(ErrorCode::refused_for_safety,
                "node {} is in the cluster: `kubectl delete node` it first, when it is gone", name);
  }
  std::vector<core::AddressToRelease> wanted;
  std::string living;
  for (const engine::AddressView& one : addresses) {
    if (one.state != core::AddressState::held || one.node != name) continue;
    TRY(const engine::HolderLife holder, engine::life_of_holder(context, one, life.known()));
    if (holder.state == engine::HolderLife::State::gone) {
      wanted.push_back({one.address, one.handle_id, one.sequence_number});
    } else {
      living +=
          fmt::format("{}{}{}{}", living.empty() ? "" : "; ", one.address, holder.why.empty() ? "" : " ", holder.why);
    }
  }
  if (living.empty()) return wanted;
  return fail(ErrorCode::refused_for_safety, "nothing proves that all that is held on node {} is nobody's: {}", name,
              living);
}

[[nodiscard]] Result<void> release_held(const engine::Context& context, const std::vector<core::AddressToRelease>& held,
                                        bool dry_run) {
  TRY(const core::AddressReleases done, engine::release_addresses(context, held, !dry_run));
  for (const net::Address& address : done.released) {
    print(fmt::format("{} {}\n", address, dry_run ? "would be released" : "released"));
  }
  if (done.mismatched.empty()) return {};
  return fail(ErrorCode::conflict, "{} has another holder by now", done.mismatched.front());
}

struct RemoveOptions {
  engine::NodeRemoval removal;
  bool release = false;  ///< what is held on it, too
};

[[nodiscard]] Result<int> remove_node(CommandLine& line, const RemoveOptions& options) {
  engine::NodeRemoval removal = options.removal;
  const std::string& name = removal.name;
  TRY(const engine::Context context, line.open());
  TRY(const std::vector<net::Prefix> had_ranges, ranges_of(context, name));
  if (had_ranges.empty()) TRY_VOID(engine::check_node_known(context, name));
  if (options.release) {
    TRY(const auto held, held_by_nobody(line, context, name));
    TRY_VOID(release_held(context, held, removal.dry_run));
    // Shown is what comes behind the release.
    removal.force |= removal.dry_run;
  }
  TRY(const engine::NodeRemoved removed, engine::remove_node(context, removal));
  if (removal.dry_run) {
    print(plan_of(removed, had_ranges, name));
    if (removed.affinities.failure) return fail(*removed.affinities.failure);
    return static_cast<int>(edge::ExitCode::fine);
  }
  TRY(const int code, tell_released(removed.affinities));
  if (removed.held > 0) {
    print(counted_as(removed.held, "address stays held until the controller finds its holder gone\n",
                     "addresses stay held until the controller finds their holders gone\n"));
  }
  if (removed.record_deleted) print(fmt::format("node/{} record deleted\n", name));
  // Behind the record, so that no controller gives the node a range anew. Where others keep it, it is still there.
  core::NodeRangesReleased ranges;
  if (!context.store.capabilities().foreign_writers) {
    TRY(ranges, engine::release_node_ranges(context, name, core::IfRecorded::refuse));
  }
  for (const net::Prefix& cidr : ranges.cidrs) print(fmt::format("node range {} given back\n", cidr));
  return code;
}

[[nodiscard]] Result<int> release_one(const engine::Context& context, const core::AffinityOwner& owner,
                                      const AffinityOptions& options) {
  TRY(const net::Prefix cidr, prefix_argument("--cidr", options.cidr));
  TRY(const core::AffinityOutcome outcome,
      engine::release_affinity(context, {owner, cidr, !options.force, {}}, !options.dry_run));
  switch (outcome) {
    case core::AffinityOutcome::not_there:
      return fail(ErrorCode::not_found, "node {} has no claim on {}", owner.name, cidr);
    case core::AffinityOutcome::not_empty:
      return tell_released({{}, {cidr}, {}}, options.dry_run);
    case core::AffinityOutcome::belonged_to_others:
      print(fmt::format("block/{} is another's: the stale claim {}\n", cidr, options.dry_run ? "would go" : "is gone"));
      return 0;
    case core::AffinityOutcome::released:
    case core::AffinityOutcome::changed:
      break;
  }
  return tell_released({{cidr}, {}, {}}, options.dry_run);
}

[[nodiscard]] Result<int> release_affinity(CommandLine& line, const AffinityOptions& options) {
  TRY(const engine::Context context, line.open());
  const core::AffinityOwner owner{core::AffinityOwner::Type::host, options.node};
  TRY_VOID(core::check_node_name(owner.name));
  if (!options.cidr.empty()) return release_one(context, owner, options);
  TRY(const engine::AffinitiesReleased released,
      engine::release_host_affinities(context, owner, !options.force, !options.dry_run));
  if (released.released.empty() && released.not_empty.empty() && !released.failure) {
    TRY_VOID(engine::check_node_known(context, options.node));
    print(fmt::format("node/{} has no blocks\n", options.node));
  }
  return tell_released(released, options.dry_run);
}

[[nodiscard]] Result<int> claim_affinity(CommandLine& line, const AffinityOptions& options) {
  TRY(const net::Prefix cidr, prefix_argument("CIDR", options.cidr));
  TRY(const engine::Context context, line.open());
  const core::AffinityOwner owner{core::AffinityOwner::Type::host, options.node};
  if (!options.force) {
    auto known = engine::check_node_known(context, options.node);
    if (!known && known.error().code == ErrorCode::not_found)
      known.error().message += "; --force claims for a new node";
    TRY_VOID(std::move(known));
  }
  TRY(const engine::AffinitiesClaimed claimed, engine::claim_affinity(context, owner, cidr));
  for (const net::Prefix& block : claimed.claimed) print(fmt::format("block/{} belongs to {}\n", block, options.node));
  tell_of_pod_ranges(line, claimed.claimed, options.node);
  for (const net::Prefix& block : claimed.others) print(fmt::format("block/{} not claimed: it is another's\n", block));
  return static_cast<int>(claimed.others.empty() ? edge::ExitCode::fine : edge::ExitCode::refused_for_safety);
}

}  // namespace

void add_node_commands(CLI::App& app, CommandLine& line) {
  CLI::App* const node = add_noun(app, "node", "Nodes: their labels (for nodeSelector), blocks and addresses");
  const auto [listing, labels] =
      add_command(*node, line, "list", "List all nodes that have a record, a block or an address", list_nodes);
  listing->add_option("-l,--selector", *labels,
                      "Only nodes with these labels: KEY=VALUE, KEY!=VALUE, KEY, !KEY, with commas");
  add_list_options(*listing, line);

  const auto [showing, shown] =
      add_command(*node, line, "show", "Show what one node has, and how long its plugin's token is good", show_node);
  showing->add_option("NAME", shown->node, "Name of the node")->required();
  showing->add_option(
      "--plugin-kubeconfig", shown->kubeconfig,
      "The plugin's kubeconfig on this machine, which `croftd install` wrote: its token's life is shown");

  const auto [labelling, options] = add_command(
      *node, line, "label", "Set or remove labels; creates the record of the node if it is missing", label_node);
  labelling->add_option("NAME", options->node, "Name of the node")->required();
  labelling->add_option("LABEL", options->changes, "KEY=VALUE to set, KEY- to remove")->required();
  labelling->footer("Example: croft node label n1 zone=a rack-");

  const auto [removing, removal] = add_command(
      *node, line, "remove", "Remove a node that is gone: its blocks, its record and its ranges", remove_node, true);
  removing->add_option("NAME", removal->removal.name, "Name of the node")->required();
  removing->add_flag(
      "--force", removal->removal.force,
      "Remove the node even if it holds addresses, or has a record and a node range (otherwise exit code 5)");
  removing->add_flag("--release", removal->release,
                     "First release what is held on it, when the cluster has neither the node nor its pods");
  removing->add_flag("--dry-run", removal->removal.dry_run, "Show what would happen and change nothing");
  removing->footer(
      "Deletes empty blocks. With --force, blocks with addresses lose their owner, and the addresses stay held until "
      "the controller frees them: it learns that the node is gone for good. Pods in the controller's list of pods keep "
      "their addresses. If another program manages node records (Calico's etcd), the record and the ranges stay.");
  add_node_range_commands(*node, line);
}

void add_affinity_commands(CLI::App& app, CommandLine& line) {
  CLI::App* const affinity = add_noun(app, "affinity", "Claims of nodes on blocks");

  const auto [releasing, options] =
      add_command(*affinity, line, "release", "Release blocks of a node", release_affinity);
  releasing->add_option("--node", options->node, "The node")->required();
  releasing->add_option("--cidr", options->cidr, "Only this block");
  releasing->add_flag(
      "--force", options->force,
      "Also release blocks that hold addresses; they lose their owner (otherwise they are kept, exit code 5)");
  releasing->add_flag("--dry-run", options->dry_run, "Show what would happen and change nothing");

  const auto [claiming, wanted] =
      add_command(*affinity, line, "claim", "Claim every block of a prefix for a node", claim_affinity);
  claiming->add_option("CIDR", wanted->cidr, "Prefix inside an enabled pool: one block or more")->required();
  claiming->add_option("--node", wanted->node, "The node")->required();
  claiming->add_flag("--force", wanted->force, "Claim even if the register does not know the node");
  claiming->footer(
      "Blocks of other nodes are not touched; the exit code is then 5. Blocks without an owner are claimed with the "
      "addresses in them.");
}

std::vector<core::NodeRange> pod_ranges(CommandLine& line) {
  const auto cidrs = open_node_cidrs(line.store_url, line.clock, operator_parts());
  if (cidrs && *cidrs == nullptr) return {};
  auto look = cidrs ? engine::look_at_node_cidrs(**cidrs) : Result<engine::NodeCidrsLook>(fail(cidrs.error()));
  if (look) return std::move(look->said);
  if (look.error().code == ErrorCode::permission_denied) {
    line.note_not_read("the podCIDRs of nodes", look.error());
    return {};
  }
  warn("the podCIDRs of nodes are not looked at: " + look.error().message);
  return {};
}

void tell_of_pod_ranges(CommandLine& line, const std::vector<net::Prefix>& cidrs, const std::string& node) {
  for (const core::NodeRange& range : pod_ranges(line)) {
    if (range.node == node) continue;
    const auto is_in = [&](const net::Prefix& cidr) { return cidr.overlaps(range.cidr); };
    if (std::ranges::none_of(cidrs, is_in)) continue;
    tell(
        fmt::format("croft: {} is the podCIDR of node {}: where host-local gives that node's addresses, pods of both "
                    "get the same (docs/runbooks/migrate.md, From host-local)",
                    range.cidr, echo(range.node)));
  }
}

}  // namespace croft::app
