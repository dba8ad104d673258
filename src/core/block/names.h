#pragma once

namespace croft::core {

/// ASCII letters and digits, whatever the locale.
[[nodiscard]] constexpr bool is_alphanumeric(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
}

}  // namespace croft::core
