#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/net/ranges.h"
#include "cli/croft/json_output.h"
#include "cli/croft/table.h"
#include "hostlocal/decide/assign.h"
#include "hostlocal/decide/audit.h"
#include "hostlocal/reservations.h"

namespace croft::app {

/// One reservation as `croft host-local list` shows it.
struct ReservationRow {
  store::Reservation reservation;
  const core::RuntimeAttachment* attachment = nullptr;  ///< what the runtime's cache says; may be nullptr
  std::chrono::nanoseconds age{};
  std::vector<std::string> notes;

  /// The pod by the runtime's cache; empty when it does not say.
  [[nodiscard]] std::string pod() const;
  [[nodiscard]] std::string name_space() const;
};

/// One range set and its use. Empty files do not count as used.
struct SetRow {
  std::size_t set = 0;
  const core::host_local::RangeSet* ranges = nullptr;  ///< nullptr: not known; then only `used` and the cursor are
  net::Count size;  ///< addresses that can be given out: without the ranges' gateways
  std::uint64_t used = 0;
  std::optional<core::host_local::Directory::Cursor> cursor;

  [[nodiscard]] net::Count free() const { return size - used; }
  [[nodiscard]] double percent() const;
};

/// The output of `croft host-local list`.
struct HostLocalList {
  std::vector<ReservationRow> reservations;
  std::vector<SetRow> sets;
  std::string source;  ///< the file the sets are from; empty: none was found
  std::vector<std::string> foreign;
};

[[nodiscard]] HostLocalList list_of(const core::host_local::Directory& directory,
                                    const std::vector<core::RuntimeAttachment>& attachments, const std::string& network,
                                    const std::vector<core::host_local::RangeSet>& sets, WallTime now);

struct ReservationColumns {
  bool wide = false;  ///< whole container IDs, times and namespaces
  bool age = true;    ///< without it a row changes only when the reservation does
};
[[nodiscard]] Table reservation_table(const HostLocalList& list, const ReservationColumns& columns);
/// The sets and a picture of each set.
[[nodiscard]] std::string sets_text(const HostLocalList& list, bool colour);
[[nodiscard]] Data json_of(const HostLocalList& list);

/// Findings with their evidence, a paragraph each.
[[nodiscard]] std::string text_of(const std::vector<core::host_local::Finding>& findings);
[[nodiscard]] Data json_of(const std::vector<core::host_local::Finding>& findings);

}  // namespace croft::app
