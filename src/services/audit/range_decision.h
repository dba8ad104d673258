#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
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
#include "services/audit/service_use.h"
#include "services/decide/node_ports.h"
#include "services/decide/service_addresses.h"

// Which ranges a pass of the repair looks at, what they are to be, and where it has to give up (range_repair.h repairs
// one).

namespace croft::core::audit {

/// The ranges that there may be, in the order of a report.
inline constexpr std::array<std::string_view, 3> kRangeNames{kServiceIps, kSecondaryServiceIps, kServiceNodePorts};
inline constexpr std::size_t kPortRange = 2;  ///< the place of the node ports

/// How a cluster keeps the addresses of its Services.
enum class ClusterIpForm : std::uint8_t {
  automatic,  ///< as the records tell: objects where there are any, or where there is no bitmap
  bitmap,
  objects,  ///< IPAddress and ServiceCIDR; node ports have a bitmap all the same
};
struct FormInUse {
  bool objects = false;
  bool bitmap_beside = false;  ///< of a Kubernetes that writes both, or what an older one has left
};
[[nodiscard]] FormInUse form_in_use(ClusterIpForm form, bool has_bitmap, bool has_addresses, bool has_cidrs);

/// The ranges as they are to be: kube-apiserver's flags. What is not given stays as its record says.
struct RangesWanted {
  std::optional<service::ServiceCidrs> cidrs;
  std::optional<service::NodePortRange> node_ports;
};
struct RangesSeen {
  std::array<std::optional<RangeAllocation>, kRangeNames.size()> stored;
  std::map<std::string, Leaks> leaks;  ///< of the passes before, by name
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

/// The ranges of addresses. One that is made, or moved, is refused where somebody else claims its addresses. Values
/// of a range that nobody says are a failure that asks for the flag; so are two records of one family, of which only
/// the flags can say which counts. By the flags there may be one range only: a second one of its family is left of
/// ranges that changed places, and dropped; one of the other family stays, as in the reference: it may be wanted again.
[[nodiscard]] RangesDecided decide_addresses(const RangesSeen& seen, const RangesWanted& wanted,
                                             std::span<const ServiceUse> services, const AddressClaims& claims);
/// The range of node ports.
[[nodiscard]] RangesDecided decide_node_ports(const RangesSeen& seen, const RangesWanted& wanted,
                                              std::span<const ServiceUse> services);

/// Whether the repair claims addresses for a range that it did not have.
[[nodiscard]] bool is_moved(const RangeRepair& repair);

}  // namespace croft::core::audit
