#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace croft::net {

/// The most of a text that a message repeats, in bytes between the quotes.
inline constexpr std::size_t kEchoBytesMax = 64;

/// A text from outside, made safe for one line of a message. It stands in double quotes, with quote and backslash
/// behind a backslash, and control characters and bytes outside ASCII as \xNN. After kEchoBytesMax bytes it is cut,
/// which `...` behind the closing quote shows. User and password of a URL are hidden.
[[nodiscard]] std::string echo(std::string_view text);

}  // namespace croft::net
