#pragma once

#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "base/net/prefix.h"
#include "ipam/decide/draft.h"

namespace croft::core {

/// Which block a node should claim next in a pool, or why there is none.
struct ClaimChoice {
  std::optional<net::Prefix> block;
  std::string reason;   ///< when there is none: one clause for a verdict
  bool others = false;  ///< when there is none: other nodes have blocks of the pool
  /// Instead of one to claim: a block that is the owner's already and not among those that were said to be.
  std::optional<net::Prefix> own{};
};

/// Chooses a block that does not exist yet and has an address to give. The search begins at the owner's own place, and
/// the store makes it (FreeBlock). The block found is looked up, and passed over when it is there after all or
/// something of it is damaged. `taken` are blocks that the same decision has claimed already. `own` are the blocks that
/// the owner is known to have, for a caller that wants another one. In a store whose lists lag, the search may meet a
/// claim of moments ago.
[[nodiscard]] Flow<ClaimChoice> choose_block_to_claim(Reader& reader, const PoolTable& pools, const Pool& pool,
                                                      const AffinityOwner& owner,
                                                      const std::set<net::Prefix>& taken = {},
                                                      const std::map<net::Prefix, const Affinity*>* own = nullptr);

/// Asks for what choose_block_to_claim() looks at first, for who is likely to need it and reads something else anyway.
void prefetch_block_to_claim(Reader& reader, const PoolTable& pools, const Pool& pool, const AffinityOwner& owner,
                             const std::set<net::Prefix>& taken);

/// The blocks of a pool that exist and may have a free address, in the owner's rotation: all of them beside foreign
/// writers, else those with a vacancy. May leave the reader incomplete.
[[nodiscard]] std::vector<net::Prefix> blocks_with_room(Reader& reader, const PoolTable& pools, const Pool& pool,
                                                        const AffinityOwner& owner);

/// Names a block of another length that shares addresses with a block that is not there; nothing when there is none.
[[nodiscard]] Flow<std::optional<std::string>> obstacle_of(Reader& reader, const net::Prefix& block);

/// The number above which a block has to begin: the mark's, and that of a deleted block in its place, which is no block
/// any more. Nothing: any will do. Both records must have been asked for.
[[nodiscard]] std::optional<SequenceNumber> number_before(const Reader& reader, const net::Prefix& block);

}  // namespace croft::core
