// The operator's command line.

#include <algorithm>
#include <cstdlib>
#include <exception>
#include <new>
#include <string>
#include <string_view>
#include <vector>

#include <fmt/format.h>

#include "base/printable.h"
#include "cli/croft/command_line.h"
#include "cli/croft/examples.h"
#include "cli/croft/version.h"
#include "cli/program.h"
#include "cni/error_table.h"
#include "os/clock.h"
#include "os/process.h"
#include "os/random.h"
#include "vpc/commands/vpc_commands.h"

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
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return tell_usage(app, error, std::vector<std::string>(argv + std::min(argc, 1), argv + argc), examples_of);
  }
  const bool is_kubectl_plugin = name == "kubectl-croft";
  const Result<void> chosen = line.choose_store(is_kubectl_plugin);
  const Result<int> code = chosen ? line.run(line) : Result<int>(fail(chosen.error()));
  if (code) {
    static_cast<void>(os::write_standard_error(not_read_text(line)));
    return *code;
  }
  const Error& error = code.error();
  static_cast<void>(os::write_standard_error(fmt::format("croft: {}{}{}\n", printable(error.message, Printed::line),
                                                         error.details.empty() ? "" : "\n  ", error.details)));
  return static_cast<int>(edge::exit_code_of(error.code));
}

}  // namespace
}  // namespace croft::app

int main(int argc, char** argv) {
  croft::os::fill_standard_streams();
  croft::os::survive_file_size_limit();
  try {
    return croft::app::run(argc, argv);
  } catch (const std::bad_alloc&) {
    croft::os::write_last_words_to_standard_error("croft: out of memory: give this process more\n");
    return static_cast<int>(croft::edge::ExitCode::error);
  } catch (const std::exception& error) {
    static_cast<void>(croft::os::write_standard_error(std::string("croft: ") + error.what() + "\n"));
    return static_cast<int>(croft::edge::ExitCode::error);
  }
}
