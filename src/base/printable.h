#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "base/hex.h"

namespace croft {

/// One code point at the front of a UTF-8 text. `size` is 0 for an empty text. An invalid byte sequence gives
/// `valid == false`, size 1 and U+FFFD, as Go's utf8.DecodeRune.
struct Rune {
  char32_t code = 0xFFFD;
  std::size_t size = 0;
  bool valid = false;
};
[[nodiscard]] Rune first_rune(std::string_view text);

/// For whom a text is made printable.
enum class Printed : std::uint8_t {
  text,      ///< a terminal: newline and tab stay
  coloured,  ///< likewise, and the colours of Croft's own views: ESC[0m, ESC[38;5;Nm, ESC[38;5;N;48;5;Nm
  line,      ///< one line of a log: newline and tab are escaped too
  json,      ///< JSON, or YAML with quoted strings: the data stays exactly what it is
};

/// The text with everything escaped by which what is printed could act on a terminal or look like something else:
/// control characters (C0, DEL, and C1 as UTF-8), marks that change the direction of writing, separators of lines and
/// paragraphs, and bytes that are no UTF-8. As `\x1b` or `\u202e`; in JSON as `\u001b`. Whatever a program of Croft
/// prints or logs comes through here: names, labels, contents of files and messages of others may hold anything.
[[nodiscard]] std::string printable(std::string_view text, Printed how);

/// Where the last `@` is, or the last `%40`, which is one as URLs write it in a password; npos: none.
[[nodiscard]] inline std::size_t last_at_sign(std::string_view text) {
  const std::size_t plain = text.rfind('@'), encoded = text.rfind("%40");
  if (plain == text.npos || encoded == text.npos) return std::min(plain, encoded);
  return std::max(plain, encoded);
}

/// A text without what stands before an `@` or `%40` in the URLs in it: a user, mostly with a password. For errors and
/// logs, which repeat what was given.
[[nodiscard]] inline std::string without_user_info(std::string_view text) {
  constexpr std::string_view kBefore = "://", kHidden = "(hidden)";
  std::string result;
  for (;;) {
    const std::size_t begin = text.find(kBefore);
    if (begin == text.npos) return result.append(text);
    result.append(text.substr(0, begin + kBefore.size()));
    text.remove_prefix(begin + kBefore.size());
    // A password may have any character: the last one of this URL ends it.
    const std::size_t at = last_at_sign(text.substr(0, text.find(kBefore)));
    if (at == text.npos) continue;
    result.append(kHidden);
    text.remove_prefix(at);
  }
}

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

/// The most of a text that a message repeats, in bytes between the quotes.
inline constexpr std::size_t kEchoBytesMax = 64;

/// A text from outside, made safe for one line of a message. It stands in double quotes, with quote and backslash
/// behind a backslash, and control characters and bytes outside ASCII as \xNN. After kEchoBytesMax bytes it is cut,
/// which `...` behind the closing quote shows. User and password of a URL are hidden.
[[nodiscard]] std::string echo(std::string_view text);

}  // namespace croft
