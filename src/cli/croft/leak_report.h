#pragma once

#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.h"
#include "ipam/decide/release.h"
#include "ipam/use/audit.h"

namespace croft::app {

// The report of `croft check --report`, in the form of calicoctl's (docs/formats/cli-json.md): what is held, and what
// of it is in nobody's use. `croft ip release --from-report` acts on it.

/// Where and when a report was made.
struct ReportOrigin {
  std::string version;  ///< of the program
  std::string store;    ///< the URL; the report's clusterGUID is made of it
  WallTime checked_at{};
  bool compared = false;               ///< with what the runtime knows
  bool compared_with_cluster = false;  ///< with its pods; where neither is, every address counts as in use
};

[[nodiscard]] std::string report_of(const engine::AuditReport& report, const ReportOrigin& origin);

/// The entries that a report declares free to go.
struct ReportContent {
  std::string version;
  std::string cluster;  ///< clusterGUID
  std::vector<core::AddressToRelease> unused;
  std::vector<engine::LeakedHandle> leaked_handles;
  std::set<net::Address> by_cluster{};  ///< of `unused`: those whose holders a cluster did not have
};
inline constexpr std::size_t kReportBytesMax = std::size_t{256} << 20;

/// Reads a report of Croft's or of calicoctl's. Keeps only what is acted on, and takes time and memory in proportion to
/// the text: two to three times its length for a report, more for other JSON. Error: invalid_argument naming the
/// member.
[[nodiscard]] Result<ReportContent> parse_report(std::string_view text);

/// The entries that all of several reports (at least one) share: same address, handle and sequence number, same handle
/// and revision.
[[nodiscard]] ReportContent intersection_of(const std::vector<ReportContent>& reports);

/// The clusterGUID of a store.
[[nodiscard]] std::string cluster_of(const std::string& store_url);

}  // namespace croft::app
