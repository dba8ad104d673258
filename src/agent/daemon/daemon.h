#pragma once

#include <chrono>
#include <functional>

#include <CLI/CLI.hpp>

#include "base/clock.h"
#include "base/result.h"
#include "os/stop_signal.h"

namespace croft::app {

/// A daemon's main loop comes round at least so often, and says so to systemd (WatchdogSec in deploy/systemd).
inline constexpr std::chrono::minutes kTurnMax{1};

/// The common parts of every subcommand of croftd, and the function that runs when the command line has been read.
struct Daemon {
  const Clock& clock;
  Random& random;
  os::StopSignal& stop;
  /// The subcommand that was chosen; returns the exit code, or an error that main() prints.
  std::function<Result<int>()> run;
};

// Each adds one subcommand; each in a file of its own.
void add_controller_command(CLI::App& app, Daemon& daemon);
void add_agent_command(CLI::App& app, Daemon& daemon);
void add_install_command(CLI::App& app, Daemon& daemon);
void add_vpc_agent_command(CLI::App& app, Daemon& daemon);

}  // namespace croft::app
