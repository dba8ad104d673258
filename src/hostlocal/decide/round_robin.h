#pragma once

#include <cstddef>
#include <optional>
#include <vector>

#include "base/net/address.h"
#include "base/net/range.h"
#include "base/result.h"
#include "hostlocal/decide/range_set.h"

// The order in which the addresses of a set are tried (docs/notes/host-local.md#round-robin). It is a ring over all
// ranges of the set, from the address behind the cursor round to the cursor itself, each address once, a range's own
// gateway never.

namespace croft::core::host_local {

/// A stretch of the ring inside one range.
struct Stretch {
  std::size_t range = 0;  ///< place in RangeSet::ranges()
  net::AddressRange addresses;
  friend bool operator==(const Stretch&, const Stretch&) = default;
};

/// The ring cut into stretches, in the order of trying; gateways are still in it. `cursor` is the address handed out
/// last; one outside the set counts as none, and then the ring begins at the first address of the first range. With a
/// cursor, the range it lies in comes twice: behind the cursor first, up to and with the cursor last.
[[nodiscard]] std::vector<Stretch> ring_of(const RangeSet& set, const std::optional<net::Address>& cursor);

/// An address of a set, and the range it is from.
struct Candidate {
  std::size_t range = 0;
  net::Address address;
  friend bool operator==(const Candidate&, const Candidate&) = default;
};

/// The rest of a range above one of its addresses; nullopt when there is none.
[[nodiscard]] std::optional<net::AddressRange> behind(const net::AddressRange& range, const net::Address& address);

/// The first free address of the ring; nullopt when there is none. `next_free(AddressRange)` gives
/// Result<std::optional<Address>>: the lowest free address of a stretch; its error is passed on. Asks at most twice as
/// often as there are stretches, and one time more for each gateway.
template <class NextFree>
[[nodiscard]] Result<std::optional<Candidate>> find_free(const RangeSet& set, const std::optional<net::Address>& cursor,
                                                         NextFree&& next_free) {
  for (const Stretch& stretch : ring_of(set, cursor)) {
    const net::Address gateway = set.ranges()[stretch.range].gateway;
    std::optional<net::AddressRange> rest = stretch.addresses;
    while (rest) {
      TRY(const std::optional<net::Address> free, next_free(*rest));
      if (!free) break;
      if (*free != gateway) return std::optional(Candidate{stretch.range, *free});
      rest = behind(*rest, *free);
    }
  }
  return std::optional<Candidate>();
}

}  // namespace croft::core::host_local
