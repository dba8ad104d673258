#include "store/kube/format/croft_kinds.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <map>
#include <utility>

#include "base/assert.h"
#include "base/hex.h"
#include "base/json/reader.h"
#include "base/letters.h"
#include "register/format/canonical_json.h"
#include "register/format/records.h"

namespace croft::wire::kube {
namespace {

using core::Kind;

constexpr std::size_t kPlainNameBytesMax = 200;
constexpr std::size_t kDigestDigits = 16;
constexpr std::size_t kLabelDigits = 40;

// ---------------------------------------------------------------- the kinds

constexpr std::array kHighWaterMark = {OwnField{"sequenceNumber", true}};
constexpr std::array kPoolSet = {OwnField{"generation", true}};
constexpr std::array kNodeRange = {OwnField{"node"}, OwnField{"cidr"}};
constexpr std::array kClusterCidr = {OwnField{"cidr"}, OwnField{"nodeLength"}};
constexpr std::array kNodeRangeSet = {OwnField{"generation", true}, OwnField{"clusterCIDRs", false, kClusterCidr},
                                      OwnField{"excluded"}, OwnField{"cursors", true}};
constexpr std::array kRemovedNode = {OwnField{"node"}, OwnField{"held", true}};

/// Named after the records it is nearest to, though it is none itself.
constexpr OwnKind kPoolKind{Kind::pool, "CroftPool", "croftpools", {}};

constexpr std::array kKinds = {
    OwnKind{Kind::high_water_mark, "CroftHighWaterMark", "crofthighwatermarks", kHighWaterMark},
    OwnKind{Kind::pool_set, "CroftPoolSet", "croftpoolsets", kPoolSet},
    OwnKind{Kind::node_range, "CroftNodeRange", "croftnoderanges", kNodeRange},
    OwnKind{Kind::node_range_set, "CroftNodeRangeSet", "croftnoderangesets", kNodeRangeSet},
    OwnKind{Kind::removed_node, "CroftRemovedNode", "croftremovednodes", kRemovedNode},
};

// ---------------------------------------------------------------- record and spec

/// Writes the members of a record as a spec has them, or the other way round. Only big integers differ. Whether a value
/// is of its member's type register/format tells.
class Rewriter {
 public:
  enum class To { spec, record };
  Rewriter(To to, std::size_t bytes_expected) : to_(to), out_(bytes_expected) {}

  /// The members of an object, each of which must be there.
  [[nodiscard]] MaybeFault fields(std::span<const OwnField> fields, const JsonAt& object) {
    std::string_view before;
    for (const OwnField& field : fields) {
      const auto found = member_of(object.value, field.name);
      const JsonAt member{found.value_or(object.value), &object, field.name, {}};
      if (!found) return member.bad_value("it is missing");
      out_.raw(std::exchange(before, ",")).text(field.name).raw(":");
      if (auto fault = value(field, member)) return fault;
    }
    return {};
  }
  [[nodiscard]] CanonicalWriter& out() { return out_; }

 private:
  [[nodiscard]] MaybeFault value(const OwnField& field, const JsonAt& at) {
    switch (at.value.kind()) {
      case JsonKind::string:
      case JsonKind::integer:
        return scalar(field, at);
      case JsonKind::array:
        return list(field, at);
      case JsonKind::object:
        return field.parts.empty() ? map(field, at) : object(field, at);
      default:
        return at.bad_value("it is no text, integer, list or object");
    }
  }

  [[nodiscard]] MaybeFault scalar(const OwnField& field, const JsonAt& at) {
    const std::string_view text = at.value.text();
    const bool is_text = at.value.kind() == JsonKind::string;
    if (!field.is_big) {
      is_text ? out_.text(text) : out_.raw(text);
      return {};
    }
    std::uint64_t number = 0;
    const auto [end, fault] = std::from_chars(text.data(), text.data() + text.size(), number);
    const bool is_number = fault == std::errc() && end == text.data() + text.size();
    if (!is_number || is_text != (to_ == To::record)) return at.bad_value("it is no string of a number of 64 bits");
    is_text ? out_.number(number) : out_.text(text);
    return {};
  }

  [[nodiscard]] MaybeFault list(const OwnField& field, const JsonAt& at) {
    out_.raw("[");
    auto fault = each_element(at, kRecordBytesMax, [&](const JsonAt& element) {
      if (element.index != 0) out_.raw(",");
      return value(field, element);
    });
    out_.raw("]");
    return fault;
  }

  /// In the order of names, however the server has them.
  [[nodiscard]] MaybeFault map(const OwnField& field, const JsonAt& at) {
    std::map<std::string_view, JsonRef> members;
    for (auto member = at.value.first_child(); member; member = member->next_sibling()) {
      members.insert_or_assign(member->key(), *member);
    }
    std::string_view before = "{";
    for (const auto& [name, member] : members) {
      out_.raw(std::exchange(before, ",")).text(name).raw(":");
      if (auto fault = value(field, {member, &at, name, {}})) return fault;
    }
    out_.raw(members.empty() ? "{}" : "}");
    return {};
  }

  [[nodiscard]] MaybeFault object(const OwnField& field, const JsonAt& at) {
    out_.raw("{");
    auto fault = fields(field.parts, at);
    out_.raw("}");
    return fault;
  }

  const To to_;
  CanonicalWriter out_;
};

// ---------------------------------------------------------------- names

bool ends_like_a_digest(std::string_view name) {
  if (name.size() <= kDigestDigits || name[name.size() - kDigestDigits - 1] != '-') return false;
  return name.find_first_not_of(kHexDigits, name.size() - kDigestDigits) == name.npos;
}

}  // namespace

std::span<const OwnKind> croft_kinds() { return kKinds; }

const OwnKind& croft_pool_kind() { return kPoolKind; }

const OwnKind* croft_kind_of(Kind kind) {
  const auto found = std::ranges::find(kKinds, kind, &OwnKind::record);
  return found == kKinds.end() ? nullptr : &*found;
}

std::string croft_object_name(std::string_view record_name, const Digest& sha256) {
  if (record_name.size() <= kPlainNameBytesMax && is_dns_subdomain(record_name) && !ends_like_a_digest(record_name)) {
    return std::string(record_name);
  }
  std::string name;
  for (const char c : record_name.substr(0, kPlainNameBytesMax)) {
    if (is_alphanumeric(c)) {
      name += lowered(c);
    } else if (!name.empty() && name.back() != '-') {
      name += '-';
    }
  }
  if (name.empty()) name = "x";
  if (name.back() != '-') name += '-';
  return name + hex_of(sha256(record_name)).substr(0, kDigestDigits);
}

std::string croft_owner_label(std::string_view owner, const Digest& sha256) {
  return hex_of(sha256(owner)).substr(0, kLabelDigits);
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

std::string croft_spec(const OwnKind& kind, std::string_view record_name, std::string_view record) {
  const auto document = parse_json(record, {.bytes_max = kRecordBytesMax, .depth_max = 16});
  CROFT_ASSERT(document);
  const auto version = member_of(document->root(), "v");
  Rewriter spec(Rewriter::To::spec, record.size() + record_name.size() + 64);
  spec.out().raw("{\"name\":").text(record_name).raw(",\"formatVersion\":").raw(version.value().text()).raw(",");
  CROFT_ASSERT(!spec.fields(kind.fields, {document->root(), nullptr, {}, {}}));
  return spec.out().raw("}").take();
}

Result<OwnRecord> read_croft_spec(const OwnKind& kind, JsonRef spec) {
  OwnRecord own;
  if (const auto name = member_of(spec, "name")) own.name = name->text();
  if (own.name.empty()) return fail(ErrorCode::corrupt, "spec.name: it is missing");
  const auto stated = member_of(spec, "formatVersion");
  const auto version = stated ? stated->integer() : std::nullopt;
  if (!version || *version < 1) return fail(ErrorCode::corrupt, "spec.formatVersion: it is no number of a version");
  Rewriter record(Rewriter::To::record, 256);
  record.out().raw("{\"v\":").number(*version).raw(",");
  // A newer version's members are not known here: register/format says that it is newer.
  const bool is_newer = *version > static_cast<std::int64_t>(core::traits_of(kind.record).version);
  const auto fault = is_newer ? MaybeFault() : record.fields(kind.fields, {spec, nullptr, "spec", {}});
  if (fault) return fail(ErrorCode::corrupt, fault->to_string());
  own.record = record.out().raw(is_newer ? "\"\":0}" : "}").take();
  return own;
}

}  // namespace croft::wire::kube
