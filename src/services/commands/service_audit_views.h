#pragma once

#include <string>
#include <vector>

#include "cli/croft/data.h"
#include "services/use/range_repair.h"

namespace croft::app {

/// The findings of several passes: each thing once, as the last pass that saw it told it.
[[nodiscard]] std::vector<core::audit::RepairFinding> merged(std::vector<core::audit::RepairFinding> before,
                                                             const std::vector<core::audit::RepairFinding>& after);

/// The ranges and how full they are, then the findings; `wide`: also the holders of all values.
[[nodiscard]] std::string text_of(const engine::RangeRepairReport& report,
                                  const std::vector<core::audit::RepairFinding>& findings, bool wide);

// Member names are a promise to scripts (docs/formats/cli-json.md).
[[nodiscard]] Data json_of(const engine::RangeRepairReport& report,
                           const std::vector<core::audit::RepairFinding>& findings);

}  // namespace croft::app
