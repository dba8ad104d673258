#pragma once

#include <string>
#include <string_view>

namespace croft::core {

/// ASCII letters and digits, whatever the locale.
[[nodiscard]] constexpr bool is_alphanumeric(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
}

/// A text from outside, fit for an error message: control and non-ASCII bytes as \xNN, cut at 64 bytes.
[[nodiscard]] std::string quoted(std::string_view text);

}  // namespace croft::core
