#pragma once

#include <compare>
#include <string>

namespace croft::core::host_local {

/// The holder of a reservation of a host-local network: the container, and the interface in it.
struct Holder {
  std::string container_id;
  /// Empty: recorded by a plugin before v0.8.0, which knew the container only; such a record matches any interface.
  std::string interface_name;
  friend auto operator<=>(const Holder&, const Holder&) = default;
};

}  // namespace croft::core::host_local
