#include "base/json/decode.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "base/nearest.h"
#include "base/net/echo.h"

namespace croft::wire {

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
  if (kind == JsonKind::string) shown = " (" + net::echo(value.text()) + ")";
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
    return at.bad_value(
        fmt::format("{} has {} bytes, at most {} are allowed", net::echo(text), text.size(), bytes_max));
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
  return at.bad_value(fmt::format("has no member {}{}", net::echo(name), did_you_mean(name, known)));
}

}  // namespace

namespace decode_detail {

bool is_named(std::string_view name, std::string_view known, ObjectRules::Names names) {
  return names == ObjectRules::Names::exact ? known == name : same_member_name(name, known);
}

MaybeFault check_member(const JsonAt& member, std::string_view spelling, bool is_repeated, const ObjectRules& rules) {
  if (rules.names == ObjectRules::Names::as_known && spelling != member.name) {
    return member.bad_value("it is spelled " + net::echo(spelling));
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
