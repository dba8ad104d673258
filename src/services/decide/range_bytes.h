#pragma once

#include <algorithm>
#include <string>
#include <string_view>

// What can be said of the bits of a range (range_data.h) without knowing the range: numbers, right-aligned.

namespace croft::core::service {

namespace bytes_detail {

/// `f` of both bytes at each place, the last first; where one text ends it counts as zero. Without zeros in front.
template <class F>
[[nodiscard]] std::string combined(std::string_view a, std::string_view b, F f) {
  const std::size_t size = std::max(a.size(), b.size());
  std::string result(size, '\0');
  const auto at = [size](std::string_view text, std::size_t i) {
    const std::size_t missing = size - text.size();
    return i < missing ? 0U : static_cast<unsigned>(static_cast<unsigned char>(text[i - missing]));
  };
  for (std::size_t i = 0; i < size; ++i) result[i] = static_cast<char>(f(at(a, i), at(b, i)));
  const std::size_t zeros = std::min(result.find_first_not_of('\0'), size);
  return result.substr(zeros);
}

}  // namespace bytes_detail

/// What is set in either.
[[nodiscard]] inline std::string united(std::string_view a, std::string_view b) {
  return bytes_detail::combined(a, b, [](unsigned x, unsigned y) { return x | y; });
}
/// What is set in `a` and not in `b`.
[[nodiscard]] inline std::string without(std::string_view a, std::string_view b) {
  return bytes_detail::combined(a, b, [](unsigned x, unsigned y) { return x & ~y; });
}

}  // namespace croft::core::service
