#pragma once

#include <cstddef>
#include <optional>
#include <vector>

#include "ipam/decide/affinity_changes.h"
#include "ipam/use/transact.h"

namespace croft::engine {

/// Gives up one block of an owner (core::plan_release_affinity). Without `apply` it only says what would come of it.
[[nodiscard]] Result<core::AffinityOutcome> release_affinity(const Context& context,
                                                             const core::AffinityRelease& release, bool apply = true);

/// The outcome of several claims.
struct AffinitiesReleased {
  std::vector<net::Prefix> released;
  std::vector<net::Prefix> not_empty;  ///< kept: they hold addresses
  /// The last failure; what could be done was done all the same.
  std::optional<Error> failure;
};

/// Gives up all blocks of an owner, of both families, also when their pools are gone
/// (docs/notes/calico-ipam.md#release-host-affinities): empty ones go; others become nobody's, or stay with
/// `must_be_empty`. Addresses stay held: those of a node that is gone are collected when their holders are proven gone.
[[nodiscard]] Result<AffinitiesReleased> release_host_affinities(const Context& context,
                                                                 const core::AffinityOwner& owner, bool must_be_empty,
                                                                 bool apply = true);

/// The outcome of a claim of several blocks.
struct AffinitiesClaimed {
  std::vector<net::Prefix> claimed;  ///< also those that the owner had already
  std::vector<net::Prefix> others;   ///< belong to somebody else
};

/// Claims every block of `cidr` for an owner (ClaimAffinity); one that is nobody's too, with the addresses held in it,
/// which Calico leaves alone. Errors: invalid_argument when no enabled pool contains
/// it, or it is smaller than a block, or holds more than kClaimBlocksMax.
[[nodiscard]] Result<AffinitiesClaimed> claim_affinity(const Context& context, const core::AffinityOwner& owner,
                                                       const net::Prefix& cidr);
inline constexpr std::uint64_t kClaimBlocksMax = 4096;

}  // namespace croft::engine
