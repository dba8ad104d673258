#pragma once

#include <string>
#include <string_view>

namespace croft {

// ASCII alone, whatever the locale.

[[nodiscard]] constexpr bool is_small_or_digit(char c) { return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9'); }
[[nodiscard]] constexpr bool is_alphanumeric(char c) { return is_small_or_digit(c) || (c >= 'A' && c <= 'Z'); }

[[nodiscard]] constexpr char lowered(char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; }
[[nodiscard]] constexpr char raised(char c) { return c >= 'a' && c <= 'z' ? static_cast<char>(c - 'a' + 'A') : c; }
[[nodiscard]] inline std::string lowered(std::string text) {
  for (char& c : text) c = lowered(c);
  return text;
}
[[nodiscard]] inline std::string raised(std::string text) {
  for (char& c : text) c = raised(c);
  return text;
}

/// Compares letters without their case.
[[nodiscard]] constexpr bool equals_ignoring_case(std::string_view a, std::string_view b) {
  if (a.size() != b.size()) return false;
  for (std::size_t i = 0; i < a.size(); ++i) {
    if (lowered(a[i]) != lowered(b[i])) return false;
  }
  return true;
}

/// RFC 1123, of any length: labels of a–z, 0–9 and `-`, that begin and end with one of the former, between dots.
[[nodiscard]] constexpr bool is_dns_subdomain(std::string_view name) {
  char before = '.';
  for (const char c : name) {
    if (c == '-' && before == '.') return false;
    if (c == '.' && !is_small_or_digit(before)) return false;
    if (c != '-' && c != '.' && !is_small_or_digit(c)) return false;
    before = c;
  }
  return is_small_or_digit(before);
}

}  // namespace croft
