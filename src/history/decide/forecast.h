#pragma once

#include <chrono>
#include <optional>
#include <span>
#include <string>

#include "base/clock.h"

namespace croft::core::history {

/// How many addresses of a pool were in use at a moment, and how many there were.
struct Use {
  WallTime at{};
  double used = 0;
  double room = 0;
};

/// When a pool is full.
struct Forecast {
  bool is_known = false;                        ///< false: there is too little to say anything
  const char* why = "no count of it is known";  ///< it is not known, for people
  double growth_an_hour = 0;
  /// From the last use on. Absent: not within kForecastMax.
  std::optional<std::chrono::seconds> full_in{}, earliest{}, latest{};
};

inline constexpr std::chrono::hours kForecastMax{14 * 24};
/// "now", "7h"; ">14d" where it is not in sight.
[[nodiscard]] std::string full_text(const std::optional<std::chrono::seconds>& full_in);

/// `uses` ascend in time, and lead up to `now`. Where the history has two days, use goes on from now as it did from
/// this hour on in the days before, and no higher than their highest, but for what they grew by and the last of them
/// still did. Else the growth since the first count goes on where it still does. A growth of the last hours that is
/// faster than a day's fastest comes on top. A growth that is seen for hours is believed for four times as long. All
/// are medians, which single bursts do not move (Theil and Sen). The band is that of the quartiles.
[[nodiscard]] Forecast forecast(std::span<const Use> uses, WallTime now);

}  // namespace croft::core::history
