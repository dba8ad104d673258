#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <variant>
#include <vector>

#include "base/error.h"
#include "register/allocation.h"
#include "services/audit/repair_finding.h"
#include "services/audit/service_use.h"
#include "services/decide/node_ports.h"
#include "services/decide/service_addresses.h"

// One pass of the repair of Kubernetes' ranges (docs/notes/service-ranges.md#repair): makes each range anew from
// what the Services hold, and says what was wrong with the stored one.
//
// What the caller must do for it to be safe: read the records of the ranges first, all Services after that, of every
// kind that takes from the ranges, as of a moment not before, and write a range only if its record is still the one
// that was read.
// - Who takes a value writes the range no later than the Service: a kube-apiserver before it, Croft in the same commit.
//   A Service that the list did not show took its value before the range was read, then the value is in the stored
//   range, counts as leaked and stays; or after that, then the range has changed, and the write fails.
// - Who gives a value back writes the range no earlier than the Service. A value that is free in what was read belongs
//   to a Service that was gone by then, so the later list can't show it and have it taken again. One that is freed
//   after that changes the range, and the write fails.
// So a value is freed only when three passes found it without a Service: longer than any kube-apiserver needs between
// its two writes. (A kube-apiserver frees the ports of an update before it writes the Service; a pass in between takes
// them again, and three passes later they are free. Nobody has lost anything.)

namespace croft::core::audit {

/// A value of a range: an address or a port.
using RangeValue = std::variant<net::Address, int>;
[[nodiscard]] std::string text_of(const RangeValue& value);

/// A value that no Service held in so many passes in a row.
struct LeakedValue {
  RangeValue value;
  unsigned passes = 1;
  friend bool operator==(const LeakedValue&, const LeakedValue&) = default;
};
/// What the passes before left of a range: ascending by value. One that a pass sees in use, or free, is forgotten; so
/// is one that was freed. (In the reference it is remembered, and freed at once if it leaks again:
/// docs/notes/service-ranges.md#leak-memory.)
using Leaks = std::vector<LeakedValue>;

/// A leaked value is kept in the passes before this one.
inline constexpr unsigned kPassesBeforeLeakIsFreed = 3;

/// A range as it was read. `wanted` is what it is to be by the flags, whatever the record says it was.
template <service::RangeMap M>
struct RangeSeen {
  std::string name;  ///< of its record
  std::optional<RangeAllocation> stored;
  M wanted;
  Leaks leaks;
};
using AddressRangeSeen = RangeSeen<service::ServiceCidr>;
using PortRangeSeen = RangeSeen<service::NodePortRange>;

/// So many leaked values of a range have a finding each; of more, one says how many are freed and one how many wait. A
/// /12 has a million addresses.
inline constexpr std::size_t kLeakFindingsMax = 1000;

/// How full a range is, as it was read.
struct BandUse {
  std::uint64_t size = 0;
  std::uint64_t used = 0;
  friend bool operator==(const BandUse&, const BandUse&) = default;
};

struct RangeRepair {
  std::string name;
  std::string range;     ///< of the record; without one, what it is to be
  bool present = false;  ///< it has a record
  BandUse in_static, in_dynamic;

  std::vector<RepairFinding> findings;  ///< of each Service in the order given, then the leaks, ascending
  /// The record as it is to be: made when absent; nothing when it is so already.
  std::optional<RangeAllocation> write;
  bool remove = false;  ///< the record is to go; `write` is nothing then
  Leaks leaks;          ///< for the next pass, once `write` is stored
  /// The record can't be read as a range: nothing else above but the name, and nothing is written.
  std::optional<Error> failure;
};

/// The addresses of one family or of two. Findings that concern no range (texts that are no address, families without
/// a range) are in the first. Addresses are read as a kube-apiserver reads them (base/net/lenient.h); a Service whose
/// address can't be read keeps every leak of its family.
[[nodiscard]] std::vector<RangeRepair> repair_addresses(std::span<const AddressRangeSeen> ranges,
                                                        std::span<const ServiceUse> services);

/// A second range that is not configured any more: its record goes once no Service has an address of it that the range
/// that is left, `primary`, lacks. Else it stays as it is, and what is said of the Services says why.
[[nodiscard]] RangeRepair drop_second_range(const std::string& name, const RangeAllocation& stored,
                                            const service::ServiceCidr& primary, std::span<const ServiceUse> services);

/// The node ports. Those of an ExternalName are nobody's, unlike in the reference: they are neither taken nor reported,
/// but kept where they are taken, so that two repairs don't work against each other.
[[nodiscard]] RangeRepair repair_node_ports(const PortRangeSeen& range, std::span<const ServiceUse> services);

/// What the Services alone tell of the node ports, where their range is not to be seen: ports of two Services, and
/// those outside of what the range is said to be. Use is what the Services have. Nothing is to be written. Without
/// `range` any port will do.
[[nodiscard]] RangeRepair compare_node_ports(const std::optional<service::NodePortRange>& range,
                                             std::span<const ServiceUse> services);

}  // namespace croft::core::audit
