#include "base/json/reader.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <utility>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "base/assert.h"
#include "base/did_you_mean.h"
#include "base/printable.h"

namespace croft::wire {

/// Receives the parser's events and fills a document. The parser keeps its own stack on the heap; this keeps the
/// containers that are still open in `open_`. A false answer stops the parser.
class JsonBuilder {
 public:
  JsonBuilder(std::size_t depth_max, std::size_t values_max) : depth_max_(depth_max), values_max_(values_max) {
    document_.nodes_.clear();
  }

  // The names and signatures are nlohmann's SAX interface.
  bool null() { return leaf(JsonKind::null); }
  bool boolean(bool value) {
    if (!has_room()) return false;
    add(JsonKind::boolean).boolean = value;
    return true;
  }
  bool number_integer(std::int64_t value) { return leaf(JsonKind::integer, std::to_string(value)); }
  bool number_unsigned(std::uint64_t value) { return leaf(JsonKind::integer, std::to_string(value)); }
  bool number_float(double, const std::string& written) {
    const bool whole = written.find_first_of(".eE") == std::string::npos;  // an integer beyond 64 bits
    return leaf(whole ? JsonKind::integer : JsonKind::number, written);
  }
  bool string(const std::string& value) { return leaf(JsonKind::string, value); }
  bool binary(const std::vector<std::uint8_t>&) { return false; }
  bool start_object(std::size_t) { return open(JsonKind::object); }
  bool start_array(std::size_t) { return open(JsonKind::array); }
  bool end_object() { return close(); }
  bool end_array() { return close(); }
  bool key(const std::string& value) {
    key_ = keep(value);
    return true;
  }
  bool parse_error(std::size_t position, const std::string&, const nlohmann::detail::exception& error) {
    error_at_ = position;
    error_ = without_frame(error.what());
    return false;
  }

  [[nodiscard]] const std::string& error() const { return error_; }
  [[nodiscard]] bool is_too_large() const { return is_too_large_; }
  /// The number of bytes read when the error showed.
  [[nodiscard]] std::size_t error_at() const { return error_at_; }
  [[nodiscard]] JsonDocument take() && {
    CROFT_ASSERT(open_.empty() && !document_.nodes_.empty());
    return std::move(document_);
  }

 private:
  /// nlohmann's message without its identifier, its line and column, and the text it read last, which may be long.
  static std::string without_frame(std::string_view what) {
    if (const auto frame = what.find("column "); frame != what.npos) {
      if (const auto colon = what.find(": ", frame); colon != what.npos) what.remove_prefix(colon + 2);
    } else if (const auto id = what.find("] "); id != what.npos) {
      what.remove_prefix(id + 2);
    }
    std::string text(what.substr(0, what.find("; last read")));
    constexpr std::size_t kBytesMax = 160;
    if (text.size() > kBytesMax) text.resize(kBytesMax);
    std::replace_if(
        text.begin(), text.end(), [](char c) { return c < ' ' || c > '~'; }, '?');
    return text;
  }

  JsonDocument::Slice keep(std::string_view text) {
    const JsonDocument::Slice slice{static_cast<std::uint32_t>(document_.text_.size()),
                                    static_cast<std::uint32_t>(text.size())};
    document_.text_ += text;
    return slice;
  }
  JsonDocument::Node& add(JsonKind kind) {
    auto& node = document_.nodes_.emplace_back();
    node.kind = kind;
    node.key = std::exchange(key_, {});
    node.end = static_cast<std::uint32_t>(document_.nodes_.size());
    return node;
  }
  /// Whether one more value is allowed.
  bool has_room() {
    if (document_.nodes_.size() < values_max_) return true;
    is_too_large_ = true;
    return false;
  }
  bool leaf(JsonKind kind, std::string_view text = {}) {
    if (!has_room()) return false;
    const JsonDocument::Slice slice = keep(text);
    add(kind).text = slice;
    return true;
  }
  bool open(JsonKind kind) {
    if (!has_room()) return false;
    if (open_.size() >= depth_max_) {
      error_ = fmt::format("more than {} arrays and objects inside each other", depth_max_);
      return false;
    }
    open_.push_back(static_cast<std::uint32_t>(document_.nodes_.size()));
    add(kind);
    return true;
  }
  bool close() {
    document_.nodes_[open_.back()].end = static_cast<std::uint32_t>(document_.nodes_.size());
    open_.pop_back();
    return true;
  }

  std::size_t depth_max_;
  std::size_t values_max_;
  bool is_too_large_ = false;
  JsonDocument document_;
  JsonDocument::Slice key_;
  std::vector<std::uint32_t> open_;
  std::string error_;
  std::size_t error_at_ = 0;
};

namespace {

std::string with_place(const JsonBuilder& builder, std::string_view text) {
  const std::size_t at = std::min(builder.error_at(), text.size());
  if (at == 0) return builder.error();
  constexpr std::size_t kContext = 16;
  const std::size_t from = at > kContext ? at - kContext : 0;
  return fmt::format("{}, at byte {} behind {}", builder.error(), at, echo(text.substr(from, at - from)));
}

}  // namespace

Result<JsonDocument> parse_json(std::string_view text, const JsonLimits& limits) {
  CROFT_ASSERT(limits.bytes_max < UINT32_MAX);
  if (text.size() > limits.bytes_max) {
    return fail(invalid_argument(fmt::format("invalid JSON: larger than {} bytes", limits.bytes_max)));
  }
  if (text.starts_with("\xEF\xBB\xBF")) return fail(invalid_argument("invalid JSON: begins with a byte order mark"));
  // Outside strings the parser would take a NUL for the end of the text; inside, JSON forbids it.
  if (const auto nul = text.find('\0'); nul != text.npos) {
    return fail(invalid_argument(fmt::format("invalid JSON: NUL at byte {}", nul + 1)));
  }
  if (text.find_first_not_of(" \t\r\n") == text.npos)
    return fail(invalid_argument("invalid JSON: unexpected end of input"));
  JsonBuilder builder(limits.depth_max, limits.values_max);
  if (!nlohmann::json::sax_parse(text.begin(), text.end(), &builder)) {
    if (builder.is_too_large()) {
      return fail(ErrorCode::storage_full, fmt::format("JSON of more than {} values", limits.values_max));
    }
    if (limits.is_secret) return fail(invalid_argument(fmt::format("invalid JSON at byte {}", builder.error_at())));
    return fail(invalid_argument("invalid JSON: " + with_place(builder, text)));
  }
  return std::move(builder).take();
}

std::string_view name_of(JsonKind kind) {
  constexpr auto kNames = std::to_array<std::string_view>(
      {"null", "a boolean", "an integer", "a number", "a string", "an array", "an object"});  // in their order
  return kNames.at(static_cast<std::size_t>(kind));
}

JsonDocument::JsonDocument() : nodes_(1) { nodes_.front().end = 1; }

JsonRef JsonDocument::root() const { return {this, 0, nodes_.front().end}; }

JsonKind JsonRef::kind() const { return document_->nodes_[index_].kind; }

bool JsonRef::boolean() const { return document_->nodes_[index_].boolean; }

std::string_view JsonRef::text() const { return document_->view(document_->nodes_[index_].text); }

std::string_view JsonRef::key() const { return document_->view(document_->nodes_[index_].key); }

std::optional<std::int64_t> JsonRef::integer() const {
  if (kind() != JsonKind::integer) return {};
  const std::string_view written = text();
  std::int64_t value = 0;
  const auto [end, error] = std::from_chars(written.data(), written.data() + written.size(), value);
  if (error != std::errc{} || end != written.data() + written.size()) return {};
  return value;
}

std::optional<JsonRef> JsonRef::first_child() const {
  const std::uint32_t end = document_->nodes_[index_].end;
  if (index_ + 1 >= end) return {};
  return JsonRef(document_, index_ + 1, end);
}

std::optional<JsonRef> JsonRef::next_sibling() const {
  const std::uint32_t next = document_->nodes_[index_].end;
  if (next >= stop_) return {};
  return JsonRef(document_, next, stop_);
}

std::optional<JsonRef> member_of(std::optional<JsonRef> object, std::string_view name) {
  std::optional<JsonRef> found;
  if (!object || object->kind() != JsonKind::object) return found;
  for (auto member = object->first_child(); member; member = member->next_sibling()) {
    if (member->key() == name) found = member;
  }
  return found;
}

std::string JsonAt::path() const {
  std::string text;
  for (const JsonAt* at = this; at != nullptr; at = at->parent) {
    std::string step = at->index ? fmt::format("[{}]", *at->index) : std::string(at->name);
    if (!text.empty() && text.front() != '[' && !step.empty()) step += '.';
    text.insert(0, step);
  }
  return text;
}

JsonFault JsonAt::wrong_type(std::string_view wanted) const {
  std::string shown;
  const JsonKind kind = value.kind();
  if (kind == JsonKind::integer || kind == JsonKind::number) shown = fmt::format(" ({})", value.text().substr(0, 32));
  if (kind == JsonKind::string) shown = " (" + echo(value.text()) + ")";
  return {JsonFault::Kind::wrong_type, path(), fmt::format("{}{} where {} is wanted", name_of(kind), shown, wanted)};
}

JsonFault JsonAt::bad_value(std::string reason) const {
  return {JsonFault::Kind::bad_value, path(), std::move(reason)};
}

MaybeFault read_text(const JsonAt& at, std::size_t bytes_max, std::string& out) {
  if (at.value.is_null()) return {};
  if (at.value.kind() != JsonKind::string) return at.wrong_type("a string");
  const std::string_view text = at.value.text();
  if (text.size() > bytes_max) {
    return at.bad_value(fmt::format("{} has {} bytes, at most {} are allowed", echo(text), text.size(), bytes_max));
  }
  out = text;
  return {};
}

MaybeFault read_integer(const JsonAt& at, std::int64_t min, std::int64_t max, std::int64_t& out) {
  if (at.value.is_null()) return {};
  if (at.value.kind() != JsonKind::integer) return at.wrong_type("an integer");
  const auto value = at.value.integer();
  if (!value || *value < min || *value > max) {
    return at.bad_value(fmt::format("{} is out of range: {} to {}", at.value.text().substr(0, 32), min, max));
  }
  out = *value;
  return {};
}

MaybeFault read_boolean(const JsonAt& at, bool& out) {
  if (at.value.is_null()) return {};
  if (at.value.kind() != JsonKind::boolean) return at.wrong_type("a boolean");
  out = at.value.boolean();
  return {};
}

namespace {

/// As extensions of CNI are named.
bool is_extension(std::string_view name) { return name.find('/') != std::string_view::npos; }

JsonFault unknown_member(const JsonAt& at, std::string_view name, const std::vector<std::string>& known) {
  return at.bad_value(fmt::format("has no member {}{}", echo(name), did_you_mean(name, known)));
}

}  // namespace

namespace decode_detail {

bool is_named(std::string_view name, std::string_view known, ObjectRules::Names names) {
  return names == ObjectRules::Names::exact ? known == name : same_member_name(name, known);
}

MaybeFault check_member(const JsonAt& member, std::string_view spelling, bool is_repeated, const ObjectRules& rules) {
  if (rules.names == ObjectRules::Names::as_known && spelling != member.name) {
    return member.bad_value("it is spelled " + echo(spelling));
  }
  if (rules.repeated == ObjectRules::Repeated::fault && is_repeated) return member.bad_value("it is there twice");
  return {};
}

MaybeFault take_unknown(const JsonAt& at, const JsonAt& found, const ObjectRules& rules,
                        const std::function<std::vector<std::string>()>& known_names) {
  if (rules.unknown == ObjectRules::Unknown::kept) rules.kept->push_back(found.value);
  if (rules.unknown != ObjectRules::Unknown::refused || is_extension(found.name)) return {};
  return unknown_member(at, found.name, known_names());
}

}  // namespace decode_detail

MaybeFault refuse_unknown_members(const JsonAt& at, const std::vector<std::string>& known) {
  if (at.value.kind() != JsonKind::object) return {};
  return each_member(at, [&](const JsonAt& found) -> MaybeFault {
    const bool is_known =
        std::ranges::any_of(known, [&](const auto& one) { return same_member_name(found.name, one); });
    if (is_known || is_extension(found.name)) return {};
    return unknown_member(at, found.name, known);
  });
}

}  // namespace croft::wire
