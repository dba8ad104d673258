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

constexpr std::array kHighWaterMark = {
    OwnField{"sequenceNumber", Type::big_integer,
             "The highest sequence number that the block had before it was deleted; one made again starts above it."}};

constexpr std::array kPoolSet = {
    OwnField{"generation", Type::big_integer, "How often a pool was made or deleted; whoever does so raises it."}};

constexpr std::array kNodeRange = {OwnField{"node", Type::text, "The node that has the range."},
                                   OwnField{"cidr", Type::text, "The range."}};

constexpr std::array kClusterCidr = {OwnField{"cidr", Type::text, "What ranges of nodes are cut from."},
                                     OwnField{"nodeLength", Type::integer, "Length of the prefix of a node's range."}};
constexpr std::array kClusterCidrs = {OwnField{"", Type::object, "A cluster CIDR.", kClusterCidr}};
constexpr std::array kExcluded = {OwnField{"", Type::text, "A CIDR."}};
constexpr std::array kCursors = {OwnField{"", Type::big_integer, "A number of a range."}};
constexpr std::array kNodeRangeSet = {
    OwnField{"generation", Type::big_integer, "How often the set was changed."},
    OwnField{"clusterCIDRs", Type::list, "What ranges of nodes are cut from, one a family.", kClusterCidrs},
    OwnField{"excluded", Type::list, "What no node gets.", kExcluded},
    OwnField{"cursors", Type::list, "Of each cluster CIDR: where the search for a free range begins.", kCursors}};

constexpr std::array kHeld = {OwnField{"", Type::big_integer, "A sequence number."}};
constexpr std::array kRemovedNode = {
    OwnField{"node", Type::text, "The node that an operator removed although it held addresses."},
    OwnField{"held", Type::map,
             "By the CIDR of a block: the highest sequence number of what the node held there. That may be collected.",
             kHeld}};

// ---------------------------------------------------------------- what is told of them

constexpr std::array kCondition = {
    OwnField{"type", Type::text, "What may hold: Ready, Exhausted, …"},
    OwnField{"status", Type::text, "True or False."},
    OwnField{"observedGeneration", Type::integer, "The metadata.generation that this was said of."},
    OwnField{"lastTransitionTime", Type::moment, "Since when the status is as it is."},
    OwnField{"reason", Type::text, "Why, as a word for programs."},
    OwnField{"message", Type::text, "Why, for people; empty where there is nothing to do."}};
constexpr std::array kConditions = {OwnField{"", Type::object, "One statement.", kCondition}};

constexpr std::array kPoolSpec = {OwnField{"pool", Type::text, "The name of Calico's IPPool that this tells of."}};
constexpr std::array kPoolStatus = {
    OwnField{"cidr", Type::text, "The addresses of the pool."},
    OwnField{"blockSize", Type::integer, "Length of the prefix of its blocks."},
    OwnField{"capacity", Type::count, "All addresses of the pool."},
    OwnField{"held", Type::integer, "Addresses that somebody holds."},
    OwnField{"cooling", Type::integer, "Addresses that were released and can't be given again yet."},
    OwnField{"reserved", Type::count, "Addresses that nobody holds or gets: IPReservations, the pool's gateway."},
    OwnField{"free", Type::count, "Addresses that could be given: capacity without held, cooling and reserved."},
    OwnField{"blocks", Type::integer,
             "Blocks that exist: parts of the pool that nodes have claimed or have addresses in."},
    OwnField{
        "conditions", Type::list,
        "Ready: new addresses come from it. Disabled: it says so. Exhausted: nothing is free. Overlaps: another pool "
        "has some of its addresses.",
        kConditions, "type"}};
constexpr std::array kPoolColumns = {OwnColumn{"Cidr", "string", ".status.cidr"},
                                     OwnColumn{"Capacity", "string", ".status.capacity"},
                                     OwnColumn{"Held", "integer", ".status.held"},
                                     OwnColumn{"Cooling", "integer", ".status.cooling"},
                                     OwnColumn{"Free", "string", ".status.free"},
                                     OwnColumn{"Blocks", "integer", ".status.blocks"},
                                     OwnColumn{"Ready", "string", ".status.conditions[?(@.type==\"Ready\")].status"},
                                     OwnColumn{"Reason", "string", ".status.conditions[?(@.type==\"Ready\")].reason"}};
/// Of the records it is nearest to, though it is none itself.
constexpr OwnKind kPoolKind{
    Kind::pool,
    "CroftPool",
    "croftpools",
    "croftpool",
    "How full a pool is, told by `croftd controller`. The pool itself is Calico's IPPool of the same "
    "name: making, changing or deleting this changes no pool.",
    kPoolSpec,
    0,
    kPoolStatus,
    kPoolColumns};

constexpr std::array kClusterStatus = {OwnField{"cidr", Type::text, "What ranges of nodes are cut from."},
                                       OwnField{"capacity", Type::integer, "Ranges that it can be cut into."},
                                       OwnField{"taken", Type::integer, "Ranges that nodes have."},
                                       OwnField{"excluded", Type::integer, "Ranges that no node gets."},
                                       OwnField{"free", Type::integer, "Ranges that could be given."}};
constexpr std::array kClusterStatuses = {OwnField{"", Type::object, "A cluster CIDR.", kClusterStatus}};
constexpr std::array kNodeRangeSetStatus = {
    OwnField{"nodes", Type::integer, "Nodes that the cluster has."},
    OwnField{"waiting", Type::integer, "Nodes that lack a range of some family."},
    OwnField{"clusterCIDRs", Type::list, "How full each cluster CIDR is.", kClusterStatuses, "cidr"},
    OwnField{"conditions", Type::list,
             "Ready: every node has its ranges. Exhausted: a cluster CIDR is full. Overlaps: two nodes have the same "
             "addresses.",
             kConditions, "type"}};
constexpr std::array kNodeRangeSetColumns = {
    OwnColumn{"Nodes", "integer", ".status.nodes"}, OwnColumn{"Waiting", "integer", ".status.waiting"},
    OwnColumn{"Ready", "string", ".status.conditions[?(@.type==\"Ready\")].status"},
    OwnColumn{"Exhausted", "string", ".status.conditions[?(@.type==\"Exhausted\")].status"}};

constexpr std::array kKinds = {
    OwnKind{Kind::high_water_mark, "CroftHighWaterMark", "crofthighwatermarks", "crofthighwatermark",
            "What a deleted block leaves, so that what was written for it is never taken for the one made after it.",
            kHighWaterMark, 1},
    OwnKind{Kind::pool_set, "CroftPoolSet", "croftpoolsets", "croftpoolset",
            "One object, `default`: keeps two pools that overlap from being made at once.", kPoolSet, 1},
    OwnKind{Kind::node_range, "CroftNodeRange", "croftnoderanges", "croftnoderange",
            "A range of pod addresses that a node has.", kNodeRange, 2},
    OwnKind{Kind::node_range_set, "CroftNodeRangeSet", "croftnoderangesets", "croftnoderangeset",
            "One object, `default`: what the ranges of nodes are cut from.", kNodeRangeSet, 1, kNodeRangeSetStatus,
            kNodeRangeSetColumns},
    OwnKind{Kind::removed_node, "CroftRemovedNode", "croftremovednodes", "croftremovednode",
            "A node that an operator removed although it held addresses.", kRemovedNode, 1},
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
    case Type::count:
    case Type::moment:
      return out.text(value.text());
    case Type::boolean:
      return out.boolean(value.boolean());
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
      case Type::count:  // of a status only
      case Type::moment:
        if (value.kind() != JsonKind::string) return reject(path, "it is no string");
        out_.text(value.text());
        return;
      case Type::boolean:
        if (value.kind() != JsonKind::boolean) return reject(path, "it is no boolean");
        out_.boolean(value.boolean());
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

// ---------------------------------------------------------------- schemas

std::string_view schema_type(Type type) {
  switch (type) {
    case Type::text:
    case Type::big_integer:
    case Type::count:
    case Type::moment:
      return "string";
    case Type::boolean:
      return "boolean";
    case Type::integer:
      return "integer";
    case Type::list:
      return "array";
    case Type::map:
    case Type::object:
      break;
  }
  return "object";
}

/// In JSON, which is YAML: no rule of indentation can be broken.
void write_schema(JsonWriter& out, const OwnField& field);

/// Members of a record are all there; those of a status need not be: another version of Croft may tell less.
enum class Members : std::uint8_t { all, any };

void write_properties(JsonWriter& out, std::span<const OwnField> fields, Members there = Members::all) {
  if (there == Members::all) {
    out.key("required");
    out.begin_array();
    for (const OwnField& field : fields) out.text(field.name);
    out.end_array();
  }
  out.key("properties");
  out.begin_object();
  for (const OwnField& field : fields) {
    out.key(field.name);
    write_schema(out, field);
  }
  out.end_object();
}

void write_schema(JsonWriter& out, const OwnField& field) {
  out.begin_object();
  out.key("type");
  out.text(schema_type(field.type));
  out.key("description");
  out.text(field.about);
  if (field.type == Type::big_integer) {
    out.key("pattern");
    out.text("^[0-9]{1,20}$");
  }
  if (field.type == Type::integer) {
    out.key("format");
    out.text("int64");
  }
  if (field.type == Type::count) {
    out.key("pattern");
    out.text("^[0-9]{1,39}$");
  }
  if (field.type == Type::moment) {
    out.key("format");
    out.text("date-time");
  }
  if (field.type == Type::list && !field.list_key.empty()) {
    out.key("x-kubernetes-list-type");
    out.text("map");
    out.key("x-kubernetes-list-map-keys");
    out.begin_array();
    out.text(field.list_key);
    out.end_array();
  }
  if (field.type == Type::list) {
    out.key("items");
    write_schema(out, field.parts.front());
  }
  if (field.type == Type::map) {
    out.key("additionalProperties");
    write_schema(out, field.parts.front());
  }
  if (field.type == Type::object) write_properties(out, field.parts);
  out.end_object();
}

constexpr std::array kCommon = {
    OwnField{"name", Type::text, "The record's name in Croft; that of the object is made from it."},
    OwnField{"formatVersion", Type::integer, "Of the record's form (docs/formats/records.md)."}};

std::string crd_json(const OwnKind& kind) {
  const bool is_record = &kind != &kPoolKind;
  std::vector<OwnField> fields;
  if (is_record) fields.assign(kCommon.begin(), kCommon.end());
  fields.insert(fields.end(), kind.fields.begin(), kind.fields.end());
  const std::string plain = fmt::format("{}.{}", kind.plural, kOwnGroup);
  JsonWriter out(JsonWriter::Layout::indented);
  const auto member = [&out](std::string_view name, std::string_view value) {
    out.key(name);
    out.text(value);
  };
  const auto object = [&out](std::string_view name) {
    out.key(name);
    out.begin_object();
  };
  out.begin_object();
  member("apiVersion", "apiextensions.k8s.io/v1");
  member("kind", "CustomResourceDefinition");
  object("metadata");
  member("name", plain);
  out.end_object();
  object("spec");
  member("group", kOwnGroup);
  member("scope", "Cluster");
  object("names");
  member("kind", kind.kind);
  member("listKind", fmt::format("{}List", kind.kind));
  member("plural", kind.plural);
  member("singular", kind.singular);
  out.key("categories");
  out.begin_array();
  out.text("croft");
  out.end_array();
  out.end_object();
  out.key("versions");
  out.begin_array();
  out.begin_object();
  member("name", kOwnVersion);
  out.key("served");
  out.boolean(true);
  out.key("storage");
  out.boolean(true);
  if (!kind.status.empty()) {
    object("subresources");
    object("status");
    out.end_object();
    out.end_object();
  }
  out.key("additionalPrinterColumns");
  out.begin_array();
  const auto column = [&](std::string_view name, std::string_view type, std::string_view path) {
    out.begin_object();
    member("name", name);
    member("type", type);
    member("jsonPath", path);
    out.end_object();
  };
  if (is_record) column("Record", "string", ".spec.name");
  for (const OwnField& field : kind.fields.first(kind.columns)) {
    std::string title(field.name);
    title.front() = static_cast<char>(title.front() - 'a' + 'A');
    column(title, schema_type(field.type), fmt::format(".spec.{}", field.name));
  }
  for (const OwnColumn& one : kind.status_columns) column(one.title, one.type, one.path);
  column("Age", "date", ".metadata.creationTimestamp");
  out.end_array();
  object("schema");
  object("openAPIV3Schema");
  member("type", "object");
  member("description", kind.about);
  out.key("required");
  out.begin_array();
  out.text("spec");
  out.end_array();
  object("properties");
  const auto plain_member = [&](std::string_view name, std::string_view type) {
    object(name);
    member("type", type);
    out.end_object();
  };
  plain_member("apiVersion", "string");
  plain_member("kind", "string");
  plain_member("metadata", "object");
  object("spec");
  member("type", "object");
  member("description", is_record ? "The record." : "What this is about.");
  write_properties(out, fields);
  out.end_object();
  if (!kind.status.empty()) {
    object("status");
    member("type", "object");
    member("description",
           "What the controller that leads tells of it, at most once a minute; nobody reads it to decide.");
    write_properties(out, kind.status, Members::any);
    out.end_object();
  }
  for (int i = 0; i < 4; ++i) out.end_object();  // properties, openAPIV3Schema, schema, the version
  out.end_array();
  out.end_object();
  out.end_object();
  return std::move(out).take();
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

std::string own_crds_yaml() {
  std::string yaml =
      "# What Croft keeps of its own in a Kubernetes API (docs/formats/kubernetes-own.md). Made by the build from\n"
      "# src/store/kube/format/own_kinds.cc: `croft store crds`.\n";
  for (const OwnKind& kind : kKinds) yaml += "---\n" + crd_json(kind) + "\n";
  yaml += "---\n" + crd_json(kPoolKind) + "\n";
  return yaml;
}

}  // namespace croft::wire::kube
