#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "base/net/address.h"
#include "base/net/prefix.h"
#include "base/shared_map.h"
#include "register/affinity.h"
#include "register/block.h"
#include "register/owner.h"
#include "register/records.h"

// The report of a look at the register.
namespace croft::core::audit {

/// Something wrong or left over in the register, and what to do about it.
struct Finding {
  /// Stable identifiers, for scripts. A remedy takes nothing from what lives, followed to the letter.
  enum class Kind : std::uint8_t {
    block_corrupt,         ///< a block contradicts itself; its addresses stay taken
    block_overlap,         ///< two blocks contain the same address
    block_without_pool,    ///< a block lies in no pool, or has another size than the pool's
    affinity_missing,      ///< a block's owner has no claim on it: the owner won't find it by listing its claims
    affinity_stale,        ///< a claim on a block that does not exist or belongs to another
    vacancy_missing,       ///< a block has room and its owner won't see it
    handle_missing,        ///< an address is held under a handle that has no record: DEL would not find it
    handle_miscount,       ///< a handle counts more addresses than the blocks hold
    pool_overlap,          ///< two pools contain the same address, or a pool and a ServiceCIDR or node
    pool_not_allocatable,  ///< Kubernetes or Calico keeps a pool from giving addresses, though it is not disabled
    pod_range_overlap,     ///< a node's block has addresses of another node's spec.podCIDRs
    reservation_missing,   ///< a pool's network, gateway or broadcast address is not kept out of use
    reserved_held,         ///< an address is held although it is reserved
    sequence_behind,       ///< a block's sequence number is not above its high-water mark
    not_attached,       ///< an address is held by an attachment the runtime does not know, or whose namespace is gone
    not_held,           ///< a container lives with an address that it does not hold
    pod_not_held,       ///< a pod reports an address that it does not hold
    node_not_moved,     ///< pods of a node have addresses that host-local gave, of a range that is the node's here too
    pod_twice,          ///< two containers of one pod that may live hold addresses for the same interface
    cache_empty,        ///< the runtime's cache knows nobody: it proves nothing about those who hold addresses
    cache_unreadable,   ///< an entry of the runtime's cache cannot be read: whom it is about nobody knows
    record_unreadable,  ///< a record other than a block cannot be read
    record_newer,       ///< a record was written by a newer version
    affinity_unconfirmed,   ///< a claim was left pending, or its deletion was
    selector_invalid,       ///< a pool's selector does not parse: the pool serves nobody
    config_contradicts,     ///< the cluster-wide switches contradict each other
    handle_empty,           ///< a handle counts addresses, and no block holds any of it
    handle_undercount,      ///< a handle counts fewer addresses than the blocks hold: DEL could leave some
    release_in_future,      ///< an address cools since a time that is yet to come
    release_waiting,        ///< a DEL left its release on the node's disk, and nobody has made up for it
    release_unreadable,     ///< what a DEL left there cannot be read: its addresses leak
    node_range_twice,       ///< two nodes have addresses in common, by records or by what their objects say
    node_range_differs,     ///< a node's object says a range that is none of its recorded ones
    node_range_surplus,     ///< a node has two recorded ranges of one family: its object can say one
    node_range_unreadable,  ///< what a node's object says is no range
    node_range_too_wide,    ///< what a node's object says can't be one node's
    pool_half_made,         ///< a pool's making was cut short: it is disabled, and nobody meant that
    pool_half_deleted,      ///< a pool's deletion was cut short: it is disabled, with what is left of its blocks
    pool_full,              ///< less than a tenth of a pool is free for every node, or nothing
    reservation_left,       ///< what kept addresses of a pool out of use is there without the pool
    pod_gone,               ///< an address is held for a pod that the cluster does not have
    node_gone,              ///< an address is held on a node that the cluster does not have
    block_node_gone,        ///< a block belongs to such a node
    store_paused,           ///< the register takes no writes: it was moved, or a copy of it is not done
    holder_in_doubt,        ///< an address is held for a pod or node that is there, and that does not seem to use it
    register_damaged,       ///< the register as a whole cannot be read, or is older than what was acknowledged
  } kind;
  std::string subject;  ///< the record or address, e.g. "10.88.0.3" or "block 10.88.0.0/28"
  std::string what;     ///< one sentence: the evidence
  std::string remedy;   ///< one sentence: how to collect or mend it
  PodIdentity pod{};    ///< whose it is, as far as recorded
  std::string since{};  ///< RFC 3339: since when it is held, of what pods and nodes were asked about; empty: not known
  int looks = 0;        ///< by how many looks at pods and nodes it is so; 0: it is not of these
};
[[nodiscard]] std::string_view name_of(Finding::Kind kind);

/// The past or present holder of an address, as far as its attributes say: "pod shop/web-0 (handle net.0f3c) on node
/// n1", "handle net.0f3c on node n1".
[[nodiscard]] std::string holder_text(const std::string& handle_id,
                                      const std::map<std::string, std::string>& attributes);

/// One address that is held or cools.
struct Allocation {
  net::Address address;
  net::Prefix block;
  std::optional<AffinityOwner> block_owner;
  std::string handle_id;  ///< of the last holder while it cools
  SequenceNumber sequence_number;
  SharedMap<std::string, std::string> attributes;  ///< of the last holder while it cools
  SharedMap<std::string, std::string> alternate_owner;
  bool cooling = false;
  bool unattached = false;  ///< the runtime does not know its holder (finding not_attached)
  bool gone = false;        ///< its cluster does not have its holder (findings pod_gone, node_gone)
  bool problem = false;     ///< some finding names it

  /// The node it is held on; empty when not recorded.
  [[nodiscard]] std::string node() const;
  /// Held on a node that is not the owner of its block.
  [[nodiscard]] bool borrowed() const;
};

struct NodeCount {
  std::string node;
  std::size_t held = 0;
  std::size_t blocks = 0;
};

/// A handle of which no block holds anything.
struct EmptyHandle {
  Key key;  ///< of its record
  std::string id;
};

/// A block that a node claimed.
struct BlockOfNode {
  net::Prefix cidr;
  std::string node;
};

/// The result of a look.
struct Report {
  std::vector<Finding> findings;
  std::vector<std::string> notes;  ///< what is worth knowing and no fault, a sentence each
  std::size_t pools = 0, blocks = 0, handles = 0, nodes_recorded = 0, held = 0, cooling = 0;
  std::size_t borrowed = 0;
  std::size_t without_node = 0;         ///< addresses held that record no node
  std::vector<NodeCount> nodes;         ///< the most addresses first
  std::vector<Allocation> allocations;  ///< ascending
  std::vector<EmptyHandle> empty_handles;
  std::vector<BlockOfNode> blocks_of_nodes;
};

/// A record that is there and cannot be read. Without a name, permission_denied: this account may not read the kind.
struct Unreadable {
  Key key;
  Error error;
};

/// The part of the register that a look could not see. It is not held against the records that were seen. `unreadable`
/// must outlive it.
class Unseen {
 public:
  explicit Unseen(const std::vector<Unreadable>& unreadable);

  /// Whether a block may be there although it was not read.
  [[nodiscard]] bool may_have_block(const std::string& cidr) const {
    return lacks_all(Kind::block) || blocks_.contains(cidr);
  }
  /// Whether this account may not read the kind.
  [[nodiscard]] bool lacks_all(Kind kind) const { return unlistable_.contains(kind); }
  /// Whether any record of the kind could not be read.
  [[nodiscard]] bool lacks_some(Kind kind) const;
  /// Whether the record is there, and could not be read.
  [[nodiscard]] bool has(const Key& key) const;
  /// The names of those of a kind.
  [[nodiscard]] std::set<std::string> names_of(Kind kind) const;

  /// One finding for each record. `foreign_writers`: the programs of Calico and Kubernetes work with records of theirs.
  [[nodiscard]] std::vector<Finding> findings(bool foreign_writers) const;

 private:
  const std::vector<Unreadable>& unreadable_;
  std::set<std::string> blocks_;
  std::set<Kind> unlistable_;
};

}  // namespace croft::core::audit
