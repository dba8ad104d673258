#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/space/dense_bitmap.h"

// The bytes in which Kubernetes keeps a range (docs/notes/service-ranges.md#bit-order): the big-endian magnitude of
// one number, whose bit `o` says that ordinal `o` is taken. So ordinal 0 is the lowest bit of the last byte, and a
// beginning of the bytes means nothing without their number.

namespace croft::core::service {

/// Replaces what is taken by what `data` says: any number of bytes, leading zeros and none at all included; whoever
/// read them limits them. Returns how many bits are set at or above bits.size(); they are left out. O(size + bytes).
std::uint64_t decode_bits(std::string_view data, space::DenseBitmap& bits);

/// As few bytes as it takes; none when nothing is taken.
[[nodiscard]] std::string encode_bits(const space::DenseBitmap& bits);

}  // namespace croft::core::service
