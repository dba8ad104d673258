#pragma once

#include <chrono>
#include <cstdint>
#include <optional>

#include "base/clock.h"
#include "base/result.h"
#include "register/pause.h"

namespace croft::store {

/// A pause as it was read. Conditions compare `revision`, which is of the store's own making; 0 never occurs.
struct StoredPause {
  core::Pause pause;
  std::uint64_t revision = 0;
};

/// A store that can be paused for all writers, wherever they run, and stays so over restarts. Every backend of Store is
/// one (dynamic_cast); decorators are none.
///
/// While there is a pause every commit fails with `unavailable`, paused(): a runtime tries an ADD again later, and a
/// DEL leaves a tombstone. A store with transactions makes the pause a condition of each commit. A Kubernetes API has
/// none: writers look at the pause before they write, and know it for some seconds; after settling() none is left that
/// may still write. A pause that cannot be understood pauses the store too. All calls block until the deadline. Errors:
/// those of every call of a Store.
class Pausable {
 public:
  virtual ~Pausable() = default;

  /// The pause, or nothing. Error also: corrupt, newer_version.
  [[nodiscard]] virtual Result<std::optional<StoredPause>> pause(Deadline deadline) = 0;
  /// Puts one in the place of `there`, which may be none, or takes it away. Durable when it is done. Error: conflict
  /// when something else is there.
  [[nodiscard]] virtual Result<void> change_pause(const std::optional<StoredPause>& there,
                                                  const std::optional<core::Pause>& next, Deadline deadline) = 0;
  /// From now on the commits of this object are those of a copy into it, which no pause stops. Call it once, before
  /// the first commit, under a pause of `filling`.
  virtual void fill() = 0;
  /// How long after change_pause() a commit that was begun before it may still be applied.
  [[nodiscard]] virtual std::chrono::seconds settling() const = 0;
};

/// The answer of a commit to a paused store: unavailable, saying what goes on and what to do.
[[nodiscard]] Error paused(const core::Pause& pause);

}  // namespace croft::store
