#pragma once

#include <algorithm>
#include <set>

#include "base/clock.h"
#include "store/sqlite/change_signal.h"
#include "store/sqlite/connection_pool.h"
#include "store/store.h"

namespace croft::store {

/// How often a watch looks for what other processes wrote. SQLite tells nobody of a change; a look that finds nothing
/// takes some ten microseconds.
inline constexpr std::chrono::milliseconds kLookInterval{20};

/// A watch on a SQLite store: looks for changes when this process commits, and every kLookInterval. The references must
/// outlive it.
class SqliteWatch final : public Watch {
 public:
  SqliteWatch(ConnectionPool& connections, ChangeSignal& signal, const Clock& clock, WatchScope scope, Revision after)
      : connections_(connections), signal_(signal), clock_(clock), scope_(std::move(scope)), position_(after) {}

  [[nodiscard]] Result<std::vector<Change>> next(Deadline deadline) override;
  void follow(const Key& key, Revision after) override {
    followed_.insert(key);
    position_ = std::min(position_, after);
  }
  void unfollow(const Key& key) override { followed_.erase(key); }

  /// Errors: too_old when the changes after the position are no longer known, and those of every call.
  [[nodiscard]] Result<void> check_position(Deadline deadline);

 private:
  /// The changes after the position, which moves on.
  [[nodiscard]] Result<std::vector<Change>> look(Deadline deadline);

  ConnectionPool& connections_;
  ChangeSignal& signal_;
  const Clock& clock_;
  const WatchScope scope_;
  std::set<Key> followed_;
  Revision position_;  ///< every change up to it has been returned
};

}  // namespace croft::store
