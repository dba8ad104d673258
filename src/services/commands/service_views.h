#pragma once

#include <string>
#include <vector>

#include "base/clock.h"
#include "cli/croft/json_output.h"
#include "cli/croft/table.h"
#include "services/use/range_repair.h"
#include "services/use/service.h"

namespace croft::app {

/// Services in a table with kubectl's columns.
[[nodiscard]] Table service_table(const std::vector<engine::StoredService>& services, bool with_namespace, bool wide,
                                  WallTime now);

/// All there is to say of one, line by line.
[[nodiscard]] std::string service_text(const engine::StoredService& stored);

// In the shape of Kubernetes' API (docs/formats/cli-json.md): what kubectl prints, and takes again. A revision of 0 is
// not shown: a dry run has none.
[[nodiscard]] Data json_of(const engine::StoredService& stored);
[[nodiscard]] Data json_of(const std::vector<engine::StoredService>& services);

/// The findings of several passes: each thing once, as the last pass that saw it told it.
[[nodiscard]] std::vector<core::audit::RepairFinding> merged_findings(
    std::vector<core::audit::RepairFinding> before, const std::vector<core::audit::RepairFinding>& after);

/// The ranges and how full they are, then the findings; `wide`: also the holders of all values.
[[nodiscard]] std::string text_of(const engine::RangeRepairReport& report,
                                  const std::vector<core::audit::RepairFinding>& findings, bool wide);

// Member names are a promise to scripts (docs/formats/cli-json.md).
[[nodiscard]] Data json_of(const engine::RangeRepairReport& report,
                           const std::vector<core::audit::RepairFinding>& findings);

}  // namespace croft::app
