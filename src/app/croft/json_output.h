#pragma once

#include <optional>
#include <string>
#include <vector>

#include "app/croft/data.h"
#include "base/clock.h"
#include "core/audit/register_report.h"
#include "core/block/explain.h"
#include "core/block/pool_split.h"
#include "core/block/release.h"
#include "core/register/pool.h"
#include "engine/inspect.h"
#include "engine/nodes.h"

namespace croft::app {

// `-o json` and `-o yaml`: one array of objects. Member names are a promise to scripts (docs/formats/cli-json.md).

[[nodiscard]] Data json_of(const std::vector<engine::PoolView>& pools, bool with_blocks = false);
[[nodiscard]] Data json_of(const std::vector<engine::BlockView>& blocks);
[[nodiscard]] Data json_of(const std::vector<engine::AddressView>& addresses);
[[nodiscard]] Data json_of(const std::vector<core::audit::Finding>& findings);
[[nodiscard]] Data json_of(const std::vector<engine::NodeView>& nodes);
/// Of the plugin's token, as `croft node show` has it.
struct TokenShown {
  std::string file;
  WallTime made, end;
  bool has_ended = false;
  std::optional<bool> is_refused{};  ///< by the API server, which may be away
};
/// One node, as in the list, with `ranges`; and `pluginToken` where it was asked for.
[[nodiscard]] Data json_of(const engine::NodeView& node, const std::vector<std::string>& ranges,
                           const std::optional<TokenShown>& token);
[[nodiscard]] Data json_of(const core::IpamConfig& config);
[[nodiscard]] Data json_of(const std::vector<core::Reservation>& reservations);
[[nodiscard]] Data json_of(const core::PoolsSplit& split);
[[nodiscard]] Data json_of(const core::Explanation& explanation);

/// What became of addresses and of records of handles that were to go.
struct ReleaseOutcome {
  core::AddressReleases addresses;
  std::vector<std::string> handles_mended, handles_kept;
};
[[nodiscard]] Data json_of(const ReleaseOutcome& outcome);

}  // namespace croft::app
