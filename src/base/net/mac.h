#pragma once

#include <array>
#include <compare>
#include <cstdint>
#include <string>
#include <string_view>

#include "base/result.h"

namespace croft::net {

/// A 48-bit Ethernet (EUI-48) address; all zero when default-constructed. Ordered by bytes.
struct Mac {
  std::array<std::uint8_t, 6> bytes{};

  /// Reads six pairs of hexadecimal digits of either case between colons: "aa:bb:cc:dd:ee:ff". No other separator.
  /// Error: invalid_argument with the text.
  [[nodiscard]] static Result<Mac> parse(std::string_view text);

  /// Lower case, e.g. "02:00:5e:10:00:ff"; parse reads it back.
  [[nodiscard]] std::string to_string() const;

  friend constexpr auto operator<=>(const Mac&, const Mac&) = default;
};

}  // namespace croft::net
