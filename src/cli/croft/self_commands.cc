// The program about itself: croft version, completion, man.

#include <functional>
#include <utility>

#include "cli/croft/command_line.h"
#include "cli/program.h"
#include "cli/stores/commit.h"

namespace croft::app {

std::string version_text() {
  return std::string("croft ") + CROFT_VERSION + commit_text() + "\nbuilt with " + CROFT_LIBRARIES;
}

void add_self_commands(CLI::App& app, CommandLine& line) {
  app.add_subcommand("version", "Show the version, its commit and the libraries it is built with")->callback([&line] {
    line.run = [](CommandLine&) -> Result<int> {
      print(version_text() + "\n");
      return 0;
    };
  });

  add_page_commands(app, examples_of, 1, [&line](std::function<Result<int>()> run) {
    line.run = [run = std::move(run)](CommandLine&) { return run(); };
  });
}

}  // namespace croft::app
