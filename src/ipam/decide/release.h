#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/net/address.h"
#include "base/net/prefix.h"
#include "register/block.h"
#include "register/owner.h"
#include "register/snapshot.h"

namespace croft::core {

// An emptied block whose pool no longer selects its node is given up with the release
// (docs/notes/calico-ipam.md#keep-or-give-up).

/// The result of a release. An owner or address that held nothing is a success with nothing in it
/// (docs/notes/calico-ipam.md#release).
struct Released {
  std::vector<net::Address> addresses;
};

/// Decides a DEL. Everything that the owner holds in the blocks which its handle names goes to cooling, or is free with
/// a pool cooldown of 0. The handle counts the rest, or goes. A block that holds fewer than the handle counts is
/// written anew, so that no write of an ADD that was killed comes to it later.
[[nodiscard]] Step<Released> plan_release_owner(const Snapshot& snapshot, const Owner& owner, const Instant& now);

/// One address to release, with what the caller believes about its holder. All that is given must match, so that a late
/// release never frees a successor (docs/notes/calico-ipam.md#release-from-block, #invariants 8).
struct AddressToRelease {
  net::Address address;
  std::optional<std::string> handle_id;
  std::optional<SequenceNumber> sequence_number;
  std::optional<net::Prefix> block{};  ///< which one it is in, if that is known: who knows spares a look for it
};

/// Whether all that is given of the holder of this address is so.
[[nodiscard]] bool is_still_held_as_named(const AddressToRelease& wanted, const Block& block, net::Ordinal ordinal,
                                          const Attribute& holder);

struct AddressReleases {
  std::vector<net::Address> released;
  std::vector<net::Address> not_held;    ///< free or cooling already, or in no block: not an error
  std::vector<net::Address> mismatched;  ///< held under another handle or sequence number: left alone
};

/// Decides the release of given addresses of one block, e.g. by an operator or a collector. The block `cidr` contains
/// them all.
[[nodiscard]] Step<AddressReleases> plan_release_addresses(const Snapshot& snapshot, const net::Prefix& cidr,
                                                           const std::vector<AddressToRelease>& addresses,
                                                           const Instant& now);

}  // namespace croft::core
