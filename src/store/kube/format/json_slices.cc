#include "store/kube/format/json_slices.h"

#include <algorithm>

namespace croft::wire::kube {
namespace {

constexpr std::size_t kNoEnd = std::string_view::npos;

[[nodiscard]] std::size_t behind_space(std::string_view text, std::size_t at) {
  return std::min(text.find_first_not_of(" \t\r\n", at), text.size());
}

/// Behind the string that begins at `at`.
[[nodiscard]] std::size_t behind_string(std::string_view text, std::size_t at) {
  const std::size_t begin = at++;
  for (;; ++at) {
    at = text.find('"', at);
    if (at == kNoEnd) return at;
    std::size_t before = at;
    while (before > begin + 1 && text[before - 1] == '\\') --before;
    if ((at - before) % 2 == 0) return at + 1;
  }
}

[[nodiscard]] std::size_t copy(std::string_view text, std::span<const Kept> kept, std::string& out) {
  const bool is_object = text.starts_with('{');
  bool is_first = true;
  out += is_object ? '{' : '[';
  const std::size_t length = each_slice(text, [&](std::string_view name, std::string_view value) {
    const auto found = std::ranges::find(kept, name, &Kept::name);
    if (is_object && found == kept.end()) return length_of_value(value);
    if (!is_first) out += ',';
    is_first = false;
    if (is_object) out.append("\"").append(name).append("\":");
    const auto parts = is_object ? found->parts : kept;
    if (!parts.empty() && (value.starts_with('{') || value.starts_with('['))) return copy(value, parts, out);
    const std::size_t whole = length_of_value(value);
    if (whole != kNoEnd) out += value.substr(0, whole);
    return whole;
  });
  out += is_object ? '}' : ']';
  return length;
}

}  // namespace

std::size_t length_of_value(std::string_view text) {
  if (text.starts_with('"')) return behind_string(text, 0);
  if (!text.starts_with('{') && !text.starts_with('[')) {
    const std::size_t end = std::min(text.find_first_of(",]} \t\r\n"), text.size());
    return end == 0 ? kNoEnd : end;
  }
  std::size_t depth = 0;
  for (std::size_t at = 0; at < text.size(); ++at) {
    const char c = text[at];
    if (c == '"') {
      at = behind_string(text, at);
      if (at == kNoEnd) return at;
      --at;
    } else if (c == '{' || c == '[') {
      ++depth;
    } else if ((c == '}' || c == ']') && --depth == 0) {
      return at + 1;
    }
  }
  return kNoEnd;
}

std::size_t each_slice(std::string_view text, const TakeSlice& take) {
  const bool is_object = text.starts_with('{');
  if (!is_object && !text.starts_with('[')) return kNoEnd;
  const char close = is_object ? '}' : ']';
  std::size_t at = behind_space(text, 1);
  if (text.substr(at).starts_with(close)) return at + 1;
  for (;;) {
    std::string_view name;
    if (is_object) {
      const std::size_t end = text.substr(at).starts_with('"') ? behind_string(text, at) : kNoEnd;
      if (end == kNoEnd) return kNoEnd;
      name = text.substr(at + 1, end - at - 2);
      at = behind_space(text, end);
      if (!text.substr(at).starts_with(':')) return kNoEnd;
      at = behind_space(text, at + 1);
    }
    const std::size_t length = take(name, text.substr(at));
    if (length == kNoEnd) return kNoEnd;
    at = behind_space(text, at + length);
    if (text.substr(at).starts_with(close)) return at + 1;
    if (!text.substr(at).starts_with(',')) return kNoEnd;
    at = behind_space(text, at + 1);
  }
}

std::string with_only(std::string_view text, std::span<const Kept> kept) {
  std::string out;
  return copy(text, kept, out) == kNoEnd ? std::string(text) : out;
}

}  // namespace croft::wire::kube
