#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "base/result.h"
#include "store/pause.h"

// The record that says that a register takes no writes (docs/formats/records.md#pause).

namespace croft::wire {

inline constexpr std::size_t kPauseBytesMax = std::size_t{64} << 10;

/// One JSON object.
[[nodiscard]] std::string encode_pause(const core::Pause& pause);

/// Errors: corrupt, naming the member and the runbook; newer_version.
[[nodiscard]] Result<core::Pause> decode_pause(std::string_view bytes);

}  // namespace croft::wire
