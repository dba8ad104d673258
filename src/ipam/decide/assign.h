#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "base/clock.h"
#include "base/net/address.h"
#include "base/net/per_family.h"
#include "ipam/decide/refusal.h"
#include "register/owner.h"
#include "register/snapshot.h"

namespace croft::core {

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
  bool held_before = false;  ///< the owner had it already: the ADD was repeated
  bool borrowed = false;     ///< the node does not own the block; known to who decides, no part of an agent's answer
  friend bool operator==(const AssignedAddress&, const AssignedAddress&) = default;
};

/// IPv4 before IPv6; within a family in the order asked.
struct Assigned {
  std::vector<AssignedAddress> addresses;
  /// One commit does not hold all that was asked for: deciding again goes on with the rest.
  bool unfinished = false;
};
/// How many blocks one decision touches.
inline constexpr std::size_t kAssignBlocksMax = 12;

using AssignAnswer = std::variant<Assigned, Refusal>;

/// Decides an assignment (docs/notes/calico-ipam.md#auto-assign, #assign-ip, as far as docs/promises.md#shapes does
/// not say otherwise):
/// - what the owner holds already is the answer again: in the blocks that its handle names, and in those that were read
///   for this anyway, of which the handle may have been lost; then it is mended;
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

}  // namespace croft::core
