#pragma once

#include <array>
#include <cstddef>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "register/address_claims.h"
#include "register/allocation.h"
#include "services/audit/range_repair.h"

// Which ranges a pass of the repair looks at, what they are to be, and where it has to give up (range_repair.h repairs
// one).

namespace croft::core::audit {

/// The ranges that there may be, in the order of a report.
inline constexpr std::array<std::string_view, 3> kRangeNames{kServiceIps, kSecondaryServiceIps, kServiceNodePorts};

/// The ranges as they are to be: kube-apiserver's flags. A range that is not given stays as its record says.
struct RangesWanted {
  std::optional<service::ServiceCidrs> cidrs;
  std::optional<service::NodePortRange> node_ports;
};
struct RangesSeen {
  std::map<std::string, RangeAllocation, std::less<>> stored;  ///< by name
  std::map<std::string, Leaks> leaks;                          ///< of the passes before, by name
};

/// A part that could not be done. The others were.
struct RangeFailure {
  std::string range;
  Error error;
};
struct RangesDecided {
  std::vector<RangeFailure> failures;
  std::vector<RangeRepair> repairs;
};

/// The ranges of addresses. A range that is made, or moved, is refused where somebody else claims its addresses. Values
/// of a range that nobody says are a failure that asks for the flag; so are two records of one family. A record that
/// the flags leave out stays, as in the reference: it may be wanted again.
[[nodiscard]] RangesDecided decide_addresses(const RangesSeen& seen, const RangesWanted& wanted,
                                             std::span<const ServiceUse> services, const AddressClaims& claims);
/// The range of node ports.
[[nodiscard]] RangesDecided decide_node_ports(const RangesSeen& seen, const RangesWanted& wanted,
                                              std::span<const ServiceUse> services);

/// Whether the repair claims addresses for a range that it did not have.
[[nodiscard]] bool is_moved(const RangeRepair& repair);

}  // namespace croft::core::audit
