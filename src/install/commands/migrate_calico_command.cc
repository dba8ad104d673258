#include <string>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/texts.h"
#include "calico/conflist_switch.h"
#include "cli/croft/command_line.h"
#include "cni/error_table.h"
#include "cni/format/conflist.h"
#include "install/commands/plugin_status.h"
#include "install/door/node_files.h"
#include "os/files.h"
#include "os/process.h"
#include "store/store_url.h"

namespace croft::app {
namespace {

struct CalicoOptions {
  std::string conflist, plugin_store, node;
  std::string programs = edge::kDefaultPrograms;
  bool apply = false;
};

[[nodiscard]] Error refused(const std::string& why) {
  return {ErrorCode::refused_for_safety, "nothing was switched: " + why, {}};
}

/// Addresses that Calico gave are in its own datastore; another one knows nothing of it.
[[nodiscard]] Result<void> check_datastores(const wire::cni::SwitchedConflist& next) {
  using Kind = wire::cni::DatastoreChoice::Kind;
  for (const wire::cni::DatastoreChoice& datastore : next.datastores) {
    const auto scheme = datastore.kind == Kind::etcd ? store::Scheme::etcd : store::Scheme::kube;
    if (store::scheme_of(next.store) == scheme) continue;
    return fail(
        refused(fmt::format("Calico has its records in {}, and --plugin-store {} is of another kind, which knows "
                            "nothing of the addresses that pods keep. Name Calico's own register, or copy it "
                            "first (croft store copy)",
                            store::without_user(wire::cni::url_of(datastore)), store::without_user(next.store))));
  }
  return {};
}

[[nodiscard]] Result<void> check_programs(const CalicoOptions& options) {
  for (const char* name : {"croft-ipam", wire::cni::kSiblingName}) {
    const std::string program = fmt::format("{}/{}", options.programs, name);
    TRY(const os::Runnable plugin, os::runnable(program));
    if (plugin == os::Runnable::yes) continue;
    return fail(
        refused(fmt::format("{} {}: put it there with croftd install --no-conflist, or name the runtime's "
                            "directory of plugins with --cni-bin-dir",
                            program, plugin == os::Runnable::no ? "is no program that can be run" : "is not there")));
  }
  return {};
}

/// Asks the plugin, in this process, whether pods would start with each network of the new text.
[[nodiscard]] Result<void> ask_status(const CommandLine& line, const std::string& text) {
  auto networks = wire::cni::read_switched(text);
  if (!networks) return fail(refused(networks.error().message));
  for (wire::cni::Network& network : *networks) {
    const auto able = ask_plugin_status(std::move(network), line.clock, line.random);
    if (able) continue;
    Error error = refused(able.error().message + "; mend that, or name another register with --plugin-store");
    error.details = able.error().details;
    return fail(std::move(error));
  }
  return {};
}

/// Calico's installer may write the file at any moment: what was read is what is kept.
[[nodiscard]] Result<void> switch_file(const std::string& path, const std::string& before, const std::string& next) {
  TRY(const std::string now, os::read_file(path, wire::cni::kConflistBytesMax));
  if (now != before) return fail(refused(fmt::format("somebody wrote {} since it was read; run it again", path)));
  const std::string backup_path = path + std::string(core::kBeforeCroft);
  TRY(const auto status, os::file_status(backup_path));
  if (!status) {
    TRY_VOID(os::replace_file_like(backup_path, before, path));
  } else {
    TRY(const std::string backup, os::read_file(backup_path, wire::cni::kConflistBytesMax));
    if (backup != before) {
      return fail(
          refused(fmt::format("{} has something else than {}, which Calico's installer wrote anew; remove the "
                              "older one when it is not needed",
                              backup_path, path)));
    }
  }
  return os::replace_file_like(path, next, path);
}

[[nodiscard]] Result<int> migrate_calico(CommandLine& line, const CalicoOptions& options) {
  TRY(const std::string path, os::resolved_path(options.conflist));
  TRY(const std::string before, os::read_file(path, wire::cni::kConflistBytesMax));
  auto next = wire::cni::switch_to_croft(before, options.plugin_store, options.node);
  if (!next) return fail(next.error().in(path));
  if (next->plugins == 0) {
    print(fmt::format("{}: no plugin has the IPAM calico-ipam: nothing to switch\n", path));
    return static_cast<int>(edge::ExitCode::fine);
  }
  std::string text = fmt::format("{}: {} to croft-ipam on {}; the old file is kept as {}{}\n", path,
                                 counted(next->plugins, "plugin"), next->store, path, core::kBeforeCroft);
  if (!next->dropped.empty()) {
    text += fmt::format("left out, as croft-ipam does not have it: ipam.{}\n", fmt::join(next->dropped, ", ipam."));
  }
  print(text);
  TRY_VOID(check_datastores(*next));
  TRY_VOID(check_programs(options));
  TRY_VOID(ask_status(line, next->text));
  if (!options.apply) {
    print("the plugin's STATUS answered; --apply switches the file\n");
    return static_cast<int>(edge::ExitCode::fine);
  }
  TRY_VOID(switch_file(path, before, next->text));
  print(fmt::format("switched; the way back is mv {0}{1} {0}\n", path, core::kBeforeCroft));
  return static_cast<int>(edge::ExitCode::fine);
}

}  // namespace

void add_migrate_commands(CLI::App& app, CommandLine& line) {
  CLI::App* const migrate = add_noun(app, "migrate", "Change a node from another IPAM to Croft's");
  const auto [command, options] = add_command(
      *migrate, line, "calico", "Switch this node's network from calico-ipam to croft-ipam", migrate_calico);
  command
      ->add_option("--conflist", options->conflist,
                   "The node's network configuration, e.g. /etc/cni/net.d/10-calico.conflist")
      ->required();
  command->add_option("--plugin-store", options->plugin_store,
                      "URL of the register as the plugin on the node is to name it (default: the API of Calico's own "
                      "kubeconfig, or its etcd)");
  command->add_option("--node", options->node,
                      "The node's name where the configuration has none, as /var/lib/calico/nodename has it");
  command
      ->add_option("--cni-bin-dir", options->programs,
                   "The runtime's directory of plugins, where croft-ipam has to be before anything is switched")
      ->envname("CROFT_CNI_BIN_DIR")
      ->capture_default_str();
  command->add_flag("--apply", options->apply, "Switch the file; without, only show what would be done");
  command->footer(
      "The records stay where they are: Croft works on Calico's own. Run `croft check` on them first. The file is "
      "switched once the plugin's STATUS answered for the new one.");
}

}  // namespace croft::app
