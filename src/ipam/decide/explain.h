#pragma once

#include <optional>
#include <string>
#include <vector>

#include "ipam/decide/assign.h"
#include "ipam/decide/pool_choice.h"

namespace croft::core {

/// One of the node's own blocks in a pool.
struct OwnBlockFact {
  net::Prefix cidr;
  std::uint32_t free = 0;               ///< assignable now
  std::optional<WallTime> cools_until;  ///< the first end of a cooldown, when something cools
  std::string fault;                    ///< why nothing is taken from it whatever is free; empty: nothing
};

/// The facts about one pool that was considered, in the order of consideration.
struct PoolFact {
  std::string pool;
  net::Prefix cidr;
  bool usable = false;
  std::string reason;    ///< why it is not usable; the verdict of a refusal
  std::string selected;  ///< why it is, or by which selector and labels it is not
  std::vector<OwnBlockFact> own;
  std::optional<net::Prefix> claimable;  ///< the block the node would claim next
  std::string not_claimable;             ///< why there is none
  /// Blocks of others that may have a free address, at most kExplainBlocksMax.
  std::vector<net::Prefix> to_borrow;
};
inline constexpr std::size_t kExplainBlocksMax = 20;
/// How many blocks of others are looked at for that, in the order in which they would be searched.
inline constexpr std::size_t kExplainLooksMax = 100;

/// How an address would be got.
enum class Origin : std::uint8_t { held_before, own_block, new_block, taken_over, borrowed };

struct ExplainedAddress {
  AssignedAddress address;
  Origin origin = Origin::own_block;
  std::string block_owner;  ///< whose block it is before; empty: nobody's, or it does not exist
};

struct FamilyFacts {
  net::Family family = net::Family::v4;
  std::vector<PoolFact> pools;
  std::size_t owned_blocks = 0;   ///< of usable pools
  std::uint32_t block_limit = 0;  ///< 0: none
};

/// The outcome that an ADD would have, and its grounds.
struct Explanation {
  AssignAnswer answer;
  std::vector<ExplainedAddress> addresses;  ///< when the answer assigns
  std::vector<FamilyFacts> families;        ///< those that were asked for
  bool strict_affinity = false;
  bool auto_allocate_blocks = true;
  bool node_recorded = false;
  Labels node_labels;
};

/// Makes the decision of plan_assign and tells its grounds; writes nothing. Names of pools and verdicts are those of a
/// refusal. Error: as plan_assign.
[[nodiscard]] Step<Explanation> plan_explain(const Snapshot& snapshot, const AssignRequest& request,
                                             const Instant& now);

/// "own block", "new block", …
[[nodiscard]] std::string_view name_of(Origin origin);

}  // namespace croft::core
