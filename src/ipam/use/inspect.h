#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "base/net/ranges.h"
#include "ipam/audit/pool_status.h"
#include "ipam/use/transact.h"
#include "register/block.h"
#include "register/pool.h"

namespace croft::engine {

/// All pools, ascending by name.
[[nodiscard]] Result<std::vector<core::Pool>> list_pools(const Context& context);

/// The CIDRs of all blocks, IPv4 first, without reading the blocks.
[[nodiscard]] Result<std::vector<net::Prefix>> list_block_cidrs(const Context& context);

/// Calls `visit` for every block of both families, in whatever order, with a page of them in memory; one that changes
/// meanwhile is seen once. Those that cannot be read, or contradict themselves, are left out; returns how many.
[[nodiscard]] Result<std::uint64_t> for_each_block(const Context& context,
                                                   const std::function<void(const core::Block&)>& visit);

/// Calls `visit` for every affinity whose key starts so (core::owned_names_of; "host/" for those of all nodes).
[[nodiscard]] Result<void> for_each_affinity(const Context& context, const std::string& name_prefix,
                                             const std::function<void(const core::Affinity&)>& visit);

/// How the addresses of a block or pool are used. `reserved` counts only reserved addresses that nobody holds.
struct Usage {
  net::Count size;
  std::uint64_t held = 0;
  std::uint64_t cooling = 0;
  net::Count reserved;
  net::Count stranded{};  ///< of the free ones, those that only the owner of their block may use: affinity is strict
  [[nodiscard]] net::Count free() const { return size - held - cooling - reserved; }
};

/// A block with what a person asks about it.
struct BlockView {
  core::Block block;  ///< cooled addresses freed, as the next assignment would see it
  std::string pool;   ///< empty when no pool contains it
  Usage usage;
  std::vector<core::AddressState> states;  ///< per ordinal, reservations applied
};

struct PoolView {
  core::Pool pool;
  Usage usage;
  std::vector<BlockView> blocks;  ///< by CIDR
};

/// An address that is not simply free.
struct AddressView {
  net::Address address;
  core::AddressState state = core::AddressState::held;
  std::string pool;                  ///< empty when no pool contains it
  std::optional<net::Prefix> block;  ///< absent for a reserved address whose block does not exist yet
  std::optional<core::Owner> owner;  ///< the holder, or the last holder while cooling
  std::string handle_id;             ///< the same
  core::SequenceNumber sequence_number;
  std::string node, pod, namespace_name;
  std::string since;  ///< RFC 3339: held or cooling since; empty when unknown
  std::string until;  ///< RFC 3339: end of the cooldown; empty unless cooling
  std::optional<core::AffinityOwner> block_owner;
  /// Everything recorded of the holder, or of the last one while it cools; and of a second one during the migration of
  /// a virtual machine.
  std::map<std::string, std::string> attributes, alternate_owner;

  /// Held on a node that is not the owner of its block; also when nobody owns it.
  [[nodiscard]] bool borrowed() const;
  /// "pod", "vmi", or what the holder's attribute `type` says (docs/notes/calico-ipam.md#show-borrowed); empty when
  /// unknown.
  [[nodiscard]] std::string type() const;
};

/// Everything in one look: pools with their blocks, blocks of no pool, reserved addresses.
struct Overview {
  std::vector<PoolView> pools;
  std::vector<BlockView> stray_blocks;
};
[[nodiscard]] Result<Overview> read_overview(const Context& context);

/// How full each pool is, ascending by name: the numbers of read_overview(), without its blocks, one page of which at a
/// time is in memory.
[[nodiscard]] Result<std::vector<core::PoolFill>> fill_of_pools(const Context& context);

/// The same, and what else holds for all of them.
struct Survey {
  std::vector<core::PoolFill> pools;
  std::shared_ptr<const net::Intervals> reserved;  ///< all addresses out of use, in a block or not
  bool strict_affinity = false;
  std::uint64_t unreadable_blocks = 0;  ///< those that are left out
};
/// `visit` is called with every block on the way.
[[nodiscard]] Result<Survey> survey(const Context& context, const std::function<void(BlockView&&)>& visit);

/// One block. Error: not_found.
[[nodiscard]] Result<BlockView> show_block(const Context& context, const net::Prefix& cidr);

/// The claim of a block's owner on it; absent when there is none, and for a block of nobody.
[[nodiscard]] Result<std::optional<core::Affinity>> read_owner_affinity(const Context& context,
                                                                        const core::Block& block);

/// All addresses that are held, cooling or reserved, ascending.
[[nodiscard]] Result<std::vector<AddressView>> list_addresses(const Context& context);

/// One address in any state. Error: not_found when it lies in no pool and no block.
[[nodiscard]] Result<AddressView> show_address(const Context& context, const net::Address& address);
/// The same of several, each block read once; one that lies in no pool and no block is left out.
[[nodiscard]] Result<std::map<net::Address, AddressView>> show_addresses(const Context& context,
                                                                         const std::set<net::Address>& addresses);

}  // namespace croft::engine
