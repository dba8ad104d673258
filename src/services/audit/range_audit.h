#pragma once

#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "base/clock.h"
#include "base/result.h"
#include "register/address_claims.h"
#include "register/service.h"
#include "services/decide/service_bitmap.h"
#include "services/decide/service_changes.h"

// One pass of the repair of Kubernetes' ranges (docs/notes/service-ranges.md#repair): makes each range anew from
// what the Services hold, and says what was wrong with the stored one.
//
// The caller reads the records of the ranges first, then all Services of every kind that takes from them. It writes a
// range only if its record is still the one that was read. Then:
// - A value is taken in the range no later than its Service is written. The Service that the list missed either took
//   its value before the range was read, so it counts as leaked and stays, or after that, and the write fails.
// - A value is given back in the range no earlier than its Service goes. So a value that was free when read belongs to
//   no Service of the later list; one freed after that changes the range, and the write fails.
// A value is freed only when three passes found it without a Service: longer than any kube-apiserver needs between its
// two writes.

namespace croft::core::audit {

/// The part of a Service that a repair needs: a hundred thousand of them are kept at once. An ExternalName holds
/// nothing.
struct ServiceUse {
  struct NodePort {
    ServiceProtocol protocol = ServiceProtocol::tcp;
    std::uint16_t number = 0;
  };
  ServiceName name;
  std::vector<std::string> cluster_ips;  ///< as written, `None` left out: maybe no addresses at all
  std::vector<NodePort> node_ports;      ///< of its ports, in their order, then its health check's
};

[[nodiscard]] ServiceUse use_of(const Service& service);

/// The numbers that count as its own (docs/notes/service-ranges.md#repair-ports). One that two protocols share
/// occurs once; one that it has twice in the same protocol occurs twice. The health check's is TCP.
[[nodiscard]] std::vector<std::uint16_t> collect_node_ports(const ServiceUse& use);

/// One thing a repair found (docs/notes/service-ranges.md#repair), in the field's words.
struct RepairFinding {
  /// The values of the label `type` of the field's metrics. `full` is here for their sake: nothing finds it, since
  /// taking a value by name never says so. `unknown` is damage.
  enum class Type : std::uint8_t { leak, repair, full, out_of_range, duplicate, invalid, unknown };
  static constexpr std::size_t kTypeCount = 7;

  Type type = Type::repair;
  std::string_view reason;  ///< of the field's event: ClusterIPNotAllocated; for what has none, a word of Croft's own
  std::string range;        ///< name of the record: serviceips
  std::string value;        ///< the address or port; a text that is neither as it stands
  std::optional<ServiceName> service;  ///< whose value it is; nothing for leaks
  std::string message;
  /// The writes of this pass put it right: a value taken, one that leaked freed for good.
  bool mended = false;
  std::uint64_t count = 1;  ///< more: it stands for so many values of its type, which have no finding of their own
  friend bool operator==(const RepairFinding&, const RepairFinding&) = default;
};

/// `leak`, `repair`, `full`, `outOfRange`, `duplicate`, `invalid`, `unknown`.
[[nodiscard]] std::string_view name_of(RepairFinding::Type type);

/// How many of each type, as the field's metrics count: a leak when it is freed.
using RepairCounts = std::array<std::size_t, RepairFinding::kTypeCount>;
[[nodiscard]] RepairCounts counts_of(const std::vector<RepairFinding>& findings);

/// A value of a range: an address or a port.
using RangeValue = std::variant<net::Address, int>;
[[nodiscard]] std::string text_of(const RangeValue& value);

/// A value that no Service held in so many passes in a row.
struct LeakedValue {
  RangeValue value;
  unsigned passes = 1;
  friend bool operator==(const LeakedValue&, const LeakedValue&) = default;
};
/// Values that the passes before left of a range: ascending by value. One that a pass sees in use, or free, is
/// forgotten (docs/notes/service-ranges.md#leak-memory).
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
  Leaks leaks;  ///< for the next pass, once `write` is stored
  /// The record can't be read as a range, or nobody says what it is to be: nothing else above but the name, and nothing
  /// is written.
  std::optional<Error> failure;
};

/// The addresses of one family or of two. Findings that concern no range (texts that are no address, families without
/// a range) are in the first. Addresses are read as a kube-apiserver reads them (base/net/prefix.h); a Service whose
/// address can't be read keeps every leak.
[[nodiscard]] std::vector<RangeRepair> repair_addresses(std::span<const AddressRangeSeen> ranges,
                                                        std::span<const ServiceUse> services);

[[nodiscard]] RangeRepair repair_node_ports(const PortRangeSeen& range, std::span<const ServiceUse> services);

// Which ranges a pass of the repair looks at, what they are to be, and where it has to give up.

/// The ranges that there may be, in the order of a report.
inline constexpr std::array<std::string_view, 3> kRangeNames{kServiceIps, kSecondaryServiceIps, kServiceNodePorts};

struct RangesSeen {
  std::map<std::string, RangeAllocation, std::less<>> stored;  ///< by name
  std::map<std::string, Leaks> leaks;                          ///< of the passes before, by name
};

/// The ranges of addresses. A range that is not given by `wanted` stays as its record says. A range that is made, or
/// moved, is refused where somebody else claims its addresses. Values of a range that nobody says are a failure that
/// asks for the flag; so are two records of one family. A record that the flags leave out stays, as in the reference:
/// it may be wanted again.
[[nodiscard]] std::vector<RangeRepair> decide_addresses(const RangesSeen& seen, const ServiceRanges& wanted,
                                                        std::span<const ServiceUse> services,
                                                        const AddressClaims& claims);
/// The range of node ports.
[[nodiscard]] std::vector<RangeRepair> decide_node_ports(const RangesSeen& seen, const ServiceRanges& wanted,
                                                         std::span<const ServiceUse> services);

/// Whether the repair claims addresses for a range that it did not have.
[[nodiscard]] bool claims_new_range(const RangeRepair& repair);

}  // namespace croft::core::audit
