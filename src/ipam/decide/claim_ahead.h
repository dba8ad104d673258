#pragma once

#include <cstdint>
#include <optional>

#include "base/clock.h"
#include "base/net/address.h"
#include "base/net/prefix.h"
#include "ipam/decide/assign.h"
#include "register/snapshot.h"

namespace croft::core {

/// A block that was claimed before it was needed, as it was then.
struct ClaimedAhead {
  net::Prefix block;
  SequenceNumber sequence_number;  ///< while the block has it, it was not used
  friend bool operator==(const ClaimedAhead&, const ClaimedAhead&) = default;
};

/// Decides that a node claims its next block before it is needed. It does so when it has blocks in the pools that a
/// request like `like` uses, and fewer than `least_free` addresses are free in them. So a node is never more than one
/// ahead. Owner, pod and addresses of the request are not looked at.
///
/// Nothing is claimed (an answer without a block): when there is enough; for a node without a block, whose first ADD
/// claims one anyhow; under a limit of blocks that somebody set (AssignRequest::block_limit,
/// IpamConfig::max_blocks_per_host), beyond the default one, and without auto_allocate_blocks; when less than sixteen
/// of a pool's blocks, or one in eight, would be nobody's: they are for nodes that have none. Only who has the keys of
/// all blocks in memory claims ahead.
[[nodiscard]] Step<std::optional<ClaimedAhead>> plan_claim_ahead(const Snapshot& snapshot, const AssignRequest& like,
                                                                 net::Family family, std::uint32_t least_free,
                                                                 const Instant& now);

}  // namespace croft::core
