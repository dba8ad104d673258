#pragma once

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <mutex>

namespace croft::store {

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

}  // namespace croft::store
