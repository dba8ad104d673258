#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace croft::net {

/// The most of a text that a message repeats, in bytes between the quotes.
inline constexpr std::size_t kEchoBytesMax = 64;

/// A text from outside, made safe for one line of a message: in double quotes; quote and backslash behind a backslash;
/// control characters and bytes outside ASCII as \xNN; cut after kEchoBytesMax bytes, which `...` behind the closing
/// quote then shows. User and password of a URL are hidden.
[[nodiscard]] std::string echo(std::string_view text);

}  // namespace croft::net
