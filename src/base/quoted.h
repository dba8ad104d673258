#pragma once

#include <string>
#include <string_view>

#include "base/hex.h"

namespace croft {

/// A text in quotation marks, `"` and `\` with a backslash before them: in a line of `name=value` it ends where it
/// ends, whatever it holds. Control characters are left to who writes the line.
[[nodiscard]] inline std::string in_quotes(std::string_view text) {
  std::string result = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') result += '\\';
    result += c;
  }
  return result + "\"";
}

/// The same, but a text of nothing but letters, digits and `._:/,-` stays as it is.
[[nodiscard]] inline std::string in_quotes_if_needed(std::string_view text) {
  constexpr std::string_view kPlain = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._:/,-";
  if (text.empty() || text.find_first_not_of(kPlain) != std::string_view::npos) return in_quotes(text);
  return std::string(text);
}

/// A word of a command that can be typed, whatever it holds: as it is, or in the quotation marks of bash, zsh and
/// busybox that know `\x1b` (`$'…'`). All of it is printable ASCII.
[[nodiscard]] inline std::string in_shell_quotes_if_needed(std::string_view text) {
  if (!text.empty() && in_quotes_if_needed(text).size() == text.size()) return std::string(text);
  std::string result = "$'";
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (byte >= ' ' && byte < 0x7f) {
      if (c == '\'' || c == '\\') result += '\\';
      result += c;
    } else {
      result += "\\x";
      result += kHexDigits[byte >> 4];
      result += kHexDigits[byte & 0xf];
    }
  }
  return result + "'";
}

}  // namespace croft
