#pragma once

#include <cstddef>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/net/address.h"
#include "base/net/ordinal.h"
#include "base/net/prefix.h"
#include "register/block.h"
#include "register/owner.h"
#include "register/snapshot.h"

namespace croft::core {

// An emptied block whose pool no longer selects its node is given up with the release
// (docs/reference/calico-ipam.md#keep-or-give-up).

/// What was held in a block, by ordinal, under which number.
using HeldNumbers = std::map<net::Ordinal, SequenceNumber>;

/// What a release did. An owner or address that held nothing is a success with nothing in it
/// (docs/reference/calico-ipam.md#release).
struct Released {
  std::vector<net::Address> addresses;
  /// Held by the same owner, and not meant (ReleaseScope): a later ADD has them.
  std::vector<net::Address> kept;
  bool unfinished = false;  ///< more blocks are left than one plan takes
  /// The plan deletes the handle, or there is none. Else it may count what an earlier release, which did not come to
  /// its end, has freed.
  bool ends_handle = false;
  /// The handle counts otherwise than a block that was looked at has it: it may have lost others, too.
  bool at_odds = false;
  // For the next look of the same call (ReleaseScope).
  std::vector<net::Prefix> named;              ///< by the handle, if this was the first look
  std::map<net::Prefix, HeldNumbers> found{};  ///< what the blocks looked at had that was meant
  std::size_t done = 0;                        ///< blocks that need no other look, once the plan is committed
};

/// Which allocations a release means. A DEL that hangs and goes on later must not take what the owner got meanwhile:
/// the same container may have been set up again, and its ADD has the same owner.
struct ReleaseScope {
  /// When the DEL began: what was made since isn't meant. Absent: whatever is there at the first look is.
  std::optional<Instant> began{};
  /// A moment after all was read, of the same clock. With it an allocation counts as made since only where the span
  /// between the two can have its time, by the wall clock as it was or as it is by now: so a clock that was set back
  /// between ADD and DEL keeps nothing from its release. Absent, or of another boot: every later time counts.
  std::optional<Instant> looked_at{};

  // What earlier looks of the same call left; nothing before the first one.
  std::optional<std::vector<net::Prefix>> blocks{};  ///< Released::named
  std::size_t done = 0;                              ///< how many of these
  std::map<net::Prefix, HeldNumbers> found{};        ///< nothing else is meant in these blocks

  /// Takes in what a decision saw, whatever becomes of its plan.
  void note_look(const Released& decided);
};

/// Whether an allocation was made after a DEL had begun, as far as its attributes say when it was.
[[nodiscard]] bool is_made_since(const Attribute& holder, const ReleaseScope& scope);

/// Decides a DEL: everything the owner holds and the scope means, in the blocks its handle names, goes to cooling (or
/// free, with a pool cooldown of 0). One plan looks at no more than kReleaseBlocksMax blocks, and writes no more than
/// one commit can hold; when more are left, releasing again, with the scope, goes on.
[[nodiscard]] Step<Released> plan_release_owner(const Snapshot& snapshot, const Owner& owner, const Instant& now,
                                                const ReleaseScope& scope = {});
inline constexpr std::size_t kReleaseBlocksMax = 16;

/// Decides the release of what a handle holds that is of the form of Calico before 3.0
/// (docs/reference/calico-ipam.md#plugin-del): a pod's `<namespace>.<name>`, else the container's ID. Such a text may
/// also be the handle of today's form of another network's container (`<network>.<containerID>`), or that of a node's
/// tunnel address: only what records this very pod is meant, or what has no attributes at all, as nothing of Calico's
/// since 3.0 or of Croft's. In batches as plan_release_owner.
[[nodiscard]] Step<Released> plan_release_old_handle(const Snapshot& snapshot, const std::string& handle_id,
                                                     const Instant& now, const ReleaseScope& scope = {});

/// One address to release, with what the caller believes about its holder. What is given must match, so that a late
/// release never frees a successor (docs/reference/calico-ipam.md#release-from-block, #invariants 8).
struct AddressToRelease {
  net::Address address;
  std::optional<std::string> handle_id;
  std::optional<SequenceNumber> sequence_number;
  std::optional<net::Prefix> block{};  ///< which one it is in, if that is known: who knows spares a look for it
};

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
