#pragma once

#include <cstddef>
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

/// The questions of a decision about the reservations of a network. All answers are of one moment: nobody else writes
/// while a decision is made. An error of any of them ends the decision with that error.
class Taken {
 public:
  virtual ~Taken() = default;
  /// The lowest address of the range that is not reserved; nullopt when all are.
  [[nodiscard]] virtual Result<std::optional<net::Address>> next_free(const net::AddressRange& range) = 0;
  [[nodiscard]] virtual Result<bool> is_taken(const net::Address& address) = 0;
  /// The address that was handed out last of the set with this number; nullopt when none was, or when nobody knows.
  [[nodiscard]] virtual Result<std::optional<net::Address>> cursor(std::size_t set) = 0;
  /// All addresses reserved for the attachment that asks, also those of an old plugin that recorded no interface.
  [[nodiscard]] virtual Result<std::vector<net::Address>> held_by_asker() = 0;
};

struct Request {
  std::string container_id;             ///< for texts only
  std::vector<net::Address> requested;  ///< wanted addresses, unmapped, without duplicates
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
  std::vector<Pick> picks;       ///< one a set, in the order of the sets
  std::optional<Error> refusal;  ///< exhausted when a set is full, refused_by_configuration otherwise
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
