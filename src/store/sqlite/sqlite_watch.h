#pragma once

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <mutex>
#include <set>

#include "base/clock.h"
#include "store/sqlite/connection_pool.h"
#include "store/store.h"

namespace croft::store {

/// How often a watch looks for what other processes wrote. SQLite tells nobody of a change; a look that finds nothing
/// takes some ten microseconds.
inline constexpr std::chrono::milliseconds kLookInterval{20};

/// Wakes the watches of this process when it commits; those of others look again after a while. Safe to call from
/// several threads.
class ChangeSignal {
 public:
  void give() {
    {
      const std::lock_guard lock(mutex_);
      ++given_;
    }
    changed_.notify_all();
  }

  /// To be read before looking for changes, so that none given since is missed.
  [[nodiscard]] std::uint64_t given() const {
    const std::lock_guard lock(mutex_);
    return given_;
  }

  /// Returns at once when more than `seen` were given.
  void wait(std::uint64_t seen, std::chrono::nanoseconds longest) {
    std::unique_lock lock(mutex_);
    changed_.wait_for(lock, longest, [&] { return given_ != seen; });
  }

 private:
  mutable std::mutex mutex_;  ///< guards given_
  std::condition_variable changed_;
  std::uint64_t given_ = 0;
};

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
