#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>
#include <nlohmann/json_fwd.hpp>

#include "base/clock.h"
#include "base/net/prefix.h"
#include "base/net/ranges.h"
#include "ipam/audit/findings.h"
#include "ipam/decide/explain.h"
#include "ipam/decide/pool_changes.h"
#include "ipam/decide/release.h"
#include "ipam/use/inspect.h"
#include "ipam/use/nodes.h"
#include "register/block.h"
#include "register/pool.h"
#include "register/records.h"

namespace croft::app {

/// The output of `-o json` and `-o yaml`: a value that is built once and written in either form, the members in the
/// order in which they were put. Bytes that are no UTF-8, which a record of others may have, become U+FFFD: one of them
/// must not keep all the rest from being shown. Cheap to copy.
class Data {
 public:
  /// Nothing, where a table is printed instead; it has no text.
  Data() = default;
  explicit Data(nlohmann::ordered_json value);

  /// Indented by two, and a newline.
  [[nodiscard]] std::string json() const;
  /// In block style.
  [[nodiscard]] std::string yaml() const;

 private:
  std::shared_ptr<const nlohmann::ordered_json> value_;
};

/// JSON as it is printed. Bytes that are no UTF-8, which a record of others may have, become U+FFFD: one of them must
/// not keep all the rest from being shown.
[[nodiscard]] inline std::string printed_json(const nlohmann::ordered_json& json) {
  return json.dump(2, ' ', false, nlohmann::ordered_json::error_handler_t::replace) + "\n";
}

// Values in it.

[[nodiscard]] inline nlohmann::ordered_json text_or_null(const std::string& text) {
  return text.empty() ? nlohmann::ordered_json() : nlohmann::ordered_json(text);
}
/// Up to here every reader of JSON keeps a whole number as it is; jq and JavaScript round those above.
inline constexpr std::uint64_t kExactNumberMax = (std::uint64_t{1} << 53) - 1;
/// A number where every reader keeps it exactly, else its digits as text.
[[nodiscard]] inline nlohmann::ordered_json count_json(const net::Count& count) {
  const bool is_exact = count.fits_64() && count.as_64() <= kExactNumberMax;
  return is_exact ? nlohmann::ordered_json(count.as_64()) : nlohmann::ordered_json(count.to_string());
}
/// A number of 64 bits, whatever its value is: its digits as text.
[[nodiscard]] inline nlohmann::ordered_json number_64_json(std::uint64_t number) {
  return nlohmann::ordered_json(std::to_string(number));
}
/// An array of what `json_of` makes of each.
template <class T, class F>
[[nodiscard]] nlohmann::ordered_json array_json(const std::vector<T>& items, F json_of) {
  nlohmann::ordered_json array = nlohmann::ordered_json::array();
  for (const T& item : items) array.push_back(json_of(item));
  return array;
}
[[nodiscard]] inline nlohmann::ordered_json prefixes_json(const std::vector<net::Prefix>& prefixes) {
  return array_json(prefixes, [](const net::Prefix& prefix) { return prefix.to_string(); });
}

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
