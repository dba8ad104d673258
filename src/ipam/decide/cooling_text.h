#pragma once

#include <cstdint>
#include <string>

#include "base/clock.h"
#include "base/net/count.h"

namespace croft::core {

/// Whether more addresses cool than anybody can hold, of so many that may be given out. So it is where something behind
/// Croft, as the main plugin, fails each ADD: its DEL lets the address cool, and the next try takes another.
[[nodiscard]] bool mostly_cools(std::uint64_t cooling, const net::Count& usable);
/// Says it of a pool that has no address to give, and what it tells; the same in a refusal and in `croft check`.
[[nodiscard]] std::string cooling_text(std::uint64_t cooling, const net::Count& usable, WallTime first_end);

}  // namespace croft::core
