#include "calico/json.h"

#include <fmt/format.h>

#include "base/net/prefix.h"
#include "base/text/go_text.h"
#include "base/texts.h"
#include "base/time_text.h"

namespace croft::wire::calico {

RawMember raw_member(JsonRef member) {
  JsonWriter out(JsonWriter::Layout::compact);
  copy_json(out, member);
  return {std::string(member.key()), std::move(out).take()};
}

MaybeFault read_number(const JsonAt& at, std::uint32_t max, std::uint32_t& out) {
  std::int64_t value = out;
  if (auto fault = read_integer(at, 0, max, value)) return fault;
  out = static_cast<std::uint32_t>(value);
  return {};
}

MaybeFault read_optional_text(const JsonAt& at, std::optional<std::string>& out) {
  if (at.value.is_null()) return {};
  return read_text(at, kTextBytesMax, out.emplace());
}

MaybeFault read_time(const JsonAt& at, WallTime& out) {
  std::string text;
  if (at.value.kind() != JsonKind::string) return at.wrong_type("a string");
  if (auto fault = read_text(at, kTextBytesMax, text)) return fault;
  const auto time = parse_rfc3339(text);
  if (!time) return at.bad_value(echo(text) + " is no RFC 3339 time");
  out = *time;
  return {};
}

MaybeFault read_prefix(const JsonAt& at, net::Prefix& out, std::string* as_found) {
  std::string text;
  if (auto fault = read_text(at, kTextBytesMax, text)) return fault;
  const auto found = net::parse_prefix_as_go(text);
  const auto strict = net::Prefix::parse(text);
  if (!found) return at.bad_value(strict ? echo(text) + " is no prefix" : strict.error().message);
  out = *found;
  if (as_found != nullptr && (!strict || *strict != out)) *as_found = std::move(text);
  return {};
}

MaybeFault read_texts(const JsonAt& at, std::map<std::string, std::string>& out) {
  return read_map(at, out, [](const JsonAt& inner, std::string& name, std::string& value) {
    name = inner.name;
    return read_text(inner, kTextBytesMax, value);
  });
}

Error damaged(const core::Key& key, std::string_view why) {
  const std::string text = place_of(key).value_or("without key");
  // Keys are longer than what echo repeats, and their end is what tells them apart. Only handles may hold line breaks.
  return make_error(ErrorCode::corrupt, "Calico's record {} is damaged: {}; it was left as it is",
                    is_plain_text(text) ? fmt::format("\"{}\"", text) : echo(text), why);
}

void write_time(JsonWriter& out, WallTime time) {
  out.text(rfc3339_rounded_up(std::chrono::floor<std::chrono::seconds>(time)));
}

void write_texts(JsonWriter& out, std::string_view name, const std::map<std::string, std::string>& texts) {
  out.begin_object(name);
  for (const auto& [key, value] : texts) out.text(key, value);
  out.end_object();
}

void write_texts_if_set(JsonWriter& out, std::string_view name, const std::map<std::string, std::string>& texts) {
  if (!texts.empty()) write_texts(out, name, texts);
}

void write_rest(JsonWriter& out, const RawMembers& members) {
  for (const RawMember& member : members) {
    out.raw(member.name, member.json);
  }
}

void write_text_if_set(JsonWriter& out, std::string_view name, std::string_view value) {
  if (!value.empty()) out.text(name, value);
}

void write_if_set(JsonWriter& out, std::string_view name, bool value) {
  if (value) out.boolean(name, value);
}

}  // namespace croft::wire::calico
