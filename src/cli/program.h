#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "cli/command_model.h"

namespace croft::app {

// The common behaviour of programs with a command line.

/// The body of main(): `run` with the standard streams there. An exception, as without memory, is an exit code and a
/// line on standard error.
[[nodiscard]] int run_program(const char* name, int argc, char** argv, int (*run)(int argc, char** argv));

/// The line on standard error of an error that ends a program, and its exit code.
[[nodiscard]] int tell_error(const char* program, const Error& error);

/// Reads the line into `app`. The exit code of one that is answered with that: help, version, the words for a shell
/// that completes a line. An error is told in our own words where it can be.
[[nodiscard]] std::optional<int> read_command_line(CLI::App& app, int argc, char** argv, const Examples& examples);

/// Takes what the chosen command does.
using SetRun = std::function<void(std::function<Result<int>()>)>;

/// Adds the commands `completion` and `man`. `section` is the one of the manual pages. `app` must outlive the call of
/// what `set_run` takes.
void add_page_commands(CLI::App& app, const Examples& examples, int section, const SetRun& set_run);

}  // namespace croft::app
