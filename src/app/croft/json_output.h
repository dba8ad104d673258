#pragma once

#include <string>
#include <vector>

#include "core/audit/register_audit.h"
#include "core/block/explain.h"
#include "core/block/pool_split.h"
#include "core/block/release.h"
#include "core/register/pool.h"
#include "engine/inspect.h"
#include "engine/nodes.h"

namespace croft::app {

/// The same data as YAML, in block style; the text must be one that json_of() printed.
[[nodiscard]] std::string yaml_of(const std::string& json_text);

// `-o json`: one array of objects and a newline. Member names are a promise to scripts (docs/formats/cli-json.md).

[[nodiscard]] std::string json_of(const std::vector<engine::PoolView>& pools, bool with_blocks = false);
[[nodiscard]] std::string json_of(const std::vector<engine::BlockView>& blocks);
[[nodiscard]] std::string json_of(const std::vector<engine::AddressView>& addresses);
[[nodiscard]] std::string json_of(const std::vector<core::audit::Finding>& findings);
[[nodiscard]] std::string json_of(const std::vector<engine::NodeView>& nodes);
[[nodiscard]] std::string json_of(const core::IpamConfig& config);
[[nodiscard]] std::string json_of(const core::PoolsSplit& split);
[[nodiscard]] std::string json_of(const core::Explanation& explanation);

/// What became of addresses and of records of handles that were to go.
struct ReleaseOutcome {
  core::AddressReleases addresses;
  std::vector<std::string> handles_mended, handles_kept;
};
[[nodiscard]] std::string json_of(const ReleaseOutcome& outcome);

}  // namespace croft::app
