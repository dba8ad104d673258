#include "cli/program.h"

#include <algorithm>
#include <exception>
#include <memory>
#include <new>
#include <sstream>
#include <string_view>

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include "base/printable.h"
#include "cni/error_table.h"
#include "os/files.h"
#include "os/process.h"

namespace croft::app {
namespace {

int printed(const std::string& text) {
  return static_cast<int>(os::write_standard_output(text) ? edge::ExitCode::fine : edge::ExitCode::error);
}

/// The parser's words for a value that is none: "Could not convert: N = a".
std::string in_words(const std::string& what) {
  constexpr std::string_view kBegin = "Could not convert: ";
  const std::size_t equals = what.find(" = ");
  if (!what.starts_with(kBegin) || equals == what.npos) return what;
  return fmt::format("{} is no value for {}", echo(what.substr(equals + 3)),
                     what.substr(kBegin.size(), equals - kBegin.size()));
}

/// A script that has the program asked what may stand in a place; where it says nothing, the shell offers files.
std::string completion_for(const std::string& program, const std::string& shell) {
  if (shell == "bash") {
    return fmt::format(R"sh(_{0}() {{
  local -a typed
  read -ra typed <<<"${{COMP_LINE:0:COMP_POINT}}"
  [[ ${{COMP_LINE:0:COMP_POINT}} == *[[:space:]] ]] && typed+=("")
  local IFS=$'\n' word=${{typed[-1]}} words
  words=$({0} __complete "${{typed[@]:1}}" 2>/dev/null | cut -f 1)
  COMPREPLY=($(compgen -W "$words" -- "$word"))
  # bash has cut the word at = and :, and puts in what is behind them.
  COMPREPLY=("${{COMPREPLY[@]#"${{word%"${{word##*[:=]}}"}}"}}")
}}
complete -o default -F _{0} {0}
)sh",
                       program);
  }
  if (shell == "zsh") {
    return fmt::format(R"sh(#compdef {0}
_{0}() {{
  local -a found=(${{(f)"$({0} __complete "${{(@)words[2,CURRENT]}}" 2>/dev/null)"}})
  found=(${{found/$'\t'/:}})
  if (( $#found )); then _describe {0} found; else _files; fi
}}
if [[ $funcstack[1] == _{0} ]]; then _{0} "$@"; else compdef _{0} {0}; fi
)sh",
                       program);
  }
  return fmt::format(R"sh(function __{0}_words
  set -l found ({0} __complete (commandline -opc)[2..-1] (commandline -ct) 2>/dev/null)
  if set -q found[1]
    printf '%s\n' $found
  else
    __fish_complete_path (commandline -ct)
  end
end
complete -c {0} -f -a '(__{0}_words)'
)sh",
                     program);
}

[[nodiscard]] Result<int> write_manual(const CommandModel& model, int section, const std::string& directory) {
  TRY_VOID(os::make_shared_directories(directory));
  const std::vector<ManPage> pages = man_pages(model, CROFT_VERSION, section);
  for (const ManPage& page : pages) {
    TRY_VOID(os::write_output_file(directory + "/" + page.file, page.text, os::FileMode::readable_by_all));
  }
  return printed(fmt::format("{} pages written to {}\n", pages.size(), directory));
}

/// Prints help and version to standard output; what is wrong with the line is told in our own words where it can be.
int tell_usage(const CLI::App& app, const CLI::ParseError& error, const CommandModel& model,
               const std::vector<std::string>& arguments) {
  if (error.get_exit_code() == 0) {
    std::ostringstream out, err;
    app.exit(error, out, err);
    return printed(out.str());
  }
  const std::vector<std::string> path = command_path(model, arguments);
  // The parser reads values before it sees that help was asked for.
  if (std::ranges::any_of(arguments, [](const std::string& one) { return one == "--help" || one == "-h"; })) {
    return printed(help_page(model, path));
  }
  const std::string what = usage_error(model, arguments).value_or(in_words(error.what()));
  std::string command = model.name;
  for (const std::string& name : path) command += " " + name;
  static_cast<void>(os::write_standard_error(fmt::format("{}: {}\nRun `{} --help` for what there is.\n", model.name,
                                                         printable(what, Printed::line), command)));
  return static_cast<int>(edge::ExitCode::usage);
}

}  // namespace

int run_program(const char* name, int argc, char** argv, int (*run)(int argc, char** argv)) {
  os::fill_standard_streams();
  os::survive_file_size_limit();
  // Made while there is memory.
  const std::string last_words = std::string(name) + ": out of memory: give this process more\n";
  try {
    return run(argc, argv);
  } catch (const std::bad_alloc&) {
    os::write_last_words_to_standard_error(last_words);
  } catch (const std::exception& error) {
    static_cast<void>(os::write_standard_error(std::string(name) + ": " + error.what() + "\n"));
  }
  return static_cast<int>(edge::ExitCode::error);
}

int tell_error(const char* program, const Error& error) {
  static_cast<void>(
      os::write_standard_error(fmt::format("{}: {}{}{}\n", program, printable(error.message, Printed::line),
                                           error.details.empty() ? "" : "\n  ", error.details)));
  return static_cast<int>(edge::exit_code_of(error.code));
}

std::optional<int> read_command_line(CLI::App& app, int argc, char** argv, const Examples& examples) {
  const std::vector<std::string> arguments(argv + std::min(argc, 1), argv + argc);
  if (!arguments.empty() && arguments.front() == "__complete") {
    return printed(completions(model_of(app, examples), {arguments.begin() + 1, arguments.end()}));
  }
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return tell_usage(app, error, model_of(app, examples), arguments);
  }
  return std::nullopt;
}

void add_page_commands(CLI::App& app, const Examples& examples, int section, const SetRun& set_run) {
  const auto shell = std::make_shared<std::string>();
  CLI::App* completing = app.add_subcommand("completion", "Print a shell completion script");
  completing->add_option("SHELL", *shell, "bash, zsh or fish")
      ->required()
      ->check(CLI::IsMember({"bash", "zsh", "fish"}));
  completing->footer(
      fmt::format("To have it in every shell: {0} completion bash > /etc/bash_completion.d/{0}, or for zsh "
                  "> /usr/share/zsh/site-functions/_{0}, for fish > /etc/fish/completions/{0}.fish.",
                  app.get_name()));
  completing->callback([&app, set_run, shell] {
    set_run([&app, shell]() -> Result<int> { return printed(completion_for(app.get_name(), *shell)); });
  });

  const auto directory = std::make_shared<std::string>();
  CLI::App* writing = app.add_subcommand("man", "Write the manual pages of all commands to a directory");
  writing->add_option("DIR", *directory, "Directory to write to; created if it does not exist")->required();
  writing->callback([&app, examples, section, set_run, directory] {
    set_run(
        [&app, examples, section, directory] { return write_manual(model_of(app, examples), section, *directory); });
  });
}

}  // namespace croft::app
