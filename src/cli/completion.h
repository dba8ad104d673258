#pragma once

#include <string>

#include "cli/command_model.h"

namespace croft::app {

// Scripts that complete commands, options and values with a fixed choice, for the shell to read. They ask no store.

[[nodiscard]] std::string bash_completion(const CommandModel& root);
[[nodiscard]] std::string zsh_completion(const CommandModel& root);
[[nodiscard]] std::string fish_completion(const CommandModel& root);

}  // namespace croft::app
