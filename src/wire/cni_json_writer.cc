#include "wire/cni_json_writer.h"

#include <iterator>

#include <fmt/format.h>

#include "base/assert.h"
#include "wire/cni_text.h"

namespace croft::wire {
namespace {

std::string_view short_escape(char32_t code) {
  switch (code) {
    case '"':
      return "\\\"";
    case '\\':
      return "\\\\";
    case '\b':
      return "\\b";
    case '\f':
      return "\\f";
    case '\n':
      return "\\n";
    case '\r':
      return "\\r";
    case '\t':
      return "\\t";
    default:
      return {};
  }
}

bool needs_unicode_escape(const Rune& rune) {
  return !rune.valid || rune.code < 0x20 || rune.code == '<' || rune.code == '>' || rune.code == '&' ||
         rune.code == 0x2028 || rune.code == 0x2029;
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
  out_ += std::to_string(value);
}

void JsonWriter::unsigned_integer(std::uint64_t value) {
  before_value();
  out_ += std::to_string(value);
}

void JsonWriter::boolean(bool value) { raw(value ? "true" : "false"); }

void JsonWriter::null() { raw("null"); }

void JsonWriter::raw(std::string_view json) {
  before_value();
  out_ += json;
}

std::string JsonWriter::take() && {
  CROFT_ASSERT(has_content_.empty());
  return std::move(out_);
}

void JsonWriter::begin(char bracket) {
  before_value();
  out_ += bracket;
  has_content_.push_back(false);
}

void JsonWriter::end(char bracket) {
  CROFT_ASSERT(!has_content_.empty() && !after_key_);
  const bool had_content = has_content_.back();
  has_content_.pop_back();
  if (had_content) new_line();
  out_ += bracket;
}

void JsonWriter::separate() {
  if (has_content_.empty()) return;
  if (has_content_.back()) out_ += ',';
  has_content_.back() = true;
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
  out_.append(has_content_.size() * 4, ' ');
}

void JsonWriter::append_string(std::string_view value) {
  out_ += '"';
  while (!value.empty()) {
    const Rune rune = first_rune(value);
    if (const std::string_view escape = short_escape(rune.code); !escape.empty()) {
      out_ += escape;
    } else if (needs_unicode_escape(rune)) {
      fmt::format_to(std::back_inserter(out_), "\\u{:04x}", static_cast<unsigned>(rune.code));
    } else {
      out_ += value.substr(0, rune.size);
    }
    value.remove_prefix(rune.size);
  }
  out_ += '"';
}

}  // namespace croft::wire
