#pragma once

#include <array>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "base/result.h"

// Messages that are put together of values, as fmt::format does it: `fail(ErrorCode::not_found, "no pool {}", name)`.

namespace croft {

template <class First, class... Rest>
[[nodiscard]] Error make_error(ErrorCode code, fmt::format_string<First, Rest...> text, First&& first, Rest&&... rest) {
  return {code, fmt::format(text, std::forward<First>(first), std::forward<Rest>(rest)...), {}};
}

template <class First, class... Rest>
[[nodiscard]] auto fail(ErrorCode code, fmt::format_string<First, Rest...> text, First&& first, Rest&&... rest) {
  return fail(make_error(code, text, std::forward<First>(first), std::forward<Rest>(rest)...));
}

/// "a, b"
[[nodiscard]] inline std::string joined(const std::vector<std::string>& texts, std::string_view between = ", ") {
  std::string all;
  for (const std::string& text : texts) all.append(&text == texts.data() ? "" : between).append(text);
  return all;
}

/// The parts between separators; of an empty text one that is empty.
[[nodiscard]] inline std::vector<std::string_view> split(std::string_view text, char separator) {
  std::vector<std::string_view> parts;
  for (;;) {
    const std::size_t end = text.find(separator);
    parts.push_back(text.substr(0, end));
    if (end == text.npos) return parts;
    text.remove_prefix(end + 1);
  }
}

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

}  // namespace croft

/// Values that say how they are written: addresses, prefixes, names of Services.
template <class T>
  requires requires(const T& value) {
    { value.to_string() } -> std::same_as<std::string>;
  }
struct fmt::formatter<T, char> : fmt::formatter<fmt::string_view> {
  template <class Context>
  auto format(const T& value, Context& context) const {
    return fmt::formatter<fmt::string_view>::format(value.to_string(), context);
  }
};
