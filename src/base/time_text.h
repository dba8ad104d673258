#pragma once

#include <string>
#include <string_view>

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

}  // namespace croft
