#pragma once

#include <array>
#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

namespace croft::core {

/// The words for the values of an enumeration, as records and messages have them.
template <class T, std::size_t N>
using Words = std::array<std::pair<std::string_view, T>, N>;

template <class T, std::size_t N>
[[nodiscard]] constexpr std::string_view word_in(const Words<T, N>& words, T value) {
  for (const auto& [word, of_value] : words) {
    if (of_value == value) return word;
  }
  return {};
}
template <class T, std::size_t N>
[[nodiscard]] constexpr std::optional<T> value_in(const Words<T, N>& words, std::string_view text) {
  for (const auto& [word, value] : words) {
    if (word == text) return value;
  }
  return std::nullopt;
}

/// All of them, for a message.
template <class T, std::size_t N>
[[nodiscard]] std::string listed(const Words<T, N>& words) {
  std::string text;
  for (const auto& [word, value] : words) text += (text.empty() ? "" : ", ") + std::string(word);
  return text;
}

}  // namespace croft::core
