#include <algorithm>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <nlohmann/json.hpp>

#include "base/printable.h"
#include "base/result.h"
#include "base/texts.h"
#include "cli/croft/command_line.h"
#include "cli/croft/json_output.h"
#include "cli/croft/listing.h"
#include "cli/croft/table.h"
#include "cni/error_table.h"
#include "cni/format/environment.h"
#include "hostlocal/commands/host_local_views.h"
#include "hostlocal/decide/audit.h"
#include "hostlocal/directory/directory_reservations.h"
#include "hostlocal/door/host_local_facts.h"
#include "hostlocal/reservations.h"
#include "hostlocal/use/host_local_import.h"
#include "ipam/commands/operator_warnings.h"
#include "os/files.h"
#include "os/process.h"

namespace croft::app {
namespace {

/// A host-local directory as the command line names it.
struct HostLocalPlace {
  std::string path;  ///< `<data_dir>/<directory_name>`, without symbolic links
  std::string data_dir;
  std::string directory_name;
  std::string network;  ///< the CNI network; the directory's name unless another was given
};

Error no_network_directory(const std::string& text) {
  return make_error(ErrorCode::invalid_argument,
                    "--dir: {} is no directory of a network; name one like /var/lib/cni/networks/cbr0", echo(text));
}

/// The directories below one that no reservation is in: those of networks, where that is their parent.
std::vector<std::string> networks_below(const std::string& path) {
  constexpr std::size_t kFilesMax = 1'000;
  std::vector<std::string> networks;
  for (const std::string& name : os::list_directory(path, kFilesMax).value_or(std::vector<std::string>())) {
    const auto status = os::entry_status(path + "/" + name);
    if (!status || !*status || (*status)->type != os::FileStatus::Type::directory) return {};
    networks.push_back(path + "/" + name);
  }
  std::ranges::sort(networks);
  return networks;
}

/// Reads `--dir` and `--network` (which may be empty). The directory need not exist, its parent must. Errors: not_found
/// and others of os::resolved_path; invalid_argument naming the option, also where the directory has nothing but
/// others.
[[nodiscard]] Result<HostLocalPlace> host_local_place(const std::string& directory, const std::string& network) {
  std::string path = directory;
  while (path.ends_with('/')) path.pop_back();
  if (path.empty()) return fail(no_network_directory(directory));
  auto resolved = os::resolved_path(path);
  if (!resolved) return fail(resolved.error().in("--dir"));
  HostLocalPlace place{*resolved, os::directory_of(*resolved), resolved->substr(resolved->rfind('/') + 1), network};
  if (place.directory_name.empty() || place.directory_name.front() == '.') {
    return fail(no_network_directory(directory));
  }
  if (const auto networks = networks_below(*resolved); !networks.empty()) {
    return fail(ErrorCode::invalid_argument,
                "--dir: {} has directories of networks and is none itself; name one of them: {}", echo(directory),
                fmt::join(networks, ", "));
  }
  if (place.network.empty()) place.network = place.directory_name;
  if (wire::cni::is_cni_name(place.network)) return place;
  return fail(ErrorCode::invalid_argument,
              "--network: {} is no name of a CNI network; give the name of the configuration", echo(place.network));
}

using engine::ImportedHolder;
using Outcome = ImportedHolder::Outcome;
using Rows = std::vector<ImportedHolder>;

/// libcni's directory, and the one of older container engines.
const std::vector<std::string>& default_caches() {
  static const std::vector<std::string> kDirectories = {"/var/lib/cni", "/var/lib/cni/cache"};
  return kDirectories;
}

/// The ranges of a network by its configuration; with `tells` files that can't be used are named.
[[nodiscard]] Result<edge::FoundSets> find_sets(const std::string& config_file, const std::string& network,
                                                const std::vector<std::string>& caches, bool tells) {
  edge::SetSources sources;
  sources.config_file = config_file;
  sources.network = network;
  sources.cache_directories = caches.empty() ? default_caches() : caches;
  auto found = edge::find_range_sets(sources);
  if (!found) return fail(ErrorCode::invalid_argument, "--config: " + found.error().message);
  if (tells) {
    for (const std::string& text : found->unusable) warn("passed over " + text);
  }
  return found;
}

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
  TRY(const edge::FoundSets found, find_sets(options.config_file, request.network, {}, true));
  if (found.sets.empty()) {
    tell(
        fmt::format("croft: no configuration of network {} was found; what its rangeStart and rangeEnd keep out is not "
                    "reserved: name it with --config",
                    request.network));
  }
  for (const auto& set : found.sets) {
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

[[nodiscard]] Result<int> import_directory(CommandLine& line, const ImportOptions& given) {
  ImportOptions options = given;
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
  print(line.wants_data() ? line.data_text(rows_json(rows)) : rows_text(rows, request.dry_run));
  if (is_refused) {
    return fail(ErrorCode::refused_for_safety,
                "nothing was changed: {}; mend what REASON says, or --force when nobody uses them",
                counted_as(count_at_risk(rows),
                           "address would stay in the directory and lies in a pool that gives it to others",
                           "addresses would stay in the directory and lie in a pool that gives them to "
                           "others"));
  }
  const bool is_fine = count_of(rows, Outcome::clashes) + count_of(rows, Outcome::left) + count_at_risk(rows) == 0;
  return static_cast<int>(is_fine ? edge::ExitCode::fine : edge::ExitCode::findings);
}

}  // namespace

void add_host_local_import_command(CLI::App& host_local, CommandLine& line) {
  const auto [command, options] =
      add_command(host_local, line, "import", "Import this node's host-local reservations into pools of the store",
                  import_directory);
  options->request.node.type = core::AffinityOwner::Type::host;
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
      "import. The exit code is 3 if something clashes or is left. To leave Croft again, drain the node.");
}

namespace {

using HostLocalFinding = core::host_local::Finding;
using Findings = std::vector<HostLocalFinding>;

struct HostLocalOptions {
  std::string directory, network, config_file;
  std::vector<std::string> caches;
  std::int64_t grace_seconds = 60;
  bool in_container = false;
  bool apply = false;
  double max_share = 0.5;
  std::string pod, name_space;  ///< list: only reservations of these
};

/// A cache that was named must be there; the default ones need not.
[[nodiscard]] Result<core::host_local::SignsOfLife> read_caches(const HostLocalOptions& options) {
  core::host_local::SignsOfLife life;
  for (const std::string& directory : options.caches.empty() ? default_caches() : options.caches) {
    const auto read = edge::read_cached_attachments(directory, life);
    if (!read && !options.caches.empty()) {
      return fail(ErrorCode::invalid_argument, "--cni-cache: {}; name the directory that has `results`",
                  read.error().message);
    }
  }
  return life;
}

[[nodiscard]] Result<core::host_local::Directory> read_directory(const HostLocalPlace& place) {
  auto directory = store::hostlocal::read_directory(place.path);
  const bool is_denied =
      directory && directory->unreadable && directory->unreadable->code == ErrorCode::permission_denied;
  if (directory && !is_denied) return directory;
  Error error = (is_denied ? *directory->unreadable : directory.error()).in("--dir");
  if (error.code == ErrorCode::permission_denied) error.message += "; run as root";
  return fail(std::move(error));
}

// ---------------------------------------------------------------- list

void warn_of_unreadable(const std::vector<core::UnreadableEntry>& entries) {
  constexpr std::size_t kShownMax = 8;
  const std::size_t shown = std::min(entries.size(), kShownMax);
  for (std::size_t i = 0; i < shown; ++i) warn("cannot read " + entries[i].what);
  if (shown < entries.size()) warn(fmt::format("nor {} more cache entries", entries.size() - shown));
}

bool is_wanted(const ReservationRow& row, const HostLocalOptions& options) {
  return (options.name_space.empty() || row.name_space() == options.name_space) &&
         (options.pod.empty() || is_pod(row.name_space(), row.pod(), options.pod));
}

/// One look; with `tells` what could not be read is named.
[[nodiscard]] Result<Listing> reservations_of(const CommandLine& line, const HostLocalOptions& options, bool tells) {
  TRY(const HostLocalPlace place, host_local_place(options.directory, options.network));
  TRY(const core::host_local::Directory directory, read_directory(place));
  TRY(const core::host_local::SignsOfLife life, read_caches(options));
  TRY(const edge::FoundSets found, find_sets(options.config_file, place.network, options.caches, tells));
  if (tells) warn_of_unreadable(life.unreadable);
  HostLocalList shown = list_of(directory, life.attachments, place.network, found.sets, line.clock.now().wall);
  shown.source = found.source;
  // The sets count all reservations: they are as full as they are.
  std::string sets = line.listing.no_headers ? "" : "\n" + sets_text(shown, line.in_colour());
  if (sets.ends_with('\n')) sets.pop_back();
  std::erase_if(shown.reservations, [&](const ReservationRow& row) { return !is_wanted(row, options); });
  // An age is another one in each look.
  return Listing{"No reservations.", reservation_table(shown, {.wide = line.wide(), .age = !line.listing.watch}),
                 line.wants_data() ? json_of(shown) : Data(), std::move(sets), Printed::coloured};
}

[[nodiscard]] Result<int> list_reserved(CommandLine& line, const HostLocalOptions& options) {
  bool is_first = true;
  return list_without_store(line, [&] { return reservations_of(line, options, std::exchange(is_first, false)); });
}

// ---------------------------------------------------------------- check and repair

/// One look at the directory and at everything that lives.
struct Look {
  core::host_local::Directory directory;
  core::host_local::SignsOfLife life;
  Findings findings;
};

[[nodiscard]] Result<Look> look(CommandLine& line, const HostLocalOptions& options, const HostLocalPlace& place,
                                core::host_local::Directory directory) {
  TRY(core::host_local::SignsOfLife life, read_caches(options));
  edge::add_namespace_addresses(options.in_container, life);
  Look seen{std::move(directory), std::move(life), {}};
  seen.findings =
      core::host_local::audit_host_local({place.network, seen.directory, seen.life, line.clock.now(),
                                          std::chrono::seconds(options.grace_seconds), options.in_container});
  return seen;
}

void warn_of_gaps(const core::host_local::SignsOfLife& life) {
  if (life.unseen.empty()) return;
  warn("not everything could be looked at, so nothing is called a leak:");
  for (const std::string& text : life.unseen) warn("  " + text);
}

Findings proven_of(const Findings& findings) {
  Findings proven;
  std::copy_if(findings.begin(), findings.end(), std::back_inserter(proven),
               [](const HostLocalFinding& f) { return f.proven; });
  return proven;
}

std::string summary_of(const Look& seen) {
  return fmt::format("{}; {} and {} looked at", counted(seen.directory.reservations.size(), "reservation"),
                     counted(seen.life.namespaces, "network namespace"),
                     counted_as(seen.life.attachments.size(), "cache entry", "cache entries"));
}

[[nodiscard]] Result<int> check_directory(CommandLine& line, const HostLocalOptions& options) {
  TRY(const HostLocalPlace place, host_local_place(options.directory, options.network));
  TRY(core::host_local::Directory directory, read_directory(place));
  TRY(const Look seen, look(line, options, place, std::move(directory)));
  if (line.wants_data()) {
    print(line.data_text(json_of(seen.findings)));
  } else {
    const std::size_t proven = proven_of(seen.findings).size();
    print(text_of(seen.findings));
    print(fmt::format("{}: {}\n", summary_of(seen),
                      seen.findings.empty() ? "nothing found"
                                            : fmt::format("{}, {} of them can be removed",
                                                          counted(seen.findings.size(), "finding"), proven)));
  }
  return static_cast<int>(seen.findings.empty() ? edge::ExitCode::fine : edge::ExitCode::findings);
}

[[nodiscard]] Result<void> brake(const Findings& proven, const Look& seen, double max_share) {
  auto checked = core::host_local::check_share(proven, seen.directory.reservations.size(), max_share);
  if (checked) return {};
  Error error = checked.error();
  error.message += "; `--max-share 1` goes on";
  error.details = "look at the list that repair prints without --apply first";
  return fail(std::move(error));
}

void show_plan(CommandLine& line, const HostLocalOptions& options, const Look& seen, const Findings& proven) {
  if (line.wants_data()) return print(line.data_text(json_of(proven)));
  print(text_of(proven));
  print(fmt::format(
      "{}: {}\n", summary_of(seen),
      proven.empty() ? "nothing to remove" : fmt::format("{} would be removed; --apply removes them", proven.size())));
  const auto checked = brake(proven, seen, options.max_share);
  if (!checked) warn("--apply would refuse: " + checked.error().message);
}

/// Removes what both looks proved, and says what is gone.
[[nodiscard]] Result<Findings> remove_reservations(store::Reservations& reservations, const Findings& proven) {
  std::vector<store::Reservation> leaks;
  for (const HostLocalFinding& finding : proven) leaks.push_back(*finding.reservation);
  const auto released = reservations.release(leaks);
  TRY(const auto left, reservations.list());
  std::set<std::string> left_files;
  for (const store::Reservation& reservation : left) left_files.insert(reservation.file);
  Findings removed;
  for (HostLocalFinding finding : proven) {
    if (left_files.contains(finding.subject)) continue;
    finding.remedy.clear();
    removed.push_back(std::move(finding));
  }
  if (!released) warn(fmt::format("{} of {} were removed", removed.size(), proven.size()));
  if (!released) return fail(released.error());
  return removed;
}

void show_removed(CommandLine& line, const Findings& removed, std::size_t first_look) {
  if (line.wants_data()) return print(line.data_text(json_of(removed)));
  std::string text = text_of(removed);
  const std::size_t kept = first_look - removed.size();
  text += fmt::format("{} removed{}\n", removed.size(),
                      kept == 0 ? "" : fmt::format("; {} kept: the second look did not prove them", kept));
  print(text);
}

[[nodiscard]] Result<int> apply(CommandLine& line, const HostLocalOptions& options, const HostLocalPlace& place,
                                const Findings& first) {
  TRY(const auto reservations,
      store::hostlocal::open_reservations(place.data_dir, place.directory_name, store::OpenMode::existing, line.clock));
  core::host_local::Directory locked;
  TRY(locked.reservations, reservations->list());
  TRY(const Look second, look(line, options, place, std::move(locked)));
  warn_of_gaps(second.life);
  const Findings both = core::host_local::proven_by_both(first, second.findings);
  TRY_VOID(brake(both, second, options.max_share));
  TRY(const Findings removed, remove_reservations(*reservations, both));
  show_removed(line, removed, first.size());
  return static_cast<int>(edge::ExitCode::fine);
}

[[nodiscard]] Result<int> repair_directory(CommandLine& line, const HostLocalOptions& options) {
  TRY(const HostLocalPlace place, host_local_place(options.directory, options.network));
  TRY(core::host_local::Directory directory, read_directory(place));
  TRY(const Look first, look(line, options, place, std::move(directory)));
  const Findings proven = proven_of(first.findings);
  if (!options.apply || proven.empty()) {
    warn_of_gaps(first.life);
    show_plan(line, options, first, proven);
    const bool nothing_left = proven.empty() && first.life.unseen.empty();
    return static_cast<int>(nothing_left ? edge::ExitCode::fine : edge::ExitCode::findings);
  }
  TRY_VOID(brake(proven, first, options.max_share));
  return apply(line, options, place, proven);
}

// ---------------------------------------------------------------- the command line

using Options = std::shared_ptr<HostLocalOptions>;

void add_place(CLI::App& command, const Options& options) {
  command.add_option("--dir", options->directory, "Directory of the network, usually /var/lib/cni/networks/<network>")
      ->required();
  command.add_option("--network", options->network, "Name of the network (default: the name of the directory)");
  command
      .add_option("--cni-cache", options->caches,
                  "Cache directory of the runtime; may be repeated (default: /var/lib/cni and /var/lib/cni/cache)")
      ->allow_extra_args(false);
}

void add_looks(CLI::App& command, const Options& options) {
  command.add_option("--grace", options->grace_seconds, "Skip files younger than this (60s, 5m, 1h)")
      ->transform(CLI::AsNumberWithUnit(std::map<std::string, std::int64_t>{{"s", 1}, {"m", 60}, {"h", 3600}}))
      ->check(CLI::Range(std::int64_t{0}, std::int64_t{7} * 86400))
      ->type_name("DURATION")
      ->default_str("60s");
  command.add_flag(
      "--in-container", options->in_container,
      "This container is the node (kind, k3d): treat the processes visible here as all processes of the node");
}

constexpr const char* kRule =
    "A reservation is a proven leak when its address is configured in no network namespace of this machine, the "
    "runtime's cache has no entry about it or the entry's namespace is gone, and the file is older than --grace.\n";

}  // namespace

void add_host_local_commands(CLI::App& app, CommandLine& line) {
  CLI::App* const noun = add_noun(
      app, "host-local", "Directories of the CNI plugin host-local, written by Croft or by the reference plugin");

  const auto add = [&](const char* name, const char* what, Result<int> (*run)(CommandLine&, const HostLocalOptions&)) {
    const auto added = add_command(*noun, line, name, what, run);
    add_place(*added.first, added.second);
    return added;
  };
  const auto [listing, list_options] = add("list", "Who holds what, and how full the ranges are", list_reserved);
  listing->add_option("--config", list_options->config_file,
                      "Configuration of the network (.conf, .conflist), for its ranges (default: from the runtime's "
                      "cache, then flannel's, then /etc/cni/net.d)");
  listing->add_option("--pod", list_options->pod, "Only reservations of this pod: POD or NAMESPACE/POD");
  listing->add_option("-n,--namespace", list_options->name_space, "Only reservations of pods of this namespace");
  add_list_options(*listing, line);
  listing->footer(
      "Pod names come from the runtime's cache. --no-headers omits the ranges. Changes nothing and takes no lock.");

  const auto [checking, check_options] =
      add("check", "Compare a directory with what lives on this machine", check_directory);
  add_looks(*checking, check_options);
  checking->footer(std::string(kRule) + "Changes nothing. The exit code is 3 if there are findings.");

  const auto [repairing, repair_options] =
      add("repair", "Remove proven leaks; without --apply only show them", repair_directory);
  add_looks(*repairing, repair_options);
  repairing->add_flag("--apply", repair_options->apply,
                      "Remove them, under the directory's lock and after checking everything again");
  repairing
      ->add_option("--max-share", repair_options->max_share,
                   "Refuse if more than this share of all reservations would be removed; reservations from before this "
                   "boot do not count")
      ->check(CLI::Range(0.0, 1.0))
      ->capture_default_str();
  repairing->footer(
      std::string(kRule) +
      "Without --apply the exit code is 3 if there is something to remove. It is 5 if the share is too large.");

  add_host_local_import_command(*noun, line);
}

}  // namespace croft::app
