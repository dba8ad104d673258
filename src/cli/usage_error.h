#pragma once

#include <optional>
#include <string>
#include <vector>

#include "cli/command_model.h"

namespace croft::app {

/// The error of a command line that could not be read, in words for a person. It names a command or an option that does
/// not exist, with the nearest ones, or a missing command. `arguments` are without the program's name. nullopt: none of
/// these; what the parser says is all there is.
[[nodiscard]] std::optional<std::string> usage_error(const CommandModel& root,
                                                     const std::vector<std::string>& arguments);

/// The names of the commands that a command line begins with, none of an alias: {"pool", "list"} of `pools ls --x`.
[[nodiscard]] std::vector<std::string> command_path(const CommandModel& root,
                                                    const std::vector<std::string>& arguments);

}  // namespace croft::app
