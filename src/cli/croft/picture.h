#pragma once

#include <string>
#include <vector>

#include "ipam/use/inspect.h"

namespace croft::app {

/// Draws a pool and its blocks with half-block characters: two addresses a character, the upper and the lower half. The
/// first line is the whole pool, one half a block (or several, in a large pool); then a row for each block, at most
/// kPictureBlocksMax of them. With `colour` (ANSI) every address has its own: held, cooling, reserved, free. Without, a
/// half is filled when it is held, and `▒` and `░` stand for pairs with a cooling or a reserved address.
[[nodiscard]] std::string draw(const engine::PoolView& pool, bool colour);
inline constexpr std::size_t kPictureBlocksMax = 32;

/// One block the same way, with its label and what the signs mean.
[[nodiscard]] std::string draw(const engine::BlockView& block, bool colour);

/// The same for a run of addresses: lines of two states a character, each line behind two blanks.
[[nodiscard]] std::string draw(const std::vector<core::AddressState>& states, bool colour);
/// One line that says what the signs mean.
[[nodiscard]] std::string legend(bool colour);

}  // namespace croft::app
