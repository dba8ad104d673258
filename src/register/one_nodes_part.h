#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "base/net/prefix.h"
#include "register/affinity.h"
#include "register/block.h"
#include "register/kinds.h"
#include "register/pool.h"
#include "register/records.h"
#include "register/snapshot.h"

// The part of the register that one node looks at again and again (Followed in kinds.h), for whoever keeps it in
// memory, and the conclusions that this part allows.
namespace croft::core {

/// The one who looks at a store.
enum class Follower : std::uint8_t {
  blocks,  ///< who assigns from blocks
  stock,   ///< who keeps a stock of cloud addresses, and looks at nothing else
};
/// The records of a kind that a follower follows.
[[nodiscard]] constexpr Followed followed_of(Kind kind, Follower follower) {
  const Followed followed = traits_of(kind).followed;
  if ((followed == Followed::stock) != (follower == Follower::stock)) return Followed::nothing;
  return follower == Follower::stock ? Followed::all : followed;
}

struct NodesPart {
  std::vector<Key> records;         ///< single ones
  std::vector<Listing> lists;       ///< whole
  std::vector<Listing> claims;      ///< of which the names of all count
  std::vector<Listing> own_claims;  ///< and the node's own whole
};
[[nodiscard]] NodesPart part_of(const AffinityOwner& node, Follower follower = Follower::blocks);

/// The handles that hold addresses of a block, each once, in order, as views of it; those of the past holders of
/// cooling addresses do not.
[[nodiscard]] std::vector<std::string_view> handles_holding(const Block& block);

/// Whether a claim of this block has a condition on it as far as this pool goes: the pool is elsewhere, or has blocks
/// of this length. Nothing may be guessed of others; they may be anybody's, or nobody's, from before the pool was
/// changed.
[[nodiscard]] bool may_be_block_of(const Pool& pool, const net::Prefix& block);

}  // namespace croft::core
