#include "vpc/format/ucloud/members.h"

#include <charconv>

#include "base/net/echo.h"

namespace croft::wire::ucloud {

MaybeFault read_word(const JsonAt& at, std::string& out) {
  switch (at.value.kind()) {
    case JsonKind::null:
      return {};
    case JsonKind::boolean:
      out = at.value.boolean() ? "true" : "false";
      return {};
    case JsonKind::integer:
    case JsonKind::number:
    case JsonKind::string:
      break;
    default:
      return at.wrong_type("a string");
  }
  const std::string_view text = at.value.text();
  if (text.size() > kTextBytesMax) return at.bad_value("more than 512 bytes");
  if (!is_plain_text(text)) return at.bad_value(net::echo(text) + " holds control characters");
  out = text;
  return {};
}

MaybeFault read_secret(const JsonAt& at, std::string& out) {
  constexpr std::size_t kSecretBytesMax = 4096;
  if (at.value.is_null()) return {};
  if (at.value.kind() != JsonKind::string) return at.wrong_type("a string");
  if (at.value.text().size() > kSecretBytesMax) return at.bad_value("more than 4096 bytes");
  if (!is_plain_text(at.value.text())) return at.bad_value("it holds control characters");
  out = at.value.text();
  return {};
}

MaybeFault read_count(const JsonAt& at, std::int64_t& out) {
  if (at.value.is_null()) return {};
  if (const auto integer = at.value.integer()) {
    out = *integer;
    return {};
  }
  if (at.value.kind() != JsonKind::string) return at.wrong_type("an integer");
  const std::string_view text = at.value.text();
  std::int64_t value = 0;
  const auto [stop, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || stop != text.data() + text.size()) {
    return at.bad_value(net::echo(text) + " is no integer");
  }
  out = value;
  return {};
}

MaybeFault read_flag(const JsonAt& at, bool& out) {
  if (at.value.kind() != JsonKind::string) return read_boolean(at, out);
  std::string folded;
  for (const char c : at.value.text().substr(0, 8)) folded += c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : c;
  if (folded != "true" && folded != "false") return at.bad_value(net::echo(at.value.text()) + " is no boolean");
  out = folded == "true";
  return {};
}

}  // namespace croft::wire::ucloud
