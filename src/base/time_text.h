#pragma once

#include <algorithm>
#include <array>
#include <charconv>
#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "base/clock.h"
#include "base/result.h"

namespace croft {

/// RFC 3339 in UTC with whole seconds, rounded up: "2026-01-15T10:00:02Z" for any moment after :01.
[[nodiscard]] std::string rfc3339_rounded_up(WallTime time);

/// The same moment exactly: with a fraction when it has one, without trailing zeros.
[[nodiscard]] std::string rfc3339_exact(WallTime time);

/// Reads RFC 3339 with `Z` or a numeric offset and an optional fraction. Error: invalid_argument naming the text.
[[nodiscard]] Result<WallTime> parse_rfc3339(std::string_view text);

/// Go's default text of a UTC time, as Calico stores it in the attribute `timestamp`:
/// "2026-01-15 10:00:01.5 +0000 UTC" (trailing zeros of the fraction dropped, no fraction when it is zero).
[[nodiscard]] std::string go_utc_text(WallTime time);

/// Reads what go_utc_text writes. Error: invalid_argument naming the text.
[[nodiscard]] Result<WallTime> parse_go_utc_text(std::string_view text);

/// The next whole second, as other programs write times; of the last second there is, it is the one before.
[[nodiscard]] WallTime next_whole_second(WallTime time);

/// "now", "45m", "7h", "3d".
[[nodiscard]] inline std::string span_text(std::chrono::seconds span) {
  if (span.count() == 0) return "now";
  const auto minutes = std::chrono::floor<std::chrono::minutes>(span).count();
  if (minutes < 120) return std::to_string(minutes) + "m";
  if (minutes < 48 * 60) return std::to_string(minutes / 60) + "h";
  return std::to_string(minutes / (24 * 60)) + "d";
}

/// The span of "90s", "2h", "3m20s"; nothing for another text.
[[nodiscard]] inline std::optional<std::chrono::seconds> parse_span(std::string_view text) {
  constexpr auto kUnits =
      std::to_array<std::pair<char, std::int64_t>>({{'s', 1}, {'m', 60}, {'h', 3600}, {'d', 86400}});
  constexpr std::int64_t kMost = std::int64_t{40'000} * 86400;  // earlier no clock was right
  if (text.empty()) return std::nullopt;
  std::int64_t seconds = 0;
  while (!text.empty()) {
    std::int64_t number = 0;
    const auto [end, code] = std::from_chars(text.data(), text.data() + text.size(), number);
    const auto digits = static_cast<std::size_t>(end - text.data());
    if (code != std::errc() || text.front() == '-' || digits == text.size()) return std::nullopt;
    const auto* const unit = std::ranges::find(kUnits, text[digits], [](const auto& one) { return one.first; });
    if (unit == kUnits.end()) return std::nullopt;
    seconds = std::min(kMost, seconds + std::min(number, kMost / unit->second) * unit->second);
    text.remove_prefix(digits + 1);
  }
  return std::chrono::seconds(seconds);
}

}  // namespace croft
