#include "register/format/canonical_json.h"

#include <bit>
#include <charconv>
#include <cstring>

#include <fmt/format.h>

#include "base/hex.h"
#include "base/time_text.h"

namespace croft::wire {
namespace {

bool is_plain(char c) { return static_cast<unsigned char>(c) >= 0x20 && c != '"' && c != '\\'; }

/// In each byte of a word the highest bit, set where the byte ends plain text. Right for the lowest such byte; those
/// above it may be marked without reason (a borrow runs upward).
std::uint64_t marks_of_special_bytes(std::uint64_t word) {
  constexpr std::uint64_t kOnes = 0x0101010101010101;
  constexpr std::uint64_t kHighBits = 0x8080808080808080;
  const auto is_zero = [](std::uint64_t w) { return (w - kOnes) & ~w; };
  const std::uint64_t control = (word - kOnes * 0x20) & ~word;
  return (control | is_zero(word ^ kOnes * '"') | is_zero(word ^ kOnes * '\\')) & kHighBits;
}

/// The length of the leading part that needs no escape.
std::size_t plain_prefix(std::string_view text) {
  std::size_t length = 0;
  if constexpr (std::endian::native == std::endian::little) {
    for (std::uint64_t word = 0; text.size() - length >= sizeof word; length += sizeof word) {
      std::memcpy(&word, text.data() + length, sizeof word);
      const std::uint64_t marks = marks_of_special_bytes(word);
      if (marks != 0) return length + static_cast<std::size_t>(std::countr_zero(marks)) / 8;
    }
  }
  while (length < text.size() && is_plain(text[length])) ++length;
  return length;
}

template <class Number>
void append_number(std::string& out, Number value) {
  char digits[24];
  const auto end = std::to_chars(digits, digits + sizeof digits, value).ptr;
  out.append(digits, end);
}

/// Reads an integer in its one spelling: no sign but `-`, no leading zero, no `-0`.
template <class Number>
bool take_number(std::string_view& rest, Number& value) {
  const auto [end, error] = std::from_chars(rest.data(), rest.data() + rest.size(), value);
  const std::string_view digits(rest.data(), static_cast<std::size_t>(end - rest.data()));
  if (error != std::errc{} || (digits.size() > 1 && digits[0] == '0') || digits.starts_with("-0")) return false;
  rest.remove_prefix(digits.size());
  return true;
}

}  // namespace

CanonicalWriter& CanonicalWriter::raw(std::string_view text) {
  out_.append(text);
  return *this;
}

CanonicalWriter& CanonicalWriter::text(std::string_view value) {
  out_ += '"';
  for (;;) {
    const std::size_t plain = plain_prefix(value);
    out_.append(value.substr(0, plain));
    if (plain == value.size()) break;
    const char c = value[plain];
    if (c == '"' || c == '\\') {
      out_ += '\\';
      out_ += c;
    } else {
      const auto byte = static_cast<unsigned char>(c);
      out_.append("\\u00").append(1, kHexDigits[byte >> 4]).append(1, kHexDigits[byte & 0xf]);
    }
    value.remove_prefix(plain + 1);
  }
  out_ += '"';
  return *this;
}

CanonicalWriter& CanonicalWriter::number(std::uint64_t value) {
  append_number(out_, value);
  return *this;
}

CanonicalWriter& CanonicalWriter::number(std::int64_t value) {
  append_number(out_, value);
  return *this;
}

CanonicalWriter& CanonicalWriter::boolean(bool value) { return raw(value ? "true" : "false"); }

CanonicalWriter& CanonicalWriter::time(WallTime value) {
  out_.append(1, '"').append(rfc3339_exact(value)).append(1, '"');
  return *this;
}

CanonicalWriter& CanonicalWriter::texts(const std::map<std::string, std::string>& members) {
  char separator = '{';
  for (const auto& [name, value] : members) {
    out_ += separator;
    text(name).raw(":").text(value);
    separator = ',';
  }
  return raw(members.empty() ? "{}" : "}");
}

void CanonicalReader::reject(std::string_view why) {
  if (failed_) return;
  failed_ = true;
  why_ = fmt::format("{} at byte {}", why, size_ - rest_.size());
  rest_ = {};
}

void CanonicalReader::expect(std::string_view literal) {
  if (!accept(literal) && !failed_) reject(fmt::format("no {} found", literal));
}

bool CanonicalReader::another(char close) {
  if (accept(",")) return true;
  expect({&close, 1});
  return false;
}

void CanonicalReader::append_escaped(std::string& out) {
  if (accept("\\\"")) {
    out += '"';
  } else if (accept("\\\\")) {
    out += '\\';
  } else if (accept("\\u00") && rest_.size() >= 2) {
    const std::size_t high = kHexDigits.substr(0, 2).find(rest_[0]);
    const std::size_t low = kHexDigits.find(rest_[1]);
    if (high == kHexDigits.npos || low == kHexDigits.npos) return reject("bad escape in a string");
    out += static_cast<char>(high << 4 | low);
    rest_.remove_prefix(2);
  } else {
    reject("bad character in a string");
  }
}

std::string CanonicalReader::text() {
  expect("\"");
  const std::size_t length = plain_prefix(rest_);
  std::string value(rest_.substr(0, length));
  rest_.remove_prefix(length);
  while (!failed_ && !accept("\"")) {
    append_escaped(value);
    const std::size_t plain = plain_prefix(rest_);
    value.append(rest_.substr(0, plain));
    rest_.remove_prefix(plain);
  }
  return value;
}

std::uint64_t CanonicalReader::unsigned_number() {
  std::uint64_t value = 0;
  if (failed_ || take_number(rest_, value)) return value;
  reject("no unsigned 64-bit number found");
  return 0;
}

std::int64_t CanonicalReader::signed_number() {
  std::int64_t value = 0;
  if (failed_ || take_number(rest_, value)) return value;
  reject("no 64-bit number found");
  return 0;
}

std::uint32_t CanonicalReader::small_number(std::uint32_t max) {
  const std::uint64_t value = unsigned_number();
  if (value <= max) return static_cast<std::uint32_t>(value);
  reject(fmt::format("number {} is larger than {}", value, max));
  return 0;
}

bool CanonicalReader::boolean() {
  if (accept("true")) return true;
  if (!accept("false")) reject("neither true nor false found");
  return false;
}

WallTime CanonicalReader::time() {
  const std::string value = text();
  if (failed_) return {};
  // In UTC, and a fraction without trailing zeros: all else has one spelling there.
  const bool is_written_so = value.ends_with('Z') && (value.find('.') == value.npos || value[value.size() - 2] != '0');
  if (const auto time = parse_rfc3339(value); time && is_written_so) return *time;
  reject("no RFC 3339 time of the form that is written found before this place");
  return {};
}

WallTime CanonicalReader::time_of_others() {
  const std::string value = text();
  if (failed_) return {};
  if (const auto time = parse_rfc3339(value)) return *time;
  reject("no RFC 3339 time found before this place");
  return {};
}

std::map<std::string, std::string> CanonicalReader::texts() {
  std::map<std::string, std::string> members;
  if (accept("{}")) return members;
  expect("{");
  do {
    std::string name = text();
    expect(":");
    // Ascending order: each name once, and every insertion at the end.
    if (!members.empty() && members.rbegin()->first >= name) reject("member out of order");
    members.emplace_hint(members.end(), std::move(name), text());
  } while (another('}'));
  return members;
}

Result<void> CanonicalReader::finish() {
  if (!failed_ && !rest_.empty()) reject("unknown member or other bytes");
  if (failed_) return fail(ErrorCode::corrupt, why_);
  return {};
}

}  // namespace croft::wire
