#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <string_view>

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
  ip_address,
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
  stock,        ///< every one, by the agent that keeps a stock of cloud addresses; nothing by others
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
    KindTraits{Kind::ip_address, "ip_address", 13, 1, System::kubernetes, Followed::nothing, false, kLossOfHolders},
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
    KindTraits{Kind::warm_address, "warm_address", 21, 2, System::croft, Followed::stock, false,
               "says which pod holds the cloud's address: without it another pod may get it while the holder lives"},
    KindTraits{Kind::warm_intent, "warm_intent", 22, 1, System::croft, Followed::stock, false,
               "says what was asked of the cloud: without it what the cloud gave stays unused"},
    KindTraits{Kind::warm_node, "warm_node", 23, 2, System::croft, Followed::stock, false, {}},
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

}  // namespace croft::core
