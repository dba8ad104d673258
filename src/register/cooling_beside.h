#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "register/block.h"

namespace croft::core {

/// A cooling address as it is recorded beside a block: in the formats of others, whose older programs would keep an
/// address for ever that they find cooling (docs/promises.md#cooling). The block itself shows it as free, at the tail
/// of its order.
struct CoolingBeside {
  std::uint32_t ordinal = 0;
  SequenceNumber sequence_number;
  Cooling cooling;
  friend bool operator==(const CoolingBeside&, const CoolingBeside&) = default;
};

/// The block as others see it, and what is recorded beside it, ascending by ordinal. Addresses that cool in Calico's
/// own way stay in the block.
[[nodiscard]] std::pair<Block, std::vector<CoolingBeside>> without_cooling(Block block);

/// The inverse. A record of an address that is taken, or not of the block, is out of date and passed over. One that is
/// so much older by its sequence number that it is of a block before this one counts only as far as a cooldown can go
/// on. It counts not at all when the longest one was over when this block was made, else from then at the latest. One
/// with a later sequence number than the block is of a block before this one, which another made anew with the numbers
/// of its own clock. The address cools on, without the number, which would be of the future here.
[[nodiscard]] Block with_cooling(Block block, const std::vector<CoolingBeside>& beside);

}  // namespace croft::core
