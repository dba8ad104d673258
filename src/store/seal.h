#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>

#include "base/clock.h"
#include "base/result.h"
#include "register/seal.h"

namespace croft::store {

/// A seal as it was read. Conditions compare `revision`, which is of the store's own making; 0 never occurs.
struct StoredSeal {
  core::Seal seal;
  std::uint64_t revision = 0;
};

/// A store that can be closed to all writers, whoever they are and wherever they run, and stays so over restarts. Every
/// backend of Store is one as well (dynamic_cast); decorators are none.
///
/// While there is a seal every commit fails with `unavailable`, sealed(): a runtime tries an ADD again later, and a DEL
/// leaves a tombstone. Where several records are committed at once, in one transaction with the look at the seal, that
/// holds from the moment it was put. A Kubernetes API has no such transactions: writers look at the seal before
/// they write, and know it for some seconds; after settling() none is left that may still write.
///
/// A seal that cannot be understood closes the store too, to the move as well.
/// All calls block until the deadline. Errors: those of every call of a Store.
class Sealable {
 public:
  virtual ~Sealable() = default;

  /// The seal, or nothing when the store is open. Error also: corrupt, newer_version.
  [[nodiscard]] virtual Result<std::optional<StoredSeal>> seal(Deadline deadline) = 0;
  /// Puts one in the place of `there`; of nothing: only if there is none. Durable when it is done. Errors: conflict
  /// when something else is there; unknown_outcome: read it back.
  [[nodiscard]] virtual Result<void> put_seal(const std::optional<StoredSeal>& there, const core::Seal& seal,
                                              Deadline deadline) = 0;
  /// Opens the store. Errors: as of put_seal.
  [[nodiscard]] virtual Result<void> remove_seal(const StoredSeal& there, Deadline deadline) = 0;

  /// From now on the commits of this object, of all threads, are those of the move: they are done only while the seal
  /// of that move is there. Empty: as everybody's again.
  virtual void work_under(std::string move) = 0;

  /// How long after put_seal() a commit that was begun before it may still be applied.
  [[nodiscard]] virtual std::chrono::seconds settling() const = 0;
};

/// What a commit to a sealed store answers: unavailable, saying what goes on and what to do.
[[nodiscard]] Error sealed(const core::Seal& seal);
/// What a commit of a move answers when its seal is not there (any more): conflict.
[[nodiscard]] Error not_sealed_for(const std::string& move);

/// What a commit by `worker` (Sealable::work_under) meets where `seal` is there or none: an error, or nothing.
[[nodiscard]] Result<void> check_seal(const std::optional<core::Seal>& seal, const std::string& worker);

}  // namespace croft::store
