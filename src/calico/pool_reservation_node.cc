#include <algorithm>
#include <initializer_list>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "base/net/prefix.h"
#include "base/text/go_text.h"
#include "base/texts.h"
#include "calico/json.h"

// Calico's v3 resources in etcd (docs/formats/calico.md). A new one is written byte for byte as Calico's library does.

namespace croft::wire::calico {

namespace {

// ---------------------------------------------------------------- common to all resources

/// The metadata of a resource besides its name. For a new one: a random UID, the time, and nothing else.
struct Metadata {
  std::string uid;                            ///< empty: not there
  std::optional<WallTime> created;            ///< kept to the second
  std::map<std::string, std::string> labels;  ///< of a node empty: see core::Node
  /// As found: annotations, finalizers, deletionTimestamp and whatever else. Without the revision, which is etcd's own
  /// and never stored.
  RawMembers rest;
};

/// The members that core has no place for.
struct ResourceRest : core::ForeignRest {
  Metadata metadata;
  RawMembers spec;
  RawMembers members;  ///< of the resource: `status` above all
  [[nodiscard]] std::string_view identity() const override { return metadata.uid; }
};

/// A resource while it is read: the parts that every one has.
struct Frame {
  std::string_view kind;  ///< what it must be
  std::string name;       ///< of the key
  bool has_name = false;  ///< the metadata name it so
  bool terminating = false;
  Metadata metadata;
};

template <class Record, class Rest>
struct ResourceDraft : Draft<Record, Rest> {
  Frame frame;
};

constexpr std::string_view kApiVersion = "projectcalico.org/v3";

/// For what is read and not kept.
MaybeFault pass_over(const JsonAt&, Frame&) { return {}; }

constexpr JsonMember<Frame> kMetadataMembers[] = {
    {"name",
     [](const JsonAt& at, Frame& out) {
       std::string name;
       if (auto fault = read_text(at, kTextBytesMax, name)) return fault;
       out.has_name = name == out.name;
       return out.has_name ? MaybeFault() : at.bad_value(echo(name) + " is not that of the key");
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

MaybeFault read_exactly(const JsonAt& at, std::string_view wanted) {
  std::string text;
  if (auto fault = read_text(at, kTextBytesMax, text)) return fault;
  return text == wanted ? MaybeFault() : at.bad_value(fmt::format("{} is not {}", echo(text), wanted));
}

/// The members of a resource with this spec.
template <class D, const auto& kSpecMembers>
constexpr JsonMember<D> kMembersOf[] = {
    {"kind", [](const JsonAt& at, D& out) { return read_exactly(at, out.frame.kind); }},
    {"apiVersion", [](const JsonAt& at, D&) { return read_exactly(at, kApiVersion); }},
    {"metadata", [](const JsonAt& at,
                    D& out) { return read_kept<Frame>(at, kMetadataMembers, out.frame, out.frame.metadata.rest); }},
    {"spec", [](const JsonAt& at, D& out) { return read_kept<D>(at, kSpecMembers, out, out.rest->spec); }},
};

/// Reads a resource. Error: corrupt.
template <class D>
[[nodiscard]] Result<void> decode(const core::Key& key, std::string_view bytes, std::span<const JsonMember<D>> members,
                                  D& draft) {
  draft.record.name = draft.frame.name = key.name;
  TRY_VOID(decode_into<D>(key, bytes, members, draft, draft.rest->members));
  if (!draft.frame.has_name) return fail(damaged(key, "metadata.name: it is missing"));
  return {};
}

/// Its record, with all that was read.
template <class D>
[[nodiscard]] core::Value finished(D draft) {
  draft.rest->metadata = std::move(draft.frame.metadata);
  draft.record.rest = std::move(draft.rest);
  return std::move(draft.record);
}

/// Members that are passed on: some at the place where Calico and Kubernetes' library write them, the others at the
/// end.
class PassedOn {
 public:
  PassedOn(JsonWriter& out, const RawMembers& members) : out_(out), members_(members), done_(members.size()) {}
  /// Those with these names, in this order.
  void write(std::initializer_list<std::string_view> names) {
    for (const std::string_view name : names) take(name, true);
  }
  /// Something else is written in its place.
  void leave_out(std::string_view name) { take(name, false); }
  void write_others() {
    for (std::size_t i = 0; i < members_.size(); ++i) {
      if (!done_[i]) out_.raw(members_[i].name, members_[i].json);
    }
  }

 private:
  void take(std::string_view name, bool to_write) {
    for (std::size_t i = 0; i < members_.size(); ++i) {
      if (members_[i].name != name) continue;
      done_[i] = true;
      if (to_write) out_.raw(name, members_[i].json);
    }
  }

  JsonWriter& out_;
  const RawMembers& members_;
  std::vector<bool> done_;
};

/// Opens the resource: everything before its spec. One that was read nowhere is born now.
template <class Record>
void begin_resource(JsonWriter& out, std::string_view kind, const Record& record, const ResourceRest& rest,
                    const std::map<std::string, std::string>& labels, const Birth& birth) {
  const bool is_new = record.rest == nullptr;
  const Metadata& metadata = rest.metadata;
  const std::optional<WallTime> created = is_new ? std::optional(birth.at) : metadata.created;
  out.begin_object();
  out.text("kind", kind);
  out.text("apiVersion", kApiVersion);
  out.begin_object("metadata");
  PassedOn passed_on(out, metadata.rest);
  out.text("name", record.name);
  passed_on.write({"generateName", "namespace"});
  write_text_if_set(out, "uid", is_new ? birth.uid : metadata.uid);
  passed_on.write({"generation"});
  out.key("creationTimestamp");
  created ? write_time(out, *created) : out.null();
  passed_on.write({"deletionTimestamp", "deletionGracePeriodSeconds"});
  write_texts_if_set(out, "labels", labels);
  passed_on.write({"annotations", "ownerReferences", "finalizers", "managedFields"});
  passed_on.write_others();
  out.end_object();
}

/// Closes it behind its spec.
std::string end_resource(JsonWriter out, const RawMembers& members) {
  PassedOn passed_on(out, members);
  passed_on.write({"status"});
  passed_on.write_others();
  out.end_object();
  return std::move(out).take();
}

using core::AssignmentMode;
using core::Encapsulation;
using core::Pool;
using core::PoolUse;
using net::Family;
using net::Prefix;

constexpr std::size_t kUsesMax = 64;

/// Takes one of the words; null and the empty text leave `out`.
template <class T, std::size_t N>
MaybeFault read_word(const JsonAt& at, const Words<T, N>& words, T& out) {
  std::string text;
  if (auto fault = read_text(at, kTextBytesMax, text)) return fault;
  if (text.empty()) return {};
  const auto value = value_in(words, text);
  if (!value) return at.bad_value(echo(text) + " is not known");
  out = *value;
  return {};
}

// ---------------------------------------------------------------- reading: pools

/// The members that core::Pool has no place for. The default is a pool that Calico just made, v3.30 or newer.
struct PoolRest final : ResourceRest {
  /// The CIDR where it is no strict one, as with host bits: it is written again as it was found. Empty: it is strict.
  std::string cidr;
  /// No `assignmentMode`: before v3.30. Only looked at while the mode is automatic.
  bool assignment_mode_absent = false;
  /// The stored `blockSize` of a pool that is smaller than that; Calico lets only a disabled one be so. The
  /// `block_length` of such a pool is the length of its prefix.
  std::optional<int> block_size_too_large;
  /// Entries of `allowedUses` that are not known here; they count as not said.
  std::vector<std::string> other_uses;
  [[nodiscard]] std::string_view cidr_as_found() const override { return cidr; }
};

/// Without gateway and with a cooldown of 0: they are Croft's own and have no place in this record.
struct PoolDraft : ResourceDraft<Pool, PoolRest> {
  std::int64_t block_size = 0;
  /// Why Calico's controller doesn't let it be used, for instance "CIDROverlap": the reason beside a false condition
  /// `Allocatable`, "" when none is given.
  std::optional<std::string> not_allocatable;
};

MaybeFault read_uses(const JsonAt& at, PoolDraft& out) {
  std::vector<std::string> texts;
  auto fault = read_list<std::string>(
      at, kUsesMax, [](const JsonAt& element, std::string& text) { return read_text(element, kTextBytesMax, text); },
      texts);
  if (fault || texts.empty()) return fault;
  out.record.allowed_uses.clear();
  for (std::string& text : texts) {
    if (const auto use = value_in(core::kPoolUses, text)) {
      out.record.allowed_uses.push_back(*use);
    } else {
      out.rest->other_uses.push_back(std::move(text));
    }
  }
  return {};
}

MaybeFault read_node_selector(const JsonAt& at, PoolDraft& out) {
  std::string text;
  if (auto fault = read_text(at, kTextBytesMax, text)) return fault;
  if (!text.empty()) out.record.node_selector = std::move(text);
  return {};
}

MaybeFault read_assignment_mode(const JsonAt& at, PoolDraft& out) {
  out.rest->assignment_mode_absent = at.value.is_null();
  return read_word(at, core::kAssignmentModes, out.record.assignment_mode);
}

constexpr JsonMember<PoolDraft> kPoolSpecMembers[] = {
    {"cidr", [](const JsonAt& at, PoolDraft& out) { return read_prefix(at, out.record.cidr, &out.rest->cidr); }},
    {"vxlanMode",
     [](const JsonAt& at, PoolDraft& out) { return read_word(at, core::kEncapsulations, out.record.vxlan_mode); }},
    {"ipipMode",
     [](const JsonAt& at, PoolDraft& out) { return read_word(at, core::kEncapsulations, out.record.ipip_mode); }},
    {"natOutgoing", [](const JsonAt& at, PoolDraft& out) { return read_boolean(at, out.record.nat_outgoing); }},
    {"disabled", [](const JsonAt& at, PoolDraft& out) { return read_boolean(at, out.record.disabled); }},
    {"disableBGPExport",
     [](const JsonAt& at, PoolDraft& out) { return read_boolean(at, out.record.disable_bgp_export); }},
    {"blockSize", [](const JsonAt& at, PoolDraft& out) { return read_integer(at, 0, 128, out.block_size); }},
    {"nodeSelector", read_node_selector},
    {"namespaceSelector",
     [](const JsonAt& at, PoolDraft& out) { return read_text(at, kTextBytesMax, out.record.namespace_selector); }},
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
         out.not_allocatable = std::move(condition.reason);
       }
       return fault;
     }},
};

constexpr auto& kOfPool = kMembersOf<PoolDraft, kPoolSpecMembers>;
constexpr JsonMember<PoolDraft> kPoolMembers[] = {
    kOfPool[0],
    kOfPool[1],
    kOfPool[2],
    kOfPool[3],
    {"status",
     [](const JsonAt& at, PoolDraft& out) {
       out.rest->members.push_back(raw_member(at.value));
       return read_object<PoolDraft>(at, kStatusMembers, out);
     }},
};

/// The default, the limits, and the pools that are smaller than a block. Error: corrupt, without the key.
[[nodiscard]] Result<void> settle_block_size(PoolDraft& draft) {
  Pool& pool = draft.record;
  const auto [min, max, fallback] = core::block_lengths(pool.cidr.family());
  const int size = draft.block_size == 0 ? fallback : static_cast<int>(draft.block_size);
  if (size < min || size > max) {
    return fail(ErrorCode::corrupt, "spec.blockSize: {} is not {} to {}", size, min, max);
  }
  pool.block_length = std::max(size, pool.cidr.length());
  if (pool.block_length != size) draft.rest->block_size_too_large = size;
  return {};
}

/// Why nothing may be assigned of it, were it not disabled (core::Pool::unallocatable).
std::string unallocatable(const PoolDraft& draft) {
  if (draft.frame.terminating) return "it is being deleted, and a finalizer keeps its object";
  if (const auto size = draft.rest->block_size_too_large) {
    return fmt::format("{} is smaller than its blocks, which are /{} (blockSize)", draft.record.cidr.to_string(),
                       *size);
  }
  if (!draft.not_allocatable) return {};
  return fmt::format("Calico's condition Allocatable of it is False{}",
                     draft.not_allocatable->empty() ? "" : ", reason " + echo(*draft.not_allocatable));
}

// ---------------------------------------------------------------- reading: reservations

struct ReservationRest final : ResourceRest {
  /// The list as found, with white space, bare addresses and what is neither CIDR nor address.
  std::vector<std::string> entries;
};
using ReservationDraft = ResourceDraft<core::Reservation, ReservationRest>;

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
           out.rest->entries);
     }},
};

constexpr std::span<const JsonMember<ReservationDraft>> kReservationMembers =
    kMembersOf<ReservationDraft, kReservationSpecMembers>;

// ---------------------------------------------------------------- writing

void write_uses(JsonWriter& out, const Pool& pool, const PoolRest& rest) {
  if (pool.allowed_uses.empty() && rest.other_uses.empty()) return;
  out.begin_array("allowedUses");
  for (const PoolUse use : pool.allowed_uses) out.text(word_in(core::kPoolUses, use));
  for (const std::string& use : rest.other_uses) out.text(use);
  out.end_array();
}

void write_pool_spec(JsonWriter& out, const Pool& pool, const PoolRest& rest) {
  PassedOn passed_on(out, rest.spec);
  out.begin_object();
  out.text("cidr", rest.cidr.empty() ? pool.cidr.to_string() : rest.cidr);
  out.text("vxlanMode", word_in(core::kEncapsulations, pool.vxlan_mode));
  out.text("ipipMode", word_in(core::kEncapsulations, pool.ipip_mode));
  write_if_set(out, "natOutgoing", pool.nat_outgoing);
  write_if_set(out, "disabled", pool.disabled);
  write_if_set(out, "disableBGPExport", pool.disable_bgp_export);
  out.integer("blockSize", rest.block_size_too_large.value_or(pool.block_length));
  out.text("nodeSelector", pool.node_selector.empty() ? "all()" : pool.node_selector);
  write_text_if_set(out, "namespaceSelector", pool.namespace_selector);
  passed_on.write({"ipip", "nat-outgoing"});
  write_uses(out, pool, rest);
  if (pool.assignment_mode != AssignmentMode::automatic || !rest.assignment_mode_absent) {
    out.text("assignmentMode", word_in(core::kAssignmentModes, pool.assignment_mode));
  }
  passed_on.write_others();
  out.end_object();
}

/// The entries to write: those found that still say something true or nothing at all, then what none of them says.
std::vector<std::string> entries_of(const core::Reservation& reservation, const ReservationRest& rest) {
  std::vector<Prefix> missing = reservation.cidrs;
  std::vector<std::string> entries;
  for (const std::string& entry : rest.entries) {
    const auto cidr = reserved_by(entry);
    if (cidr && std::ranges::find(reservation.cidrs, *cidr) == reservation.cidrs.end()) continue;
    if (cidr) std::erase(missing, *cidr);
    entries.push_back(entry);
  }
  for (const Prefix& cidr : missing) entries.push_back(cidr.to_string());
  return entries;
}

/// The prefixes reserved by a record whose other members are damaged. These say nothing that a decision needs, and to
/// know less of what is reserved would stop every assignment. Nothing when there is no such list.
std::optional<std::vector<std::string>> entries_alone(const core::Key& key, std::string_view bytes) {
  const auto spec_alone = kReservationMembers.subspan(3);
  ReservationDraft draft;
  RawMembers others;
  if (!decode_into<ReservationDraft>(key, bytes, spec_alone, draft, others) || draft.rest->entries.empty()) return {};
  return std::move(draft.rest->entries);
}

[[nodiscard]] Result<core::Value> decode_pool(const core::Key& key, std::string_view bytes) {
  PoolDraft draft;
  draft.frame.kind = "IPPool";
  draft.record.cooldown = std::chrono::seconds(0);
  draft.rest->assignment_mode_absent = true;
  TRY_VOID(decode<PoolDraft>(key, bytes, kPoolMembers, draft));
  if (!draft.record.cidr.is_valid()) return fail(damaged(key, "spec.cidr: it is missing"));
  if (const auto settled = settle_block_size(draft); !settled) return fail(damaged(key, settled.error().message));
  draft.record.unallocatable = unallocatable(draft);
  return finished(std::move(draft));
}

[[nodiscard]] Result<core::Value> decode_reservation(const core::Key& key, std::string_view bytes) {
  ReservationDraft draft;
  draft.frame.kind = "IPReservation";
  if (const auto decoded = decode<ReservationDraft>(key, bytes, kReservationMembers, draft); !decoded) {
    auto entries = entries_alone(key, bytes);
    if (!entries) return fail(decoded.error());
    draft = ReservationDraft();
    draft.record.name = key.name;
    draft.rest->entries = *std::move(entries);
  }
  for (const std::string& entry : draft.rest->entries) {
    if (const auto cidr = reserved_by(entry)) draft.record.cidrs.push_back(*cidr);
  }
  return finished(std::move(draft));
}

// ---------------------------------------------------------------- nodes

using core::OrchestratorRef;
using core::TunnelKind;

constexpr std::size_t kOrchestratorsMax = 256;

constexpr std::string_view kIpip = "ipv4IPIPTunnelAddr";
constexpr std::string_view kVxlan = "ipv4VXLANTunnelAddr";
constexpr std::string_view kVxlanV6 = "ipv6VXLANTunnelAddr";
constexpr std::string_view kWireguard = "interfaceIPv4Address";
constexpr std::string_view kWireguardV6 = "interfaceIPv6Address";

/// The members that core::Node has no place for.
struct NodeRest final : ResourceRest {
  std::optional<RawMembers> bgp;        ///< nothing: no such object
  std::optional<RawMembers> wireguard;  ///< nothing: no such object
  /// Unknown members of the references that have some. They stay with a reference as long as it is the same.
  std::vector<std::pair<OrchestratorRef, RawMembers>> orchestrators;
};
using NodeDraft = ResourceDraft<core::Node, NodeRest>;

/// An address of the tunnel's family, or else a member that is passed on.
MaybeFault read_tunnel(const JsonAt& at, TunnelKind kind, core::Node& node, RawMembers& rest) {
  std::string text;
  if (auto fault = read_text(at, kTextBytesMax, text)) return fault;
  if (text.empty()) return {};
  const auto address = net::Address::parse(text);
  if (address && address->family() == core::family_of(kind)) {
    node.tunnels.push_back({kind, *address});
  } else {
    rest.push_back(raw_member(at.value));
  }
  return {};
}

constexpr JsonMember<NodeDraft> kBgpMembers[] = {
    {kIpip,
     [](const JsonAt& at, NodeDraft& out) { return read_tunnel(at, TunnelKind::ipip, out.record, *out.rest->bgp); }},
};

constexpr JsonMember<NodeDraft> kWireguardMembers[] = {
    {kWireguard,
     [](const JsonAt& at, NodeDraft& out) {
       return read_tunnel(at, TunnelKind::wireguard_v4, out.record, *out.rest->wireguard);
     }},
    {kWireguardV6,
     [](const JsonAt& at, NodeDraft& out) {
       return read_tunnel(at, TunnelKind::wireguard_v6, out.record, *out.rest->wireguard);
     }},
};

struct RefDraft {
  OrchestratorRef ref;
  RawMembers rest;
};

constexpr JsonMember<RefDraft> kRefMembers[] = {
    {"nodeName", [](const JsonAt& at, RefDraft& out) { return read_text(at, kTextBytesMax, out.ref.node_name); }},
    {"orchestrator",
     [](const JsonAt& at, RefDraft& out) { return read_text(at, kTextBytesMax, out.ref.orchestrator); }},
};

MaybeFault read_orchestrators(const JsonAt& at, NodeDraft& out) {
  std::vector<RefDraft> refs;
  auto fault = read_list<RefDraft>(
      at, kOrchestratorsMax,
      [](const JsonAt& element, RefDraft& ref) { return read_kept<RefDraft>(element, kRefMembers, ref, ref.rest); },
      refs);
  for (RefDraft& draft : refs) {
    if (!draft.rest.empty()) out.rest->orchestrators.emplace_back(draft.ref, std::move(draft.rest));
    out.record.orchestrators.push_back(std::move(draft.ref));
  }
  return fault;
}

constexpr JsonMember<NodeDraft> kSpecMembers[] = {
    {"bgp",
     [](const JsonAt& at, NodeDraft& out) {
       if (at.value.is_null()) return MaybeFault();
       return read_kept<NodeDraft>(at, kBgpMembers, out, out.rest->bgp.emplace());
     }},
    {kVxlan, [](const JsonAt& at,
                NodeDraft& out) { return read_tunnel(at, TunnelKind::vxlan_v4, out.record, out.rest->spec); }},
    {kVxlanV6, [](const JsonAt& at,
                  NodeDraft& out) { return read_tunnel(at, TunnelKind::vxlan_v6, out.record, out.rest->spec); }},
    {"orchRefs", read_orchestrators},
    {"wireguard",
     [](const JsonAt& at, NodeDraft& out) {
       if (at.value.is_null()) return MaybeFault();
       return read_kept<NodeDraft>(at, kWireguardMembers, out, out.rest->wireguard.emplace());
     }},
};

/// The tunnel's address, or what was found in its place.
void write_tunnel(JsonWriter& out, const core::Node& node, TunnelKind kind, std::string_view name,
                  PassedOn& passed_on) {
  const auto tunnel = std::ranges::find(node.tunnels, kind, &core::TunnelAddress::kind);
  if (tunnel == node.tunnels.end()) return passed_on.write({name});
  passed_on.leave_out(name);
  out.text(name, tunnel->address.to_string());
}

bool has(const core::Node& node, TunnelKind kind) {
  return std::ranges::any_of(node.tunnels, [&](const auto& tunnel) { return tunnel.kind == kind; });
}

void write_bgp(JsonWriter& out, const core::Node& node, const NodeRest& rest) {
  if (!rest.bgp && !has(node, TunnelKind::ipip)) return;
  const RawMembers members = rest.bgp.value_or(RawMembers());
  PassedOn passed_on(out, members);
  out.begin_object("bgp");
  passed_on.write({"asNumber", "ipv4Address", "ipv6Address"});
  write_tunnel(out, node, TunnelKind::ipip, kIpip, passed_on);
  passed_on.write_others();
  out.end_object();
}

void write_wireguard(JsonWriter& out, const core::Node& node, const NodeRest& rest) {
  if (!rest.wireguard && !has(node, TunnelKind::wireguard_v4) && !has(node, TunnelKind::wireguard_v6)) return;
  const RawMembers members = rest.wireguard.value_or(RawMembers());
  PassedOn passed_on(out, members);
  out.begin_object("wireguard");
  write_tunnel(out, node, TunnelKind::wireguard_v4, kWireguard, passed_on);
  write_tunnel(out, node, TunnelKind::wireguard_v6, kWireguardV6, passed_on);
  passed_on.write_others();
  out.end_object();
}

void write_orchestrators(JsonWriter& out, const core::Node& node, const NodeRest& rest) {
  if (node.orchestrators.empty()) return;
  out.begin_array("orchRefs");
  for (const OrchestratorRef& ref : node.orchestrators) {
    out.begin_object();
    write_text_if_set(out, "nodeName", ref.node_name);
    out.text("orchestrator", ref.orchestrator);
    const auto known = std::ranges::find(rest.orchestrators, ref, [](const auto& entry) { return entry.first; });
    if (known != rest.orchestrators.end()) write_rest(out, known->second);
    out.end_object();
  }
  out.end_array();
}

void write_node_spec(JsonWriter& out, const core::Node& node, const NodeRest& rest) {
  PassedOn passed_on(out, rest.spec);
  out.begin_object();
  write_bgp(out, node, rest);
  write_tunnel(out, node, TunnelKind::vxlan_v4, kVxlan, passed_on);
  passed_on.write({"vxlanTunnelMACAddr"});
  write_tunnel(out, node, TunnelKind::vxlan_v6, kVxlanV6, passed_on);
  passed_on.write({"vxlanTunnelMACAddrV6"});
  write_orchestrators(out, node, rest);
  write_wireguard(out, node, rest);
  passed_on.write({"addresses"});
  passed_on.write_others();
  out.end_object();
}

[[nodiscard]] Result<core::Value> decode_node(const core::Key& key, std::string_view bytes) {
  NodeDraft draft;
  draft.frame.kind = "Node";
  TRY_VOID(decode<NodeDraft>(key, bytes, kMembersOf<NodeDraft, kSpecMembers>, draft));
  draft.record.labels = std::exchange(draft.frame.metadata.labels, {});
  return finished(std::move(draft));
}

}  // namespace

Result<core::Value> decode_resource(const core::Key& key, std::string_view bytes) {
  if (key.kind == core::Kind::pool) return decode_pool(key, bytes);
  return key.kind == core::Kind::node ? decode_node(key, bytes) : decode_reservation(key, bytes);
}

std::string encode(const Pool& pool, const Birth& birth) {
  const auto& rest = rest_of<PoolRest>(pool.rest);
  JsonWriter out(JsonWriter::Layout::compact);
  begin_resource(out, "IPPool", pool, rest, rest.metadata.labels, birth);
  out.key("spec");
  write_pool_spec(out, pool, rest);
  return end_resource(std::move(out), rest.members);
}

std::string encode(const core::Reservation& reservation, const Birth& birth) {
  const auto& rest = rest_of<ReservationRest>(reservation.rest);
  JsonWriter out(JsonWriter::Layout::compact);
  begin_resource(out, "IPReservation", reservation, rest, rest.metadata.labels, birth);
  out.begin_object("spec");
  if (const auto entries = entries_of(reservation, rest); !entries.empty()) out.texts("reservedCIDRs", entries);
  write_rest(out, rest.spec);
  out.end_object();
  return end_resource(std::move(out), rest.members);
}

std::string encode(const core::Node& node, const Birth& birth) {
  const auto& rest = rest_of<NodeRest>(node.rest);
  JsonWriter out(JsonWriter::Layout::compact);
  begin_resource(out, "Node", node, rest, node.labels, birth);
  out.key("spec");
  write_node_spec(out, node, rest);
  if (std::ranges::find(rest.members, "status", &RawMember::name) == rest.members.end()) {
    out.begin_object("status");
    out.end_object();
  }
  return end_resource(std::move(out), rest.members);
}

}  // namespace croft::wire::calico
