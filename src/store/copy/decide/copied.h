#pragma once

#include <array>
#include <cstdint>
#include <optional>

#include "base/result.h"
#include "register/pause.h"
#include "register/records.h"

// What `croft store copy` takes along, and what its next step is (docs/runbooks/migrate.md).

namespace croft::core {

/// The kinds that are copied, in this order. Pools are last: a register without pools gives nothing. The others are
/// Kubernetes' own, a node's own (its stock of cloud addresses), what lies beside a record, or Services.
inline constexpr std::array kCopiedKinds = {
    Kind::reservation, Kind::ipam_config,     Kind::node,  Kind::node_range_set, Kind::node_range, Kind::removed_node,
    Kind::pool_set,    Kind::high_water_mark, Kind::block, Kind::affinity,       Kind::handle,     Kind::vacancy,
    Kind::pool,
};
/// Kinds that stay behind although somebody may live by their records.
inline constexpr std::array kStayingKinds = {Kind::service, Kind::warm_address};

/// Whether a store that lacks these kinds keeps records of a kind so that they can be written.
[[nodiscard]] bool takes(Kind kind, Kinds lacks);
/// What an empty target may have: numbers that never go back, and hints.
[[nodiscard]] bool is_harmless(Kind kind);

/// What is to become of a name in the target.
struct Due {
  enum class What : std::uint8_t { nothing, write, remove } what = What::nothing;
  std::optional<Value> value;  ///< to write
};
/// Given what both stores have under a key; null: no record. The target becomes what the source is, but that numbers
/// which never go back become the higher of the two, and that what only one format keeps stays with it: ForeignRest,
/// the order of attributes, when a block was claimed. Error: refused_for_safety for a block of the target that somebody
/// else wrote: each write makes its number higher, so no copy has a higher one than its source.
[[nodiscard]] Result<Due> due(Kind kind, const Value* in_source, const Value* in_target);

enum class CopyStep : std::uint8_t {
  begin,  ///< nothing was copied: the target has to be empty
  copy,   ///< the target holds an earlier copy of this source, or the source came from it
  open,   ///< the copy is complete, and the target only to be opened
  done,
};
/// The pauses of both ends, and whether each names the store at the other end here.
struct Pauses {
  std::optional<Pause> source, target;
  bool source_names_target = false, target_names_source = false;
};
/// Error: refused_for_safety, saying which store is paused why, and what to do.
[[nodiscard]] Result<CopyStep> next_copy_step(const Pauses& pauses);

}  // namespace croft::core
