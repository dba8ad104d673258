#pragma once

#include <string>
#include <variant>
#include <vector>

#include "base/clock.h"
#include "core/block/owner.h"
#include "core/block/refusal.h"
#include "core/block/snapshot.h"
#include "net/address.h"

namespace croft::core {

/// An ADD as the allocator sees it. At least one of the families or one address is wanted.
struct AssignRequest {
  Owner owner;
  PodIdentity pod;
  AffinityOwner node;
  /// Families in which one address is to be chosen, unless `addresses` names some of that family.
  bool ipv4 = true;
  bool ipv6 = false;
  /// Pools to use, in this order, by name or CIDR; empty: every enabled pool of the family, by name.
  std::vector<std::string> ipv4_pools;
  std::vector<std::string> ipv6_pools;
  /// Addresses wanted exactly.
  std::vector<net::Address> addresses;
};

struct AssignedAddress {
  net::Address address;
  std::string pool;       ///< empty when the pool of an address held before is gone
  net::Prefix pool_cidr;  ///< the block's when the pool is gone
  std::optional<net::Address> gateway;
  net::Prefix block;
  SequenceNumber sequence_number;
  bool held_before = false;  ///< the owner had it already: the ADD was repeated
  friend bool operator==(const AssignedAddress&, const AssignedAddress&) = default;
};

/// IPv4 before IPv6; within a family in the order asked.
struct Assigned {
  std::vector<AssignedAddress> addresses;
};

using AssignAnswer = std::variant<Assigned, Refusal>;

/// Decides an assignment (block-ipam sheet §3.6–3.10, as far as DESIGN §6 does not say otherwise):
/// - what the owner holds already is the answer again;
/// - an explicit address comes from the block that contains it, made when absent;
/// - an automatic one from the node's own blocks with room, in pool order, else from a newly claimed block;
/// - all families and addresses, or none.
/// Selectors, borrowing, block limits and strict affinity have their place in `rejection_of` and after `claim` in
/// assign.cc. Pure: call again with what it found missing.
[[nodiscard]] Step<AssignAnswer> plan_assign(const Snapshot& snapshot, const AssignRequest& request,
                                             const Instant& now);

/// Where a node starts to look for blocks in a pool: FNV-1 of its name over the number of blocks (§3.9), so that nodes
/// start at different places and the processes of one node at the same.
[[nodiscard]] std::uint64_t rotation_start(const AffinityOwner& owner, std::uint64_t block_count);

}  // namespace croft::core
