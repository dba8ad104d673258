#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/net/address.h"
#include "base/result.h"
#include "register/records.h"
#include "register/seal.h"

// What moves from one store into another, and what is to be done next (docs/runbooks/migrate.md).

namespace croft::core::audit {

/// The kinds that move, in the order in which they are copied. The others are Kubernetes' own, a node's own (its stock
/// of cloud addresses), what lies beside a record and goes with it, or Services, whose ranges a cluster has itself.
inline constexpr std::array kMovedKinds = {
    Kind::pool,         Kind::reservation, Kind::ipam_config,     Kind::node,  Kind::node_range_set, Kind::node_range,
    Kind::removed_node, Kind::pool_set,    Kind::high_water_mark, Kind::block, Kind::affinity,       Kind::handle,
    Kind::vacancy,
};

/// Kinds that stay behind although somebody may live by their records.
inline constexpr std::array kStayingKinds = {Kind::service, Kind::warm_address, Kind::block_beside};

/// Whether a store that lacks these kinds keeps records of a kind so that they can be written.
[[nodiscard]] bool takes(Kind kind, Kinds lacks);

/// A record without what only the store that it came from means by it: what a foreign format holds besides
/// (ForeignRest), and what not every format keeps: the order of attributes, parts of a
/// second of a claim's time. Two stores have the same register when these are equal.
[[nodiscard]] Value portable(Value value);

/// What the target has to have under a key, given what both have as portable() has it; nothing: no record. The
/// source's, but that numbers which never go back (high-water marks, the generation of the set of pools) are the higher
/// of the two, and that a block which lacks nothing but the time of its claim is left as it is: the API of a cluster
/// whose definitions are of a Calico before v3.32 keeps no such member, and nothing but the age of an empty block is
/// told by it (docs/reference/calico-ipam.md).
[[nodiscard]] std::optional<Value> due(Kind kind, const std::optional<Value>& in_source,
                                       const std::optional<Value>& in_target);

/// What a target that nobody has copied into may have without standing in the way: numbers that never go back, and
/// hints.
[[nodiscard]] bool may_be_there_before(Kind kind);

/// An address that somebody holds by the target's block and nobody, or another, by the source's.
struct HeldOnlyThere {
  net::Address address;
  std::string holder;  ///< for people: its handle, pod and node
};
/// What would be lost if the source's block, or its lack, took the place of the target's.
[[nodiscard]] std::vector<HeldOnlyThere> held_only_there(const std::optional<Value>& in_source, const Value& in_target);

/// Whether a target's block is none that the source's ever was. Each write of a block makes its number one higher, so
/// an older copy has a lower one, and a copy with the same number the same holders.
[[nodiscard]] bool is_no_copy(const Value& in_source, const Value& in_target);

/// Whether what the target has of a kind stands in the way where the move did not write it: it is not a number that
/// never goes back, nor a hint, nor a node.
[[nodiscard]] bool is_guarded(Kind kind);

/// What the next step of a move is.
enum class MoveStep : std::uint8_t {
  begin,      ///< neither store knows of it: the target is to be sealed, then to be looked at
  look,       ///< the target is sealed and to be looked at, whether it holds anything of its own
  take_over,  ///< the target holds what an earlier move left: a copy of this source, or the source's own origin
  copy,       ///< the target is ready; the source is still open
  finish,     ///< both are sealed: to copy what is missing, compare, and open the target
  open,       ///< the source says that it was moved, and the target is still closed
  done,       ///< the source says that it was moved, and the target is open
};

/// The seals of both ends, and whether what each names as its other end is the store at the other end here.
struct Seals {
  std::optional<Seal> source, target;
  bool source_names_target = false, target_names_source = false;
};

/// Error: refused_for_safety, saying who has closed what and what to do.
[[nodiscard]] Result<MoveStep> next_step(const Seals& seals);

/// The same of giving up.
enum class GiveUpStep : std::uint8_t {
  mark_target,  ///< it may hold part of a copy: to be marked as given up
  open_target,  ///< nothing was copied yet
  open_source,  ///< the target is marked, or knows of nothing
  done,
};
/// Error: refused_for_safety where the target may have given addresses: the way back is a move.
[[nodiscard]] Result<GiveUpStep> next_step_back(const Seals& seals);

}  // namespace croft::core::audit
