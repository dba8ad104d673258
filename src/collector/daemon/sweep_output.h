#pragma once

#include <string>

#include "collector/use/sweep.h"

namespace croft::app {

/// One line for people: what was looked at and what came of it.
[[nodiscard]] std::string summary_of(const engine::SweepReport& report);

/// One JSON object in one line, with a newline (docs/formats/cli-json.md).
[[nodiscard]] std::string json_of(const engine::SweepReport& report);

}  // namespace croft::app
