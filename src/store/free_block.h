#pragma once

#include <cstddef>
#include <functional>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "base/result.h"
#include "register/snapshot.h"
#include "store/store.h"

namespace croft::store {

/// A page of the keys of blocks: those after a name, ascending.
struct BlockPage {
  core::Listing blocks;
  std::string after;
  std::size_t limit = 0;
};

/// The blocks in one look at a store.
struct BlockKeys {
  std::vector<Key> page;
  bool more = false;    ///< behind the page
  std::set<Key> there;  ///< of the keys that were asked for by themselves, those that are there
};

/// Lists a page, if one is wanted, and looks for single keys, if any are given.
using LookAtBlocks = std::function<Result<BlockKeys>(const std::optional<BlockPage>& page, std::span<const Key>)>;

/// Answers from a store that lists keys in the order of their names. For IPv4 it reads on from where the search begins,
/// a page at a time, until a block is free. So a claim's cost doesn't grow with the pool, nor with how full it is. The
/// names of IPv6 blocks are not in the order of their addresses, and all of them are listed.
[[nodiscard]] Result<core::FoundBlock> find_free_block(const core::FreeBlock& wanted, const LookAtBlocks& look);
inline constexpr std::size_t kBlockKeysAtOnce = 500;

}  // namespace croft::store
