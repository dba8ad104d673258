#pragma once

#include <string>
#include <vector>

#include "cli/command_model.h"

namespace croft::app {

/// The command of these names below `root`, nullptr when there is none. No names: `root`.
[[nodiscard]] const CommandModel* command_at(const CommandModel& root, const std::vector<std::string>& names);

/// `croft pool create NAME --cidr CIDR [options]`; `path` has the names below `root`.
[[nodiscard]] std::string usage_line(const CommandModel& root, const std::vector<std::string>& path);

/// "-o, --output table|wide|json|yaml".
[[nodiscard]] std::string option_heading(const OptionModel& option);
/// Its description with what it is by default and where else it may come from.
[[nodiscard]] std::string option_text(const OptionModel& option);

/// The output of `--help` of the command at `path`: its own arguments and options, those that every command takes, and
/// its own examples.
[[nodiscard]] std::string help_page(const CommandModel& root, const std::vector<std::string>& path);

}  // namespace croft::app
