#pragma once

#include <optional>
#include <string>

#include "base/clock.h"
#include "base/net/address.h"
#include "hostlocal/decide/holder.h"

namespace croft::core::host_local {

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
