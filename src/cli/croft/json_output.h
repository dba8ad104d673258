#pragma once

#include <optional>
#include <string>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "base/clock.h"
#include "base/net/count.h"
#include "cli/croft/data.h"
#include "ipam/audit/register_report.h"
#include "ipam/decide/explain.h"
#include "ipam/decide/pool_changes.h"
#include "ipam/decide/release.h"
#include "ipam/use/inspect.h"
#include "ipam/use/nodes.h"
#include "register/block.h"
#include "register/pool.h"
#include "register/records.h"

namespace croft::app {

// `-o json` and `-o yaml`: one array of objects. Member names are a promise to scripts (docs/formats/cli-json.md).

[[nodiscard]] Data json_of(const std::vector<engine::PoolView>& pools, bool with_blocks = false);
[[nodiscard]] Data json_of(const std::vector<engine::BlockView>& blocks);
[[nodiscard]] Data json_of(const std::vector<engine::AddressView>& addresses);
[[nodiscard]] Data json_of(const std::vector<core::audit::Finding>& findings);
[[nodiscard]] Data json_of(const std::vector<engine::NodeView>& nodes);
/// The plugin's token, as `croft node show` has it.
struct TokenShown {
  std::string file;
  WallTime made, end;
  bool has_ended = false;
  std::optional<bool> is_refused{};  ///< by the API server, which may be away
};
/// One node, as in the list, with `ranges`; and `pluginToken` where it was asked for.
[[nodiscard]] Data json_of(const engine::NodeView& node, const std::vector<net::Prefix>& ranges,
                           const std::optional<TokenShown>& token);
[[nodiscard]] Data json_of(const core::IpamConfig& config);
[[nodiscard]] Data json_of(const std::vector<core::Reservation>& reservations);
[[nodiscard]] Data json_of(const core::PoolsSplit& split);
[[nodiscard]] Data json_of(const core::Explanation& explanation);

/// The outcome for addresses and records of handles that were to go.
struct ReleaseOutcome {
  core::AddressReleases addresses;
  std::vector<std::string> handles_mended, handles_kept;
};
[[nodiscard]] Data json_of(const ReleaseOutcome& outcome);

/// A record as it is shown: the member names and texts of its stored form (docs/formats/records.md), without the
/// version. Sequence numbers are texts, as all numbers of 64 bits are (number_64_json).
[[nodiscard]] nlohmann::ordered_json record_json(const core::Value& record);

/// The explanation as text: the node, every pool in the order of consideration with its grounds, and the answer; the
/// refusal in the words of the CNI error.
[[nodiscard]] std::string text_of(const core::Explanation& explanation, const core::AssignRequest& request);

/// "12 (4.7%)"
[[nodiscard]] std::string percent_of(const net::Count& part, const net::Count& whole);

/// One row a pool: how many addresses are there, in use, cooling, reserved and free, with their share; with
/// `with_blocks` the blocks below, those of no pool at the end.
[[nodiscard]] std::string usage_table(const engine::Overview& overview, bool with_blocks);

}  // namespace croft::app
