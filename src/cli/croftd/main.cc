// The daemon. Its subcommands:
//
//   controller   one or several in a cluster: collects what is left over        controller.cc
//   agent        one on each node: serves the plugins of the node                agent.cc
//   install      on each node, once: the plugin and its configuration             install.cc
//   vpc-agent    one on each node of a cloud: a stock of its addresses            vpc_agent.cc
//   completion, man   what a shell and man(1) read of it                         cli/program.cc

#include <functional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "agent/daemon/daemon.h"
#include "cli/build_commit.h"
#include "cli/program.h"
#include "os/clock.h"
#include "os/process.h"

namespace croft::app {
namespace {

constexpr void (*kSubcommands[])(CLI::App&, Daemon&) = {
    add_controller_command,
    add_agent_command,
    add_install_command,
    add_vpc_agent_command,
};

std::vector<std::string> examples_of(std::string_view path) {
  constexpr std::pair<std::string_view, std::string_view> kExamples[] = {
      {"", "croftd agent"},
      {"", "croftd controller --facts /run/croft/facts.json"},
      {"agent", "croftd agent --store sqlite:/var/lib/croft/croft.db --log-calls"},
      {"controller", "croftd controller --facts /run/croft/facts.json --grace 10m"},
      {"controller", "croftd controller --once --dry-run --output json"},
      {"controller", "croftd controller --desk 127.0.0.1:9680"},
      {"controller", "croftd controller --store kube: --leader-elect-lease-duration-ms 30000"},
      {"install", "croftd install --main-plugin ptp --store kube:"},
      {"install", "croft --store sqlite:/var/lib/croft/croft.db pool create pods --cidr 10.64.0.0/24"},
      {"install", "croftd install --main-plugin bridge --store sqlite:/var/lib/croft/croft.db"},
      {"install", "croftd install --uninstall"},
      {"vpc-agent", "croftd vpc-agent --low-water-mark 110 --high-water-mark 110"},
      {"vpc-agent", "cni-vpc-ipamd -availablePodIPLowWatermark=3 -availablePodIPHighWatermark=50"},
      {"completion", "source <(croftd completion bash)"},
      {"man", "croftd man /usr/local/share/man/man8"},
  };
  std::vector<std::string> lines;
  for (const auto& [command, line] : kExamples) {
    if (command == path) lines.emplace_back(line);
  }
  return lines;
}

/// Called as UK8S' agent, with flags as Go's package takes them: `-name=value`, `-name value` of a switch without
/// value.
std::vector<std::string> vpc_agent_arguments(int argc, char** argv) {
  std::vector<std::string> arguments = {argv[0], "vpc-agent"};
  for (int i = 1; i < argc; ++i) {
    std::string argument = argv[i];
    const bool is_long = argument.size() > 2 && argument[0] == '-' && argument[1] != '-';
    arguments.push_back(is_long ? "-" + argument : std::move(argument));
  }
  if (argc == 2 && arguments[2] == "version") arguments = {argv[0], "--version"};
  return arguments;
}

int run(int argc, char** argv) {
  const os::SystemClock clock;
  os::SystemRandom random;
  os::StopSignal stop;
  Daemon daemon{clock, random, stop, {}};
  CLI::App app("Croft's daemon: the work that no single call of the plugin can do.", "croftd");
  use_help_pages(app, examples_of);
  app.set_version_flag("--version",
                       std::string("croftd ") + CROFT_VERSION + commit_text() + "\nbuilt with " + CROFT_LIBRARIES);
  app.require_subcommand(1);
  for (const auto add : kSubcommands) add(app, daemon);
  add_page_commands(app, examples_of, 8, [&daemon](std::function<Result<int>()> run) { daemon.run = std::move(run); });
  const std::string_view called_as = argc > 0 ? argv[0] : "";
  std::vector<std::string> agents;
  std::vector<char*> agents_argv;
  if (called_as.substr(called_as.rfind('/') + 1) == "cni-vpc-ipamd") {
    agents = vpc_agent_arguments(argc, argv);
    for (std::string& argument : agents) agents_argv.push_back(argument.data());
    argc = static_cast<int>(agents_argv.size());
    agents_argv.push_back(nullptr);
    argv = agents_argv.data();
  }
  if (const auto answered = read_command_line(app, argc, argv, examples_of)) return *answered;
  const Result<int> code = daemon.run();
  return code ? *code : tell_error("croftd", code.error());
}

}  // namespace
}  // namespace croft::app

int main(int argc, char** argv) { return croft::app::run_program("croftd", argc, argv, croft::app::run); }
