#pragma once

#include <chrono>
#include <cstddef>
#include <map>
#include <string>
#include <vector>

#include "ipam/use/transact.h"
#include "services/audit/range_audit.h"

// The repair of the ranges of Services on a store: Croft's own or the etcd of a Kubernetes. The decisions, and
// why they harm nobody, are in services/audit/range_audit.h.

namespace croft::engine {

/// The ranges as they are to be. One with neither flag nor record is made by nobody, and Services that hold values of
/// it are a failure that asks for the flag.
struct RangeRepairOptions : core::ServiceRanges {
  bool write = false;  ///< else everything is looked at and decided, nothing changed
};

/// Memory from one pass to the next.
struct RangeRepairMemory {
  std::map<std::string, core::audit::Leaks> ranges;  ///< by name
  std::uint64_t epoch = 0;  ///< of the register (store::Store::epoch): in another, all begins anew
};

/// A part that could not be done. The others were.
struct RangeFailure {
  std::string range;
  Error error;
};

struct RangeRepairReport {
  /// Addresses are objects, which the kube-apiservers keep and mend; node ports have a bitmap all the same. A bitmap of
  /// addresses beside them, of a Kubernetes that writes both or has left it, is not looked at.
  bool objects = false;
  bool applied = false;  ///< writing was asked for

  std::vector<core::audit::ServiceUse> services;  ///< ascending by name
  std::vector<core::audit::RangeRepair> ranges;
  std::map<std::string, core::RangeAllocation, std::less<>> stored;  ///< as they were read

  std::vector<std::string> written;  ///< ranges whose record is now as their `write` says
  std::vector<RangeFailure> failures;
  /// Ranges that others changed while they were looked at: what is told of them may be of Services in the making.
  std::vector<std::string> changed_meanwhile;
  /// Tries that failed for whatever reason, by name of the range (the field's reconcile errors).
  std::map<std::string, std::size_t> failed_tries;

  /// All findings in the order of the ranges.
  [[nodiscard]] std::vector<core::audit::RepairFinding> findings() const;
};

/// Tries of one pass while others change a range: 10 ms, 50 ms and 250 ms apart, ten percent more or less. Only the one
/// that succeeds counts as a pass for what has leaked.
inline constexpr int kRepairTriesMax = 4;

/// Error: refused_by_configuration where the store is an API, which shows no bitmaps.
[[nodiscard]] Result<void> shows_ranges(const store::Store& store);

/// One pass. One range has one set of holders: Services of the store's own kind and of the other are read. A range that
/// is made, or moved, is refused where somebody else claims its addresses (register/address_claims.h). Errors: those of
/// reading, which then name what could not be seen; not_found where a Kubernetes is to be and nothing of it is;
/// those of shows_ranges. The report's failures tell what goes wrong later, and `memory` is then as before for that
/// range.
[[nodiscard]] Result<RangeRepairReport> repair_ranges(const Context& context, const RangeRepairOptions& options,
                                                      RangeRepairMemory& memory);

}  // namespace croft::engine
