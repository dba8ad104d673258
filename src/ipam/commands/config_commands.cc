#include <memory>

#include "cli/croft/command_line.h"
#include "cli/croft/json_output.h"
#include "cli/croft/table.h"
#include "ipam/use/pools.h"

namespace croft::app {
namespace {

const char* word_of(bool value) { return value ? "true" : "false"; }

std::string config_table(const core::IpamConfig& config) {
  Table table({"PROPERTY", "VALUE"});
  table.add({"strictAffinity", word_of(config.strict_affinity)});
  table.add({"autoAllocateBlocks", word_of(config.auto_allocate_blocks)});
  table.add({"maxBlocksPerHost", config.max_blocks_per_host == 0 ? "0 (no limit; calico-ipam: 20)"
                                                                 : std::to_string(config.max_blocks_per_host)});
  table.add({"kubeVirtVMAddressPersistence", config.kubevirt_vm_address_persistence.empty()
                                                 ? "Enabled (not set)"
                                                 : config.kubevirt_vm_address_persistence});
  table.add({"ipCooldownSeconds", std::to_string(config.ip_cooldown_seconds)});
  return table.to_string();
}

void show_config(const CommandLine& line, const core::IpamConfig& config) {
  print(line.json() ? line.data(json_of(config)) : config_table(config));
}

[[nodiscard]] Result<int> show_config(CommandLine& line) {
  TRY(const engine::Context context, line.look());
  TRY(const core::IpamConfig config, engine::read_config(context));
  show_config(line, config);
  return 0;
}

[[nodiscard]] Result<int> set_config(CommandLine& line, const core::ConfigChange& change) {
  const bool any = change.strict_affinity || change.auto_allocate_blocks || change.max_blocks_per_host ||
                   change.kubevirt_vm_address_persistence || change.ip_cooldown_seconds;
  if (!any) return fail(ErrorCode::invalid_argument, "nothing to set: give at least one option");
  TRY(const engine::Context context, line.open());
  TRY(const core::IpamConfig config, engine::set_config(context, change));
  show_config(line, config);
  return 0;
}

}  // namespace

void add_config_commands(CLI::App& app, CommandLine& line) {
  CLI::App* config = app.add_subcommand("config", "Cluster-wide settings");
  config->require_subcommand(1);
  config->fallthrough();
  config->add_subcommand("show", "Show the settings")->callback([&line] {
    line.run = [](CommandLine& l) { return show_config(l); };
  });

  const auto change = std::make_shared<core::ConfigChange>();
  CLI::App* setting = config->add_subcommand("set", "Change settings; the others stay as they are");
  setting
      ->add_option("--strict-affinity", change->strict_affinity,
                   "true: a node takes addresses only from its own blocks")
      ->check(CLI::IsMember({"true", "false"}));
  setting
      ->add_option("--auto-allocate-blocks", change->auto_allocate_blocks,
                   "false: nodes do not claim blocks by themselves; requires strict affinity")
      ->check(CLI::IsMember({"true", "false"}));
  setting->add_option("--max-blocks-per-host", change->max_blocks_per_host,
                      "Maximum blocks per family that a node may own; 0 means no limit; requires strict affinity");
  setting->add_option("--kubevirt-vm-address-persistence", change->kubevirt_vm_address_persistence,
                      "Enabled or Disabled: whether a virtual machine keeps its address when its pod is recreated");
  setting->add_option(
      "--ip-cooldown-seconds", change->ip_cooldown_seconds,
      "How long a released address rests before reuse, 0 to 1200 seconds; a pool's longer cooldown wins");
  setting->footer("Existing assignments do not change. Contradictory values are refused.");
  setting->callback([&line, change] { line.run = [change](CommandLine& l) { return set_config(l, *change); }; });
}

}  // namespace croft::app
