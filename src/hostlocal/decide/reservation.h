#pragma once

#include <compare>
#include <optional>
#include <string>

#include "base/clock.h"
#include "base/net/address.h"

namespace croft::core::host_local {

/// The holder of a reservation of a host-local network: the container, and the interface in it.
struct Holder {
  std::string container_id;
  /// Empty: recorded by a plugin before v0.8.0, which knew the container only; such a record matches any interface.
  std::string interface_name;
  friend auto operator<=>(const Holder&, const Holder&) = default;
};

/// A reservation as it was read.
struct Reservation {
  net::Address address;
  /// Absent: the file says nothing (empty after a crash of the reference) or is no file that can be read.
  std::optional<Holder> holder;
  WallTime written{};  ///< when the file was changed last
  bool empty = false;  ///< a regular file without content: nobody holds it, an ADD takes it over
  std::string file;    ///< the name below the network's directory
  friend bool operator==(const Reservation&, const Reservation&) = default;
};

}  // namespace croft::core::host_local
