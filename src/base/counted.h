#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace croft {

/// "1 pool", "2 pools"; `ending` is that of the plural.
[[nodiscard]] inline std::string counted(std::uint64_t number, std::string_view what, std::string_view ending = "s") {
  std::string text = std::to_string(number);
  text += ' ';
  text += what;
  if (number != 1) text += ending;
  return text;
}

}  // namespace croft
