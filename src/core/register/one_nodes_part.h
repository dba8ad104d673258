#pragma once

#include <string_view>
#include <vector>

#include "core/register/affinity.h"
#include "core/register/block.h"
#include "core/register/pool.h"
#include "core/register/records.h"
#include "core/register/snapshot.h"
#include "net/prefix.h"

// What of the register one node looks at again and again (Followed in kinds.h), for whoever keeps it in memory, and
// what may be concluded from that part.
namespace croft::core {

struct NodesPart {
  std::vector<Key> records;         ///< single ones
  std::vector<Listing> lists;       ///< whole
  std::vector<Listing> claims;      ///< of which the names of all count
  std::vector<Listing> own_claims;  ///< and the node's own whole
};
[[nodiscard]] NodesPart part_of(const AffinityOwner& node);

/// The handles that hold addresses of a block, each once, in order, as views of it; those of the past holders of
/// cooling addresses do not.
[[nodiscard]] std::vector<std::string_view> handles_holding(const Block& block);

/// Whether a claim on one block may mean that another program lays a block over the other: who knew to be alone in that
/// one (Block::is_settled) no longer does.
[[nodiscard]] bool may_be_laid_over(const net::Prefix& claimed, const net::Prefix& block);

/// Whether a claim of this block has a condition on it as far as this pool goes: the pool is elsewhere, or has blocks
/// of this length. Of others nothing may be guessed; they may be anybody's, or nobody's, from before the pool was
/// changed.
[[nodiscard]] bool may_be_block_of(const Pool& pool, const net::Prefix& block);

}  // namespace croft::core
