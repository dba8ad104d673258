#pragma once

#include <condition_variable>
#include <mutex>
#include <set>
#include <string>
#include <utility>

#include "base/clock.h"
#include "base/result.h"

namespace croft::edge {

/// Lets calls for one owner in one after the other, and those of different owners at once. A runtime that kills an ADD
/// sends its DEL at once: the DEL must see what the ADD, which the agent goes on with, commits. Safe to call from
/// several threads.
class OwnerTurns {
 public:
  /// A call at work for its owner, to its end.
  class Turn {
   public:
    Turn(OwnerTurns& turns, std::string owner) : turns_(&turns), owner_(std::move(owner)) {}
    Turn(Turn&& other) noexcept : turns_(std::exchange(other.turns_, nullptr)), owner_(std::move(other.owner_)) {}
    Turn& operator=(Turn&&) = delete;
    ~Turn() {
      if (turns_ != nullptr) turns_->end(owner_);
    }

   private:
    OwnerTurns* turns_;
    std::string owner_;
  };

  /// Waits while another call is at work for the owner. Error: deadline_exceeded.
  [[nodiscard]] Result<Turn> take(const std::string& owner, const Clock& clock, Deadline deadline);

 private:
  void end(const std::string& owner);

  std::mutex mutex_;
  std::condition_variable ended_;
  std::set<std::string> at_work_;
};

}  // namespace croft::edge
