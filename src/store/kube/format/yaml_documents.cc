#include "store/kube/format/yaml_documents.h"

#include <yaml.h>

#include <array>
#include <charconv>
#include <cmath>
#include <memory>
#include <optional>
#include <string>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "base/net/echo.h"

namespace croft::wire {
namespace {

using Json = nlohmann::json;

class Event {
 public:
  Event() = default;
  Event(const Event&) = delete;
  Event& operator=(const Event&) = delete;
  ~Event() { clear(); }
  void clear() {
    if (filled_) yaml_event_delete(&event_);
    filled_ = false;
  }
  [[nodiscard]] bool next(yaml_parser_t& parser) {
    clear();
    filled_ = yaml_parser_parse(&parser, &event_) != 0;
    return filled_;
  }
  [[nodiscard]] const yaml_event_t* operator->() const { return &event_; }

 private:
  yaml_event_t event_{};
  bool filled_ = false;
};

[[nodiscard]] std::string_view text_of(const yaml_char_t* data, std::size_t size) {
  return {reinterpret_cast<const char*>(data), size};  // libyaml's characters are unsigned bytes
}

template <class T>
[[nodiscard]] std::optional<T> number_of(std::string_view text, int base = 10) {
  T value{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value, base);
  return error == std::errc() && end == text.data() + text.size() ? std::optional(value) : std::nullopt;
}

[[nodiscard]] std::optional<double> float_of(std::string_view text) {
  if (text.find_first_of("0123456789") == text.npos || text.find_first_not_of("0123456789+-.eE") != text.npos) {
    return std::nullopt;
  }
  double value = 0;
  if (text.starts_with('+')) text.remove_prefix(1);
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  return error == std::errc() && end == text.data() + text.size() && std::isfinite(value) ? std::optional(value)
                                                                                          : std::nullopt;
}

template <std::size_t N>
[[nodiscard]] bool is_one_of(std::string_view text, const std::array<std::string_view, N>& words) {
  for (const std::string_view word : words) {
    if (text == word) return true;
  }
  return false;
}

/// A scalar without quotes.
[[nodiscard]] Json resolved(std::string_view text) {
  constexpr std::array<std::string_view, 5> kNull{"", "~", "null", "Null", "NULL"};
  constexpr std::array<std::string_view, 9> kTrue{"true", "True", "TRUE", "yes", "Yes", "YES", "on", "On", "ON"};
  constexpr std::array<std::string_view, 9> kFalse{"false", "False", "FALSE", "no", "No", "NO", "off", "Off", "OFF"};
  if (is_one_of(text, kNull)) return nullptr;
  if (is_one_of(text, kTrue)) return true;
  if (is_one_of(text, kFalse)) return false;
  const char first = text.front();
  if ((first < '0' || first > '9') && first != '-' && first != '+' && first != '.') return std::string(text);
  if (text.starts_with("0x")) {
    if (const auto value = number_of<std::uint64_t>(text.substr(2), 16)) return *value;
  } else if (const auto value = number_of<std::int64_t>(text)) {
    return *value;
  }
  if (const auto value = float_of(text)) return *value;
  return std::string(text);
}

class Parser {
 public:
  Parser(std::string_view text, const YamlLimits& limits) : limits_(limits) {
    good_ = yaml_parser_initialize(&parser_) != 0;
    if (!good_) return;
    yaml_parser_set_encoding(&parser_, YAML_UTF8_ENCODING);
    const char* bytes = text.empty() ? "" : text.data();  // libyaml asserts that there is something to point at
    yaml_parser_set_input_string(&parser_, reinterpret_cast<const unsigned char*>(bytes), text.size());
  }
  Parser(const Parser&) = delete;
  Parser& operator=(const Parser&) = delete;
  ~Parser() {
    if (good_) yaml_parser_delete(&parser_);
  }

  [[nodiscard]] Result<std::vector<Json>> documents() {
    if (!good_) return fail(ErrorCode::unavailable, "no memory to read YAML");
    std::vector<Json> result;
    for (;;) {
      TRY_VOID(next());
      if (event_->type == YAML_STREAM_END_EVENT) return result;
      if (event_->type != YAML_DOCUMENT_START_EVENT) continue;
      TRY_VOID(next());
      TRY(Json document, value(0));
      if (!document.is_null()) result.push_back(std::move(document));
      if (result.size() > kYamlDocumentsMax) {
        return fail(problem(fmt::format("there are more than {} documents", kYamlDocumentsMax)));
      }
    }
  }

 private:
  [[nodiscard]] Error problem(const std::string& what) const {
    return {ErrorCode::invalid_argument, fmt::format("line {}: {}", event_->start_mark.line + 1, what), {}};
  }

  [[nodiscard]] Result<void> next() {
    if (event_.next(parser_)) return {};
    const char* what = parser_.problem != nullptr ? parser_.problem : "no memory";
    return fail(ErrorCode::invalid_argument, fmt::format("line {}: {}", parser_.problem_mark.line + 1, what));
  }

  /// The value that begins with the current event.
  [[nodiscard]] Result<Json> value(int depth) {
    if (++nodes_ > limits_.nodes_max) {
      return fail(problem(fmt::format("there are more than {} values", limits_.nodes_max)));
    }
    if (depth > limits_.depth_max) {
      return fail(problem(fmt::format("values are nested deeper than {}", limits_.depth_max)));
    }
    switch (event_->type) {
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
    const auto& data = event_->data.scalar;
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
      if (event_->type == YAML_SEQUENCE_END_EVENT) return list;
      TRY(Json item, value(depth + 1));
      list.push_back(std::move(item));
    }
  }

  [[nodiscard]] Result<Json> mapping(int depth) {
    Json object = Json::object();
    for (;;) {
      TRY_VOID(next());
      if (event_->type == YAML_MAPPING_END_EVENT) return object;
      if (event_->type != YAML_SCALAR_EVENT) return fail(problem("a key must be a text"));
      std::string key(text_of(event_->data.scalar.value, event_->data.scalar.length));
      if (object.contains(key)) return fail(problem("a key comes twice"));
      TRY_VOID(next());
      TRY(object[key], value(depth + 1));
    }
  }

  const YamlLimits limits_;
  yaml_parser_t parser_{};
  Event event_;
  bool good_ = false;
  std::size_t nodes_ = 0;
};

}  // namespace

Result<std::vector<nlohmann::json>> parse_yaml(std::string_view text, const YamlLimits& limits) {
  if (text.size() > limits.bytes_max) {
    return fail(ErrorCode::invalid_argument,
                fmt::format("the text has {} bytes, more than {}", text.size(), limits.bytes_max));
  }
  return Parser(text, limits).documents();
}

Result<std::string> kubeconfig_json(std::string_view yaml) {
  const auto documents = parse_yaml(yaml);
  if (!documents) return fail(documents.error().in("kubeconfig"));
  if (documents->size() != 1) {
    return fail(invalid_argument(fmt::format("kubeconfig: it has {} documents, one is wanted", documents->size())));
  }
  // libyaml has seen to it that texts are UTF-8; were they not, they would not be thrown about.
  return documents->front().dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

}  // namespace croft::wire
