#pragma once

#include <chrono>
#include <cstddef>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "ipam/use/transact.h"
#include "services/audit/ip_address_audit.h"
#include "services/audit/range_decision.h"
#include "services/audit/range_repair.h"

// The repair of the ranges of Services on a store: Croft's own or the etcd of a Kubernetes. What is decided, and why it
// harms nobody, is in services/audit/range_decision.h and range_repair.h.

namespace croft::engine {

using core::audit::ClusterIpForm;
using core::audit::RangeFailure;

struct RangeRepairOptions {
  /// The ranges as they are to be: kube-apiserver's flags. What is not given stays as its record says; a range with
  /// neither is made by nobody, and Services that hold values of it are a failure that asks for the flag.
  std::optional<core::service::ServiceCidrs> cidrs;
  std::optional<core::service::NodePortRange> node_ports;
  ClusterIpForm form = ClusterIpForm::automatic;
  bool write = false;  ///< else everything is looked at and decided, nothing changed
};

/// An IPAddress that looked leaked: as which revision, and since when, within this boot.
struct LeakedObject {
  store::Revision revision;
  std::chrono::nanoseconds since{};
};

/// What passes leave for the next.
struct RangeRepairMemory {
  std::map<std::string, core::audit::Leaks> ranges;  ///< by name
  std::map<std::string, LeakedObject> objects;       ///< by address
  std::uint64_t epoch = 0;  ///< of the register (store::Store::epoch): in another, all begins anew
};

struct RangeRepairReport {
  bool objects = false;  ///< the form in use; never `automatic`
  /// There is a bitmap of addresses beside the objects: a Kubernetes that writes both, or what an older one has left.
  /// It was looked at, and is never written.
  bool bitmap_beside = false;
  /// The store does not show bitmaps (store::Capabilities::lacks): of node ports the Services were only
  /// compared with each other, and with the range that was given.
  bool bitmaps_unseen = false;
  bool applied = false;  ///< writing was asked for

  std::vector<core::audit::ServiceUse> services;  ///< ascending by name
  std::vector<core::audit::RangeRepair> ranges;
  std::map<std::string, core::RangeAllocation> stored;  ///< as they were read
  std::optional<core::audit::IpAddressAudit> addresses;

  std::vector<std::string> written;  ///< ranges whose record is now as their `write` says
  std::vector<RangeFailure> failures;
  /// Ranges, and addresses of objects, that others changed while they were looked at: what is told of the former may be
  /// of Services in the making, the latter are left to the next pass.
  std::vector<std::string> changed_meanwhile;
  std::size_t conflicts = 0;  ///< tries that failed because others wrote first
  /// Tries that failed for whatever reason, by name of the range; kIpAddresses for objects (the field's reconcile
  /// errors).
  std::map<std::string, std::size_t> failed_tries;

  /// All findings in the order ranges, addresses.
  [[nodiscard]] std::vector<core::audit::RepairFinding> findings() const;
};

/// Tries of one pass while others change a range: 10 ms, 50 ms and 250 ms apart, ten percent more or less. Only the one
/// that succeeds counts as a pass for what has leaked.
inline constexpr int kRepairTriesMax = 4;

/// One pass. One range has one set of holders: Services of the store's own kind and of the other are read. A range that
/// is made, or moved, is refused where somebody else claims its addresses (register/address_claims.h).
/// `before_write`, if given, sees what was found before each try that writes. Errors: those of reading, which then name
/// what could not be seen; not_found where a Kubernetes is to be and nothing of it is. What
/// goes wrong later is in the report's failures, and `memory` is then as before for that range.
[[nodiscard]] Result<RangeRepairReport> repair_ranges(
    const Context& context, const RangeRepairOptions& options, RangeRepairMemory& memory,
    const std::function<void(const RangeRepairReport&)>& before_write = {});

}  // namespace croft::engine
