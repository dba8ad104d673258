#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "app/croft/data.h"
#include "core/host_local/range_set.h"
#include "engine/host_local_audit.h"
#include "net/count.h"

namespace croft::app {

/// One reservation as `croft host-local list` shows it.
struct ReservationRow {
  store::Reservation reservation;
  const engine::CachedAttachment* attachment = nullptr;  ///< what the runtime's cache says; may be nullptr
  std::chrono::nanoseconds age{};
  std::vector<std::string> notes;
};

/// One range set and its use. Empty files do not count as used.
struct SetRow {
  std::size_t set = 0;
  const core::host_local::RangeSet* ranges = nullptr;  ///< nullptr: not known; then only `used` and the cursor are
  net::Count size;  ///< addresses that can be given out: without the ranges' gateways
  std::uint64_t used = 0;
  std::optional<engine::HostLocalDirectory::Cursor> cursor;

  [[nodiscard]] net::Count free() const { return size - used; }
  [[nodiscard]] double percent() const;
};

/// What `croft host-local list` shows.
struct HostLocalList {
  std::vector<ReservationRow> reservations;
  std::vector<SetRow> sets;
  std::string source;  ///< the file the sets are from; empty: none was found
  std::vector<std::string> foreign;
};

[[nodiscard]] HostLocalList list_of(const engine::HostLocalDirectory& directory,
                                    const std::vector<engine::CachedAttachment>& attachments,
                                    const std::string& network, const std::vector<core::host_local::RangeSet>& sets,
                                    WallTime now);

/// The reservations, the sets, and a picture of each set. `wide`: whole container IDs, times and namespaces.
[[nodiscard]] std::string text_of(const HostLocalList& list, bool wide, bool colour);
[[nodiscard]] Data json_of(const HostLocalList& list);

/// Findings with their evidence, a paragraph each.
[[nodiscard]] std::string text_of(const std::vector<engine::HostLocalFinding>& findings);
[[nodiscard]] Data json_of(const std::vector<engine::HostLocalFinding>& findings);

}  // namespace croft::app
