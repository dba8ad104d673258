#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "core/space/dense_bitmap.h"

// The bytes in which Kubernetes keeps a range (services sheet §1.3): the big-endian magnitude of one number, whose bit
// `o` says that ordinal `o` is taken. So ordinal 0 is the lowest bit of the last byte, and a beginning of the bytes
// means nothing without their number.

namespace croft::core::range {

struct DecodedBits {
  space::DenseBitmap bits;
  /// How many bits are set at or above the size; they are not in `bits`.
  std::uint64_t beyond = 0;
};

/// Takes any number of bytes, leading zeros and none at all included; whoever read them limits them. O(size + bytes).
[[nodiscard]] DecodedBits decode_bits(std::uint32_t size, std::string_view data);

/// As few bytes as it takes; none when nothing is taken.
[[nodiscard]] std::string encode_bits(const space::DenseBitmap& bits);

}  // namespace croft::core::range
