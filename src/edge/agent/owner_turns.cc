#include "edge/agent/owner_turns.h"

#include <algorithm>
#include <chrono>

namespace croft::edge {
namespace {

/// The deadline is of a clock that a condition variable does not know: it is looked at this often.
constexpr std::chrono::nanoseconds kLook = std::chrono::milliseconds{50};

}  // namespace

Result<OwnerTurns::Turn> OwnerTurns::take(const std::string& owner, const Clock& clock, Deadline deadline) {
  std::unique_lock lock(mutex_);
  while (at_work_.contains(owner)) {
    const Instant now = clock.now();
    if (deadline.passed(now)) {
      return fail(ErrorCode::deadline_exceeded, "another call for the same owner is under way");
    }
    ended_.wait_for(lock, std::min(kLook, deadline.at_since_boot - now.since_boot));
  }
  at_work_.insert(owner);
  return Turn(*this, owner);
}

void OwnerTurns::end(const std::string& owner) {
  {
    const std::lock_guard lock(mutex_);
    at_work_.erase(owner);
  }
  ended_.notify_all();
}

}  // namespace croft::edge
