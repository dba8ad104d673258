// The program about itself: croft version, completion, man.

#include <memory>
#include <string>

#include <fmt/format.h>

#include "app/cli/command_model.h"
#include "app/cli/completion.h"
#include "app/cli/man_page.h"
#include "app/croft/command_line.h"
#include "app/croft/examples.h"
#include "app/croft/version.h"
#include "os/files.h"
#include "os/output_file.h"

namespace croft::app {
namespace {

[[nodiscard]] Result<int> complete(const CLI::App& app, const std::string& shell) {
  const CommandModel model = model_of(app, examples_of);
  print(shell == "bash" ? bash_completion(model) : shell == "zsh" ? zsh_completion(model) : fish_completion(model));
  return 0;
}

[[nodiscard]] Result<int> write_manual(const CLI::App& app, const std::string& directory) {
  TRY_VOID(os::make_shared_directories(directory));
  const std::vector<ManPage> pages = man_pages(model_of(app, examples_of), CROFT_VERSION);
  for (const ManPage& page : pages) {
    TRY_VOID(os::write_output_file(directory + "/" + page.file, page.text, os::FileMode::readable_by_all));
  }
  print(fmt::format("{} pages written to {}\n", pages.size(), directory));
  return 0;
}

}  // namespace

void add_self_commands(CLI::App& app, CommandLine& line) {
  app.add_subcommand("version", "The version, its commit and the libraries it is built with")->callback([&line] {
    line.run = [](CommandLine&) -> Result<int> {
      print(version_text() + "\n");
      return 0;
    };
  });

  const auto shell = std::make_shared<std::string>();
  CLI::App* completing = app.add_subcommand("completion", "A script that completes commands and options in a shell");
  completing->add_option("SHELL", *shell, "bash, zsh or fish")
      ->required()
      ->check(CLI::IsMember({"bash", "zsh", "fish"}));
  completing->footer(
      "To have it in every shell: croft completion bash > /etc/bash_completion.d/croft, or for zsh "
      "> /usr/share/zsh/site-functions/_croft, for fish > /etc/fish/completions/croft.fish.");
  completing->callback(
      [&app, &line, shell] { line.run = [&app, shell](CommandLine&) { return complete(app, *shell); }; });

  const auto directory = std::make_shared<std::string>();
  CLI::App* writing = app.add_subcommand("man", "Write the manual pages of all commands into a directory");
  writing->add_option("DIR", *directory, "The directory, which is made when it is absent")->required();
  writing->callback([&app, &line, directory] {
    line.run = [&app, directory](CommandLine&) { return write_manual(app, *directory); };
  });
}

}  // namespace croft::app
