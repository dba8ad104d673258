#include "calico/resources.h"

#include <algorithm>
#include <array>
#include <utility>

#include <fmt/format.h>

#include "base/net/lenient.h"
#include "base/text/go_text.h"
#include "calico/json.h"

namespace croft::wire::calico {

namespace {

constexpr std::string_view kApiVersion = "projectcalico.org/v3";

// The members of metadata that are passed on, where Kubernetes' library writes them.
constexpr std::string_view kBehindName[] = {"generateName", "namespace"};
constexpr std::string_view kBehindUid[] = {"generation"};
constexpr std::string_view kBehindCreation[] = {"deletionTimestamp", "deletionGracePeriodSeconds"};
constexpr std::string_view kBehindLabels[] = {"annotations", "ownerReferences", "finalizers", "managedFields"};
constexpr std::string_view kPassedOn[] = {
    "generateName", "namespace",       "generation", "deletionTimestamp", "deletionGracePeriodSeconds",
    "annotations",  "ownerReferences", "finalizers", "managedFields"};

/// For what is read and not kept.
MaybeFault pass_over(const JsonAt&, Frame&) { return {}; }

constexpr JsonMember<Frame> kMetadataMembers[] = {
    {"name",
     [](const JsonAt& at, Frame& out) {
       std::string name;
       if (auto fault = read_text(at, kTextBytesMax, name)) return fault;
       out.has_name = name == out.name;
       return out.has_name ? MaybeFault() : at.bad_value(net::echo(name) + " is not that of the key");
     }},
    {"selfLink", pass_over},
    {"uid", [](const JsonAt& at, Frame& out) { return read_text(at, kTextBytesMax, out.metadata.uid); }},
    {"resourceVersion", pass_over},
    {"creationTimestamp",
     [](const JsonAt& at, Frame& out) {
       return at.value.is_null() ? MaybeFault() : read_time(at, out.metadata.created.emplace());
     }},
    {"deletionTimestamp",
     [](const JsonAt& at, Frame& out) {
       WallTime time;
       if (at.value.is_null()) return MaybeFault();
       out.terminating = true;
       out.metadata.rest.push_back(raw_member(at.value));
       return read_time(at, time);
     }},
    {"labels", [](const JsonAt& at, Frame& out) { return read_texts(at, out.metadata.labels); }},
};

}  // namespace

MaybeFault read_kind(const JsonAt& at, Frame& frame) {
  std::string kind;
  if (auto fault = read_text(at, kTextBytesMax, kind)) return fault;
  return kind == frame.kind ? MaybeFault() : at.bad_value(fmt::format("{} is not {}", net::echo(kind), frame.kind));
}

MaybeFault read_api_version(const JsonAt& at) {
  std::string version;
  if (auto fault = read_text(at, kTextBytesMax, version)) return fault;
  return version == kApiVersion ? MaybeFault()
                                : at.bad_value(fmt::format("{} is not {}", net::echo(version), kApiVersion));
}

MaybeFault read_metadata(const JsonAt& at, Frame& frame) {
  return read_kept<Frame>(at, kMetadataMembers, frame, frame.metadata.rest);
}

void begin_resource(JsonWriter& out, std::string_view kind, const std::string& name, const Metadata& metadata,
                    const std::map<std::string, std::string>& labels) {
  out.begin_object();
  out.text("kind", kind);
  out.text("apiVersion", kApiVersion);
  out.begin_object("metadata");
  out.text("name", name);
  write_some(out, metadata.rest, kBehindName);
  write_text_if_set(out, "uid", metadata.uid);
  write_some(out, metadata.rest, kBehindUid);
  out.key("creationTimestamp");
  metadata.created ? write_time(out, *metadata.created) : out.null();
  write_some(out, metadata.rest, kBehindCreation);
  write_texts_if_set(out, "labels", labels);
  write_some(out, metadata.rest, kBehindLabels);
  write_others(out, metadata.rest, kPassedOn);
  out.end_object();
}

void write_some(JsonWriter& out, const RawMembers& members, std::span<const std::string_view> names) {
  for (const std::string_view name : names) {
    for (const RawMember& member : members) {
      if (member.name != name) continue;
      out.raw(member.name, member.json);
    }
  }
}

void write_others(JsonWriter& out, const RawMembers& members, std::span<const std::string_view> names) {
  for (const RawMember& member : members) {
    if (std::ranges::find(names, member.name) != names.end()) continue;
    out.raw(member.name, member.json);
  }
}

void write_text_if_set(JsonWriter& out, std::string_view name, std::string_view value) {
  if (value.empty()) return;
  out.text(name, value);
}

void write_if_set(JsonWriter& out, std::string_view name, bool value) {
  if (!value) return;
  out.boolean(name, value);
}

namespace {

using core::AssignmentMode;
using core::Encapsulation;
using core::Pool;
using core::PoolUse;
using net::Family;
using net::Prefix;

constexpr std::size_t kUsesMax = 64;

template <class T, std::size_t N>
using Names = std::array<std::pair<T, std::string_view>, N>;

constexpr Names<PoolUse, 3> kUses = {{
    {PoolUse::workload, "Workload"},
    {PoolUse::tunnel, "Tunnel"},
    {PoolUse::load_balancer, "LoadBalancer"},
}};
constexpr Names<AssignmentMode, 2> kAssignmentModes = {{
    {AssignmentMode::automatic, "Automatic"},
    {AssignmentMode::manual, "Manual"},
}};
constexpr Names<Encapsulation, 3> kEncapsulations = {{
    {Encapsulation::never, "Never"},
    {Encapsulation::always, "Always"},
    {Encapsulation::cross_subnet, "CrossSubnet"},
}};

// Members that are passed on, where Calico writes them.
constexpr std::string_view kOldPoolMembers[] = {"ipip", "nat-outgoing"};

template <class T, std::size_t N>
std::string_view name_in(const Names<T, N>& names, T value) {
  return std::ranges::find(names, value, [](const auto& entry) { return entry.first; })->second;
}

/// Takes one of the names; null and the empty text leave `out`.
template <class T, std::size_t N>
MaybeFault read_named(const JsonAt& at, const Names<T, N>& names, T& out) {
  std::string text;
  if (auto fault = read_text(at, kTextBytesMax, text)) return fault;
  if (text.empty()) return {};
  const auto entry = std::ranges::find(names, text, [](const auto& e) { return e.second; });
  if (entry == names.end()) return at.bad_value(net::echo(text) + " is not known");
  out = entry->first;
  return {};
}

// ---------------------------------------------------------------- reading: pools

struct PoolDraft {
  Frame frame;
  PoolRecord record;
  std::int64_t block_size = 0;
};

MaybeFault read_uses(const JsonAt& at, PoolDraft& out) {
  std::vector<std::string> texts;
  auto fault = read_list<std::string>(
      at, kUsesMax, [](const JsonAt& element, std::string& text) { return read_text(element, kTextBytesMax, text); },
      texts);
  if (fault || texts.empty()) return fault;
  out.record.pool.allowed_uses.clear();
  for (std::string& text : texts) {
    const auto use = std::ranges::find(kUses, text, [](const auto& entry) { return entry.second; });
    if (use != kUses.end()) {
      out.record.pool.allowed_uses.push_back(use->first);
    } else {
      out.record.rest.other_uses.push_back(std::move(text));
    }
  }
  return {};
}

MaybeFault read_node_selector(const JsonAt& at, PoolDraft& out) {
  std::string text;
  if (auto fault = read_text(at, kTextBytesMax, text)) return fault;
  if (!text.empty()) out.record.pool.node_selector = std::move(text);
  return {};
}

MaybeFault read_assignment_mode(const JsonAt& at, PoolDraft& out) {
  out.record.rest.assignment_mode_absent = at.value.is_null();
  return read_named(at, kAssignmentModes, out.record.pool.assignment_mode);
}

constexpr JsonMember<PoolDraft> kPoolSpecMembers[] = {
    {"cidr", [](const JsonAt& at,
                PoolDraft& out) { return read_prefix(at, out.record.pool.cidr, &out.record.rest.cidr_as_found); }},
    {"vxlanMode",
     [](const JsonAt& at, PoolDraft& out) { return read_named(at, kEncapsulations, out.record.pool.vxlan_mode); }},
    {"ipipMode",
     [](const JsonAt& at, PoolDraft& out) { return read_named(at, kEncapsulations, out.record.pool.ipip_mode); }},
    {"natOutgoing", [](const JsonAt& at, PoolDraft& out) { return read_boolean(at, out.record.pool.nat_outgoing); }},
    {"disabled", [](const JsonAt& at, PoolDraft& out) { return read_boolean(at, out.record.pool.disabled); }},
    {"disableBGPExport",
     [](const JsonAt& at, PoolDraft& out) { return read_boolean(at, out.record.pool.disable_bgp_export); }},
    {"blockSize", [](const JsonAt& at, PoolDraft& out) { return read_integer(at, 0, 128, out.block_size); }},
    {"nodeSelector", read_node_selector},
    {"namespaceSelector",
     [](const JsonAt& at, PoolDraft& out) { return read_text(at, kTextBytesMax, out.record.pool.namespace_selector); }},
    {"allowedUses", read_uses},
    {"assignmentMode", read_assignment_mode},
};

struct Condition {
  std::string type;
  std::string status;
  std::string reason;
};

constexpr JsonMember<Condition> kConditionMembers[] = {
    {"type", [](const JsonAt& at, Condition& out) { return read_text(at, kTextBytesMax, out.type); }},
    {"status", [](const JsonAt& at, Condition& out) { return read_text(at, kTextBytesMax, out.status); }},
    {"reason", [](const JsonAt& at, Condition& out) { return read_text(at, kTextBytesMax, out.reason); }},
};

constexpr std::size_t kConditionsMax = 256;

constexpr JsonMember<PoolDraft> kStatusMembers[] = {
    {"conditions",
     [](const JsonAt& at, PoolDraft& out) {
       std::vector<Condition> conditions;
       auto fault = read_list<Condition>(
           at, kConditionsMax,
           [](const JsonAt& element, Condition& condition) {
             return read_object<Condition>(element, kConditionMembers, condition);
           },
           conditions);
       for (Condition& condition : conditions) {
         if (condition.type != "Allocatable" || condition.status != "False") continue;
         out.record.not_allocatable = std::move(condition.reason);
       }
       return fault;
     }},
};

constexpr JsonMember<PoolDraft> kPoolMembers[] = {
    {"kind", [](const JsonAt& at, PoolDraft& out) { return read_kind(at, out.frame); }},
    {"apiVersion", [](const JsonAt& at, PoolDraft&) { return read_api_version(at); }},
    {"metadata", [](const JsonAt& at, PoolDraft& out) { return read_metadata(at, out.frame); }},
    {"spec", [](const JsonAt& at,
                PoolDraft& out) { return read_kept<PoolDraft>(at, kPoolSpecMembers, out, out.record.rest.spec); }},
    {"status",
     [](const JsonAt& at, PoolDraft& out) {
       out.record.rest.members.push_back(raw_member(at.value));
       return read_object<PoolDraft>(at, kStatusMembers, out);
     }},
};

/// The default, the limits, and the pools that are smaller than a block. Error: corrupt, without the key.
[[nodiscard]] Result<void> settle_block_size(PoolDraft& draft) {
  Pool& pool = draft.record.pool;
  const bool is_v4 = pool.cidr.family() == Family::v4;
  const int fallback = is_v4 ? core::kDefaultBlockLengthV4 : core::kDefaultBlockLengthV6;
  const int size = draft.block_size == 0 ? fallback : static_cast<int>(draft.block_size);
  const auto [min, max] = is_v4 ? std::pair(20, 32) : std::pair(116, 128);
  if (size < min || size > max) {
    return fail(ErrorCode::corrupt, fmt::format("spec.blockSize: {} is not {} to {}", size, min, max));
  }
  pool.block_length = std::max(size, pool.cidr.length());
  if (pool.block_length != size) draft.record.rest.block_size_too_large = size;
  return {};
}

// ---------------------------------------------------------------- reading: reservations

struct ReservationDraft {
  Frame frame;
  ReservationRecord record;
};

std::string_view trimmed(std::string_view text) {
  for (Rune rune = first_rune(text); rune.size != 0 && is_space(rune.code); rune = first_rune(text)) {
    text.remove_prefix(rune.size);
  }
  std::size_t end = 0;
  for (std::size_t at = 0; at < text.size();) {
    const Rune rune = first_rune(text.substr(at));
    at += rune.size;
    if (!is_space(rune.code)) end = at;
  }
  return text.substr(0, end);
}

/// The prefix that an entry reserves; nothing if it is neither CIDR nor address. An older Calico reads zeros in front,
/// a newer one ends at them: they are reserved all the same.
std::optional<Prefix> reserved_by(std::string_view entry) {
  const std::string_view text = trimmed(entry);
  if (const auto cidr = net::parse_prefix_leniently(text)) return cidr;
  const auto address = net::parse_address_leniently(text);
  return address ? std::optional(Prefix::containing(*address, net::bit_length(address->family()))) : std::nullopt;
}

/// More than a record's bytes can hold.
constexpr std::size_t kEntriesMax = kRecordBytesMax;

constexpr JsonMember<ReservationDraft> kReservationSpecMembers[] = {
    {"reservedCIDRs",
     [](const JsonAt& at, ReservationDraft& out) {
       return read_list<std::string>(
           at, kEntriesMax,
           [](const JsonAt& element, std::string& text) { return read_text(element, kTextBytesMax, text); },
           out.record.entries);
     }},
};

constexpr JsonMember<ReservationDraft> kReservationMembers[] = {
    {"kind", [](const JsonAt& at, ReservationDraft& out) { return read_kind(at, out.frame); }},
    {"apiVersion", [](const JsonAt& at, ReservationDraft&) { return read_api_version(at); }},
    {"metadata", [](const JsonAt& at, ReservationDraft& out) { return read_metadata(at, out.frame); }},
    {"spec",
     [](const JsonAt& at, ReservationDraft& out) {
       return read_kept<ReservationDraft>(at, kReservationSpecMembers, out, out.record.spec);
     }},
};

// ---------------------------------------------------------------- writing

void write_uses(JsonWriter& out, const PoolRecord& record) {
  if (record.pool.allowed_uses.empty() && record.rest.other_uses.empty()) return;
  out.begin_array("allowedUses");
  for (const PoolUse use : record.pool.allowed_uses) out.text(name_in(kUses, use));
  for (const std::string& use : record.rest.other_uses) out.text(use);
  out.end_array();
}

void write_pool_spec(JsonWriter& out, const PoolRecord& record) {
  const Pool& pool = record.pool;
  out.begin_object();
  out.text("cidr", record.rest.cidr_as_found.empty() ? pool.cidr.to_string() : record.rest.cidr_as_found);
  out.text("vxlanMode", name_in(kEncapsulations, pool.vxlan_mode));
  out.text("ipipMode", name_in(kEncapsulations, pool.ipip_mode));
  write_if_set(out, "natOutgoing", pool.nat_outgoing);
  write_if_set(out, "disabled", pool.disabled);
  write_if_set(out, "disableBGPExport", pool.disable_bgp_export);
  out.integer("blockSize", record.rest.block_size_too_large.value_or(pool.block_length));
  out.text("nodeSelector", pool.node_selector.empty() ? "all()" : pool.node_selector);
  write_text_if_set(out, "namespaceSelector", pool.namespace_selector);
  write_some(out, record.rest.spec, kOldPoolMembers);
  write_uses(out, record);
  if (pool.assignment_mode != AssignmentMode::automatic || !record.rest.assignment_mode_absent) {
    out.text("assignmentMode", name_in(kAssignmentModes, pool.assignment_mode));
  }
  write_others(out, record.rest.spec, kOldPoolMembers);
  out.end_object();
}

/// The entries to write: those found that still say something true or nothing at all, then what none of them says.
std::vector<std::string> entries_of(const ReservationRecord& record) {
  std::vector<Prefix> missing = record.reservation.cidrs;
  std::vector<std::string> entries;
  for (const std::string& entry : record.entries) {
    const auto cidr = reserved_by(entry);
    if (cidr && std::ranges::find(record.reservation.cidrs, *cidr) == record.reservation.cidrs.end()) continue;
    if (cidr) std::erase(missing, *cidr);
    entries.push_back(entry);
  }
  for (const Prefix& cidr : missing) entries.push_back(cidr.to_string());
  return entries;
}

/// The prefixes reserved by a record whose other members are damaged. These say nothing that a decision needs, and to
/// know less of what is reserved would stop every assignment. Nothing when there is no such list.
std::optional<std::vector<std::string>> entries_alone(const Key& key, std::string_view bytes) {
  constexpr JsonMember<ReservationDraft> kSpecAlone[] = {{"spec", [](const JsonAt& at, ReservationDraft& out) {
                                                            return read_kept<ReservationDraft>(
                                                                at, kReservationSpecMembers, out, out.record.spec);
                                                          }}};
  ReservationDraft draft{{.kind = "IPReservation", .name = "", .metadata = {}}, {}};
  RawMembers others;
  if (!decode_into<ReservationDraft>(key, bytes, kSpecAlone, draft, others) || draft.record.entries.empty()) return {};
  return std::move(draft.record.entries);
}

}  // namespace

std::string PoolRecord::unallocatable() const {
  if (terminating) return "it is being deleted, and a finalizer keeps its object";
  if (rest.block_size_too_large) {
    return fmt::format("{} is smaller than its blocks, which are /{} (blockSize)", pool.cidr.to_string(),
                       *rest.block_size_too_large);
  }
  if (!not_allocatable) return {};
  return fmt::format("Calico's condition Allocatable of it is False{}",
                     not_allocatable->empty() ? "" : ", reason " + net::echo(*not_allocatable));
}

Result<PoolRecord> decode_pool(const std::string& name, std::string_view bytes) {
  const Key key = ResourceKey{ResourceKey::Kind::pool, name};
  PoolDraft draft{{.kind = "IPPool", .name = name, .metadata = {}}, {}, 0};
  PoolRecord& record = draft.record;
  record.pool.name = name;
  record.pool.cooldown = std::chrono::seconds(0);
  record.rest.assignment_mode_absent = true;
  TRY_VOID(decode_into<PoolDraft>(key, bytes, kPoolMembers, draft, record.rest.members));
  if (!draft.frame.has_name) return fail(damaged(key, "metadata.name: it is missing"));
  const Prefix& cidr = record.pool.cidr;
  if (!cidr.is_valid()) return fail(damaged(key, "spec.cidr: it is missing"));
  if (const auto settled = settle_block_size(draft); !settled) return fail(damaged(key, settled.error().message));
  record.terminating = draft.frame.terminating;
  record.metadata = std::move(draft.frame.metadata);
  return std::move(record);
}

Result<ReservationRecord> decode_reservation(const std::string& name, std::string_view bytes) {
  const Key key = ResourceKey{ResourceKey::Kind::reservation, name};
  ReservationDraft draft{{.kind = "IPReservation", .name = name, .metadata = {}}, {}};
  ReservationRecord& record = draft.record;
  auto decoded = decode_into<ReservationDraft>(key, bytes, kReservationMembers, draft, record.members);
  if (decoded && !draft.frame.has_name) decoded = fail(damaged(key, "metadata.name: it is missing"));
  if (!decoded) {
    auto entries = entries_alone(key, bytes);
    if (!entries) return fail(decoded.error());
    record = ReservationRecord();
    record.entries = *std::move(entries);
    draft.frame.metadata = {};
  }
  record.reservation.name = name;
  for (const std::string& entry : record.entries) {
    if (const auto cidr = reserved_by(entry)) record.reservation.cidrs.push_back(*cidr);
  }
  record.metadata = std::move(draft.frame.metadata);
  return std::move(record);
}

std::string encode(const PoolRecord& record) {
  JsonWriter out(JsonWriter::Layout::compact);
  begin_resource(out, "IPPool", record.pool.name, record.metadata, record.metadata.labels);
  out.key("spec");
  write_pool_spec(out, record);
  write_some(out, record.rest.members, kBehindSpec);
  write_others(out, record.rest.members, kBehindSpec);
  out.end_object();
  return std::move(out).take();
}

std::string encode(const ReservationRecord& record) {
  JsonWriter out(JsonWriter::Layout::compact);
  begin_resource(out, "IPReservation", record.reservation.name, record.metadata, record.metadata.labels);
  out.begin_object("spec");
  if (const auto entries = entries_of(record); !entries.empty()) {
    out.begin_array("reservedCIDRs");
    for (const std::string& entry : entries) out.text(entry);
    out.end_array();
  }
  write_rest(out, record.spec);
  out.end_object();
  write_rest(out, record.members);
  out.end_object();
  return std::move(out).take();
}

}  // namespace croft::wire::calico
