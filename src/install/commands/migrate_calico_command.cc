#include <algorithm>
#include <array>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/counted.h"
#include "base/hex.h"
#include "base/net/echo.h"
#include "base/printable.h"
#include "calico/conflist_switch.h"
#include "calico/nodename_file.h"
#include "cli/croft/command_line.h"
#include "cli/croft/json_output.h"
#include "cli/croft/not_read.h"
#include "cli/croft/operator_parts.h"
#include "cli/croft/table.h"
#include "cli/stores/kube_url.h"
#include "cni/error_table.h"
#include "cni/format/network_list.h"
#include "collector/daemon/running_pods.h"
#include "ipam/decide/heed_wishes.h"
#include "ipam/use/audit.h"
#include "ipam/use/explain.h"
#include "os/digest.h"
#include "os/executable.h"
#include "os/files.h"
#include "os/process.h"
#include "register/affinity.h"
#include "register/names.h"
#include "register/records.h"
#include "store/naming.h"
#include "store/store_url.h"

namespace croft::app {
namespace {

struct CalicoOptions {
  std::string conflist, plugin_store, node;
  std::string programs = "/opt/cni/bin";
  bool apply = false, back = false, force = false;
};

/// Runtimes read names that end in .conf, .conflist and .json only.
constexpr const char* kConflistBackupSuffix = ".before-croft";
/// The SHA-256 of what was put in its place, in hexadecimal digits: what somebody wrote since has another.
constexpr const char* kSwitchedDigestSuffix = ".switched-to-croft";
constexpr std::size_t kDigestFileBytesMax = 128;
constexpr std::size_t kSha256Bytes = 32;
constexpr int kAnyBlockLength = 26;
/// Of containerd's and CRI-O's.
constexpr std::size_t kContainerIdBytes = 64;
constexpr std::chrono::minutes kAuditLimit{10};
/// As of `croft check`.
constexpr std::chrono::seconds kSecondLook{3};

[[nodiscard]] Result<std::string> read_conflist(const std::string& path) {
  auto text = os::read_file(path, wire::cni::kConflistBytesMax);
  if (!text) return fail(text.error().in(path));
  return text;
}

/// The node's name, where the configuration does not have it, as Calico's plugins find it.
[[nodiscard]] Result<std::string> node_name(const CalicoOptions& options, const wire::cni::NodeNameSources& sources) {
  constexpr const char* kRemedy = "name the node, as Calico's blocks have it, with --node";
  std::string name = options.node;
  if (name.empty()) {
    const auto content = os::read_file(sources.file, wire::cni::kNodenameFileBytesMax);
    const bool is_there = content || content.error().code != ErrorCode::not_found;
    // Calico's plugin makes no pod then, so nothing says which name it would take.
    if (!is_there && !sources.file_is_optional) {
      return fail(ErrorCode::refused_for_safety,
                  fmt::format("nodename: the configuration has none, and {}, where Calico's plugins find it, is not "
                              "there; {}",
                              sources.file, kRemedy));
    }
    if (!content && is_there) return fail(Error(content.error()).in("nodename"));
    if (content) {
      auto in_file = wire::cni::decode_nodename_file(*content);
      if (!in_file) {
        return fail(ErrorCode::invalid_argument,
                    fmt::format("nodename: {}: {}; {}", sources.file, in_file.error().message, kRemedy));
      }
      name = *std::move(in_file);
    }
  }
  if (name.empty()) name = sources.hostname;
  if (name.empty()) {
    TRY(name, os::host_name());
  }
  const auto checked = core::check_node_name(name);
  if (checked) return name;
  return fail(ErrorCode::invalid_argument, fmt::format("nodename: {}; {}", checked.error().message, kRemedy));
}

/// What is in the file now, what it would become, and what an earlier call put aside.
struct ConflistFiles {
  std::string path, backup_path;
  std::string now;
  wire::cni::SwitchedConflist next;
  std::optional<std::string> backup;
};

[[nodiscard]] Result<ConflistFiles> look_at_files(const CalicoOptions& options) {
  ConflistFiles files;
  TRY(files.path, os::resolved_path(options.conflist));
  files.backup_path = files.path + kConflistBackupSuffix;
  TRY(files.now, read_conflist(files.path));
  auto next = wire::cni::switch_to_croft(
      files.now, options.plugin_store,
      [&options](const wire::cni::NodeNameSources& sources) { return node_name(options, sources); });
  if (!next) return fail(next.error().in(files.path));
  files.next = *std::move(next);
  TRY(const auto status, os::file_status(files.backup_path));
  if (status) {
    TRY(files.backup, read_conflist(files.backup_path));
  }
  return files;
}

[[nodiscard]] std::string digest_text(std::string_view content) {
  const std::string digest = os::sha256(content);
  std::array<std::uint8_t, kSha256Bytes> bytes{};
  std::ranges::copy(digest.substr(0, kSha256Bytes), bytes.begin());
  return hex_of(bytes) + "\n";
}

/// Whether the file is what a switch has written there, or what it was before.
[[nodiscard]] Result<bool> is_as_switched(const std::string& path, const std::string& now, const std::string& backup) {
  if (now == backup) return true;
  const std::string digest_path = path + kSwitchedDigestSuffix;
  const auto digest = os::read_file(digest_path, kDigestFileBytesMax);
  if (!digest && digest.error().code == ErrorCode::not_found) return false;
  if (!digest) return fail(digest.error().in(digest_path));
  return *digest == digest_text(now);
}

[[nodiscard]] Result<int> go_back(const CalicoOptions& options) {
  TRY(const std::string path, os::resolved_path(options.conflist));
  const std::string backup_path = path + kConflistBackupSuffix;
  TRY(const auto status, os::file_status(backup_path));
  if (!status) {
    return fail(ErrorCode::not_found,
                fmt::format("{} is not there: nothing was switched, or it was taken back", backup_path));
  }
  TRY(const std::string backup, read_conflist(backup_path));
  TRY(const std::string now, read_conflist(path));
  if (!options.force) {
    TRY(const bool is_ours, is_as_switched(path, now, backup));
    if (!is_ours) {
      return fail(
          ErrorCode::refused_for_safety,
          fmt::format("{} is not as it was when it was switched: somebody wrote it since; --force puts {} in its "
                      "place, and what they wrote is lost",
                      path, backup_path));
    }
  }
  if (!options.apply) {
    print(fmt::format("{} would become what {} has; --apply does it\n", path, backup_path));
    return static_cast<int>(edge::ExitCode::fine);
  }
  if (now != backup) TRY_VOID(os::replace_file_like(path, backup, path));
  TRY_VOID(os::remove_file_durably(path + kSwitchedDigestSuffix));
  TRY_VOID(os::remove_file_durably(backup_path));
  print(fmt::format("{} is as it was\n", path));
  return static_cast<int>(edge::ExitCode::fine);
}

/// Calico's installer may write the file while the register is looked through. Error: refused_for_safety.
[[nodiscard]] Result<void> check_is_as_read(const ConflistFiles& files) {
  TRY(const std::string now, read_conflist(files.path));
  TRY(const auto status, os::file_status(files.backup_path));
  std::optional<std::string> backup;
  if (status) {
    TRY(backup, read_conflist(files.backup_path));
  }
  if (now == files.now && backup == files.backup) return {};
  return fail(ErrorCode::refused_for_safety,
              fmt::format("nothing was switched: somebody wrote {} since it was read; run the same command again",
                          now == files.now ? files.backup_path : files.path));
}

/// As above, when the old text is kept already: what nobody needs is not left behind.
[[nodiscard]] Result<void> check_is_still_as_read(const ConflistFiles& files) {
  ConflistFiles kept = files;
  kept.backup = files.now;
  auto as_read = check_is_as_read(kept);
  if (as_read || files.backup) return as_read;
  const auto backup = read_conflist(files.backup_path);
  if (backup && *backup == files.now) TRY_VOID(os::remove_file_durably(files.backup_path));
  return as_read;
}

[[nodiscard]] Result<void> switch_file(const ConflistFiles& files) {
  TRY_VOID(check_is_as_read(files));
  if (!files.backup) {
    TRY_VOID(os::replace_file_like(files.backup_path, files.now, files.path));
  } else if (*files.backup != files.now) {
    return fail(
        ErrorCode::refused_for_safety,
        fmt::format("{} is there and has something else than {}: Calico's installer wrote the file anew; remove "
                    "the older one when it is not needed",
                    files.backup_path, files.path));
  }
  // Before the file itself: a switch that is killed in between is one that never was.
  TRY_VOID(os::replace_file_durably(files.path + kSwitchedDigestSuffix, digest_text(files.next.text)));
  TRY_VOID(check_is_still_as_read(files));
  return os::replace_file_like(files.path, files.next.text, files.path);
}

/// What of the new configuration would fail each pod of this node, with the remedy; nothing: it can be called.
/// Error: that it cannot be found out.
[[nodiscard]] Result<std::optional<std::string>> missing_on_node(const CalicoOptions& options,
                                                                 const std::string& plugin_store) {
  for (const char* name : {"croft-ipam", wire::cni::kSiblingName}) {
    const std::string program = fmt::format("{}/{}", options.programs, name);
    TRY(const os::Runnable plugin, os::runnable(program));
    if (plugin == os::Runnable::yes) continue;
    return std::optional(
        fmt::format("{} {}: put it there with croftd install --no-conflist, or name the runtime's directory of plugins "
                    "with --cni-bin-dir",
                    program, plugin == os::Runnable::no ? "is no program that can be run" : "is not there"));
  }
  if (store::scheme_of(plugin_store) != store::Scheme::kube) return std::optional<std::string>();
  TRY(const KubePlace place, parse_kube_url(plugin_store));
  if (place.kubeconfig.empty()) return std::optional<std::string>();
  TRY(const auto kubeconfig, os::file_status(place.kubeconfig));
  if (kubeconfig && kubeconfig->type == os::FileStatus::Type::regular) return std::optional<std::string>();
  return std::optional(fmt::format(
      "{}, with which the plugin would ask the register, {}: write it with croftd install --no-conflist, and "
      "name it with --plugin-store kube:PATH",
      place.kubeconfig, kubeconfig ? "is no file" : "is not there"));
}

/// Why the register would refuse each pod of this node, with the remedy; nothing: none of what can be told.
[[nodiscard]] Result<std::optional<std::string>> refused_by_register(const CommandLine& line,
                                                                     const engine::Context& context,
                                                                     const wire::cni::NetworkConfig& config) {
  core::AssignRequest request;
  request.owner = {config.name, std::string(kContainerIdBytes, 'c'), "eth0"};
  request.count = {config.ipam.assign_v4 ? 1U : 0U, config.ipam.assign_v6 ? 1U : 0U};
  request.pools = config.ipam.asked_pools;
  const auto is_asked = core::check_something_is_asked(request);
  if (!is_asked) return std::optional(is_asked.error().message);
  request.node.name = config.nodename.value_or(std::string());
  if (request.node.name.empty()) {
    TRY(request.node.name, os::host_name());
  }
  const auto is_name = core::check_node_name(request.node.name);
  if (!is_name) return std::optional(is_name.error().message);
  // By itself: what the line opened stands behind what tells of damaged records.
  TRY(const auto store, open_by_url(line.store_url, store::OpenMode::existing, line.clock));
  if (auto* const naming = dynamic_cast<store::Naming*>(store.get())) {
    const std::array<std::pair<core::Key, std::string>, 2> keys = {
        std::pair(core::handle_key(core::handle_of(request.owner)), "the network's " + net::echo(config.name)),
        std::pair(core::affinity_key(request.node, net::Prefix::containing(net::Address::v4(0), kAnyBlockLength)),
                  "the node's " + net::echo(request.node.name))};
    for (const auto& [key, name] : keys) {
      const auto place = naming->place_of(key, Deadline::after(context.clock.now(), kPageTime));
      if (!place && place.error().code != ErrorCode::invalid_argument) return fail(place.error());
      if (!place)
        return std::optional(fmt::format("the register can have no record with {}: {}", name, place.error().message));
    }
  }
  TRY(const core::Explanation explained, engine::explain(context, request));
  const auto* const refusal = std::get_if<core::Refusal>(&explained.answer);
  if (refusal == nullptr || refusal->cause != core::RefusalCause::pool_not_usable) return std::optional<std::string>();
  const Error error = core::to_error(*refusal);
  return std::optional(fmt::format("{}{}{}: make the pool, or mend ipam.ipv4_pools and ipv6_pools", error.message,
                                   error.details.empty() ? "" : ": ", error.details));
}

/// Whether pods would start with the new configuration: as the plugin reads it, and by the register.
[[nodiscard]] Result<std::optional<std::string>> refused_as_switched(const CommandLine& line,
                                                                     const engine::Context& context,
                                                                     const ConflistFiles& files) {
  const auto configs = wire::cni::read_switched(files.next.text);
  if (!configs) return std::optional(files.path + ": " + configs.error().message);
  for (const wire::cni::NetworkConfig& config : *configs) {
    TRY(const auto refused, refused_by_register(line, context, config));
    if (refused) return std::optional(fmt::format("{}: croft-ipam would refuse each pod: {}", files.path, *refused));
  }
  return std::optional<std::string>();
}

/// Of a kind; an absent one is no store that Calico has.
[[nodiscard]] std::string_view name_of(std::optional<store::Scheme> scheme) {
  if (scheme == store::Scheme::etcd) return "an etcd";
  return scheme == store::Scheme::kube ? "the Kubernetes API" : "a file";
}

/// A kubeconfig is of one user, and an API has several addresses: only where neither these nor who signed is the same a
/// line says so. None of what can't be read here.
[[nodiscard]] std::string other_api(const std::string& calicos, const std::string& url, const std::string& path,
                                    std::string_view option) {
  const auto place = parse_kube_url(url);
  if (!place || calicos.empty()) return {};
  KubePlace own;
  own.kubeconfig = calicos;
  const auto theirs = kube_access(own);
  const auto ours = kube_access(*place);
  if (!theirs || !ours) return {};
  const auto names = [](const wire::kube::KubeAccess& access) {
    std::vector<std::string> all;
    for (const auto& server : access.servers) all.push_back(server.text());
    return all;
  };
  const auto of_theirs = names(*theirs), of_ours = names(*ours);
  const bool is_one = std::ranges::any_of(
      of_theirs, [&](const std::string& server) { return std::ranges::count(of_ours, server) > 0; });
  const bool has_one_ca = theirs->ca.data == ours->ca.data && theirs->ca.file == ours->ca.file;
  if (is_one || (has_one_ca && theirs->ca.is_set())) return {};
  return fmt::format("by {} Calico's API is {}, of {}, and {} has {}: make sure that both are of one cluster\n", path,
                     fmt::join(of_theirs, ","), calicos, option, fmt::join(of_ours, ","));
}

/// What Calico gave is in its own datastore; another one knows nothing of it. The lines are of what nobody can tell.
/// Error: refused_for_safety.
[[nodiscard]] Result<std::string> check_datastores(const wire::cni::SwitchedConflist& next, const std::string& path,
                                                   const std::string& own_store) {
  using Kind = wire::cni::DatastoreChoice::Kind;
  std::string lines;
  for (const wire::cni::DatastoreChoice& datastore : next.datastores) {
    const auto scheme = datastore.kind == Kind::etcd ? store::Scheme::etcd : store::Scheme::kube;
    const std::string calicos = wire::cni::url_of(datastore);
    for (const auto& [option, url] : {std::pair("--plugin-store", &next.store), std::pair("--store", &own_store)}) {
      const auto other = store::scheme_of(*url);
      const std::string shown = store::without_user(*url);
      if (other != scheme) {
        return fail(ErrorCode::refused_for_safety,
                    fmt::format("nothing was switched: by {} Calico has its records in {} ({}), and {} {} is {}, which "
                                "knows nothing of the addresses that pods keep: they would be given again. Name "
                                "Calico's own register with it, or move that first (docs/runbooks/migrate.md)",
                                path, name_of(scheme), store::without_user(calicos), option, shown, name_of(other)));
      }
      if (scheme == store::Scheme::kube) lines += other_api(datastore.kubeconfig, *url, path, option);
      if (scheme == store::Scheme::etcd && !store::name_one_store(calicos, *url)) {
        lines += fmt::format("by {} Calico's etcd is {}, and {} is {}: make sure that both are of one cluster\n", path,
                             datastore.endpoints.empty() ? "not said by its members" : store::without_user(calicos),
                             option, shown);
      }
    }
  }
  return lines;
}

/// Those of the cluster whose API keeps the register; none where they can't be listed, which is told.
[[nodiscard]] Result<std::vector<core::audit::RunningPod>> running_pods(CommandLine& line) {
  if (store::scheme_of(line.store_url) != store::Scheme::kube) return std::vector<core::audit::RunningPod>();
  TRY(const auto api, open_kube_api(line.store_url, line.clock, operator_parts(), kPageTime));
  auto pods = list_running_pods(*api, line.clock);
  if (pods || pods.error().code != ErrorCode::permission_denied) return pods;
  line.note_not_read("the addresses of running pods", pods.error());
  return std::vector<core::audit::RunningPod>();
}

/// The register, and what running pods have that it does not. Whoever comes or goes between both looks is in one of two
/// only.
[[nodiscard]] Result<engine::AuditReport> audit_with_pods(CommandLine& line, const engine::Context& context) {
  const auto look = [&]() -> Result<engine::AuditReport> {
    TRY(auto pods, running_pods(line));
    return engine::audit(context, std::nullopt, engine::kCollectAgeMin, "",
                         [&] { return Result<std::vector<core::audit::RunningPod>>(std::move(pods)); });
  };
  const auto is_of_pod = [](const core::audit::Finding& one) {
    return one.kind == core::audit::Finding::Kind::pod_not_held;
  };
  TRY(engine::AuditReport first, look());
  if (std::ranges::none_of(first.findings, is_of_pod)) return first;
  engine::pause(context, kSecondLook, Deadline{});
  TRY(engine::AuditReport second, look());
  std::erase_if(second.findings, [&](const core::audit::Finding& one) {
    return is_of_pod(one) && std::ranges::none_of(first.findings, [&](const core::audit::Finding& before) {
             return before.kind == one.kind && before.subject == one.subject;
           });
  });
  return second;
}

std::string calico_nodes_text(const engine::AuditReport& report) {
  Table table({"NODE", "HELD", "BLOCKS"});
  for (const auto& node : report.nodes) {
    table.add({node.node, std::to_string(node.held), std::to_string(node.blocks)});
  }
  return report.nodes.empty() ? "" : table.to_string();
}

std::string calico_findings_text(const std::vector<core::audit::Finding>& findings) {
  std::string text;
  for (const core::audit::Finding& finding : findings) {
    text += fmt::format("{}: {}\n  {}\n  remedy: {}\n", core::audit::name_of(finding.kind),
                        printable(finding.subject, Printed::line), printable(finding.what, Printed::line),
                        printable(finding.remedy, Printed::line));
  }
  return text;
}

[[nodiscard]] Result<int> migrate_calico(CommandLine& line, const CalicoOptions& options) {
  if (options.back) return go_back(options);
  std::optional<ConflistFiles> files;
  std::string datastores;
  if (!options.conflist.empty()) {
    TRY(files, look_at_files(options));
  }
  TRY(engine::Context context, options.apply ? line.open() : line.look());
  if (!context.store.capabilities().foreign_writers) {
    return fail(ErrorCode::invalid_argument, "--store: Calico's records are in an etcd or in a Kubernetes API");
  }
  if (files) {
    TRY(datastores, check_datastores(files->next, files->path, line.store_url));
  }
  context.time_limit = kAuditLimit;
  TRY_VOID(engine::wait_for_first_answer(context));
  TRY(const engine::AuditReport report, audit_with_pods(line, context));
  // What is switched to has to have been judged as a whole.
  if (options.apply && !report.not_allowed.empty()) return fail(report.not_allowed.begin()->second);
  note_not_read(line, report);
  const bool is_sound = report.findings.empty();
  std::string text = calico_findings_text(report.findings) + calico_nodes_text(report);
  text += fmt::format("{}, {}, {}, {} held: {}{}\n", counted(report.pools, "pool"), counted(report.blocks, "block"),
                      handles_text(report), counted(report.held, "address", "es"),
                      is_sound ? "nothing found" : counted(report.findings.size(), "finding"), of_what_was_read(line));
  if (!files) {
    text += "On each node: croftd install --no-conflist, then croft migrate calico --conflist FILE --apply there.\n";
    print(line.json() ? line.data(json_of(report.findings)) : text);
    return static_cast<int>(is_sound ? edge::ExitCode::fine : edge::ExitCode::findings);
  }
  const bool may_switch = is_sound || options.force;
  if (files->next.plugins == 0) {
    text += fmt::format("{}: no plugin has the IPAM calico-ipam: nothing to switch\n", files->path);
  } else {
    text += fmt::format("{}: {} to croft-ipam on {}; the old file is kept as {}\n", files->path,
                        counted(files->next.plugins, "plugin"), files->next.store, files->backup_path);
    text += datastores;
    if (!files->next.node.empty()) text += fmt::format("the node's name, as Calico has it: {}\n", files->next.node);
    if (!files->next.dropped.empty()) {
      text +=
          fmt::format("left out, as croft-ipam does not have it: ipam.{}\n", fmt::join(files->next.dropped, ", ipam."));
    }
  }
  std::optional<std::string> missing;
  if (files->next.plugins > 0) {
    TRY(missing, missing_on_node(options, files->next.store));
    if (!missing) {
      TRY(missing, refused_as_switched(line, context, *files));
    }
  }
  if (missing && !options.apply) text += fmt::format("in the way: {}\n", *missing);
  print(line.json() ? line.data(json_of(report.findings)) : text);
  if (files->next.plugins == 0) return static_cast<int>(is_sound ? edge::ExitCode::fine : edge::ExitCode::findings);
  if (!options.apply) {
    if (!line.json() && !missing) print("--apply switches the file\n");
    return static_cast<int>(is_sound && !missing ? edge::ExitCode::fine : edge::ExitCode::findings);
  }
  if (!may_switch) {
    return fail(ErrorCode::refused_for_safety, "nothing was switched: mend what was found first, or --force");
  }
  if (missing) return fail(ErrorCode::refused_for_safety, "nothing was switched: " + *missing);
  TRY_VOID(switch_file(*files));
  if (!line.json())
    print(fmt::format("switched; croft migrate calico --conflist {} --back --apply takes it back\n", files->path));
  return static_cast<int>(edge::ExitCode::fine);
}

}  // namespace

void add_migrate_calico_command(CLI::App& migrate, CommandLine& line) {
  const auto options = std::make_shared<CalicoOptions>();
  CLI::App* command = migrate.add_subcommand(
      "calico", "Check what Calico's IPAM wrote, and switch this node's network from calico-ipam to croft-ipam");
  command->add_option("--conflist", options->conflist,
                      "The node's network configuration, e.g. /etc/cni/net.d/10-calico.conflist");
  command->add_option("--plugin-store", options->plugin_store,
                      "URL of the register as the plugin on the node is to name it (default: the API of Calico's own "
                      "kubeconfig, or its etcd)");
  command->add_option("--node", options->node,
                      "The node's name, where the configuration has none (default: as Calico's plugins find it, from "
                      "/var/lib/calico/nodename)");
  command
      ->add_option("--cni-bin-dir", options->programs,
                   "The runtime's directory of plugins, where croft-ipam has to be before anything is switched")
      ->envname("CROFT_CNI_BIN_DIR")
      ->capture_default_str();
  command->add_flag("--apply", options->apply, "Switch the file; without, only show what would be done");
  command->add_flag("--back", options->back, "Put the old file back in its place");
  command->add_flag("--force", options->force, "Switch although something was found, or take back what others wrote");
  command->footer(
      "The records stay where they are: Croft works on Calico's own. Without --conflist only the register is checked. "
      "The exit code is 3 if something was found, or stands in the way.");
  command->callback([&line, options] {
    line.run = [options](CommandLine& l) -> Result<int> {
      if (options->back && options->conflist.empty()) {
        return fail(ErrorCode::invalid_argument, "--back: give the file with --conflist");
      }
      return migrate_calico(l, *options);
    };
  });
}

}  // namespace croft::app
