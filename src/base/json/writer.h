#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/json/reader.h"

namespace croft::wire {

/// Writes JSON byte for byte as Go's encoding/json does: json.MarshalIndent with four blanks, or json.Marshal when
/// compact. Strings escape `<`, `>`, `&`, U+2028 and U+2029; bytes that are not UTF-8 become U+FFFD. Members come in
/// the order of the calls; an object must get a key before each value. An object or array without content prints as {}
/// or [].
class JsonWriter {
 public:
  enum class Layout : std::uint8_t { indented, compact };
  explicit JsonWriter(Layout layout = Layout::indented, std::size_t bytes_expected = 0) : layout_(layout) {
    out_.reserve(bytes_expected);
  }

  void begin_object() { begin('{'); }
  void end_object() { end('}'); }
  void begin_array() { begin('['); }
  void end_array() { end(']'); }
  void key(std::string_view name);
  void text(std::string_view value);
  void integer(std::int64_t value);
  void unsigned_integer(std::uint64_t value);
  void boolean(bool value);
  void null();
  // A key and its value.
  void begin_object(std::string_view name) { key(name), begin_object(); }
  void begin_array(std::string_view name) { key(name), begin_array(); }
  void text(std::string_view name, std::string_view value) { key(name), text(value); }
  void integer(std::string_view name, std::int64_t value) { key(name), integer(value); }
  void unsigned_integer(std::string_view name, std::uint64_t value) { key(name), unsigned_integer(value); }
  void boolean(std::string_view name, bool value) { key(name), boolean(value); }
  void raw(std::string_view name, std::string_view json) { key(name), raw(json); }
  /// A list of texts.
  void texts(std::string_view name, const auto& values) {
    begin_array(name);
    for (const auto& value : values) text(value);
    end_array();
  }
  /// JSON that is written already, in one line: a value of somebody else's that is passed on.
  void raw(std::string_view json);

  /// The written text; all objects and arrays must be closed.
  [[nodiscard]] std::string take() &&;

 private:
  void begin(char bracket);
  void end(char bracket);
  /// Comma, line break and indentation before a key or an element.
  void separate();
  void before_value();
  void new_line();
  void append_string(std::string_view value);

  Layout layout_;
  std::string out_;
  std::vector<bool> outer_has_content_;  ///< one entry an open object or array: that of what encloses it
  bool has_content_ = false;             ///< the innermost open object or array has
  bool after_key_ = false;
};

/// Writes a value that was read; goes as deep as it is.
void copy_json(JsonWriter& out, JsonRef value);
inline void copy_json(JsonWriter& out, std::string_view name, JsonRef value) {
  out.key(name);
  copy_json(out, value);
}

}  // namespace croft::wire
