#include "base/json/writer.h"

#include <bit>
#include <charconv>
#include <cstring>
#include <iterator>

#include <fmt/format.h>

#include "base/assert.h"
#include "base/text/go_text.h"

namespace croft::wire {
namespace {

/// How many bytes of the front are ASCII that stands for itself.
std::size_t plain_prefix(std::string_view text) {
  constexpr std::uint64_t kOnes = 0x0101010101010101;
  constexpr std::uint64_t kHighBits = 0x8080808080808080;
  // In each byte the highest bit, set where the byte is zero; bytes above such a one may be marked without reason.
  const auto is_zero = [](std::uint64_t word) { return (word - kOnes) & ~word; };
  std::size_t length = 0;
  if constexpr (std::endian::native == std::endian::little) {
    for (std::uint64_t word = 0; text.size() - length >= sizeof word; length += sizeof word) {
      std::memcpy(&word, text.data() + length, sizeof word);
      const std::uint64_t control = (word - kOnes * 0x20) & ~word;
      const std::uint64_t angles = is_zero((word | kOnes * 2) ^ kOnes * '>');  // `<` and `>`
      const std::uint64_t others =
          is_zero(word ^ kOnes * '"') | is_zero(word ^ kOnes * '\\') | is_zero(word ^ kOnes * '&');
      const std::uint64_t marks = (control | angles | others | word) & kHighBits;
      if (marks != 0) return length + static_cast<std::size_t>(std::countr_zero(marks)) / 8;
    }
  }
  const auto is_plain = [](char c) {
    const auto byte = static_cast<unsigned char>(c);
    return byte >= 0x20 && byte < 0x80 && c != '"' && c != '\\' && c != '<' && c != '>' && c != '&';
  };
  while (length < text.size() && is_plain(text[length])) ++length;
  return length;
}

bool needs_unicode_escape(const Rune& rune) {
  return !rune.valid || rune.code < 0x20 || rune.code == '<' || rune.code == '>' || rune.code == '&' ||
         rune.code == 0x2028 || rune.code == 0x2029;
}

template <class Number>
void append_number(std::string& out, Number value) {
  char digits[24];
  const auto end = std::to_chars(digits, digits + sizeof digits, value).ptr;
  out.append(digits, end);
}

}  // namespace

void JsonWriter::key(std::string_view name) {
  separate();
  append_string(name);
  out_ += layout_ == Layout::indented ? ": " : ":";
  after_key_ = true;
}

void JsonWriter::text(std::string_view value) {
  before_value();
  append_string(value);
}

void JsonWriter::integer(std::int64_t value) {
  before_value();
  append_number(out_, value);
}

void JsonWriter::unsigned_integer(std::uint64_t value) {
  before_value();
  append_number(out_, value);
}

void JsonWriter::boolean(bool value) { raw(value ? "true" : "false"); }

void JsonWriter::null() { raw("null"); }

void JsonWriter::raw(std::string_view json) {
  before_value();
  out_ += json;
}

std::string JsonWriter::take() && {
  CROFT_ASSERT(outer_has_content_.empty());
  return std::move(out_);
}

void JsonWriter::begin(char bracket) {
  before_value();
  out_ += bracket;
  outer_has_content_.push_back(has_content_);
  has_content_ = false;
}

void JsonWriter::end(char bracket) {
  CROFT_ASSERT(!outer_has_content_.empty() && !after_key_);
  const bool had_content = has_content_;
  has_content_ = outer_has_content_.back();
  outer_has_content_.pop_back();
  if (had_content) new_line();
  out_ += bracket;
}

void JsonWriter::separate() {
  if (outer_has_content_.empty()) return;
  if (has_content_) out_ += ',';
  has_content_ = true;
  new_line();
}

void JsonWriter::before_value() {
  if (after_key_) {
    after_key_ = false;
  } else {
    separate();
  }
}

void JsonWriter::new_line() {
  if (layout_ == Layout::compact) return;
  out_ += '\n';
  out_.append(outer_has_content_.size() * 4, ' ');
}

void JsonWriter::append_string(std::string_view value) {
  out_ += '"';
  for (;;) {
    const std::size_t plain = plain_prefix(value);
    out_.append(value.substr(0, plain));
    value.remove_prefix(plain);
    if (value.empty()) break;
    const Rune rune = first_rune(value);
    const char letter = escape_letter(rune.code);
    if (letter != '\0' && rune.code != '\a' && rune.code != '\v') {
      out_ += '\\';
      out_ += letter;
    } else if (needs_unicode_escape(rune)) {
      fmt::format_to(std::back_inserter(out_), "\\u{:04x}", static_cast<unsigned>(rune.code));
    } else {
      out_ += value.substr(0, rune.size);
    }
    value.remove_prefix(rune.size);
  }
  out_ += '"';
}

void copy_json(JsonWriter& out, JsonRef value) {
  const bool is_object = value.kind() == JsonKind::object;
  switch (value.kind()) {
    case JsonKind::null:
      return out.null();
    case JsonKind::boolean:
      return out.boolean(value.boolean());
    case JsonKind::integer:
    case JsonKind::number:
      return out.raw(value.text());
    case JsonKind::string:
      return out.text(value.text());
    case JsonKind::array:
    case JsonKind::object:
      break;
  }
  is_object ? out.begin_object() : out.begin_array();
  for (auto child = value.first_child(); child; child = child->next_sibling()) {
    if (is_object) out.key(child->key());
    copy_json(out, *child);
  }
  is_object ? out.end_object() : out.end_array();
}

}  // namespace croft::wire
