#include "store/kube/format/yaml.h"

#include <yaml.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cstdint>
#include <string>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "base/assert.h"

namespace croft::wire {
namespace {

using Json = nlohmann::json;

constexpr int kYamlDepthMax = 64;

[[nodiscard]] std::string_view text_of(const yaml_char_t* data, std::size_t size) {
  return {reinterpret_cast<const char*>(data), size};  // libyaml's characters are unsigned bytes
}

/// A scalar without quotes.
[[nodiscard]] Json resolved(std::string_view text) {
  constexpr std::array<std::string_view, 5> kNull{"", "~", "null", "Null", "NULL"};
  constexpr std::array<std::string_view, 9> kTrue{"true", "True", "TRUE", "yes", "Yes", "YES", "on", "On", "ON"};
  constexpr std::array<std::string_view, 9> kFalse{"false", "False", "FALSE", "no", "No", "NO", "off", "Off", "OFF"};
  if (std::ranges::count(kNull, text) > 0) return nullptr;
  if (std::ranges::count(kTrue, text) > 0) return true;
  if (std::ranges::count(kFalse, text) > 0) return false;
  std::int64_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error == std::errc() && end == text.data() + text.size()) return number;
  return std::string(text);
}

class Parser {
 public:
  explicit Parser(std::string_view text) {
    CROFT_ASSERT(yaml_parser_initialize(&parser_) != 0);
    yaml_parser_set_encoding(&parser_, YAML_UTF8_ENCODING);
    const char* bytes = text.empty() ? "" : text.data();  // libyaml asserts that there is something to point at
    yaml_parser_set_input_string(&parser_, reinterpret_cast<const unsigned char*>(bytes), text.size());
  }
  Parser(const Parser&) = delete;
  Parser& operator=(const Parser&) = delete;
  ~Parser() {
    yaml_event_delete(&event_);
    yaml_parser_delete(&parser_);
  }

  [[nodiscard]] Result<std::vector<Json>> documents() {
    std::vector<Json> result;
    for (;;) {
      TRY_VOID(next());
      if (event_.type == YAML_STREAM_END_EVENT) return result;
      if (event_.type != YAML_DOCUMENT_START_EVENT) continue;
      TRY_VOID(next());
      TRY(Json document, value(0));
      if (!document.is_null()) result.push_back(std::move(document));
    }
  }

 private:
  [[nodiscard]] Error problem(const std::string& what) const {
    return {ErrorCode::invalid_argument, fmt::format("line {}: {}", event_.start_mark.line + 1, what), {}};
  }

  [[nodiscard]] Result<void> next() {
    yaml_event_delete(&event_);
    if (yaml_parser_parse(&parser_, &event_) != 0) return {};
    const char* what = parser_.problem != nullptr ? parser_.problem : "no memory";
    return fail(ErrorCode::invalid_argument, fmt::format("line {}: {}", parser_.problem_mark.line + 1, what));
  }

  /// The value that begins with the current event.
  [[nodiscard]] Result<Json> value(int depth) {
    if (depth > kYamlDepthMax) return fail(problem(fmt::format("values are nested deeper than {}", kYamlDepthMax)));
    switch (event_.type) {
      case YAML_SCALAR_EVENT:
        return scalar();
      case YAML_SEQUENCE_START_EVENT:
        return sequence(depth);
      case YAML_MAPPING_START_EVENT:
        return mapping(depth);
      case YAML_ALIAS_EVENT:
        return fail(problem("aliases (*name) are not read"));
      default:
        return fail(problem("a value is missing"));
    }
  }

  [[nodiscard]] Result<Json> scalar() const {
    const auto& data = event_.data.scalar;
    const std::string_view text = text_of(data.value, data.length);
    if (data.tag != nullptr && data.quoted_implicit == 0 && data.plain_implicit == 0) {
      const std::string_view tag = reinterpret_cast<const char*>(data.tag);
      if (tag != YAML_STR_TAG) return fail(problem("a tag is not known"));
      return Json(std::string(text));
    }
    return data.plain_implicit != 0 ? resolved(text) : Json(std::string(text));
  }

  [[nodiscard]] Result<Json> sequence(int depth) {
    Json list = Json::array();
    for (;;) {
      TRY_VOID(next());
      if (event_.type == YAML_SEQUENCE_END_EVENT) return list;
      TRY(Json item, value(depth + 1));
      list.push_back(std::move(item));
    }
  }

  [[nodiscard]] Result<Json> mapping(int depth) {
    Json object = Json::object();
    for (;;) {
      TRY_VOID(next());
      if (event_.type == YAML_MAPPING_END_EVENT) return object;
      if (event_.type != YAML_SCALAR_EVENT) return fail(problem("a key must be a text"));
      std::string key(text_of(event_.data.scalar.value, event_.data.scalar.length));
      if (object.contains(key)) return fail(problem("a key comes twice"));
      TRY_VOID(next());
      TRY(object[key], value(depth + 1));
    }
  }

  yaml_parser_t parser_{};
  yaml_event_t event_{};
};

}  // namespace

Result<std::vector<nlohmann::json>> parse_yaml_documents(std::string_view text) {
  if (text.size() <= kYamlBytesMax) return Parser(text).documents();
  return fail(ErrorCode::invalid_argument,
              fmt::format("the text has {} bytes, more than {}", text.size(), kYamlBytesMax));
}

Result<std::string> kubeconfig_json(std::string_view yaml) {
  const auto documents = parse_yaml_documents(yaml);
  if (!documents) return fail(documents.error().in("kubeconfig"));
  if (documents->size() != 1) {
    return fail(invalid_argument(fmt::format("kubeconfig: it has {} documents, one is wanted", documents->size())));
  }
  // libyaml has seen to it that texts are UTF-8; were they not, they would not be thrown about.
  return documents->front().dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

}  // namespace croft::wire
