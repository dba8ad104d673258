#include "base/printable.h"

#include <algorithm>

#include <fmt/format.h>

#include "base/hex.h"

namespace croft {
namespace {

bool is_plain(char c) { return c >= 0x20 && c < 0x7f; }

bool is_harmful(char32_t code) {
  return code < 0x20 || (code >= 0x7f && code <= 0x9f) || code == 0x061c || code == 0x200e || code == 0x200f ||
         (code >= 0x2028 && code <= 0x202e) || (code >= 0x2066 && code <= 0x2069) || code == 0xfeff;
}

void add_hex(std::string& out, unsigned code, int digits) {
  for (int shift = 4 * (digits - 1); shift >= 0; shift -= 4) out += kHexDigits[(code >> shift) & 0xfU];
}

/// The length of one of Croft's own colours at the start of a text; 0 when there is none.
std::size_t colour_at(std::string_view text) {
  if (text.starts_with("\x1b[0m")) return 4;
  std::size_t at = 0;
  const auto take = [&](std::string_view start) {
    if (!text.substr(at).starts_with(start)) return false;
    std::size_t end = at + start.size();
    while (end < text.size() && end < at + start.size() + 3 && text[end] >= '0' && text[end] <= '9') ++end;
    if (end == at + start.size()) return false;
    at = end;
    return true;
  };
  if (!take("\x1b[38;5;")) return 0;
  static_cast<void>(take(";48;5;"));
  return at < text.size() && text[at] == 'm' ? at + 1 : 0;
}

std::string escaped(char c) {
  const auto byte = static_cast<unsigned char>(c);
  if (byte < 0x20 || byte >= 0x7f) return fmt::format("\\x{:02x}", byte);
  if (c == '"' || c == '\\') return {'\\', c};
  return {c};
}

}  // namespace

Rune first_rune(std::string_view text) {
  constexpr Rune kBad{0xFFFD, 1, false};
  if (text.empty()) return {};
  const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(text[i]); };
  const unsigned first = byte(0);
  if (first < 0x80) return {first, 1, true};
  const std::size_t size = first >= 0xf0 ? 4 : first >= 0xe0 ? 3 : 2;
  if (first < 0xc2 || first > 0xf4 || text.size() < size) return kBad;
  char32_t code = first & (0x7fU >> size);
  for (std::size_t i = 1; i < size; ++i) {
    if ((byte(i) & 0xc0U) != 0x80U) return kBad;
    code = code << 6 | (byte(i) & 0x3fU);
  }
  const bool is_overlong = (size == 3 && code < 0x800) || (size == 4 && code < 0x10000);
  const bool is_surrogate = code >= 0xd800 && code <= 0xdfff;
  return is_overlong || is_surrogate || code > 0x10ffff ? kBad : Rune{code, size, true};
}

std::string printable(std::string_view text, Printed how) {
  std::string out;
  out.reserve(text.size());
  while (true) {
    // Almost all of almost every text.
    const auto plain = static_cast<std::size_t>(std::find_if_not(text.begin(), text.end(), is_plain) - text.begin());
    out += text.substr(0, plain);
    text.remove_prefix(plain);
    if (text.empty()) return out;
    const Rune next = first_rune(text);
    std::size_t taken = next.size;
    const bool is_layout = (next.code == '\n' || next.code == '\t') && how != Printed::line;
    const std::size_t colour = how == Printed::coloured ? colour_at(text) : 0;
    if (colour > 0) {
      out += text.substr(0, colour);
      taken = colour;
    } else if (!next.valid) {
      out += "\\x";
      add_hex(out, static_cast<unsigned char>(text.front()), 2);
    } else if (is_layout || !is_harmful(next.code)) {
      out += text.substr(0, next.size);
    } else if (how == Printed::json || next.code > 0xff) {
      out += "\\u";
      add_hex(out, static_cast<unsigned>(next.code), 4);
    } else {
      out += "\\x";
      add_hex(out, static_cast<unsigned>(next.code), 2);
    }
    text.remove_prefix(taken);
  }
}

std::string echo(std::string_view text) {
  std::string out = "\"";
  for (const char c : without_user_info(text)) {
    const std::string piece = escaped(c);
    if (out.size() - 1 + piece.size() > kEchoBytesMax) return out + "\"...";
    out += piece;
  }
  return out + '"';
}

}  // namespace croft
