#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <variant>

#include "base/assert.h"
#include "base/clock.h"
#include "base/net/prefix.h"
#include "base/result.h"
#include "register/block.h"
#include "register/node.h"
#include "register/owner.h"
#include "register/pool.h"
#include "register/service.h"
#include "register/stock.h"

namespace croft::core {

/// The kinds of records. The alternatives of Value (records.h) are in the same order.
enum class Kind : std::uint8_t {
  pool,
  reservation,
  ipam_config,
  block,
  affinity,
  handle,
  vacancy,
  high_water_mark,
  pool_set,
  node,
  range_allocation,
  service,
  service_cidr,
  node_range,
  node_range_set,
  removed_node,
  foreign_service,
  name_space,
  warm_address,
  warm_intent,
  warm_node,
};

/// The owner of a record in a store that several systems share. Where nobody shares it all are Croft's.
enum class System : std::uint8_t {
  croft,
  calico,
  kubernetes,
};

/// The records of a kind that one node looks at again and again, which so may be answered from memory
/// (store/cached).
enum class Followed : std::uint8_t {
  all,          ///< every one
  own_names,    ///< those whose names begin with the node's
  own_node,     ///< the node's own record
  claims,       ///< the names of all, and the node's own whole
  own_blocks,   ///< those the node has a claim on
  own_handles,  ///< those that a block of the node's mentions
  nothing,
};

/// All that is known of a kind by itself. A new kind is a row here, an alternative of Value, the name of its key
/// (records.h) and its reader and writer (register/format).
struct KindTraits {
  Kind kind;
  std::string_view name;  ///< in messages, and in the keys of a store of text
  std::uint8_t number;    ///< in the keys of a store of numbers: never changed, never given again
  std::uint32_t version;  ///< of the newest form of its record (docs/formats/records.md)
  System system;
  Followed followed;
  /// Whether records only say where to look first: a damaged one is as good as none, and may be replaced.
  bool is_hint;
  /// The loss once an unreadable record is gone, as a clause to put after its name: addresses are given to others, or
  /// freed, while somebody lives by them. Empty: nothing is; what it said is said elsewhere too.
  std::string_view loss;
};

inline constexpr std::string_view kLossOfHolders =
    "says who holds addresses: without it they are given to others while their holders live";
inline constexpr std::string_view kLossOfServices =
    "says who holds addresses and ports of the ranges: without it the repair gives them to others while the Service "
    "lives";

/// By Kind.
inline constexpr std::array kKinds = {
    KindTraits{Kind::pool, "pool", 0, 1, System::calico, Followed::all, false, {}},
    KindTraits{Kind::reservation, "reservation", 1, 1, System::calico, Followed::all, false,
               "keeps addresses from pods: without it they are given out"},
    KindTraits{Kind::ipam_config, "ipam_config", 2, 1, System::calico, Followed::all, false,
               "says how long addresses rest and whether nodes keep to their own blocks: without it addresses that "
               "rest are given out at once and nodes borrow"},
    KindTraits{Kind::block, "block", 3, 1, System::calico, Followed::own_blocks, false, kLossOfHolders},
    KindTraits{Kind::affinity, "affinity", 4, 1, System::calico, Followed::claims, false, {}},
    KindTraits{Kind::handle, "handle", 5, 1, System::calico, Followed::own_handles, false, {}},
    KindTraits{Kind::vacancy, "vacancy", 6, 1, System::croft, Followed::own_names, true, {}},
    KindTraits{Kind::high_water_mark, "high_water_mark", 8, 1, System::croft, Followed::nothing, false, {}},
    KindTraits{Kind::pool_set, "pool_set", 9, 1, System::croft, Followed::nothing, false, {}},
    KindTraits{Kind::node, "node", 10, 1, System::calico, Followed::own_node, false,
               "says that the node is there: without it the collector frees what its pods hold, and its range is given "
               "to another"},
    KindTraits{Kind::range_allocation, "range_allocation", 11, 1, System::kubernetes, Followed::nothing, false,
               kLossOfHolders},
    // Croft's own, or Kubernetes' where the store is asked for its.
    KindTraits{Kind::service, "service", 12, 1, System::croft, Followed::nothing, false, kLossOfServices},
    // 13 was that of Kubernetes' IPAddress objects, which its API servers keep by themselves.
    KindTraits{Kind::service_cidr, "service_cidr", 14, 1, System::kubernetes, Followed::nothing, false,
               "says which addresses are for Services: without it pools and node ranges may be laid over them"},
    KindTraits{Kind::node_range, "node_range", 15, 1, System::croft, Followed::nothing, false,
               "says which node has the range: without it another node gets the range while pods live in it"},
    KindTraits{Kind::node_range_set, "node_range_set", 16, 1, System::croft, Followed::nothing, false,
               "says what node ranges are cut from and what no node may get: without it ranges are made anew"},
    KindTraits{Kind::removed_node, "removed_node", 17, 1, System::croft, Followed::nothing, false, {}},
    KindTraits{Kind::foreign_service, "foreign_service", 18, 1, System::kubernetes, Followed::nothing, false,
               kLossOfServices},
    // 19 was that of what is beside a block of Calico's (store/calico), read by itself.
    KindTraits{Kind::name_space, "namespace", 20, 1, System::kubernetes, Followed::nothing, false, {}},
    // One node's stock of cloud addresses, in a store of the node's own.
    KindTraits{Kind::warm_address, "warm_address", 21, 2, System::croft, Followed::nothing, false,
               "says which pod holds the cloud's address: without it another pod may get it while the holder lives"},
    KindTraits{Kind::warm_intent, "warm_intent", 22, 1, System::croft, Followed::nothing, false,
               "says what was asked of the cloud: without it what the cloud gave stays unused"},
    KindTraits{Kind::warm_node, "warm_node", 23, 2, System::croft, Followed::nothing, false, {}},
};
inline constexpr std::size_t kKindCount = kKinds.size();

[[nodiscard]] constexpr const KindTraits& traits_of(Kind kind) { return kKinds[static_cast<std::size_t>(kind)]; }
[[nodiscard]] constexpr std::string_view name_of(Kind kind) { return traits_of(kind).name; }
[[nodiscard]] constexpr std::string_view loss_without(Kind kind) { return traits_of(kind).loss; }
[[nodiscard]] constexpr bool is_hint(Kind kind) { return traits_of(kind).is_hint; }

/// A set of kinds.
class Kinds {
 public:
  constexpr Kinds(std::initializer_list<Kind> kinds) {
    for (const Kind kind : kinds) bits_ |= bit_of(kind);
  }
  [[nodiscard]] constexpr bool contains(Kind kind) const { return (bits_ & bit_of(kind)) != 0; }
  friend constexpr bool operator==(const Kinds&, const Kinds&) = default;

 private:
  static constexpr std::uint32_t bit_of(Kind kind) { return std::uint32_t{1} << static_cast<unsigned>(kind); }

  std::uint32_t bits_ = 0;
};
static_assert(kKindCount <= 32);

namespace kinds_detail {
constexpr bool rows_are_in_order_and_numbers_unique() {
  for (std::size_t i = 0; i < kKinds.size(); ++i) {
    if (static_cast<std::size_t>(kKinds[i].kind) != i) return false;
    for (std::size_t k = 0; k < i; ++k) {
      if (kKinds[k].number == kKinds[i].number || kKinds[k].name == kKinds[i].name) return false;
    }
  }
  return true;
}
}  // namespace kinds_detail
static_assert(kinds_detail::rows_are_in_order_and_numbers_unique());

/// Cluster-wide switches (docs/notes/calico-ipam.md#ipam-configuration).
struct IpamConfig {
  bool strict_affinity = false;
  bool auto_allocate_blocks = true;
  std::uint32_t max_blocks_per_host = 0;  ///< 0: the allocator's default
  std::string kubevirt_vm_address_persistence;
  std::uint32_t ip_cooldown_seconds = 0;
  ForeignRestPtr rest{};
  friend bool operator==(const IpamConfig&, const IpamConfig&) = default;
};

/// Croft's own: a block that has, or soon will have, an address to give. Written in the same commit as the block, so
/// that a node with a thousand full blocks finds the one with room by one short list, and a full cluster the few blocks
/// to borrow from. A block without one has no assignable address, unless foreign writers changed it.
struct Vacancy {
  /// Wall-clock time from which an address may be assignable: the epoch when one is free now, else the first cooldown
  /// end. A hint for the order of looking; the block decides.
  WallTime ready_at{};
  friend bool operator==(const Vacancy&, const Vacancy&) = default;
};

/// Croft's own: the highest sequence number a deleted block had. A block made again starts above it.
struct HighWaterMark {
  SequenceNumber sequence_number;
  friend bool operator==(const HighWaterMark&, const HighWaterMark&) = default;
};

/// Croft's own, one record: counts changes to the set of pools. Written by every commit that makes or deletes a pool,
/// so that two pools made at once can't overlap unseen.
struct PoolSet {
  std::uint64_t generation = 0;
  friend bool operator==(const PoolSet&, const PoolSet&) = default;
};

/// Croft's own: an operator took the node away although it held addresses. Addresses that it held then may be collected
/// as those of a node that is gone. Later ones have higher sequence numbers and are not meant: the node may come back.
struct RemovedNode {
  std::string node;
  /// Block CIDR as text -> the highest sequence number of what the node held there.
  std::map<std::string, SequenceNumber> held;
  friend bool operator==(const RemovedNode&, const RemovedNode&) = default;
};

/// A Service of the other kind: where the store's Services are Croft's own one of Kubernetes', where they are
/// Kubernetes' one of Croft's own. Both kinds take from the same ranges. Read only; only a store that Kubernetes shares
/// has any.
struct ForeignService {
  Service service;
  friend bool operator==(const ForeignService&, const ForeignService&) = default;
};

/// A namespace of pods, as far as pools select it (namespaceSelector). Kubernetes' own, and only read; other stores
/// have none (Snapshot::lacks).
struct Namespace {
  std::string name;
  std::map<std::string, std::string> labels;
  friend bool operator==(const Namespace&, const Namespace&) = default;
};

/// Everything a store keeps. The alternative decides the kind. A record that is there but cannot be read has no value:
/// stores give its Error in its place (store::Record). Service addresses exist in Kubernetes' form only: as
/// bits of a range.
using Value = std::variant<Pool, Reservation, IpamConfig, Block, Affinity, Handle, Vacancy, HighWaterMark, PoolSet,
                           Node, RangeAllocation, Service, ServiceCidrObject, NodeRange, NodeRangeSet, RemovedNode,
                           ForeignService, Namespace, StockAddress, StockIntent, StockNode>;
static_assert(std::variant_size_v<Value> == kKindCount);

[[nodiscard]] inline Kind kind_of(const Value& value) { return static_cast<Kind>(value.index()); }
/// The value without what a foreign format holds besides.
[[nodiscard]] inline Value without_rest(Value value) {
  std::visit(
      [](auto& record) {
        if constexpr (requires { record.rest; }) record.rest = nullptr;
      },
      value);
  return value;
}
/// The key of a record: its kind and a name that is unique within the kind. Names are valid UTF-8 without control
/// characters, at most kKeyNameBytesMax bytes; they order bytewise.
struct Key {
  Kind kind = Kind::pool;
  std::string name;
  friend auto operator<=>(const Key&, const Key&) = default;
};
inline constexpr std::size_t kKeyNameBytesMax = 1024;

namespace records_detail {
template <class T, std::size_t I = 0>
constexpr Kind kind_of_type() {
  static_assert(I < kKindCount, "no kind of record has this type");
  if constexpr (std::is_same_v<T, std::variant_alternative_t<I, Value>>) {
    return static_cast<Kind>(I);
  } else {
    return kind_of_type<T, I + 1>();
  }
}
}  // namespace records_detail
/// The kind whose records are of a type.
template <class T>
inline constexpr Kind kKindOf = records_detail::kind_of_type<T>();

/// The key of a record of one type: what is read by it has that type, and nothing else is written under it. Decisions
/// make their keys by the functions below; a plain Key comes from a list or from a store
/// (docs/adr/0011-typed-keys.md).
template <class T>
struct KeyOf : Key {
  explicit KeyOf(std::string own_name) {  // NOLINT(performance-unnecessary-value-param): it is moved from below
    kind = kKindOf<T>;
    name = std::move(own_name);
  }
  /// From a key out of a list of this kind.
  explicit KeyOf(const Key& key) : Key(key) { CROFT_ASSERT(key.kind == kKindOf<T>); }
};

// Keys, with names as examples. `ipv4/` and `ipv6/` keep the families apart in a list by prefix.

/// ipv4/10.0.0.64/26
[[nodiscard]] KeyOf<Block> block_key(const net::Prefix& cidr);
[[nodiscard]] KeyOf<HighWaterMark> high_water_mark_key(const net::Prefix& cidr);
[[nodiscard]] KeyOf<NodeRange> node_range_key(const net::Prefix& cidr);
/// host/node-a/ipv4/10.0.0.64/26, of a vacancy also nobody/ipv4/10.0.0.64/26
[[nodiscard]] KeyOf<Affinity> affinity_key(const AffinityOwner& owner, const net::Prefix& cidr);
[[nodiscard]] KeyOf<Vacancy> vacancy_key(const std::optional<AffinityOwner>& owner, const net::Prefix& cidr);
/// ipv4/10.0.0.7
[[nodiscard]] KeyOf<StockAddress> warm_address_key(const net::Address& address);
/// default/kubernetes
[[nodiscard]] inline KeyOf<Service> service_key(const ServiceName& name) { return KeyOf<Service>(name.to_string()); }
[[nodiscard]] inline KeyOf<ForeignService> foreign_service_key(const ServiceName& name) {
  return KeyOf<ForeignService>(name.to_string());
}
/// The record's own name; of a handle its id, of an intent 32 hexadecimal digits, of a range servicenodeports.
[[nodiscard]] inline KeyOf<Pool> pool_key(const std::string& pool_name) { return KeyOf<Pool>(pool_name); }
[[nodiscard]] inline KeyOf<Reservation> reservation_key(const std::string& name) { return KeyOf<Reservation>(name); }
[[nodiscard]] inline KeyOf<Node> node_key(const std::string& name) { return KeyOf<Node>(name); }
[[nodiscard]] inline KeyOf<RemovedNode> removed_node_key(const std::string& name) { return KeyOf<RemovedNode>(name); }
[[nodiscard]] inline KeyOf<Namespace> namespace_key(const std::string& name) { return KeyOf<Namespace>(name); }
[[nodiscard]] inline KeyOf<ServiceCidrObject> service_cidr_key(const std::string& name) {
  return KeyOf<ServiceCidrObject>(name);
}
[[nodiscard]] inline KeyOf<RangeAllocation> range_allocation_key(std::string_view name) {
  return KeyOf<RangeAllocation>(std::string(name));
}
[[nodiscard]] inline KeyOf<Handle> handle_key(const std::string& handle_id) { return KeyOf<Handle>(handle_id); }
[[nodiscard]] inline KeyOf<StockIntent> warm_intent_key(const std::string& id) { return KeyOf<StockIntent>(id); }
/// default: there is one.
[[nodiscard]] inline KeyOf<IpamConfig> ipam_config_key() { return KeyOf<IpamConfig>("default"); }
[[nodiscard]] inline KeyOf<PoolSet> pool_set_key() { return KeyOf<PoolSet>("default"); }
[[nodiscard]] inline KeyOf<NodeRangeSet> node_range_set_key() { return KeyOf<NodeRangeSet>("default"); }
[[nodiscard]] inline KeyOf<StockNode> warm_node_key() { return KeyOf<StockNode>("default"); }

/// Prefixes for lists: all blocks of a family, all claims or vacancies of an owner in a family.
[[nodiscard]] std::string block_names_of(net::Family family);
[[nodiscard]] std::string owned_names_of(const AffinityOwner& owner, net::Family family);
/// The same of both families.
[[nodiscard]] std::string owned_names_of(const AffinityOwner& owner);

/// The block CIDR at the end of a block, affinity, vacancy or high-water-mark name. Error: corrupt.
[[nodiscard]] Result<net::Prefix> cidr_of(const Key& key);
/// The addresses that the name of a block takes, whole: whatever is stored there, of whatever length it is, and whether
/// it can be read. Another program may have spelled it its own way (host bits, capitals). Nothing for a name without a
/// CIDR.
[[nodiscard]] std::optional<net::Prefix> block_cidr_of(const Key& key);

}  // namespace croft::core
