#pragma once

#include <cstdint>
#include <string_view>

namespace croft::net {

enum class Family : std::uint8_t { v4 = 4, v6 = 6 };

/// Bits in an address: 32 or 128.
[[nodiscard]] constexpr int bit_length(Family family) { return family == Family::v4 ? 32 : 128; }

/// "IPv4" or "IPv6".
[[nodiscard]] constexpr std::string_view name_of(Family family) { return family == Family::v4 ? "IPv4" : "IPv6"; }

}  // namespace croft::net
