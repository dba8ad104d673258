#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/result.h"

// Which marks a node's stock of cloud addresses wants, from what was asked of it
// (docs/notes/warm-pool.md#uk8s-flags). Pure: the same record gives the same advice.

namespace croft::core::warm {

/// What happened on a node in the time up to `at`, since the sample before; of the first one since an unknown time.
struct DemandSample {
  WallTime at{};
  std::uint32_t adds = 0;               ///< pods that asked for an address
  std::uint32_t peak = 0;               ///< the most that asked at the same time, those that waited too
  std::chrono::milliseconds refill{0};  ///< the longest from asking the cloud to an address in the stock; 0: none
  std::chrono::milliseconds empty{0};   ///< how long the stock was empty
};

struct AdviceLimits {
  std::uint32_t pods_max = 110;       ///< of the node: no mark is above
  std::chrono::seconds cooldown{30};  ///< how long a released address rests
};

struct Advice {
  std::uint32_t low = 0;
  std::uint32_t high = 0;
  std::vector<std::string> reasons;  ///< sentences for a person, the most important first
};

/// When no refill was recorded: how long a fresh address takes at worst, probe and flow table.
inline constexpr std::chrono::milliseconds kRefillAssumed{15'000};
/// A record that is shorter says little about the busiest hour: the advice says so.
inline constexpr std::chrono::hours kRecordWanted{24};

/// The low mark covers what is asked for while a refill is under way: the most ADDs in any stretch as long as the
/// longest refill of 19 in 20, counted generously (an interval that the stretch touches counts whole), or the most that
/// asked at once, whichever is more; a quarter more when the stock was empty, since who waits does not ask again. The
/// high mark is above it by the most that is asked for in a cooldown and a refill together, so that addresses of pods
/// that come and go stay here, and by one at least: marks that are equal give back and ask again for ever. Both 0 when
/// nothing was ever asked. Errors: invalid_argument when there are no samples, or they are not in order of time.
[[nodiscard]] Result<Advice> advise(const std::vector<DemandSample>& samples, const AdviceLimits& limits);

}  // namespace croft::core::warm
