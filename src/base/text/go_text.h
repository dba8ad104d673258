#pragma once

// Rules of text that Go applies and CNI callers have come to depend on.

#include <string>
#include <string_view>

#include "base/printable.h"

namespace croft::wire {

/// The letter behind the backslash by which Go writes a character in quotes, 0 for one that has none. JSON has them
/// too, but for `\a` and `\v`.
[[nodiscard]] char escape_letter(char32_t code);

/// True when the text is valid UTF-8 without control characters (U+0000–U+001F, U+007F–U+009F): fit for a key, an
/// attribute or a line of a log.
[[nodiscard]] bool is_plain_text(std::string_view text);

/// Go's unicode.IsSpace: ASCII white space and U+0085, U+00A0, U+1680, U+2000–U+200A, U+2028, U+2029, U+202F, U+205F,
/// U+3000.
[[nodiscard]] bool is_space(char32_t code);

/// Go's strconv.Quote, which error texts of the reference use. Escapes what has no picture; of Unicode's unassigned
/// code points only the blocks known here are escaped, the rest is printed.
[[nodiscard]] std::string go_quote(std::string_view text);

/// Go's path/filepath.Clean on Unix: the shortest path that means the same without looking at any file; "." for an
/// empty one. So `..` takes away the name before it, also where that is a link.
[[nodiscard]] std::string go_clean_path(std::string_view path);

/// Whether Go's encoding/json takes `key` for the member `name`, which must be ASCII. They are equal without regard to
/// ASCII case, with U+017F (long s) read as `s` and U+212A (Kelvin sign) as `k`.
[[nodiscard]] bool same_member_name(std::string_view key, std::string_view name);

}  // namespace croft::wire
