#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "base/clock.h"
#include "base/result.h"
#include "register/records.h"

namespace croft::core {

/// Why a register takes no writes: it is one end of `croft store copy` (docs/runbooks/migrate.md). It lies in the store
/// beside the records and is none of them.
struct Pause {
  enum class Phase : std::uint8_t {
    copying,  ///< it is being copied into `other`
    moved,    ///< it was copied into `other`, its successor, for good
    filling,  ///< a copy of `other` is being made in it
  } phase = Phase::copying;
  std::string other;  ///< the URL of the other store, which holds no secrets
  WallTime since{};   ///< when it was put; for people

  friend bool operator==(const Pause&, const Pause&) = default;
};

/// "copying", "moved", "filling".
[[nodiscard]] constexpr std::string_view name_of(Pause::Phase phase) {
  if (phase == Pause::Phase::moved) return "moved";
  return phase == Pause::Phase::filling ? "filling" : "copying";
}

}  // namespace croft::core

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

/// A store that cannot keep every record that others can: one whose records are objects with names of its own rules.
/// A backend of Store that is one says so by dynamic_cast; one that is none takes every key.
class Naming {
 public:
  virtual ~Naming() = default;

  /// Where a record of this key would lie. Two keys with one place cannot both be there. Errors: invalid_argument,
  /// saying why there is no place for it; those of every call of a Store.
  [[nodiscard]] virtual Result<std::string> place_of(const core::Key& key, Deadline deadline) = 0;
};

/// A store whose register has one record of itself, kept apart from the others: its epoch, and whose it is. A restore
/// ends with another epoch, so that nothing remembered from before it is committed. A backend that is one says so by
/// dynamic_cast; decorators are none.
class HasEpoch {
 public:
  virtual ~HasEpoch() = default;

  /// Begins another epoch, of the cluster that the store is in now and of no Kubernetes cluster yet. All memory of the
  /// register is void with it. Errors: those of a commit.
  [[nodiscard]] virtual Result<void> begin_epoch(Deadline deadline) = 0;

  /// Makes the register that of a Kubernetes cluster, named by the UID of its namespace kube-system, unless it is one's
  /// already. Error also: refused_by_configuration, naming both, when it is another's.
  [[nodiscard]] virtual Result<void> belong_to(const std::string& kube_system, Deadline deadline) = 0;
};

}  // namespace croft::store
