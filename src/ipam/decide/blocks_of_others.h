#pragma once

#include <cstddef>
#include <functional>
#include <limits>
#include <optional>

#include "ipam/decide/family_search.h"

namespace croft::core {

inline constexpr std::size_t kAllBlocks = std::numeric_limits<std::size_t>::max();

/// Calls `visit` for the first `look_max` blocks of a pool that may have a free address, until it returns false. Blocks
/// that contradict themselves are passed over.
[[nodiscard]] Flow<void> for_blocks_with_room(Assignment& assignment, const Pool& pool, std::size_t look_max,
                                              const std::function<Flow<bool>(Block&)>& visit);

/// An empty block that another node claimed a while ago, among the first `look_max`; as it would be the node's.
[[nodiscard]] Flow<std::optional<Block>> find_abandoned(Assignment& assignment, FamilySearch& search, const Pool& pool,
                                                        std::size_t look_max);

}  // namespace croft::core
