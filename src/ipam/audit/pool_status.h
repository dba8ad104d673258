#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/net/ranges.h"
#include "ipam/audit/findings.h"
#include "noderanges/decide/node_range_overview.h"
#include "register/pool.h"

// The status of a pool, and of what node ranges are cut from, for people who ask a Kubernetes API about them
// (docs/formats/kubernetes-own.md#status). It has numbers, and statements that hold or do not.

namespace croft::core {

/// One statement about a thing, in the form of Kubernetes' conditions.
struct Condition {
  std::string type;     ///< "Ready", "Exhausted"
  bool holds = false;   ///< `status`: True or False; what nobody knows is not said
  std::string reason;   ///< a word in CamelCase, for programs
  std::string message;  ///< for people
  friend bool operator==(const Condition&, const Condition&) = default;
};

/// How the addresses of a pool are used.
struct PoolFill {
  Pool pool;
  net::Count capacity;                  ///< all its addresses
  std::uint64_t held = 0;               ///< in its blocks
  std::uint64_t cooling = 0;            ///< released, not yet reusable
  net::Count reserved;                  ///< out of use, and held by nobody
  std::uint64_t blocks = 0;             ///< that exist
  std::uint64_t owned_blocks = 0;       ///< of these, the ones that a node owns
  std::uint64_t borrowed = 0;           ///< of the held ones, those on a node that does not own their block
  std::optional<WallTime> cools_until;  ///< the first end of a cooldown, when something cools
  net::Count stranded;                  ///< free ones that only the owner of their block may use: affinity is strict
  [[nodiscard]] net::Count free() const { return capacity - held - cooling - reserved; }
  /// Free ones that any node may use.
  [[nodiscard]] net::Count open() const { return free() - stranded; }
};

/// How far a pool is from refusing a node that has no room in its own blocks.
enum class Fullness : std::uint8_t { room, nearly_full, full };
/// Nearly full: less than a tenth is open of what is not reserved. A pool that gives no new addresses has room.
[[nodiscard]] Fullness fullness_of(const PoolFill& fill);
/// "pool p is full: …", "pool p is over 90 % full: …", "pool p cools down: …"; empty where there is room.
[[nodiscard]] std::string fullness_text(const PoolFill& fill);

/// A finding for each pool that is full or nearly so.
[[nodiscard]] std::vector<audit::Finding> audit_fullness(const std::vector<PoolFill>& pools);

/// A pool with what holds of it: Ready (new addresses come from it), Disabled, Exhausted (nothing is free), Overlaps
/// (another pool has some of its addresses; the message names one).
struct PoolStatus {
  PoolFill use;
  std::vector<Condition> conditions;
};
/// The status of each pool, in the order given. n log n steps.
[[nodiscard]] std::vector<PoolStatus> status_of_pools(std::vector<PoolFill> pools);

/// The address space that node ranges are cut from, with its conditions. Ready: every node that is known has its
/// ranges. Exhausted: one of the cluster CIDRs is full. Overlaps: two nodes have the same addresses.
struct NodeRangeStatus {
  struct Cluster {
    std::string cidr;
    std::uint32_t capacity = 0, taken = 0, excluded = 0;  ///< node ranges; `taken` without the excluded ones
    friend bool operator==(const Cluster&, const Cluster&) = default;
  };
  std::vector<Cluster> clusters;
  std::uint64_t nodes = 0;    ///< that are known
  std::uint64_t waiting = 0;  ///< of these, that lack a range of some family
  std::vector<Condition> conditions;
};
[[nodiscard]] NodeRangeStatus status_of_node_ranges(const NodeRangeOverview& seen);

}  // namespace croft::core
