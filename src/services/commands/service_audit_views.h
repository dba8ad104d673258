#pragma once

#include <string>
#include <vector>

#include "cli/croft/data.h"
#include "services/use/range_repair.h"

namespace croft::app {

/// What was found in several passes: each thing once, as the last pass that saw it told it.
[[nodiscard]] std::vector<core::audit::RepairFinding> merged(std::vector<core::audit::RepairFinding> before,
                                                             const std::vector<core::audit::RepairFinding>& after);

/// The ranges and how full they are, then the findings; `wide`: who holds what too.
[[nodiscard]] std::string text_of(const engine::RangeRepairReport& report,
                                  const std::vector<core::audit::RepairFinding>& findings, bool wide);

/// Each range as a picture: which places are taken, in which band. `name`: only this one.
[[nodiscard]] std::string picture_of(const engine::RangeRepairReport& report, const std::string& name, bool wide,
                                     bool colour);

// Member names are a promise to scripts (docs/formats/cli-json.md).
[[nodiscard]] Data json_of(const engine::RangeRepairReport& report,
                           const std::vector<core::audit::RepairFinding>& findings);
[[nodiscard]] Data ranges_json_of(const engine::RangeRepairReport& report, const std::string& name);

}  // namespace croft::app
