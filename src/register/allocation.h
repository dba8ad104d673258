#pragma once

#include <string>
#include <string_view>

#include "register/foreign_rest.h"

namespace croft::core {

// The names of the three ranges, which are the ends of their keys in etcd (docs/notes/service-ranges.md#keys).
inline constexpr std::string_view kServiceIps = "serviceips";
inline constexpr std::string_view kSecondaryServiceIps = "secondaryserviceips";
inline constexpr std::string_view kServiceNodePorts = "servicenodeports";

/// Kubernetes' RangeAllocation: which addresses or ports of one range are taken. As stored;
/// services/decide/mapped_range reads and writes the bits.
struct RangeAllocation {
  /// The exact identity of the range, compared byte for byte: `10.96.0.0/12`, `30000-32767`.
  std::string range;
  /// The big-endian magnitude of an integer whose bit `o` is offset `o`, without leading zero bytes
  /// (docs/notes/service-ranges.md#bit-order).
  std::string data;
  ForeignRestPtr rest{};
  friend bool operator==(const RangeAllocation&, const RangeAllocation&) = default;
};

}  // namespace croft::core
