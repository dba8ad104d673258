#include "calico/crd.h"

#include <algorithm>
#include <array>
#include <functional>
#include <utility>

#include <fmt/format.h>

#include "base/assert.h"
#include "base/hex.h"
#include "base/json/writer.h"
#include "base/letters.h"
#include "base/net/prefix.h"
#include "base/printable.h"
#include "base/texts.h"
#include "calico/json.h"
#include "register/format/records.h"

namespace croft::wire::calico {
namespace {

using core::Kind;

constexpr std::string_view kMetadataAnnotation = "projectcalico.org/metadata";
constexpr std::string_view kPlainMetadata = R"({"creationTimestamp":null})";
/// In the bytes, a member that etcd never has: what else the object had.
constexpr std::string_view kKept = "croft-object";
constexpr std::size_t kNameBytesMax = 253;
constexpr std::size_t kAffinityDigestDigits = 11;

struct Row {
  Kind record;
  std::string_view kind, plural, kind_v3, plural_v3;
};
constexpr std::array kRows = {
    Row{Kind::pool, "IPPool", "ippools", "IPPool", "ippools"},
    Row{Kind::reservation, "IPReservation", "ipreservations", "IPReservation", "ipreservations"},
    Row{Kind::ipam_config, "IPAMConfig", "ipamconfigs", "IPAMConfiguration", "ipamconfigurations"},
    Row{Kind::block, "IPAMBlock", "ipamblocks", "IPAMBlock", "ipamblocks"},
    Row{Kind::affinity, "BlockAffinity", "blockaffinities", "BlockAffinity", "blockaffinities"},
    Row{Kind::handle, "IPAMHandle", "ipamhandles", "IPAMHandle", "ipamhandles"},
};

const Row* row_of(Kind kind) {
  const auto found = std::ranges::find(kRows, kind, &Row::record);
  return found == kRows.end() ? nullptr : &*found;
}

std::string text_in(JsonRef object, std::string_view name) {
  const auto member = member_of(object, name);
  return member && member->kind() == JsonKind::string ? std::string(member->text()) : std::string();
}

// ---------------------------------------------------------------- names

std::string cidr_name(std::string text) {
  for (char& c : text) {
    if (c == '.' || c == ':' || c == '/') c = '-';
  }
  return text;
}

/// The inverse, as far as there is one.
std::optional<net::Prefix> cidr_of_name(std::string_view name) {
  const std::size_t dash = name.rfind('-');
  if (dash == name.npos) return std::nullopt;
  for (const char separator : {'.', ':'}) {
    std::string text(name.substr(0, dash));
    std::ranges::replace(text, '-', separator);
    text += '/';
    text += name.substr(dash + 1);
    const auto cidr = net::Prefix::parse(text);
    if (cidr && cidr->to_string() == text) return *cidr;
  }
  return std::nullopt;
}

/// RFC 4648, upper case, without padding.
std::string base32_of(std::string_view bytes) {
  constexpr std::string_view kDigits = "ABCDEFGHIJKLMNOPQRSTUVWXYZ234567";
  std::string text;
  std::uint32_t bits = 0;
  int have = 0;
  for (const char c : bytes) {
    bits = bits << 8 | static_cast<unsigned char>(c);
    for (have += 8; have >= 5; have -= 5) text += kDigits[bits >> (have - 5) & 31];
  }
  if (have > 0) text += kDigits[bits << (5 - have) & 31];
  return text;
}

/// Whether the API takes it.
bool is_object_name(std::string_view name) { return name.size() <= kNameBytesMax && is_dns_subdomain(name); }

std::string affinity_name(const core::AffinityOwner& owner, const net::Prefix& cidr, const Digests& digests) {
  const std::string suffix = cidr_name(cidr.to_string());
  std::string name = fmt::format("{}-{}", owner.name, suffix);
  if (name.size() < kNameBytesMax) return name;
  const std::string digest = digests.sha256(fmt::format("{}+{}", owner.name, suffix));
  const std::size_t kept = kNameBytesMax - 1 - suffix.size() - (kAffinityDigestDigits + 2);
  return fmt::format("{}-{}-{}", owner.name.substr(0, kept), suffix, hex_of(digest).substr(0, kAffinityDigestDigits));
}

// ---------------------------------------------------------------- reading

/// A member's name in the spec and in etcd.
struct Renamed {
  std::string_view spec, etcd;
};
constexpr std::array kBlockNames = {Renamed{"affinityClaimTime", "affinity_claim_time"}};
constexpr std::array kConfigNames = {Renamed{"strictAffinity", "strict_affinity"},
                                     Renamed{"autoAllocateBlocks", "auto_allocate_blocks"}};

std::span<const Renamed> renamed_of(Kind kind) {
  if (kind == Kind::block) return kBlockNames;
  if (kind == Kind::ipam_config) return kConfigNames;
  return {};
}

/// Members of a spec that say nothing that the bytes need: the key has it, or nobody reads it.
bool is_left_out(Kind kind, std::string_view name) {
  switch (kind) {
    case Kind::block:
      return name == "strictAffinity";
    case Kind::affinity:
      return name == "cidr" || name == "node" || name == "type" || name == "deleted";
    case Kind::handle:
      return name == "handleID";
    default:
      return false;
  }
}

[[nodiscard]] Result<bool> deletion_mark(JsonRef spec) {
  const auto mark = member_of(spec, "deleted");
  if (!mark || mark->is_null()) return false;
  if (mark->kind() == JsonKind::boolean) return mark->boolean();
  const std::string_view text = mark->text();
  const bool is_text = mark->kind() == JsonKind::string;
  if (is_text && text == "true") return true;
  if (is_text && (text == "false" || text.empty())) return false;
  return fail(ErrorCode::corrupt, "spec.deleted: {} is no mark of deletion", echo(text));
}

std::optional<core::Key> key_in(Kind kind, JsonRef spec, const std::string& name) {
  const auto cidr = [&] { return net::parse_prefix_as_go(text_in(spec, "cidr")); };
  switch (kind) {
    case Kind::block: {
      const auto of = cidr();
      return of ? std::optional<core::Key>(core::block_key(*of)) : std::nullopt;
    }
    case Kind::affinity: {
      const auto of = cidr();
      const std::string node = text_in(spec, "node");
      const std::string said = text_in(spec, "type");
      const auto type = value_in(core::kOwnerTypes, said.empty() ? "host" : said);
      if (!of || node.empty() || !type) return std::nullopt;
      return core::affinity_key({*type, node}, *of);
    }
    case Kind::handle: {
      const std::string id = text_in(spec, "handleID");
      return id.empty() ? std::nullopt : std::optional<core::Key>(core::handle_key(id));
    }
    case Kind::ipam_config:
      return core::ipam_config_key();
    default:
      return core::Key{kind, name};
  }
}

/// Copies the members of an object but those that are left out; whether there were any.
bool copy_members(JsonWriter& out, JsonRef object, const std::function<bool(std::string_view name)>& is_left_out) {
  bool any = false;
  for (auto member = object.first_child(); member; member = member->next_sibling()) {
    if (is_left_out && is_left_out(member->key())) continue;
    copy_json(out, member->key(), *member);
    any = true;
  }
  return any;
}

bool is_of_frame(std::string_view name) { return name == "apiVersion" || name == "kind" || name == "metadata"; }

/// Members of the metadata that the server keeps by itself, or that every write says anew.
bool is_the_servers(std::string_view name) {
  constexpr std::array kNames = {
      "name",       "namespace", "uid",           "resourceVersion",   "creationTimestamp",
      "generation", "selfLink",  "managedFields", "deletionTimestamp", "deletionGracePeriodSeconds"};
  return std::ranges::find(kNames, name) != kNames.end();
}

using Texts = std::map<std::string, std::string>;

Texts texts_in(JsonRef metadata, std::string_view name) {
  Texts texts;
  const auto object = member_of(metadata, name);
  if (!object || object->kind() != JsonKind::object) return texts;
  for (auto member = object->first_child(); member; member = member->next_sibling()) {
    texts.insert_or_assign(std::string(member->key()), std::string(member->text()));
  }
  return texts;
}

/// The rest of the object besides its record, as one JSON object; empty when it is what a new one would have.
std::string kept_of(Kind kind, ApiGroup group, JsonRef object, JsonRef metadata, std::string_view own_prefix) {
  Texts labels = texts_in(metadata, "labels");
  Texts annotations = texts_in(metadata, "annotations");
  std::erase_if(labels, [&](const auto& one) { return one.first.starts_with(own_prefix); });
  std::erase_if(annotations, [&](const auto& one) { return one.first.starts_with(own_prefix); });
  if (kind == Kind::affinity)
    std::erase_if(labels, [](const auto& one) { return one.first.starts_with("projectcalico.org/"); });
  JsonWriter out(JsonWriter::Layout::compact);
  const Texts plain =
      group == ApiGroup::crd_v1 ? Texts{{std::string(kMetadataAnnotation), std::string(kPlainMetadata)}} : Texts{};
  out.begin_object();
  write_texts(out, "labels", labels);
  write_texts(out, "annotations", annotations);
  out.begin_object("metadata");
  const bool has_metadata = copy_members(out, metadata, [](std::string_view name) {
    return is_the_servers(name) || name == "labels" || name == "annotations";
  });
  out.end_object();
  out.begin_object("members");
  // A resource's further members are kept by its own reader.
  const bool has_members = copy_members(
      out, object, [&](std::string_view name) { return is_of_frame(name) || name == "spec" || is_resource(kind); });
  out.end_object();
  out.end_object();
  const bool is_plain = labels.empty() && annotations == plain && !has_metadata && !has_members;
  return is_plain ? std::string() : std::move(out).take();
}

/// Labels are where users of kubectl see them, or in Calico's annotation.
Texts all_labels(JsonRef metadata, const Texts& annotations, std::string_view own_prefix) {
  Texts labels;
  if (const auto found = annotations.find(std::string(kMetadataAnnotation)); found != annotations.end()) {
    const auto inner = parse_json(found->second);
    if (inner) labels = texts_in(inner->root(), "labels");
  }
  for (auto& [name, value] : texts_in(metadata, "labels")) {
    if (!name.starts_with(own_prefix)) labels.insert_or_assign(name, value);
  }
  return labels;
}

void write_resource(JsonWriter& out, Kind kind, JsonRef object, JsonRef metadata, std::string_view own_prefix) {
  out.text("kind", row_of(kind)->kind_v3);
  out.text("apiVersion", "projectcalico.org/v3");
  out.begin_object("metadata");
  for (const char* name : {"name", "uid", "creationTimestamp", "deletionTimestamp"}) {
    if (const auto member = member_of(metadata, name)) copy_json(out, name, *member);
  }
  const Texts labels = all_labels(metadata, texts_in(metadata, "annotations"), own_prefix);
  write_texts_if_set(out, "labels", labels);
  out.end_object();
  copy_members(out, object, is_of_frame);
}

// ---------------------------------------------------------------- writing

void write_spec(JsonWriter& out, const core::Key& key, ApiGroup group, JsonRef bytes) {
  const Kind kind = key.kind;
  out.begin_object();
  bool has_strict = false, has_auto = false;
  for (auto member = bytes.first_child(); member; member = member->next_sibling()) {
    std::string_view name = member->key();
    if (name == kKept) continue;
    for (const Renamed& renamed : renamed_of(kind)) {
      if (name == renamed.etcd) name = renamed.spec;
    }
    has_strict |= name == "strictAffinity";
    has_auto |= name == "autoAllocateBlocks";
    // Absent and empty are two things to Go; the schemas know no null.
    if (member->is_null()) {
      if (name == "attributes" || name == "unallocated" || name == "allocations") {
        out.begin_array(name);
        out.end_array();
      }
      if (name == "block") {
        out.begin_object(name);
        out.end_object();
      }
      continue;
    }
    out.key(name);
    if (kind == Kind::affinity && name == "deleted" && group == ApiGroup::crd_v1) {
      out.text(member->boolean() ? "true" : "false");
    } else {
      copy_json(out, *member);
    }
  }
  const bool needs_strict = kind == Kind::ipam_config || (kind == Kind::block && group == ApiGroup::crd_v1);
  if (needs_strict && !has_strict) out.boolean("strictAffinity", false);
  if (kind == Kind::ipam_config && !has_auto) out.boolean("autoAllocateBlocks", false);
  if (kind == Kind::handle) out.text("handleID", key.name);
  if (kind == Kind::affinity) {
    const auto cidr = core::cidr_of(key);
    const auto owner = owner_in(key.name);
    CROFT_ASSERT(cidr && owner);
    out.text("cidr", cidr->to_string());
    out.text("node", owner->name);
    out.text("type", word_in(core::kOwnerTypes, owner->type));
  }
  out.end_object();
}

void write_metadata(JsonWriter& out, const CrdFrame& frame, const std::optional<JsonRef>& kept) {
  Texts labels, annotations;
  if (kept) {
    labels = texts_in(*kept, "labels");
    annotations = texts_in(*kept, "annotations");
  } else if (frame.group == ApiGroup::crd_v1) {
    annotations.emplace(kMetadataAnnotation, kPlainMetadata);
  }
  for (const auto& [name, value] : frame.labels) labels.insert_or_assign(name, value);
  for (const auto& [name, value] : frame.annotations) annotations.insert_or_assign(name, value);
  out.begin_object();
  write_text_if_set(out, "name", frame.name);
  write_text_if_set(out, "uid", frame.uid);
  write_text_if_set(out, "resourceVersion", frame.resource_version);
  write_texts_if_set(out, "labels", labels);
  write_texts_if_set(out, "annotations", annotations);
  if (const auto more = kept ? member_of(*kept, "metadata") : std::nullopt) copy_members(out, *more, nullptr);
  out.end_object();
}

}  // namespace

bool has_crd(Kind kind) { return row_of(kind) != nullptr; }

CrdKind crd_kind_of(Kind kind, ApiGroup group) {
  const Row* row = row_of(kind);
  CROFT_ASSERT(row != nullptr);
  if (group == ApiGroup::v3) return {"projectcalico.org", "v3", row->plural_v3, row->kind_v3};
  return {"crd.projectcalico.org", "v1", row->plural, row->kind};
}

bool has_deletion_mark(Kind kind) { return kind == Kind::block || kind == Kind::affinity || kind == Kind::handle; }

Result<std::string> crd_name(const core::Key& key, const Digests& digests) {
  CROFT_ASSERT(has_crd(key.kind));
  std::string name = key.name;
  if (key.kind == Kind::block) {
    const auto cidr = core::block_cidr_of(key);
    if (!cidr) return fail(core::cidr_of(key).error());
    name = cidr_name(cidr->to_string());
  }
  if (key.kind == Kind::affinity) {
    TRY(const net::Prefix cidr, core::cidr_of(key));
    const auto owner = owner_in(key.name);
    if (!owner) return fail(ErrorCode::corrupt, "affinity {} has no owner", echo(key.name));
    name = affinity_name(*owner, cidr, digests);
  }
  if (key.kind == Kind::handle) name = lowered(std::move(name));
  if (!is_object_name(name)) {
    return fail(ErrorCode::invalid_argument,
                "{} {} can have no object in Kubernetes: its name would be {}, which is not of a-z, 0-9, '-' "
                "and '.', or longer than {} bytes",
                core::name_of(key.kind), echo(key.name), echo(name), kNameBytesMax);
  }
  return name;
}

core::Key key_of_crd_name(Kind kind, const std::string& name) {
  if (kind == Kind::block) {
    if (const auto cidr = cidr_of_name(name)) return core::block_key(*cidr);
  }
  if (kind == Kind::affinity) {
    // An owner's name has dashes too: the longest rest that is a CIDR is it.
    for (std::size_t dash = name.find('-'); dash != name.npos; dash = name.find('-', dash + 1)) {
      const auto cidr = cidr_of_name(std::string_view(name).substr(dash + 1));
      if (cidr) return core::affinity_key({core::AffinityOwner::Type::host, name.substr(0, dash)}, *cidr);
    }
    return {kind, "host/" + name};
  }
  return {kind, name};
}

Texts affinity_labels(const core::AffinityOwner& owner, net::Family family, const Digests& digests) {
  return {{"projectcalico.org/hostname-hash", base32_of(digests.sha3_256(owner.name))},
          {"projectcalico.org/affinity-type", std::string(word_in(core::kOwnerTypes, owner.type))},
          {"projectcalico.org/ip-version", family == net::Family::v4 ? "4" : "6"}};
}

Result<FromCrd> from_crd(Kind kind, ApiGroup group, JsonRef object, std::string_view own_prefix) {
  CROFT_ASSERT(has_crd(kind));
  const auto spec = member_of(object, "spec");
  const auto metadata = member_of(object, "metadata");
  if (!metadata || metadata->kind() != JsonKind::object) return fail(ErrorCode::corrupt, "metadata: it is missing");
  FromCrd read;
  read.key = key_in(kind, spec ? *spec : object, text_in(*metadata, "name"));
  const std::string kept = kept_of(kind, group, object, *metadata, own_prefix);
  JsonWriter out(JsonWriter::Layout::compact);
  out.begin_object();
  if (is_resource(kind)) {
    write_resource(out, kind, object, *metadata, own_prefix);
  } else {
    if (!spec || spec->kind() != JsonKind::object) return fail(ErrorCode::corrupt, "spec: it is missing");
    TRY(read.is_deleted, has_deletion_mark(kind) ? deletion_mark(*spec) : Result<bool>(false));
    for (auto member = spec->first_child(); member; member = member->next_sibling()) {
      std::string_view name = member->key();
      if (is_left_out(kind, name)) continue;
      for (const Renamed& renamed : renamed_of(kind)) {
        if (name == renamed.spec) name = renamed.etcd;
      }
      copy_json(out, name, *member);
    }
    if (kind == Kind::affinity) out.boolean("deleted", read.is_deleted);
  }
  if (!kept.empty()) out.raw(kKept, kept);
  out.end_object();
  read.bytes = std::move(out).take();
  return read;
}

std::string to_crd(const core::Key& key, std::string_view bytes, const CrdFrame& frame) {
  const auto document = parse_json(bytes, {.bytes_max = 2 * kRecordBytesMax});
  CROFT_ASSERT(document && document->root().kind() == JsonKind::object);
  const JsonRef root = document->root();
  const CrdKind kind = crd_kind_of(key.kind, frame.group);
  const auto kept = member_of(root, kKept);
  JsonWriter out(JsonWriter::Layout::compact, bytes.size() + 1024);
  out.begin_object();
  out.text("apiVersion", fmt::format("{}/{}", kind.group, kind.version));
  out.text("kind", kind.kind);
  out.key("metadata");
  write_metadata(out, frame, kept);
  if (is_resource(key.kind)) {
    copy_members(out, root, [](std::string_view name) { return is_of_frame(name) || name == kKept; });
  } else {
    out.key("spec");
    write_spec(out, key, frame.group, root);
    if (const auto members = kept ? member_of(*kept, "members") : std::nullopt) copy_members(out, *members, nullptr);
  }
  out.end_object();
  return std::move(out).take();
}

}  // namespace croft::wire::calico
