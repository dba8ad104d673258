#pragma once

#include <optional>
#include <set>
#include <string>

#include "core/block/draft.h"
#include "net/prefix.h"

namespace croft::core {

/// Which block a node should claim next in a pool, or why there is none.
struct ClaimChoice {
  std::optional<net::Prefix> block;
  std::string reason;  ///< when there is none: one clause for a verdict
};

/// Chooses a block that does not exist yet and has an address to give: the few after the node's last claim are guessed
/// first (a read by key each, all at once), then all block keys of the family are listed, once. Ends incomplete (see
/// Reader) until the guesses or the list have been read.
[[nodiscard]] ClaimChoice choose_block_to_claim(Reader& reader, const PoolTable& pools, const Pool& pool,
                                                const AffinityOwner& owner);

/// How many guesses are read together before listing.
inline constexpr std::uint64_t kClaimGuesses = 4;

}  // namespace croft::core
