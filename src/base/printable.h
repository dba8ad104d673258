#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

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

}  // namespace croft
