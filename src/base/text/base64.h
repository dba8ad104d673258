#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace croft::wire {

/// Standard base64 with padding, one line: what Go writes for bytes in JSON.
[[nodiscard]] std::string encode_base64(std::string_view bytes);

/// Nothing for text that encode_base64 would not write: every text of bytes has one spelling.
[[nodiscard]] std::optional<std::string> decode_base64(std::string_view text);

}  // namespace croft::wire
