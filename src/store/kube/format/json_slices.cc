#include "store/kube/format/json_slices.h"

#include <algorithm>

namespace croft::wire::kube {
namespace {

constexpr std::string_view kSpace = " \t\r\n";

void skip_space(std::string_view& rest) {
  std::size_t at = 0;
  while (at < rest.size() && kSpace.find(rest[at]) != kSpace.npos) ++at;
  rest.remove_prefix(at);
}

/// Behind the string that begins at `at`; npos where it has no end.
[[nodiscard]] std::size_t behind_string(std::string_view text, std::size_t at) {
  const std::size_t begin = at++;
  for (;; ++at) {
    at = text.find('"', at);
    if (at == text.npos) return at;
    std::size_t before = at;
    while (before > begin + 1 && text[before - 1] == '\\') --before;
    if ((at - before) % 2 == 0) return at + 1;
  }
}

/// Behind the value that begins there; npos where it has no end.
[[nodiscard]] std::size_t behind_value(std::string_view text) {
  if (text.empty()) return text.npos;
  if (text.front() == '"') return behind_string(text, 0);
  if (text.front() != '{' && text.front() != '[') {
    const std::size_t end = std::min(text.find_first_of(",]} \t\r\n"), text.size());
    return end == 0 ? text.npos : end;
  }
  std::size_t depth = 0;
  for (std::size_t at = 0; at < text.size(); ++at) {
    switch (text[at]) {
      case '"':
        at = behind_string(text, at);
        if (at == text.npos) return at;
        --at;
        break;
      case '{':
      case '[':
        ++depth;
        break;
      case '}':
      case ']':
        if (--depth == 0) return at + 1;
        break;
      default:
        break;
    }
  }
  return text.npos;
}

void copy(JsonSlices& from, std::span<const Kept> kept, std::string& out) {
  out += from.is_object() ? '{' : '[';
  bool is_first = true;
  while (from.next()) {
    const auto found = std::ranges::find(kept, from.name(), &Kept::name);
    if (from.is_object() && found == kept.end()) continue;
    if (!is_first) out += ',';
    is_first = false;
    if (from.is_object()) out.append("\"").append(from.name()).append("\":");
    const auto parts = from.is_object() ? found->parts : kept;
    if (JsonSlices inside = from.inside(); !parts.empty() && inside.is_open()) {
      copy(inside, parts, out);
      from.leave(inside);
    } else {
      out += from.text();
    }
  }
  out += from.is_object() ? '}' : ']';
}

}  // namespace

JsonSlices::JsonSlices(std::string_view text) : rest_(text) {
  skip_space(rest_);
  if (rest_.starts_with('{') || rest_.starts_with('[')) {
    close_ = rest_.front() == '{' ? '}' : ']';
    rest_.remove_prefix(1);
  } else {
    state_ = State::broken;
    rest_ = {};
  }
}

bool JsonSlices::next() {
  if (state_ == State::at_value) static_cast<void>(text());
  if (state_ == State::over || state_ == State::broken) return false;
  skip_space(rest_);
  if (rest_.starts_with(close_)) {
    state_ = State::over;
    rest_.remove_prefix(1);
    return false;
  }
  const bool is_first = state_ == State::first;
  state_ = State::broken;
  if (!is_first) {
    if (!rest_.starts_with(',')) return false;
    rest_.remove_prefix(1);
    skip_space(rest_);
  }
  if (is_object()) {
    const std::size_t end = rest_.starts_with('"') ? behind_string(rest_, 0) : rest_.npos;
    if (end == rest_.npos) return false;
    name_ = rest_.substr(1, end - 2);
    rest_.remove_prefix(end);
    skip_space(rest_);
    if (!rest_.starts_with(':')) return false;
    rest_.remove_prefix(1);
    skip_space(rest_);
  }
  state_ = State::at_value;
  return true;
}

std::string_view JsonSlices::text() {
  const std::size_t end = behind_value(rest_);
  state_ = end == rest_.npos ? State::broken : State::behind_value;
  const std::string_view value = rest_.substr(0, end == rest_.npos ? 0 : end);
  rest_.remove_prefix(value.size());
  return value;
}

void JsonSlices::leave(const JsonSlices& inside) {
  state_ = inside.is_sound() ? State::behind_value : State::broken;
  rest_ = inside.rest_;
}

std::string with_only(std::string_view text, std::span<const Kept> kept) {
  JsonSlices slices(text);
  std::string out;
  if (slices.is_open()) copy(slices, kept, out);
  return slices.is_sound() ? out : std::string(text);
}

}  // namespace croft::wire::kube
