#pragma once

#include <map>
#include <optional>
#include <vector>

#include "base/net/prefix.h"
#include "ipam/decide/draft.h"

namespace croft::core {

/// The blocks that a node has, as far as one family and the usable pools are concerned. Found by vacancies; beside
/// foreign writers, who don't keep them, by affinities too, and vacancies only say where to look first.
struct OwnBlocks {
  std::vector<net::Prefix> ready;    ///< may have an address now: in the order of pools, the longest ready first
  std::vector<net::Prefix> waiting;  ///< have none before some cooldown ends, if the clock is right
  std::vector<net::Prefix> outside;  ///< in none of the usable pools
  std::map<net::Prefix, const Affinity*> rows;  ///< only beside foreign writers

  /// The affinity row of a block; null when it was not read.
  [[nodiscard]] const Affinity* row(const net::Prefix& cidr) const;
  /// How many blocks of the usable pools the node has. A row whose block was looked at, and is not there or another's,
  /// is what a claim that failed left: it does not count. May leave the reader incomplete.
  [[nodiscard]] std::size_t count(Reader& reader, const AffinityOwner& node, net::Family family,
                                  const std::vector<const Pool*>& usable) const;
  /// One of them, if there is any, that really is the node's.
  [[nodiscard]] Flow<std::optional<net::Prefix>> any(Reader& reader, const AffinityOwner& node, net::Family family,
                                                     const std::vector<const Pool*>& usable) const;
};

/// Asks for what find_own_blocks reads.
void prefetch_own_blocks(Reader& reader, const AffinityOwner& node, net::Family family);

[[nodiscard]] OwnBlocks find_own_blocks(Reader& reader, const AffinityOwner& node, net::Family family,
                                        const std::vector<const Pool*>& usable, WallTime now);

}  // namespace croft::core
