#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "base/printable.h"
#include "base/texts.h"
#include "base/time_text.h"
#include "cli/croft/command_line.h"
#include "cli/croft/json_output.h"
#include "cli/croft/leak_report.h"
#include "cli/croft/life_sources.h"
#include "cli/croft/listing.h"
#include "cli/croft/table.h"
#include "cli/stores/open_store.h"
#include "cni/door/tombstones.h"
#include "cni/error_table.h"
#include "collector/audit/leaks.h"
#include "ipam/audit/pool_status.h"
#include "ipam/commands/operator_warnings.h"
#include "ipam/use/audit.h"
#include "ipam/use/inspect.h"
#include "ipam/use/pools.h"
#include "noderanges/audit/node_range_audit.h"
#include "noderanges/commands/node_range_inputs.h"
#include "noderanges/use/node_range.h"
#include "os/files.h"
#include "store/kube/cluster_facts.h"
#include "store/pause.h"
#include "store/store_url.h"

namespace croft::app {
namespace {

struct CheckOptions {
  RuntimeCache cache;
  std::string tombstones;
  bool all_addresses = false;
  bool problem_addresses = false;
  std::string report_path;
  std::int64_t wait_seconds = 0;  ///< until a second look at what is gone; 0: none
};
using core::audit::Finding;
using core::audit::found;
using AuditFindings = std::vector<Finding>;

constexpr std::size_t kNodesShownMax = 20;
constexpr std::size_t kTakenNamedMax = 10;
constexpr std::chrono::seconds kPauseTime{30};
constexpr std::chrono::minutes kCheckLimit{10};
/// Making up for DELs takes no longer once the store is there.
constexpr std::chrono::minutes kReplayMax{1};
/// A container on its way out, or in, seems to live with an address that it does not hold; not so long.
constexpr std::chrono::seconds kSecondLook{3};
constexpr std::chrono::seconds kWaitMax{3600};

std::string addresses_table(const std::vector<core::audit::Allocation>& allocations, bool problems_only) {
  Table table({"ADDRESS", "STATE", "NODE", "HANDLE", "SEQUENCE", "BORROWED", "PROBLEM"});
  for (const core::audit::Allocation& one : allocations) {
    if (problems_only && !one.problem) continue;
    table.add({one.address.to_string(), one.cooling ? "cooling" : "held", one.node(), one.handle_id,
               std::to_string(one.sequence_number.value), one.borrowed() ? "yes" : "no", one.problem ? "yes" : "no"});
  }
  return table.to_string();
}

std::string nodes_table(const std::vector<core::audit::NodeCount>& nodes) {
  Table table({"NODE", "HELD", "BLOCKS"});
  for (std::size_t i = 0; i < std::min(nodes.size(), kNodesShownMax); ++i) {
    table.add({nodes[i].node, std::to_string(nodes[i].held), std::to_string(nodes[i].blocks)});
  }
  std::string text = table.to_string();
  if (nodes.size() > kNodesShownMax)
    text += fmt::format("… and {}\n", counted(nodes.size() - kNodesShownMax, "more node"));
  return text;
}

/// Three lines, whatever names and damaged records have in them.
std::string finding_text(const Finding& finding) {
  return fmt::format("{}: {}\n  {}\n  remedy: {}\n", finding.id, printable(finding.subject, Printed::line),
                     printable(finding.what, Printed::line), printable(finding.remedy, Printed::line));
}

[[nodiscard]] std::string plural_of(core::Kind kind) {
  switch (kind) {
    case core::Kind::handle:
      return "handles";
    case core::Kind::affinity:
      return "claims on blocks";
    case core::Kind::reservation:
      return "reservations";
    case core::Kind::ipam_config:
      return "the cluster-wide settings";
    case core::Kind::node:
      return "nodes";
    case core::Kind::service:
      return "Services";
    default:
      return "records of kind " + std::string(core::name_of(kind));
  }
}

std::string report_text(const CommandLine& line, const engine::AuditReport& report, const CheckOptions& options) {
  std::string text;
  for (const Finding& finding : report.findings) {
    text += finding_text(finding);
  }
  if (options.all_addresses || options.problem_addresses) {
    text += addresses_table(report.allocations, !options.all_addresses) + "\n";
  }
  if (!report.nodes.empty()) text += nodes_table(report.nodes) + "\n";
  for (const std::string& note : report.notes) text += fmt::format("note: {}\n", printable(note, Printed::line));
  if (report.without_node > 0)
    text += counted_as(report.without_node, "held address records no node\n", "held addresses record no node\n");
  const bool has_handles = !report.not_allowed.contains(core::Kind::handle);
  text +=
      fmt::format("{}, {}, {}, {} held ({} borrowed), {} cooling: {}{}\n", counted(report.pools, "pool"),
                  counted(report.blocks, "block"), has_handles ? counted(report.handles, "handle") : "handles not read",
                  counted(report.held, "address", "es"), report.borrowed, report.cooling,
                  report.findings.empty() ? "nothing found" : counted(report.findings.size(), "finding"),
                  line.not_read.empty() ? "" : " in what this account may read");
  return text;
}

/// The findings for DELs on this node that nobody made up for.
[[nodiscard]] Result<AuditFindings> releases_not_done(const CommandLine& line, const CheckOptions& options) {
  AuditFindings findings;
  if (options.tombstones.empty()) return findings;
  const auto waiting = edge::Tombstones(options.tombstones, line.clock).waiting();
  if (!waiting) return fail(waiting.error().in("--tombstones"));
  for (const auto& [path, content] : *waiting) {
    if (!content) {
      const ErrorCode code = content.error().code;
      const bool is_damaged = code == ErrorCode::corrupt || code == ErrorCode::invalid_argument;
      const std::string& why = content.error().message;
      findings.push_back(is_damaged ? found("release_unreadable", path, why)
                                    : found("release_unreadable.other", path, why));
      continue;
    }
    const auto age = line.clock.now().wall - content->left_at;
    if (age >= age.zero() && age < kReplayMax) continue;
    const core::Owner& owner = content->owner;
    findings.push_back(found("release_waiting", path, owner.container_id, owner.interface_name, owner.network,
                             content->store, rfc3339_exact(content->left_at)));
  }
  return findings;
}

/// A value that was read; nothing where this account may not read it, as a node's own user of an etcd, which hears of
/// the rest.
template <class T>
[[nodiscard]] Result<std::optional<T>> if_allowed(CommandLine& line, const char* what, Result<T> read) {
  if (read) return std::optional<T>(*std::move(read));
  if (read.error().code != ErrorCode::permission_denied) return fail(read.error());
  line.note_not_read(what, read.error());
  return std::optional<T>();
}

/// The pods of a cluster, or of one node of it, which have addresses of their own, and who is gone. Nothing where none
/// is at hand; of pods nothing where this user may not list them.
class ClusterPods {
 public:
  ClusterPods(CommandLine& line, const std::string& node, Cluster* cluster)
      : line_(line), node_(node), cluster_(cluster) {}

  [[nodiscard]] Result<std::vector<core::audit::RunningPod>> running() {
    std::vector<core::audit::RunningPod> running;
    if (is_hidden_ || cluster_ == nullptr) return running;
    TRY(auto read,
        if_allowed(line_, "which pods are gone, the addresses of running pods", cluster_->running_pods(&facts_)));
    is_hidden_ = !read;
    if (read) {
      running = *std::move(read);
    } else {
      facts_ = {};
      facts_.freeze();
    }
    if (!node_.empty()) std::erase_if(running, [&](const auto& pod) { return pod.node != node_; });
    return running;
  }

  /// Names what is held for pods and on nodes that are gone, behind a look at the register for which running() was
  /// asked. A list that can't be read whole is named, and nobody is gone by it.
  void find_leaks(const engine::Context& context, engine::AuditReport& report) {
    core::audit::LeakLook look{node_, line_.cluster_words};
    if (cluster_ == nullptr) {
      const bool is_for_pods = std::ranges::any_of(
          report.allocations, [](const auto& one) { return !one.cooling && one.attributes.contains(core::kPodKey); });
      if (is_for_pods) {
        report.notes.emplace_back(
            "pods and nodes were not asked, as this store is in no Kubernetes API: --kubeconfig FILE names the cluster "
            "whose pods hold its addresses; --cni-cache asks the runtime of a node");
      }
      return;
    }
    const auto nodes = cluster_->nodes(context);
    if (!nodes && nodes.error().code == ErrorCode::refused_for_safety) {
      report.notes.push_back(nodes.error().message);
      return;
    }
    look.nodes_known = nodes.has_value();
    if (const auto allowed = if_allowed(line_, "which nodes are gone", nodes); !allowed) {
      report.notes.push_back("nodes are not compared: " + allowed.error().message);
    }
    if (nodes) facts_.add_nodes_of(*nodes);
    if (nodes || !is_hidden_) core::audit::find_leaks(report, facts_, look);
  }

 private:
  CommandLine& line_;
  const std::string& node_;
  Cluster* const cluster_;
  core::collect::Facts facts_;  ///< of the last list; nothing is known where it is hidden
  bool is_hidden_ = false;
};

/// By the records, and by what the nodes' objects say. A record that stands in the way is told once: by `known`, what
/// the look at the whole register found, or here.
[[nodiscard]] Result<AuditFindings> look_at_ranges(CommandLine& line, const engine::Context& context,
                                                   const AuditFindings& known) {
  constexpr const char* kWhat = "the ranges of nodes";
  auto read = engine::read_node_range_overview(context);
  const bool is_damaged =
      !read && (read.error().code == ErrorCode::corrupt || read.error().code == ErrorCode::newer_version);
  if (is_damaged) {
    const bool is_told = std::ranges::any_of(
        known, [](const Finding& one) { return one.id == "record_unreadable" || one.id == "record_newer"; });
    if (is_told) return AuditFindings();
    return AuditFindings{found("record_unreadable.node_ranges", read.error().message)};
  }
  TRY(const auto seen, if_allowed(line, kWhat, std::move(read)));
  if (!seen) return AuditFindings();
  TRY(const auto cidrs, open_node_cidrs(line.store_url, line.clock, operator_parts()));
  if (!seen->set || cidrs == nullptr) return core::audit::audit_node_ranges(*seen, {}, {});
  TRY(const auto look, if_allowed(line, kWhat, engine::look_at_node_cidrs(*cidrs)));
  if (!look) return core::audit::audit_node_ranges(*seen, {}, {});
  return core::audit::audit_node_ranges(*seen, core::compare_said(look->said, seen->records()), look->unreadable);
}

bool is_of_living(const Finding& finding) {
  return finding.id == "not_held" || finding.id == "pod_not_held" || finding.id == "node_not_moved";
}
bool is_of_gone(const Finding& finding) { return finding.looks > 0; }

/// Leaves of the findings that are meant those of the second look that the first one had too.
void keep_seen_before(const engine::AuditReport& first, engine::AuditReport& second, bool is_meant(const Finding&)) {
  // A remedy names handle and sequence number of who is gone.
  const auto key = [](const Finding& one) {
    return std::tuple(one.id, one.subject, is_of_gone(one) ? one.remedy : std::string());
  };
  std::set<std::tuple<std::string_view, std::string, std::string>> seen;
  for (const Finding& one : first.findings) seen.insert(key(one));
  std::erase_if(second.findings, [&](const Finding& one) { return is_meant(one) && !seen.contains(key(one)); });
}

/// Living addresses are read after the register: a DEL, or an ADD, in between looks like an address that is nobody's.
/// So what is told of the living is what a second look tells too, of the same address; it is told as that one has it.
[[nodiscard]] Result<engine::AuditReport> audit_twice(const engine::Context& context, core::audit::Runtime runtime,
                                                      ClusterPods& pods, const CheckOptions& options) {
  const auto running = [&] { return pods.running(); };
  TRY(engine::AuditReport first, engine::audit(context, runtime, running));
  if (std::ranges::none_of(first.findings, is_of_living)) return first;
  engine::wait(context, kSecondLook, Deadline{});
  TRY(runtime.live, read_runtime_cache_again(options.cache));
  TRY(engine::AuditReport second, engine::audit(context, std::move(runtime), running));
  keep_seen_before(first, second, is_of_living);
  return second;
}

/// Leaves of what is gone by the second of two looks what was gone by the first.
void keep_seen_twice(const engine::AuditReport& first, engine::AuditReport& second) {
  keep_seen_before(first, second, is_of_gone);
  std::set<std::string> kept;
  for (Finding& one : second.findings) {
    if (!is_of_gone(one)) continue;
    one.looks = 2;
    kept.insert(one.subject);
  }
  for (core::audit::Allocation& one : second.allocations) one.gone = one.gone && kept.contains(one.address.to_string());
}

/// One look, or two where that is asked for and the first found somebody gone.
[[nodiscard]] Result<engine::AuditReport> look_as_asked(const engine::Context& context, core::audit::Runtime runtime,
                                                        CommandLine& line, const CheckOptions& options) {
  TRY(const auto cluster, Cluster::of(line));
  ClusterPods pods(line, options.cache.node, cluster.get());
  TRY(engine::AuditReport report, audit_twice(context, runtime, pods, options));
  pods.find_leaks(context, report);
  const bool has_gone = std::ranges::any_of(report.findings, is_of_gone);
  std::string looks = "; seen in one look";
  if (options.wait_seconds > 0 && has_gone) {
    engine::wait(context, std::chrono::seconds(options.wait_seconds), Deadline{});
    TRY(runtime.live, read_runtime_cache_again(options.cache));
    TRY(engine::AuditReport second, audit_twice(context, std::move(runtime), pods, options));
    pods.find_leaks(context, second);
    keep_seen_twice(report, second);
    report = std::move(second);
    looks = fmt::format("; seen in two looks, {} s apart", options.wait_seconds);
  }
  for (Finding& one : report.findings) one.what += one.looks > 0 ? looks : "";
  return report;
}

/// Where nodes keep to their own blocks, as in docs/runbooks/migrate.md: else a podCIDR and a block that are equal say
/// nothing.
[[nodiscard]] Result<std::vector<core::NodeRange>> telling_pod_ranges(CommandLine& line,
                                                                      const engine::Context& context) {
  const auto config = engine::read_config(context);
  const bool is_unread =
      !config && (config.error().code == ErrorCode::corrupt || config.error().code == ErrorCode::permission_denied);
  if (is_unread || (config && !config->strict_affinity)) return std::vector<core::NodeRange>();
  if (!config) return fail(config.error());
  return pod_ranges(line);
}

/// AuditFindings for space that somebody else took over a pool later: a pool's own making is refused then. By the API
/// of a `kube:` store.
[[nodiscard]] Result<AuditFindings> look_at_taken_space(CommandLine& line, const engine::Context& context) {
  AuditFindings findings;
  if (store::scheme_of(line.store_url) != store::Scheme::kube) return findings;
  const auto compare = [&](const std::vector<engine::TakenSpace>& taken,
                           core::audit::FindingName name) -> Result<void> {
    TRY(const auto pools,
        if_allowed(line, "pools over nodes or Services", engine::pools_in_taken_space(context, taken)));
    for (std::size_t i = 0; pools && i < std::min(pools->size(), kTakenNamedMax); ++i) {
      const engine::PoolInTakenSpace& one = (*pools)[i];
      const bool is_last = i + 1 == kTakenNamedMax && pools->size() > kTakenNamedMax;
      findings.push_back(found(name, one.pool, one.shared, one.whose,
                               is_last ? fmt::format("; {} more like it", pools->size() - kTakenNamedMax) : ""));
    }
    return {};
  };
  TRY(const auto services, if_allowed(line, "the ranges of Services", engine::service_cidrs(context)));
  if (services) TRY_VOID(compare(*services, "pool_overlap.services"));
  TRY(const auto api, open_kube_api(line.store_url, line.clock, operator_parts(), kPageTime));
  TRY(const auto nodes, if_allowed(line, "the addresses of nodes", store::kube::list_nodes(*api, line.clock)));
  if (!nodes) return findings;
  std::vector<engine::TakenSpace> taken;
  for (const store::kube::NodeObject& node : *nodes) {
    for (const net::Address& address : node.addresses) {
      taken.push_back({fmt::format("the address of node {}", node.name),
                       net::Prefix::containing(address, net::bit_length(address.family()))});
    }
  }
  TRY_VOID(compare(taken, "pool_overlap.node"));
  return findings;
}

/// One end of `croft store copy`.
[[nodiscard]] Result<AuditFindings> look_at_pause(CommandLine& line) {
  if (line.pausable == nullptr) return AuditFindings();
  const Deadline deadline = Deadline::after(line.clock.now(), kPauseTime);
  TRY(const auto there, if_allowed(line, "what is Croft's own", line.pausable->pause(deadline)));
  if (!there || !*there) return AuditFindings();
  const std::string said = store::paused((*there)->pause).message;
  const std::size_t remedy_at = said.rfind(": ");
  return AuditFindings{found("store_paused", store::without_user(line.store_url), said.substr(0, remedy_at),
                             said.substr(remedy_at + 2))};
}

/// Pools that are full, or nearly so.
[[nodiscard]] Result<AuditFindings> look_at_fullness(CommandLine& line, const engine::Context& context) {
  TRY(const auto pools, if_allowed(line, "how full pools are", engine::fill_of_pools(context)));
  return pools ? core::audit_fullness(*pools) : AuditFindings();
}

[[nodiscard]] Result<int> look_through(CommandLine& line, const CheckOptions& options) {
  TRY(engine::Context context, line.open_to_look());
  context.time_limit = kCheckLimit;
  TRY_VOID(engine::wait_for_first_answer(context));
  core::audit::Runtime runtime{.grace = std::chrono::seconds(options.cache.grace_seconds),
                               .node = options.cache.node,
                               .asked_with = options.cache.words()};
  TRY(runtime.live, read_runtime_cache(context, options.cache));
  // Before the register is read: what is made up for in between would look as if it waited for nothing.
  TRY(const auto not_done, releases_not_done(line, options));
  TRY(runtime.pod_ranges, telling_pod_ranges(line, context));
  TRY(engine::AuditReport report, look_as_asked(context, runtime, line, options));
  for (const auto& [kind, why] : report.not_allowed) line.note_not_read(plural_of(kind), why);
  const auto add = [&report](const Result<AuditFindings>& more) -> Result<void> {
    if (!more) return fail(more.error());
    report.findings.insert(report.findings.end(), more->begin(), more->end());
    return {};
  };
  TRY_VOID(add(look_at_pause(line)));
  TRY_VOID(add(not_done));
  TRY_VOID(add(look_at_ranges(line, context, report.findings)));
  TRY_VOID(add(core::audit::audit_pod_ranges(report.blocks_of_nodes, runtime.pod_ranges)));
  TRY_VOID(add(look_at_fullness(line, context)));
  TRY_VOID(add(look_at_taken_space(line, context)));
  if (!options.report_path.empty()) {
    const ReportOrigin origin{CROFT_VERSION, line.store_url, line.clock.now().wall,
                              runtime.live && !runtime.live->entries.empty(), !line.cluster_url.empty()};
    const auto written = os::write_output_file(options.report_path, report_of(report, origin));
    if (!written) return fail(written.error().in("--report"));
  }
  if (line.wants_data()) {
    for (const std::string& note : report.notes) warn(note);
  }
  print(line.wants_data() ? line.data_text(json_of(report.findings)) : report_text(line, report, options));
  return static_cast<int>(report.findings.empty() ? edge::ExitCode::fine : edge::ExitCode::findings);
}

/// A register that cannot be read at all is a finding too.
[[nodiscard]] Result<int> check(CommandLine& line, const CheckOptions& options) {
  const auto pages = check_store_pages(line.store_url, line.clock);
  auto done = pages ? look_through(line, options) : Result<int>(fail(pages.error()));
  if (done || done.error().code != ErrorCode::corrupt) return done;
  const Finding finding = found("register_damaged", line.store_url, done.error().message);
  print(line.wants_data() ? line.data_text(json_of(std::vector{finding})) : finding_text(finding));
  return static_cast<int>(edge::ExitCode::findings);
}

}  // namespace

void add_check_command(CLI::App& app, CommandLine& line) {
  const auto [command, options] =
      add_command(app, line, "check", "Check the whole register for contradictions and leftovers", check, true);
  add_runtime_cache_options(
      *command, options->cache,
      "Also report addresses held for containers that the runtime's CNI cache (usually /var/lib/cni) "
      "does not list, or whose network namespace is gone, and containers whose network namespace is "
      "there with an address that they do not hold; may be repeated. What Multus keeps in `multus` below "
      "it is read too");
  command->add_option("--tombstones", options->tombstones,
                      "Also report releases that DELs left on this node while the store was away (usually "
                      "/var/lib/croft/tombstones) and nobody has made up for within a minute");
  command->add_flag("--show-all-ips", options->all_addresses, "Also list every address that is held or cools");
  command->add_flag("--show-problem-ips", options->problem_addresses,
                    "Also list the addresses that appear in findings");
  command->add_option("--report", options->report_path,
                      "Also write a report in calicoctl's format to this file, for `croft ip release --from-report`");
  command
      ->add_option("--wait", options->wait_seconds,
                   "Look twice at what pods and nodes that are gone hold, this far apart (60s, 5m), and report what "
                   "both looks found")
      ->transform(CLI::AsNumberWithUnit(std::map<std::string, std::int64_t>{{"s", 1}, {"m", 60}},
                                        CLI::AsNumberWithUnit::UNIT_REQUIRED, "TIME"))
      ->check(CLI::Range(std::int64_t{1}, kWaitMax.count()))
      ->type_name("DURATION");
  command->footer(
      "Changes nothing. Each finding shows its evidence and the remedy. The exit code is 3 if there are findings. A "
      "record that cannot be read is a finding; the rest is still checked. Pods and nodes are asked of the Kubernetes "
      "API that keeps the store, or of the one that --kubeconfig names beside another store. A report lists unused "
      "addresses only where pods were asked, or with --cni-cache.");
}

}  // namespace croft::app
