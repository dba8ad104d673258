#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "base/clock.h"
#include "base/net/address.h"
#include "base/net/prefix.h"
#include "base/net/ranges.h"
#include "base/result.h"
#include "register/owner.h"
#include "register/pool.h"
#include "register/snapshot.h"

namespace croft::core {

/// Why one pool could not serve.
struct PoolVerdict {
  std::string pool;
  net::Prefix cidr;
  std::string reason;   ///< one clause, e.g. "disabled", "all 4 blocks are claimed: …"
  bool usable = false;  ///< the request might have used it, had there been an address
  friend bool operator==(const PoolVerdict&, const PoolVerdict&) = default;
};

/// The obstacle, for callers that speak another system's language (ipam/door/calico_ipam.h).
enum class RefusalCause : std::uint8_t {
  other,
  no_pool_enabled,        ///< there is no enabled pool of the family
  pool_not_usable,        ///< a pool that was asked for does not exist, is not enabled or of the other family
  no_pool_for_node,       ///< no enabled pool selects the node (and namespace)
  no_pool_qualified,      ///< pools there are, but none for this use or with blocks of this size
  full,                   ///< every address of the usable pools is taken
  full_and_strict,        ///< the node's own blocks are full, and strict affinity forbids others
  block_limit,            ///< another block would be one more than a node may have
  no_block_to_claim,      ///< claiming blocks is switched off (autoAllocateBlocks)
  address_in_no_pool,     ///< no enabled pool has the address that was asked for
  address_taken,          ///< that address is held, or cooling
  address_out_of_bounds,  ///< its block is not the node's own, and affinity is strict
};
/// As it is written here: stable, for metrics.
[[nodiscard]] std::string_view name_of(RefusalCause cause);

/// A request that cannot be granted, as a value: every pool considered and why it was rejected
/// (docs/promises.md#promise-7).
struct Refusal {
  /// exhausted, no_pool, refused_by_configuration; or that of a damaged record for which addresses were passed over.
  ErrorCode code = ErrorCode::exhausted;
  std::string summary;  ///< one line, e.g. "no IPv4 address is free for node node-a"
  std::vector<PoolVerdict> considered;
  RefusalCause cause = RefusalCause::other;
  friend bool operator==(const Refusal&, const Refusal&) = default;
};

inline constexpr std::size_t kVerdictsToldApart = 8;
/// The same text everywhere: CNI error, log, `croft explain`. `message` is the summary, `details` one clause a pool; of
/// more than kVerdictsToldApart pools those with one reason have one clause, which names the first and counts the rest.
[[nodiscard]] Error to_error(const Refusal& refusal);

/// An ADD as the allocator sees it. At least one of the families or one address is wanted.
struct AssignRequest {
  Owner owner;
  PodIdentity pod;
  AffinityOwner node;
  /// How many addresses of a family the owner is to hold in the end, unless `addresses` names some of that family.
  net::PerFamily<std::uint32_t> count{1, 0};
  /// Pools to use, in this order, by name or CIDR; empty: every pool that selects the node, by name. An address that is
  /// wanted exactly has to be in one of them too.
  net::PerFamily<std::vector<AskedPool>> pools;
  /// Addresses wanted exactly.
  std::vector<net::Address> addresses;
  /// Whether one of these may be a reserved one, as Calico allows (docs/notes/calico-ipam.md#assign-ip).
  bool reserved_addresses = false;
  /// Whether one of these may cool: who asks knows that it is in use already.
  bool cooling_addresses = false;
  PoolUse use = PoolUse::workload;
  /// Labels of the pod's namespace, for pools with a namespaceSelector.
  std::map<std::string, std::string> namespace_labels;
  /// Nobody is served: whether some pod could be, of whatever namespace, and whatever pool it names.
  bool for_some_pod = false;
  /// The most blocks of a family the node may own in the usable pools (docs/notes/calico-ipam.md#block-limit); a
  /// smaller one in the configuration counts. 0: the configuration's alone.
  std::uint32_t block_limit = 0;
  /// The limit when neither says anything; 0: none.
  std::uint32_t default_block_limit = 0;
  /// Addresses that somebody on the node lives with, and over which device: none of them is assigned.
  std::map<net::Address, std::string> living{};
};
inline constexpr std::uint32_t kCalicoBlockLimit = 20;  ///< Calico's default_block_limit

/// The limit of blocks that counts for a request (docs/notes/calico-ipam.md#block-limit); 0: none.
[[nodiscard]] std::uint32_t block_limit_of(const AssignRequest& request, const IpamConfig& config);

struct AssignedAddress {
  net::Address address;
  std::string pool;       ///< empty when the pool of an address held before is gone
  net::Prefix pool_cidr;  ///< the block's when the pool is gone
  std::optional<net::Address> gateway;
  net::Prefix block;
  SequenceNumber sequence_number;
  bool held_before = false;  ///< the owner had it already: the ADD was repeated, or an earlier try of it got it
  bool borrowed = false;     ///< the node does not own the block; known to who decides, no part of an agent's answer
  friend bool operator==(const AssignedAddress&, const AssignedAddress&) = default;
};

/// IPv4 before IPv6; within a family in the order asked.
struct Assigned {
  std::vector<AssignedAddress> addresses;
};

using AssignAnswer = std::variant<Assigned, Refusal>;

/// Decides an assignment (docs/notes/calico-ipam.md#auto-assign, #assign-ip, as far as docs/promises.md#shapes does
/// not say otherwise):
/// - what the owner holds already, in the blocks that its handle names, is the answer again;
/// - an explicit address comes from the block that contains it, made when absent, and from no other pool than those
///   asked for, if any;
/// - an automatic one in Calico's four parts: empty blocks in pools that no longer select the node are given up; the
///   node's own blocks; a new block, or one that another node left empty for a minute; unless affinity is strict, any
///   block with a free address; of blocks whose record has no room for one more holder the next one;
/// - all families and addresses, or none.
/// Beside foreign writers affinities without a block, with somebody else's or left unconfirmed are mended on the way.
/// Pure: call again with what it found missing.
[[nodiscard]] Step<AssignAnswer> plan_assign(const Snapshot& snapshot, const AssignRequest& request,
                                             const Instant& now);

/// Where a node starts to look for blocks in a pool: FNV-1 of its name, over the number of blocks
/// (docs/notes/calico-ipam.md#rotation), so that nodes start at different places and the processes of one node at
/// the same.
[[nodiscard]] std::uint32_t rotation_start(const AffinityOwner& owner);

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

/// How many addresses one ADD may name.
inline constexpr std::size_t kWishedAddressesMax = 16;

/// Puts what annotations ask for in the place of what the configuration says, as far as it is wanted; addresses are
/// added to those that are asked for. Error: invalid_argument for more than kWishedAddressesMax addresses.
[[nodiscard]] Result<void> apply_wishes(const AnnotatedWishes& said, const WishesWanted& wanted,
                                        AssignRequest& request);

/// Error: invalid_argument, for a request of neither family and no address.
[[nodiscard]] Result<void> check_something_is_asked(const AssignRequest& request);

/// Whether more addresses cool than anybody can hold, of so many that may be given out. So it is where something behind
/// Croft, as the main plugin, fails each ADD: its DEL lets the address cool, and the next try takes another.
[[nodiscard]] bool mostly_cools(std::uint64_t cooling, const net::Count& usable);
/// Says it of a pool that has no address to give, and what it tells; the same in a refusal and in `croft check`.
[[nodiscard]] std::string cooling_text(std::uint64_t cooling, const net::Count& usable, WallTime first_end);

}  // namespace croft::core
