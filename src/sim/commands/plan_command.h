#pragma once

#include <CLI/CLI.hpp>

#include "cli/croft/command_line.h"

namespace croft::app {

/// `plan-capacity`: runs a cluster on simulated time (sim/plan.h) and says what its addresses come to.
void add_plan_command(CLI::App& app, CommandLine& line);

}  // namespace croft::app
