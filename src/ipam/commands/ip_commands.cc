#include <algorithm>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "base/did_you_mean.h"
#include "base/printable.h"
#include "base/texts.h"
#include "cli/croft/command_line.h"
#include "cli/croft/json_output.h"
#include "cli/croft/leak_report.h"
#include "cli/croft/life_sources.h"
#include "cli/croft/listing.h"
#include "cli/croft/table.h"
#include "cni/error_table.h"
#include "ipam/use/inspect.h"
#include "ipam/use/nodes.h"
#include "ipam/use/release.h"
#include "os/files.h"
#include "os/process.h"
#include "store/store_url.h"

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
  Table table({"ADDRESS", "STATE", "POOL", "BLOCK", "NODE", "POD", "CONTAINER", "IFNAME", "SINCE", "UNTIL"},
              {"TYPE", "HANDLE", "SEQUENCE", "BLOCK-OWNER"}, wide);
  for (const engine::AddressView& a : addresses) {
    const std::string pod = a.pod.empty() ? "" : a.namespace_name + "/" + a.pod;
    // The first 13 characters tell containers apart, as runtimes print them.
    table.add({a.address.to_string(), std::string(core::name_of(a.state)), a.pool, a.block ? a.block->to_string() : "",
               a.node, pod, a.owner ? a.owner->container_id.substr(0, wide ? std::string::npos : 13) : "",
               a.owner ? a.owner->interface_name : "", a.since, a.until, a.type(), a.handle_id, sequence_text(a),
               a.block_owner ? to_string(*a.block_owner) : ""});
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
  const std::string note = filter.borrowed && !line.wants_data() ? note_of(addresses) : "";
  std::erase_if(addresses, [&](const engine::AddressView& a) { return !is_wanted(a, filter); });
  TRY_VOID(keep_labelled(context, filter.node_labels, addresses));
  if (addresses.empty()) TRY_VOID(check_known(context, filter.node, filter.pool));
  return Listing{filter.borrowed ? "No borrowed addresses." : "No addresses.",
                 filter.borrowed ? borrowed_table(addresses) : address_table(addresses, line.wide()),
                 line.wants_data() ? json_of(addresses) : Data(), note};
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
  TRY(const engine::Context context, line.open_to_look());
  TRY(const engine::AddressView view, engine::show_address(context, address));
  print(line.wants_data() ? line.data_text(json_of(std::vector{view})) : address_details(view));
  return 0;
}

}  // namespace

void add_ip_commands(CLI::App& app, CommandLine& line) {
  CLI::App* const ip = add_noun(app, "ip", "Addresses: who holds what");

  const auto [listing, filter] =
      add_command(*ip, line, "list", "List addresses that are held or cooling", list_addresses);
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

  const auto [showing, address] = add_command(*ip, line, "show", "Show everything about one address", show_address);
  showing->add_option("ADDRESS", *address, "The address")->required();

  add_ip_release_command(*ip, line);
}

namespace {

struct ReleaseOptions {
  std::vector<std::string> addresses;
  std::optional<std::string> handle;
  std::optional<std::uint64_t> sequence;
  std::vector<std::string> reports;
  std::string pod;
  RuntimeCache cache;
  bool force = false;
  bool dry_run = false;
  double max_share = 0.5;
};

[[nodiscard]] Result<std::vector<core::AddressToRelease>> wanted_of(const ReleaseOptions& options) {
  if (options.addresses.size() > 1 && (options.handle || options.sequence)) {
    return fail(ErrorCode::invalid_argument, "--handle and --sequence go with a single ADDRESS");
  }
  std::vector<core::AddressToRelease> wanted;
  for (const std::string& text : options.addresses) {
    TRY(const net::Address address, address_argument("ADDRESS", text));
    wanted.push_back({address, options.handle, {}});
    if (options.sequence) wanted.back().sequence_number = core::SequenceNumber(*options.sequence);
  }
  return wanted;
}

/// Two sandboxes have a pod's name: of a StatefulSet's the one that is left over, and the one that runs.
[[nodiscard]] Result<void> refuse_several_holders(const std::string& pod,
                                                  const std::vector<engine::AddressView>& held) {
  std::set<std::string> handles;
  std::string list;
  for (const engine::AddressView& a : held) {
    handles.insert(a.handle_id);
    list += fmt::format("{}{} on node {}, handle {}", list.empty() ? "" : "; ", a.address, a.node, a.handle_id);
  }
  if (handles.size() < 2) return {};
  return fail(Error{ErrorCode::refused_for_safety,
                    fmt::format("{} sandboxes of pod {} hold addresses, and one of them may run: --handle HANDLE "
                                "releases what one of them holds, --force what all of them hold",
                                handles.size(), echo(pod)),
                    list});
}

/// The addresses that a pod holds now, each with the holder and the sequence number that were seen.
[[nodiscard]] Result<std::vector<core::AddressToRelease>> held_by_pod(const engine::Context& context,
                                                                      const ReleaseOptions& options) {
  TRY(const std::vector<engine::AddressView> addresses, engine::list_addresses(context));
  std::vector<engine::AddressView> held;
  std::vector<std::string> pods;
  for (const engine::AddressView& a : addresses) {
    if (a.state != core::AddressState::held || a.pod.empty()) continue;
    pods.push_back(a.namespace_name + "/" + a.pod);
    if (pods.back() == options.pod && (!options.handle || a.handle_id == *options.handle)) held.push_back(a);
  }
  if (held.empty()) {
    return fail(ErrorCode::not_found, "pod {} holds no address{}", echo(options.pod),
                options.handle ? " by handle " + echo(*options.handle) : did_you_mean(options.pod, pods));
  }
  if (!options.force) TRY_VOID(refuse_several_holders(options.pod, held));
  std::vector<core::AddressToRelease> wanted;
  for (const engine::AddressView& a : held) wanted.push_back({a.address, a.handle_id, a.sequence_number});
  return wanted;
}

[[nodiscard]] Result<void> check_ways(const ReleaseOptions& options) {
  const int ways =
      (options.addresses.empty() ? 0 : 1) + (options.reports.empty() ? 0 : 1) + (options.pod.empty() ? 0 : 1);
  if (ways != 1) {
    return fail(ErrorCode::invalid_argument, "give addresses, or --pod NAMESPACE/NAME, or reports with --from-report");
  }
  if (options.addresses.empty() && options.sequence) {
    return fail(ErrorCode::invalid_argument, "--sequence goes with a single ADDRESS");
  }
  if (!options.reports.empty() && options.handle) {
    return fail(ErrorCode::invalid_argument, "--handle goes with a single ADDRESS or with --pod");
  }
  // Half a name may be another's.
  if (options.pod.empty() || options.pod.find('/') != std::string::npos) return {};
  return fail(ErrorCode::invalid_argument, "--pod: {} is not NAMESPACE/NAME", echo(options.pod));
}

[[nodiscard]] Result<void> check_origin(const std::string& path, const ReportContent& report,
                                        const std::string& store_url, bool force) {
  const std::string cluster = cluster_of(store_url);
  const bool is_crofts = report.cluster.starts_with("croft:");
  if (is_crofts && report.cluster != cluster) {
    return fail(ErrorCode::refused_for_safety, "{} is a report of another store ({}; this is {})", path, report.cluster,
                cluster);
  }
  if (force) return {};
  if (!is_crofts) {
    return fail(ErrorCode::refused_for_safety,
                "{} was not made by croft check: nothing tells that it is of this store; --force to use it all the "
                "same (handles and sequence numbers still have to match)",
                path);
  }
  if (report.version != CROFT_VERSION) {
    return fail(ErrorCode::refused_for_safety, "{} was made by version {}, this is {}: check again, or --force", path,
                report.version, CROFT_VERSION);
  }
  return {};
}

[[nodiscard]] Result<ReportContent> read_reports(const ReleaseOptions& options, const std::string& store_url) {
  std::vector<ReportContent> reports;
  for (const std::string& path : options.reports) {
    TRY(const std::string text, os::read_file(path, kReportBytesMax));
    auto report = parse_report(text);
    if (!report) return fail(report.error().in(path));
    TRY_VOID(check_origin(path, *report, store_url, options.force));
    reports.push_back(*std::move(report));
  }
  return intersection_of(reports);
}

[[nodiscard]] Result<void> mend_handles(const engine::Context& context,
                                        const std::vector<engine::LeakedHandle>& handles, bool dry_run,
                                        ReleaseOutcome& outcome) {
  for (const engine::LeakedHandle& handle : handles) {
    bool mended = dry_run;
    if (!dry_run) {
      TRY(mended, engine::mend_handle(context, handle.id, handle.revision));
    }
    (mended ? outcome.handles_mended : outcome.handles_kept).push_back(handle.id);
  }
  return {};
}

std::string release_text(const ReleaseOutcome& outcome, bool dry_run) {
  std::string text;
  const auto add = [&](const std::string& subject, const char* what) { text += fmt::format("{} {}\n", subject, what); };
  for (const auto& address : outcome.addresses.released) {
    add(address.to_string(), dry_run ? "would be released" : "released");
  }
  for (const auto& address : outcome.addresses.not_held) add(address.to_string(), "is not held");
  for (const auto& address : outcome.addresses.mismatched) {
    add(address.to_string(), "left alone: it has another holder by now, handle or sequence number differ");
  }
  for (const std::string& handle : outcome.handles_mended) {
    add("handle " + handle, dry_run ? "would be deleted, if it is unchanged" : "deleted: no block holds any of it");
  }
  for (const std::string& handle : outcome.handles_kept) add("handle " + handle, "left alone: it has changed");
  return text;
}

/// A report made by mistake, with another node's cache say, names most of what lives.
[[nodiscard]] Result<void> brake(const CommandLine& line, const engine::Context& context, const ReportContent& content,
                                 const ReleaseOptions& options) {
  std::vector<core::AddressToRelease> counted = content.unused;
  // Not so what the cluster that keeps the store was asked for again, one by one: a dead node loses all that it has.
  if (!options.force && line.cluster_url == line.store_url) {
    std::erase_if(counted, [&](const auto& one) { return content.by_cluster.contains(one.address); });
  }
  auto checked = engine::check_release_share(context, counted, options.max_share);
  if (checked) return {};
  if (checked.error().code != ErrorCode::refused_for_safety) return fail(checked.error());
  Error error = checked.error();
  error.message += "; `--max-share 1` goes on";
  if (options.dry_run) {
    warn("without --dry-run it would be refused: " + error.message);
    return {};
  }
  error.details = "look at the list that --dry-run prints first";
  return fail(std::move(error));
}

/// A released address is given to another pod: two live with it when its holder does. A report's entries were proven
/// when it was made; only those that turn out to live are refused. From here on the holder that was asked for is meant,
/// and no successor.
[[nodiscard]] Result<std::string> not_proven_gone(const engine::Context& context, const LifeSources& life,
                                                  bool is_report, ReportContent& content) {
  using State = engine::HolderLife::State;
  constexpr std::size_t kNamedMax = 10;
  std::string text;
  std::size_t found = 0;
  std::set<net::Address> addresses;
  for (const core::AddressToRelease& one : content.unused) addresses.insert(one.address);
  TRY(const auto views, engine::show_addresses(context, addresses));
  for (core::AddressToRelease& one : content.unused) {
    const auto at = views.find(one.address);
    if (at == views.end()) continue;
    const engine::AddressView* const view = &at->second;
    const bool is_meant = (!one.handle_id || *one.handle_id == view->handle_id) &&
                          (!one.sequence_number || *one.sequence_number == view->sequence_number);
    if (view->state != core::AddressState::held || !is_meant) continue;
    TRY(const engine::HolderLife holder, engine::life_of_holder(context, *view, life.known()));
    // Evidence from a cluster's lists is asked for again; a runtime's proof stands.
    const bool must_be_proven = !is_report || content.by_cluster.contains(one.address);
    if (holder.state == State::lives || (holder.state == State::unknown && must_be_proven)) {
      if (++found > kNamedMax) continue;
      const std::string held =
          "held by " + core::audit::holder_text(view->handle_id.empty() ? "none" : view->handle_id, view->attributes) +
          (view->since.empty() ? "" : " since " + view->since);
      const std::string end = holder.why.empty() ? "nothing proves that the holder is gone"
                                                 : "whether the holder is gone is not known: " + holder.why;
      text += fmt::format("{}{} {}", text.empty() ? "" : "; ", one.address,
                          holder.state == State::lives ? holder.why + ", and " + held : "is " + held + ", and " + end);
    }
    if (!view->handle_id.empty()) one.handle_id = view->handle_id;
    one.sequence_number = view->sequence_number;
  }
  return found > kNamedMax ? fmt::format("{}; and {} more", text, found - kNamedMax) : text;
}

/// Asks on a terminal, refuses elsewhere.
[[nodiscard]] Result<void> spare_the_living(const CommandLine& line, const engine::Context& context,
                                            const ReleaseOptions& options, ReportContent& content) {
  if (options.force) return {};
  LifeSources life;
  TRY_VOID(life.read(line, context, options.cache));
  if (!content.by_cluster.empty() && !life.knows_pods()) {
    return fail(ErrorCode::refused_for_safety,
                "the report is of what a cluster did not have, and that cluster is not asked again: name it with "
                "--kubeconfig; --force releases all the same");
  }
  TRY(const std::string holders, not_proven_gone(context, life, !options.reports.empty(), content));
  if (holders.empty()) return {};
  const bool is_of_nodes = store::scheme_of(line.store_url) != store::Scheme::sqlite;
  const std::string proof = options.cache.directories.empty()
                                ? fmt::format("`--cni-cache /var/lib/cni{}` on the node proves who is gone, ",
                                              is_of_nodes ? " --node NAME" : "")
                                : std::string();
  const std::string message = fmt::format(
      "{}. A release lets other pods get what may be in use; {}--force releases all the same", holders, proof);
  if (options.dry_run) {
    warn("without --dry-run it would be refused, or asked on a terminal: " + message);
    return {};
  }
  const auto answer =
      os::ask_on_terminal(fmt::format("{}.\nRelease all the same? [y/N] ", printable(message, Printed::line)));
  if (answer && (*answer == "y" || *answer == "Y" || *answer == "yes")) return {};
  if (answer) return fail(ErrorCode::refused_for_safety, "nothing was released");
  return fail(ErrorCode::refused_for_safety, message);
}

[[nodiscard]] Result<int> release_addresses(CommandLine& line, const ReleaseOptions& options) {
  TRY_VOID(check_ways(options));
  ReportContent content;
  if (!options.addresses.empty()) {
    TRY(content.unused, wanted_of(options));
  } else if (!options.reports.empty()) {
    TRY(content, read_reports(options, line.store_url));
  }
  TRY(const engine::Context context, line.open());
  if (!options.pod.empty()) {
    TRY(content.unused, held_by_pod(context, options));
  }
  TRY_VOID(spare_the_living(line, context, options, content));
  if (options.addresses.empty()) TRY_VOID(brake(line, context, content, options));
  ReleaseOutcome outcome;
  TRY(outcome.addresses, engine::release_addresses(context, content.unused, !options.dry_run));
  TRY_VOID(mend_handles(context, content.leaked_handles, options.dry_run, outcome));
  const std::string text = release_text(outcome, options.dry_run);
  print(line.wants_data() ? line.data_text(json_of(outcome)) : text.empty() ? "nothing to release\n" : text);
  if (!outcome.addresses.mismatched.empty()) return static_cast<int>(edge::ExitCode::refused_for_safety);
  // A report may be behind; whoever names an address means one that is held.
  const bool is_absent = !options.addresses.empty() && !outcome.addresses.not_held.empty();
  return static_cast<int>(is_absent ? edge::ExitCode::error : edge::ExitCode::fine);
}

}  // namespace

void add_ip_release_command(CLI::App& ip, CommandLine& line) {
  const auto [command, options] = add_command(
      ip, line, "release", "Release addresses whose holders are gone; they cool first", release_addresses, true);
  command->add_option("ADDRESS", options->addresses, "The addresses");
  command->add_option("--handle", options->handle, "Only what this handle holds");
  command->add_option("--sequence", options->sequence, "Only if it was assigned with this sequence number");
  command->add_option("--pod", options->pod, "Release what this pod holds: NAMESPACE/NAME");
  command->add_option("--from-report", options->reports,
                      "Release the unused addresses in a report of `croft check --report`, and delete its leaked "
                      "handles; with several reports, only what all of them list");
  command->add_flag("--force", options->force,
                    "Release addresses whose holders may live; accept a report of another version, or of calicoctl; "
                    "with --pod, release the addresses of all sandboxes of that name");
  add_runtime_cache_options(*command, options->cache,
                            "Release what the runtime's CNI cache (usually /var/lib/cni) proves gone; may be repeated");
  command
      ->add_option(
          "--max-share", options->max_share,
          "With --from-report and --pod: refuse if more than this share of a node's addresses would be released")
      ->check(CLI::Range(0.0, 1.0))
      ->capture_default_str();
  command->add_flag("--dry-run", options->dry_run, "Show what would happen and change nothing");
  command->footer(
      "A holder is gone when the cluster has no such pod or node (a store in the Kubernetes API; of another store the "
      "cluster that --kubeconfig names), when the runtime's cache "
      "does not know the container (--cni-cache, on its node), or when its node was removed since. Otherwise the "
      "command names the holder and asks; without a terminal it refuses with exit code 5.\n"
      "An address in a report is released only if the same handle still holds it with the same sequence number; a "
      "handle is deleted only if its record has not changed. So nothing needs to be locked, and an old report does no "
      "harm. The exit code is 5 if an address was skipped for that reason, if a report is of another store, if several "
      "sandboxes of the pod hold addresses, or if too much would be released. It is 1 if a named ADDRESS is not held.");
}

}  // namespace croft::app
