#include "store/kube/format/own_kinds.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <map>
#include <utility>

#include <fmt/format.h>

#include "base/assert.h"
#include "base/json/writer.h"
#include "base/net/echo.h"
#include "register/format/canonical_json.h"
#include "register/format/records.h"

namespace croft::wire::kube {
namespace {

using core::Kind;
using Type = OwnField::Type;

constexpr std::size_t kPlainNameBytesMax = 200;
constexpr std::size_t kDigestDigits = 16;
constexpr std::size_t kLabelDigits = 40;

// ---------------------------------------------------------------- the kinds

constexpr std::array kHighWaterMark = {OwnField{"sequenceNumber", Type::big_integer}};
constexpr std::array kPoolSet = {OwnField{"generation", Type::big_integer}};
constexpr std::array kNodeRange = {OwnField{"node"}, OwnField{"cidr"}};

constexpr std::array kClusterCidr = {OwnField{"cidr"}, OwnField{"nodeLength", Type::integer}};
constexpr std::array kClusterCidrs = {OwnField{"", Type::object, kClusterCidr}};
constexpr std::array kExcluded = {OwnField{""}};
constexpr std::array kCursors = {OwnField{"", Type::big_integer}};
constexpr std::array kNodeRangeSet = {
    OwnField{"generation", Type::big_integer}, OwnField{"clusterCIDRs", Type::list, kClusterCidrs},
    OwnField{"excluded", Type::list, kExcluded}, OwnField{"cursors", Type::list, kCursors}};

constexpr std::array kHeld = {OwnField{"", Type::big_integer}};
constexpr std::array kRemovedNode = {OwnField{"node"}, OwnField{"held", Type::map, kHeld}};

/// Of the records it is nearest to, though it is none itself.
constexpr OwnKind kPoolKind{Kind::pool, "CroftPool", "croftpools", {}};

constexpr std::array kKinds = {
    OwnKind{Kind::high_water_mark, "CroftHighWaterMark", "crofthighwatermarks", kHighWaterMark},
    OwnKind{Kind::pool_set, "CroftPoolSet", "croftpoolsets", kPoolSet},
    OwnKind{Kind::node_range, "CroftNodeRange", "croftnoderanges", kNodeRange},
    OwnKind{Kind::node_range_set, "CroftNodeRangeSet", "croftnoderangesets", kNodeRangeSet},
    OwnKind{Kind::removed_node, "CroftRemovedNode", "croftremovednodes", kRemovedNode},
};

// ---------------------------------------------------------------- record -> spec

/// The canonical record is read as JSON and written again, value by value, as the table says.
void write_value(JsonWriter& out, const OwnField& field, JsonRef value);

void write_fields(JsonWriter& out, std::span<const OwnField> fields, JsonRef object) {
  for (const OwnField& field : fields) {
    for (auto member = object.first_child(); member; member = member->next_sibling()) {
      if (member->key() != field.name) continue;
      out.key(field.name);
      write_value(out, field, *member);
    }
  }
}

void write_value(JsonWriter& out, const OwnField& field, JsonRef value) {
  switch (field.type) {
    case Type::text:
    case Type::big_integer:
      return out.text(value.text());
    case Type::integer:
      return out.integer(value.integer().value_or(0));
    case Type::list:
      out.begin_array();
      for (auto element = value.first_child(); element; element = element->next_sibling()) {
        write_value(out, field.parts.front(), *element);
      }
      return out.end_array();
    case Type::map:
      out.begin_object();
      for (auto member = value.first_child(); member; member = member->next_sibling()) {
        out.key(member->key());
        write_value(out, field.parts.front(), *member);
      }
      return out.end_object();
    case Type::object:
      out.begin_object();
      write_fields(out, field.parts, value);
      return out.end_object();
  }
}

// ---------------------------------------------------------------- spec -> record

class SpecReader {
 public:
  explicit SpecReader(std::size_t bytes_expected) : out_(bytes_expected) {}

  /// The members of an object, each of which must be there.
  void fields(std::span<const OwnField> fields, JsonRef object, std::string_view path) {
    bool first = true;
    for (const OwnField& field : fields) {
      std::optional<JsonRef> found;
      for (auto member = object.first_child(); member; member = member->next_sibling()) {
        if (member->key() == field.name) found = *member;
      }
      const std::string at = fmt::format("{}.{}", path, field.name);
      if (!found) return reject(at, "it is missing");
      out_.raw(std::exchange(first, false) ? "" : ",").text(field.name).raw(":");
      value(field, *found, at);
    }
  }
  [[nodiscard]] CanonicalWriter& out() { return out_; }
  [[nodiscard]] const std::optional<Error>& error() const { return error_; }

 private:
  void reject(std::string_view path, std::string_view why) {
    if (!error_) error_ = Error{ErrorCode::corrupt, fmt::format("{}: {}", path, why), {}};
  }

  void value(const OwnField& field, JsonRef value, std::string_view path) {
    switch (field.type) {
      case Type::text:
        if (value.kind() != JsonKind::string) return reject(path, "it is no string");
        out_.text(value.text());
        return;
      case Type::integer:
        if (!value.integer()) return reject(path, "it is no integer of 64 bits");
        out_.number(*value.integer());
        return;
      case Type::big_integer:
        return big_integer(value, path);
      case Type::list:
        return list(field.parts.front(), value, path);
      case Type::map:
        return map(field.parts.front(), value, path);
      case Type::object:
        if (value.kind() != JsonKind::object) return reject(path, "it is no object");
        out_.raw("{");
        fields(field.parts, value, path);
        out_.raw("}");
        return;
    }
  }

  void big_integer(JsonRef value, std::string_view path) {
    const std::string_view text = value.text();
    std::uint64_t number = 0;
    const auto [end, fault] = std::from_chars(text.data(), text.data() + text.size(), number);
    if (value.kind() != JsonKind::string || fault != std::errc() || end != text.data() + text.size()) {
      return reject(path, "it is no string of a number of 64 bits");
    }
    out_.number(number);
  }

  void list(const OwnField& part, JsonRef value, std::string_view path) {
    if (value.kind() != JsonKind::array) return reject(path, "it is no list");
    out_.raw("[");
    std::size_t index = 0;
    for (auto element = value.first_child(); element; element = element->next_sibling(), ++index) {
      if (index != 0) out_.raw(",");
      this->value(part, *element, fmt::format("{}[{}]", path, index));
    }
    out_.raw("]");
  }

  /// In the order of names, however the server has them.
  void map(const OwnField& part, JsonRef value, std::string_view path) {
    if (value.kind() != JsonKind::object) return reject(path, "it is no object");
    std::map<std::string_view, JsonRef> members;
    for (auto member = value.first_child(); member; member = member->next_sibling()) {
      members.insert_or_assign(member->key(), *member);
    }
    out_.raw("{");
    bool first = true;
    for (const auto& [name, member] : members) {
      out_.raw(std::exchange(first, false) ? "" : ",").text(name).raw(":");
      this->value(part, member, fmt::format("{}[{}]", path, net::echo(name)));
    }
    out_.raw("}");
  }

  CanonicalWriter out_;
  std::optional<Error> error_;
};

// ---------------------------------------------------------------- names

bool is_alphanumeric(char c) { return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9'); }

/// RFC 1123: labels of a–z, 0–9 and `-`, that begin and end with one of the former.
bool is_dns_subdomain(std::string_view name) {
  char before = '.';
  for (const char c : name) {
    if (c == '-' && before == '.') return false;
    if (c == '.' && !is_alphanumeric(before)) return false;
    if (c != '-' && c != '.' && !is_alphanumeric(c)) return false;
    before = c;
  }
  return is_alphanumeric(before);
}

bool ends_like_a_digest(std::string_view name) {
  if (name.size() <= kDigestDigits || name[name.size() - kDigestDigits - 1] != '-') return false;
  return std::ranges::all_of(name.substr(name.size() - kDigestDigits),
                             [](char c) { return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f'); });
}

std::string hex_digest(std::string_view text, const Digest& sha256, std::size_t digits) {
  const std::string digest = sha256(text);
  constexpr std::string_view kDigits = "0123456789abcdef";
  std::string hex;
  for (const char c : digest) {
    const auto byte = static_cast<unsigned char>(c);
    hex += kDigits[byte >> 4];
    hex += kDigits[byte & 15];
  }
  return hex.substr(0, digits);
}

}  // namespace

std::span<const OwnKind> own_kinds() { return kKinds; }

const OwnKind& own_pool_kind() { return kPoolKind; }

const OwnKind* own_kind_of(Kind kind) {
  const auto found = std::ranges::find(kKinds, kind, &OwnKind::record);
  return found == kKinds.end() ? nullptr : &*found;
}

std::string own_object_name(std::string_view record_name, const Digest& sha256) {
  if (record_name.size() <= kPlainNameBytesMax && is_dns_subdomain(record_name) && !ends_like_a_digest(record_name)) {
    return std::string(record_name);
  }
  std::string name;
  for (char c : record_name.substr(0, kPlainNameBytesMax)) {
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
    if (is_alphanumeric(c)) {
      name += c;
    } else if (!name.empty() && name.back() != '-') {
      name += '-';
    }
  }
  if (name.empty()) name = "x";
  if (name.back() != '-') name += '-';
  return name + hex_digest(record_name, sha256, kDigestDigits);
}

std::string own_owner_label(std::string_view owner, const Digest& sha256) {
  return hex_digest(owner, sha256, kLabelDigits);
}

std::optional<std::string_view> owner_in_name(std::string_view name) {
  const std::size_t first = name.find('/');
  if (first == name.npos) return std::nullopt;
  const std::string_view type = name.substr(0, first);
  if (type != "host" && type != "virtual") return type;
  const std::size_t second = name.find('/', first + 1);
  if (second == name.npos) return std::nullopt;
  return name.substr(0, second);
}

std::string own_spec(const OwnKind& kind, std::string_view record_name, std::string_view record) {
  const auto document = parse_json(record, {.bytes_max = kRecordBytesMax, .depth_max = 16});
  CROFT_ASSERT(document && document->root().kind() == JsonKind::object);
  JsonWriter out(JsonWriter::Layout::compact, record.size() + record_name.size() + 64);
  out.begin_object();
  out.key("name");
  out.text(record_name);
  for (auto member = document->root().first_child(); member; member = member->next_sibling()) {
    if (member->key() != "v") continue;
    out.key("formatVersion");
    out.integer(member->integer().value_or(0));
  }
  write_fields(out, kind.fields, document->root());
  out.end_object();
  return std::move(out).take();
}

Result<OwnRecord> read_own_spec(const OwnKind& kind, JsonRef spec) {
  if (spec.kind() != JsonKind::object) return fail(ErrorCode::corrupt, "spec: it is no object");
  OwnRecord own;
  std::optional<std::int64_t> version;
  for (auto member = spec.first_child(); member; member = member->next_sibling()) {
    if (member->key() == "name" && member->kind() == JsonKind::string) own.name = member->text();
    if (member->key() == "formatVersion") version = member->integer();
  }
  if (own.name.empty()) return fail(ErrorCode::corrupt, "spec.name: it is missing");
  if (!version || *version < 1) return fail(ErrorCode::corrupt, "spec.formatVersion: it is no number of a version");
  SpecReader reader(256);
  reader.out().raw("{\"v\":").number(*version).raw(kind.fields.empty() ? "" : ",");
  // What a newer version has instead is not known here: register/format says that it is newer.
  const bool is_newer = *version > static_cast<std::int64_t>(core::traits_of(kind.record).version);
  if (!is_newer) reader.fields(kind.fields, spec, "spec");
  if (reader.error()) return fail(*reader.error());
  reader.out().raw(is_newer ? "\"\":0}" : "}");
  own.record = reader.out().take();
  return own;
}

}  // namespace croft::wire::kube
