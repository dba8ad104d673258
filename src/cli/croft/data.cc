#include "cli/croft/data.h"

#include <algorithm>
#include <cstddef>
#include <string_view>
#include <utility>

#include <nlohmann/json.hpp>

namespace croft::app {
namespace {

using Json = nlohmann::ordered_json;

/// The bytes, at the front of `text`, of a character that JSON may have as it is, and that YAML may not or takes for
/// the end of a line. 0 when there is none.
std::size_t foreign_to_yaml(std::string_view text) {
  if (text.starts_with('\x7f')) return 1;
  if (text.size() >= 2 && text[0] == '\xc2' && static_cast<unsigned char>(text[1]) < 0xa0) return 2;
  for (const std::string_view bytes : {"\u2028", "\u2029", "\ufeff", "\ufffe", "\uffff"}) {
    if (text.starts_with(bytes)) return bytes.size();
  }
  return 0;
}

/// JSON's scalars, and its empty arrays and objects, are YAML but for a few characters in texts.
std::string yaml_scalar(const Json& value) {
  const std::string json = value.dump(-1, ' ', false, Json::error_handler_t::replace);
  std::string out;
  for (std::size_t at = 0; at < json.size();) {
    const std::size_t bytes = foreign_to_yaml(std::string_view(json).substr(at));
    if (bytes == 0) {
      out += json[at++];
      continue;
    }
    const std::string quoted = Json(json.substr(at, bytes)).dump(-1, ' ', true);  // "\u007f"
    out += quoted.substr(1, quoted.size() - 2);
    at += bytes;
  }
  return out;
}

/// A key of YAML: in quotes unless it is a plain word that YAML takes for nothing else.
std::string yaml_key(const std::string& key) {
  // True, FALSE, Null: of any case.
  const auto is_word = [&](std::string_view word) {
    return std::ranges::equal(key, word, [](char a, char b) { return (a | 0x20) == b; });
  };
  const bool plain = key.size() > 3 && !is_word("true") && !is_word("false") && !is_word("null") &&
                     key.find_first_not_of("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ") == key.npos;
  return plain ? key : yaml_scalar(key);
}

void write_yaml(const Json& value, const std::string& indent, std::string& out) {
  const bool nested = value.is_structured() && !value.empty();
  if (!nested) {
    out += yaml_scalar(value) + "\n";
  } else if (value.is_array()) {
    bool first = true;
    for (const Json& element : value) {
      if (!std::exchange(first, false)) out += indent;
      out += "- ";
      write_yaml(element, indent + "  ", out);
    }
  } else {
    bool first = true;
    for (const auto& [key, member] : value.items()) {
      if (!std::exchange(first, false)) out += indent;
      out += yaml_key(key) + ":";
      if (member.is_structured() && !member.empty()) {
        out += "\n" + indent + "  ";
        write_yaml(member, indent + "  ", out);
      } else {
        out += " ";
        write_yaml(member, indent, out);
      }
    }
  }
}

}  // namespace

Data::Data(Json value) : value_(std::make_shared<const Json>(std::move(value))) {}

std::string Data::json() const { return value_ == nullptr ? std::string() : printed_json(*value_); }

std::string Data::yaml() const {
  std::string text;
  if (value_ != nullptr) write_yaml(*value_, "", text);
  return text;
}

}  // namespace croft::app
