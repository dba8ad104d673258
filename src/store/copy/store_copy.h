#pragma once

#include <array>
#include <chrono>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>

#include "base/clock.h"
#include "base/result.h"
#include "register/records.h"
#include "store/pause.h"
#include "store/store.h"

// The records that `croft store copy` takes along, and its next step (docs/runbooks/migrate.md).

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
[[nodiscard]] bool can_keep(Kind kind, Kinds lacks);
/// An empty target may have these: numbers that never go back, and hints.
[[nodiscard]] bool may_be_in_empty_target(Kind kind);

/// The change that a name in the target needs.
struct Due {
  enum class What : std::uint8_t { nothing, write, remove } what = What::nothing;
  std::optional<Value> value;  ///< to write
};
/// Given what both stores have under a key; null: no record. The target becomes what the source is, but that numbers
/// which never go back become the higher of the two, and that what only one format keeps stays with it: ForeignRest,
/// the order of attributes, when a block was claimed. Error: refused_for_safety for a block of the target that somebody
/// else wrote: each write makes its number higher, so no copy has a higher one than its source.
[[nodiscard]] Result<Due> change_due(Kind kind, const Value* in_source, const Value* in_target);

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

// Copies a register from one store into another while nobody writes (docs/runbooks/migrate.md).
//
// 1. Both stores are looked through, and nothing is changed while something is in the way.
// 2. The target is paused, then the source. ADDs fail with "try again later", DELs leave tombstones.
// 3. Whatever is on its way to the source ends: on a Kubernetes API after Pausable::settling().
// 4. Passes make the target equal to the source, until one finds nothing to do.
// 5. The source's pause says `moved` and names its successor for good; the target is opened.
//
// The two pauses are all that is remembered. A copy that was killed anywhere goes on when it is called again.

namespace croft::engine {

struct CopyEnd {
  store::Store& store;
  store::Pausable& pausable;  ///< of the same object
  std::string url;            ///< which the other end's pause is to name; holds no secrets
};

struct CopyContext {
  CopyEnd from, to;
  const Clock& clock;
  Random& random;
  /// Lets time pass, for Pausable::settling().
  std::function<void(std::chrono::seconds)> wait;
  /// Takes a line about what is done now; never fails.
  std::function<void(const std::string&)> tell;
  /// For each page that is read or written.
  std::chrono::nanoseconds time_limit = std::chrono::seconds(30);
};

struct CopyOptions {
  bool dry_run = false;
  /// Go on although records that are not copied are in the source (core::kStayingKinds).
  bool leave_behind = false;
};

struct CopyReport {
  std::uint64_t written = 0, removed = 0;  ///< in this call; in a dry run: what would be
  std::uint64_t equal = 0;                 ///< records that both have, by the last pass
  bool was_done = false;                   ///< nothing was left to do
};

/// Makes the copy, or goes on with it. Errors, after which the same call goes on: those of the stores;
/// refused_for_safety naming what is in the way; conflict when somebody changed a pause.
[[nodiscard]] Result<CopyReport> copy_store(const CopyContext& context, const CopyOptions& options);

/// Gives an unfinished copy up: opens its source, while its target stays paused for the next copy. Errors:
/// refused_for_safety for one that was moved, or is being filled; not_found where there is no pause.
[[nodiscard]] Result<void> resume_store(store::Pausable& pausable, Deadline deadline);

}  // namespace croft::engine
