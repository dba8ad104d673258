#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <string>

#include "base/clock.h"
#include "base/result.h"
#include "store/pause.h"
#include "store/store.h"

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
