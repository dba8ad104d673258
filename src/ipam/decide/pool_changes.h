#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/clock.h"
#include "register/snapshot.h"

namespace croft::core {

struct PoolCreated {
  Pool pool;
  bool existed_before = false;  ///< a pool of this name was there and agrees with the spec
  bool was_completed = false;   ///< and nobody had enabled it since it was made (Pool::being_made): now it is
};

/// Whether whoever wants this pool has to complete what another has begun: it agrees, and is half made.
[[nodiscard]] bool is_to_be_completed(const Pool& pool, const PoolSpec& wanted);

/// Decides the creation of a pool together with its reservation; of a pool that is there and agrees with the spec, the
/// reservation alone when it is gone. A half made pool is enabled after the same looks as for a new one, unless a block
/// shows that it was in use once. One that somebody disabled stays so. Errors: what make_pool() finds; already_exists
/// when a pool of this name is there and disagrees (the message says in what) ; refused_by_configuration when the CIDR
/// overlaps another pool, another claim on the address space (address_claims.h), or blocks of a deleted pool that are
/// of another length, or hold the new one's gateway. A pool that somebody deleted under living pods can so be made
/// again as it was.
[[nodiscard]] Step<PoolCreated> plan_create_pool(const Snapshot& snapshot, const PoolSpec& spec);

/// Whether all of these pools are there, none half made, and agree with what is wanted; a damaged one is there, and not
/// made anew.
/// Nothing when the snapshot has no list of the pools.
[[nodiscard]] std::optional<bool> are_pools_there(const Snapshot& snapshot, const std::vector<PoolSpec>& wanted);

/// Decides that a pool gets all that the spec says of it (with_settings). A half made or half deleted one counts as
/// meant so once its flag `disabled` is said. A new gateway is kept out of use, and so is the one before, by which pods
/// live. Errors: not_found; those of with_settings(); refused_by_configuration, of one to be enabled that overlaps
/// another pool, and of a gateway that somebody holds.
[[nodiscard]] Step<Pool> plan_change_pool(const Snapshot& snapshot, const PoolSpec& change);

/// Decides that a pool is disabled and marked as being deleted (Pool::being_deleted). Error: not_found.
[[nodiscard]] Step<Pool> plan_begin_deletion(const Snapshot& snapshot, const std::string& name);

struct PoolDeleted {
  bool complete = false;  ///< false: one batch of blocks went, call again
};

/// Decides one step of deleting a pool. Its empty blocks with their claims go in batches, and their sequence numbers
/// are kept. Last, by themselves, go the pool, its reservation and claims on blocks that are gone already. The pool
/// must be disabled first, so that no block is claimed meanwhile. For a pool that is gone it deletes the reservation
/// that was left (pool_of_reservation). Errors: not_found; refused_for_safety when an address is held or cooling (names
/// the block and how many) or the pool is not disabled.
[[nodiscard]] Step<PoolDeleted> plan_delete_pool(const Snapshot& snapshot, const std::string& name, const Instant& now);
inline constexpr std::size_t kDeleteBlocksMax = 20;

/// A change of the cluster-wide switches; absent members stay as they are.
struct ConfigChange {
  std::optional<bool> strict_affinity;
  std::optional<bool> auto_allocate_blocks;
  std::optional<std::uint32_t> max_blocks_per_host;
  std::optional<std::string> kubevirt_vm_address_persistence;
  std::optional<std::uint32_t> ip_cooldown_seconds;
};

/// The narrower of the two bounds that Calico's formats have, so that a value fits both
/// (docs/notes/calico-ipam.md#ipam-configuration).
inline constexpr std::uint32_t kMaxBlocksPerHostMax = 1'000'000;
inline constexpr std::uint32_t kIpCooldownSecondsMax = 1200;

/// Checks switches that belong together: their bounds, and Calico's two rules
/// (docs/notes/calico-ipam.md#set-config). Errors: invalid_argument for a value out of its bounds,
/// refused_by_configuration for values that contradict each other.
[[nodiscard]] Result<void> check_config(const IpamConfig& config);

/// Decides a change of the switches, on top of what is stored or of the defaults, members of foreign formats included.
/// Nothing is checked against blocks that exist already: a smaller limit takes nothing away. Errors: as check_config.
[[nodiscard]] Step<IpamConfig> plan_set_config(const Snapshot& snapshot, const ConfigChange& change);

struct ReservationMade {
  std::vector<net::Prefix> added;  ///< those that no reservation had all of yet
};

/// Decides that addresses are given to nobody: those that no reservation has go into the one of this name, beside what
/// is in it. Holders of such an address keep it. Error: of a damaged record of that name.
[[nodiscard]] Step<ReservationMade> plan_reserve(const Snapshot& snapshot, const std::string& name,
                                                 const std::vector<net::Prefix>& addresses);

/// The name of the reservation of what host-local gave to nobody of a range: `host-local-10-244-3-0-24`.
[[nodiscard]] std::string reservation_name_of_range(const net::Prefix& range);

/// Decides that a reservation is made; true when one of this name with the same prefixes was there. Pods that hold one
/// of its addresses keep it. Errors: invalid_argument, of its name (check_pool_name) and of one without prefixes;
/// already_exists, naming what the one of this name keeps.
[[nodiscard]] Step<bool> plan_create_reservation(const Snapshot& snapshot, const Reservation& wanted);

struct ReservationDeleted {};
/// Decides that a reservation goes. Errors: not_found; refused_for_safety, of one that keeps a gateway or the ends of a
/// pool that is there.
[[nodiscard]] Step<ReservationDeleted> plan_delete_reservation(const Snapshot& snapshot, const std::string& name);

/// The fate of the gateway of a pool that is split: an address outside a part can't be the gateway of its pods.
enum class SplitGateways : std::uint8_t {
  refuse,         ///< a pool with a gateway is not split
  none,           ///< the parts have none: pods get /32 or /128
  first_address,  ///< each part's first address; the part that contains the old gateway keeps that
};

struct PoolSplit {
  std::string pool;  ///< by name or CIDR
  std::uint64_t parts = 2;
  SplitGateways gateways = SplitGateways::refuse;
};
/// One commit has room for so many: pool and reservation each, and what is taken away.
inline constexpr std::uint64_t kSplitPartsMax = 32;

struct PoolsSplit {
  std::string before;
  std::vector<Pool> parts;
  /// Addresses that the parts keep out of use and somebody holds: theirs until they are released.
  std::vector<net::Address> held_reserved;
};

/// Decides that a pool is replaced by parts of equal size, `split-<name>-<i>`, with the same settings
/// (docs/notes/calico-ipam.md#pool-split). One commit: the pool never is missing, and the guard on its set lets no
/// overlapping one come meanwhile. Blocks keep their size and so stay valid, each in the part that contains it, with
/// all their addresses. A claim under way fails, since the pool is gone, and is decided again. So nothing has to be
/// locked or emptied before. Errors: not_found; invalid_argument when the number is no power of two, too large, or the
/// parts would be smaller than a block; refused_by_configuration when the pool has a gateway and nothing is said of it;
/// already_exists for the name of a part; refused_for_safety when a new gateway is held or cooling.
[[nodiscard]] Step<PoolsSplit> plan_split_pool(const Snapshot& snapshot, const PoolSplit& split, const Instant& now);

}  // namespace croft::core
