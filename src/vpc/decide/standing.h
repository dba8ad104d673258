#pragma once

#include <chrono>
#include <map>
#include <optional>
#include <vector>

#include "base/clock.h"
#include "base/net/address.h"
#include "register/warm.h"

namespace croft::core::warm {

/// For how long records have stood in their state, by the clock that nobody sets: what they say themselves is wall
/// time, and somebody who sets that clock would make them old at once, or young for as long as it was set back.
class Standing {
 public:
  /// What the records are now. Those that are not among them any more are forgotten.
  void note(const std::vector<WarmAddress>& records, const Instant& now);

  /// Whether it was so, for all we know without a break, at that moment. False also where nothing was noted then.
  [[nodiscard]] bool stood_at(const WarmAddress& record, const Instant& then) const;
  /// For how long it was seen to stand: never too long, and from nothing again where a process begins.
  [[nodiscard]] std::chrono::nanoseconds seen_for(const WarmAddress& record, const Instant& now) const;
  /// The same with what its own time said when a process saw it the first time: over restarts it is as right as the
  /// wall clock was between them.
  [[nodiscard]] std::chrono::nanoseconds age(const WarmAddress& record, const Instant& now) const;

 private:
  struct Stand {
    WarmState state = WarmState::quarantined;
    WallTime since{};
    std::chrono::nanoseconds noted_at{};
    std::chrono::nanoseconds before{};  ///< its age then
  };
  [[nodiscard]] const Stand* find(const WarmAddress& record) const;

  std::map<net::Address, Stand> stands_;
  std::optional<std::chrono::nanoseconds> noted_at_;
};

}  // namespace croft::core::warm
