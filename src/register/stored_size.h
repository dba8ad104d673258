#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "register/block.h"
#include "register/cooling_beside.h"

// How large a block becomes in a store. No format is known here, only what all of them stay below: the codecs' tests
// compare (store/etcd/codec_test.cc, register/format/records_test.cc).
namespace croft::core {

/// What the blocks of one commit may come to where the store sets no limit (store.h, Capabilities).
inline constexpr std::size_t kNoBytesMax = SIZE_MAX;

/// How a bound is made.
enum class Bound : std::uint8_t {
  quick,  ///< from the lengths of the texts, as if every byte needed an escape: up to six times too large
  close,  ///< looks at every byte
};

/// At least as many bytes as any format needs for a block, with what it records beside it.
[[nodiscard]] std::size_t bytes_of(const Block& block, Bound bound);

/// At least as many as any format needs for what cools beside a block.
[[nodiscard]] std::size_t bytes_of(const std::vector<CoolingBeside>& cooling, Bound bound);

/// At least as many as it needs without its spare parts, now and after any release of what it holds: room for the
/// cooling of each held address is counted in. No release makes it grow.
[[nodiscard]] std::size_t bytes_needed(const Block& block, Bound bound);

/// What the record of a block can do without, in the order in which it goes. Nothing of it shortens a cooldown.
enum class Spare : std::uint8_t {
  previous_secondary,  ///< for people
  previous_handle,     ///< the same
  clock_marks,         ///< cooldowns end later, by the wall clocks (cooldown_ended)
};
inline constexpr Spare kSpares[] = {Spare::previous_secondary, Spare::previous_handle, Spare::clock_marks};
[[nodiscard]] Block without(Block block, Spare spare);

/// The block without as many of its spare parts as it takes to come to at most so many bytes; without all of them when
/// that is not enough.
[[nodiscard]] Block fitted(Block block, std::size_t bytes_max);

}  // namespace croft::core
