#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace croft {

/// How many letters must be put in, left out, changed or swapped with their neighbour to make one word of the other.
/// Words of any length; takes time in proportion to the product of both.
[[nodiscard]] std::size_t typing_errors_between(std::string_view a, std::string_view b);

/// The words that somebody may have meant by `word`, the nearest first, at most `count`. They are one or two typing
/// errors away (in a short word one), or begin with it. None when there is nothing near.
[[nodiscard]] std::vector<std::string> nearest_words(std::string_view word, const std::vector<std::string>& known,
                                                     std::size_t count = 3);

/// `; did you mean "pool"?`, or nothing.
[[nodiscard]] std::string did_you_mean(std::string_view word, const std::vector<std::string>& known);

}  // namespace croft
