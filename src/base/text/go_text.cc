#include "base/text/go_text.h"

#include <algorithm>
#include <array>
#include <iterator>
#include <vector>

#include <fmt/format.h>

namespace croft::wire {
namespace {

struct CodeRange {
  char32_t first, last;
};

/// Outside ASCII: what Go does not print (controls, format characters, spaces other than U+0020, private use,
/// noncharacters).
constexpr std::array kWithoutPicture = {
    CodeRange{0x80, 0xA0},     CodeRange{0xAD, 0xAD},       CodeRange{0x61C, 0x61C},      CodeRange{0x1680, 0x1680},
    CodeRange{0x180E, 0x180E}, CodeRange{0x2000, 0x200F},   CodeRange{0x2028, 0x202F},    CodeRange{0x205F, 0x206F},
    CodeRange{0x3000, 0x3000}, CodeRange{0xE000, 0xF8FF},   CodeRange{0xFEFF, 0xFEFF},    CodeRange{0xFFF0, 0xFFFB},
    CodeRange{0xFFFE, 0xFFFF}, CodeRange{0xE0000, 0xE0FFF}, CodeRange{0xF0000, 0x10FFFF},
};

constexpr std::array kSpaces = {
    CodeRange{'\t', '\r'},     CodeRange{' ', ' '},       CodeRange{0x85, 0x85},     CodeRange{0xA0, 0xA0},
    CodeRange{0x1680, 0x1680}, CodeRange{0x2000, 0x200A}, CodeRange{0x2028, 0x2029}, CodeRange{0x202F, 0x202F},
    CodeRange{0x205F, 0x205F}, CodeRange{0x3000, 0x3000},
};

template <std::size_t N>
bool in_any(const std::array<CodeRange, N>& ranges, char32_t code) {
  return std::any_of(ranges.begin(), ranges.end(),
                     [code](const CodeRange& r) { return r.first <= code && code <= r.last; });
}

void append_quoted(std::string& out, std::string_view bytes, const Rune& rune) {
  const auto sink = std::back_inserter(out);
  if (!rune.valid) {
    fmt::format_to(sink, "\\x{:02x}", static_cast<unsigned>(static_cast<unsigned char>(bytes.front())));
  } else if (const char letter = escape_letter(rune.code); letter != '\0') {
    out += '\\';
    out += letter;
  } else if (rune.code < 0x20 || rune.code == 0x7F) {
    fmt::format_to(sink, "\\x{:02x}", static_cast<unsigned>(rune.code));
  } else if (!in_any(kWithoutPicture, rune.code)) {
    out += bytes.substr(0, rune.size);
  } else if (rune.code < 0x10000) {
    fmt::format_to(sink, "\\u{:04x}", static_cast<unsigned>(rune.code));
  } else {
    fmt::format_to(sink, "\\U{:08x}", static_cast<unsigned>(rune.code));
  }
}

/// The fold of the rune at the front, as far as it can be ASCII.
char32_t folded(char32_t code) {
  if (code >= 'A' && code <= 'Z') return code - 'A' + 'a';
  if (code == 0x017F) return 's';
  if (code == 0x212A) return 'k';
  return code;
}

}  // namespace

char escape_letter(char32_t code) {
  constexpr std::string_view kCharacters = "\"\\\b\f\n\r\t\a\v", kLetters = "\"\\bfnrtav";
  const std::size_t at = code < 0x80 ? kCharacters.find(static_cast<char>(code)) : kCharacters.npos;
  return at == kCharacters.npos ? '\0' : kLetters[at];
}

bool is_plain_text(std::string_view text) {
  while (!text.empty()) {
    const Rune rune = first_rune(text);
    if (!rune.valid || rune.code < 0x20 || (rune.code >= 0x7F && rune.code < 0xA0)) return false;
    text.remove_prefix(rune.size);
  }
  return true;
}

bool is_space(char32_t code) { return in_any(kSpaces, code); }

std::string go_quote(std::string_view text) {
  std::string out = "\"";
  while (!text.empty()) {
    const Rune rune = first_rune(text);
    append_quoted(out, text, rune);
    text.remove_prefix(rune.size);
  }
  out += '"';
  return out;
}

bool same_member_name(std::string_view key, std::string_view name) {
  while (!key.empty() && !name.empty()) {
    const Rune rune = first_rune(key);
    if (folded(rune.code) != folded(static_cast<unsigned char>(name.front()))) return false;
    key.remove_prefix(rune.size);
    name.remove_prefix(1);
  }
  return key.empty() && name.empty();
}

std::string go_clean_path(std::string_view path) {
  const bool rooted = path.starts_with('/');
  std::vector<std::string_view> parts;
  while (!path.empty()) {
    const std::string_view part = path.substr(0, path.find('/'));
    path.remove_prefix(std::min(part.size() + 1, path.size()));
    if (part.empty() || part == ".") continue;
    const bool goes_up = part == "..";
    if (goes_up && !parts.empty() && parts.back() != "..") {
      parts.pop_back();
    } else if (!goes_up || !rooted) {
      parts.push_back(part);
    }
  }
  std::string clean = rooted ? "/" : "";
  for (std::size_t i = 0; i < parts.size(); ++i) clean.append(i == 0 ? "" : "/").append(parts[i]);
  return clean.empty() ? "." : clean;
}

}  // namespace croft::wire
