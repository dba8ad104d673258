// The operator's command line.

#include <string>
#include <string_view>

#include "cli/croft/command_line.h"
#include "cli/program.h"
#include "os/clock.h"
#include "os/process.h"

namespace croft::app {
namespace {

int run(int argc, char** argv) {
  const os::SystemClock clock;
  const std::string_view called = argc > 0 ? argv[0] : "";
  const std::string_view name = called.substr(called.rfind('/') + 1);
  if (name == "cnivpctl") return run_cnivpctl(argc, argv, clock);
  os::SystemRandom random;
  CommandLine line{"", CommandLine::Output::table, "auto", {}, clock, random, nullptr};
  CLI::App app("Croft hands out IP addresses and keeps the register of who holds them.", "croft");
  app.set_version_flag("--version", version_text());
  add_everything(app, line);
  if (const auto answered = read_command_line(app, argc, argv, examples_of)) return *answered;
  const bool is_kubectl_plugin = name == "kubectl-croft";
  const Result<void> chosen = line.choose_store(is_kubectl_plugin);
  const Result<int> code = chosen ? line.run(line) : Result<int>(fail(chosen.error()));
  if (!code) return tell_error("croft", code.error());
  static_cast<void>(os::write_standard_error(not_read_text(line)));
  return *code;
}

}  // namespace
}  // namespace croft::app

int main(int argc, char** argv) { return croft::app::run_program("croft", argc, argv, croft::app::run); }
