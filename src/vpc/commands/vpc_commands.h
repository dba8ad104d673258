#pragma once

#include <CLI/CLI.hpp>

#include "base/clock.h"
#include "cli/croft/command_line.h"

namespace croft::app {

/// Adds the noun vpc with its verbs.
void add_vpc_commands(CLI::App& app, CommandLine& line);

/// The program under the name `cnivpctl`, in the manner of the one that UK8S has
/// (docs/notes/warm-pool.md#cnivpctl): errors are one line `error: <text>` on standard output, with exit code 1.
/// Returns the exit code.
[[nodiscard]] int run_cnivpctl(int argc, char** argv, const Clock& clock);

}  // namespace croft::app
