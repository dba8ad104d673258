#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "base/result.h"
#include "register/seal.h"

// What says that a register takes no writes (docs/formats/records.md#seal).

namespace croft::wire {

inline constexpr std::size_t kSealBytesMax = std::size_t{64} << 10;

/// One JSON object.
[[nodiscard]] std::string encode_seal(const core::Seal& seal);

/// Errors: corrupt, naming the member; newer_version.
[[nodiscard]] Result<core::Seal> decode_seal(std::string_view bytes);

}  // namespace croft::wire
