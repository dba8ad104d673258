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

/// The same where more than an ending differs: "1 address lies", "2 addresses lie".
[[nodiscard]] inline std::string counted_as(std::uint64_t number, std::string_view one, std::string_view many) {
  return counted(number, number == 1 ? one : many, "");
}

}  // namespace croft
