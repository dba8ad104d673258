#pragma once

#include <cstddef>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "base/error.h"
#include "base/net/address.h"
#include "base/net/address_with_length.h"
#include "base/net/range.h"
#include "base/result.h"
#include "hostlocal/decide/range_set.h"

// The decision of a host-local ADD, pure: which address of each range set an attachment gets, or why none
// (docs/notes/host-local.md#add). The texts of refusals are the reference's.

namespace croft::core::host_local {

// The order in which the addresses of a set are tried (docs/notes/host-local.md#round-robin). It is a ring over all
// ranges of the set, from the address behind the cursor round to the cursor itself, each address once, a range's own
// gateway never.

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

/// The questions of a decision about the reservations of a network. All answers are of one moment: nobody else writes
/// while a decision is made. An error of any of them but `cursor` ends the decision with that error.
class Taken {
 public:
  virtual ~Taken() = default;
  /// The lowest address of the range that is not reserved; nullopt when all are.
  [[nodiscard]] virtual Result<std::optional<net::Address>> next_free(const net::AddressRange& range) = 0;
  [[nodiscard]] virtual Result<bool> is_taken(const net::Address& address) = 0;
  /// The address that was handed out last of the set with this number; nullopt when there is no cursor or it is no
  /// address. With an error, which says that it cannot be read, the ring begins at its start.
  [[nodiscard]] virtual Result<std::optional<net::Address>> cursor(std::size_t set) = 0;
};

struct Request {
  std::string container_id;             ///< for texts only
  std::vector<net::Address> requested;  ///< wanted addresses, unmapped, without duplicates
  /// All addresses reserved for it, also those of an old plugin that recorded no interface. Asked once at most.
  std::function<Result<std::vector<net::Address>>()> held;
};

/// One address that was chosen.
struct Pick {
  std::size_t set = 0;
  net::AddressWithLength address;  ///< with the length of the subnet
  net::Address gateway;
  friend bool operator==(const Pick&, const Pick&) = default;
};

/// The decision. With a refusal the picks are those of the sets before the one that failed. They are not to be
/// reserved, but the reference has moved their cursors by then, and so do we.
struct Decision {
  std::vector<Pick> picks;              ///< one a set, in the order of the sets
  std::optional<Error> refusal;         ///< exhausted when a set is full, refused_by_configuration otherwise
  std::vector<std::string> warnings{};  ///< cursors that cannot be read
  friend bool operator==(const Decision&, const Decision&) = default;
};

/// For each set in order the first requested address that it contains and nobody took before, else the next free one of
/// the ring. Refusals, in the order they are found:
/// - `failed to allocate for range <i>: <why>`, where <why> is `requested ip <ip> is subnet's gateway`,
///   `requested IP address <ip> is not available in range set <set>`,
///   `<ip> has been allocated to <container>, duplicate allocation is not allowed`, or
///   `no IP addresses available in range set: <set>`;
/// - `failed to allocate all requested IPs: <ip> <ip>...` for those that no set contains.
/// A requested address skips the check for a second one of the same attachment, as in the reference.
[[nodiscard]] Result<Decision> assign(const std::vector<RangeSet>& sets, const Request& request, Taken& taken);

}  // namespace croft::core::host_local
