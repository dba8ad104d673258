#include "register/format/records.h"

#include <algorithm>
#include <cstring>
#include <memory>
#include <type_traits>
#include <utility>

#include <fmt/format.h>

#include "base/assert.h"
#include "base/net/echo.h"
#include "calico/etcd.h"
#include "calico/json.h"
#include "calico/resources.h"
#include "register/format/canonical_json.h"
#include "register/format/field_table.h"
#include "register/format/fields.h"

namespace croft::wire::calico {
namespace {

/// The record as it was read, or what of it core does not have.
template <class Record>
class Box final : public core::ForeignRest {
 public:
  explicit Box(Record boxed) : record(std::move(boxed)) {}
  [[nodiscard]] std::string_view identity() const override {
    if constexpr (std::is_same_v<Record, PoolRecord>) return record.metadata.uid;
    return {};
  }
  [[nodiscard]] std::string_view cidr_as_found() const override {
    if constexpr (std::is_same_v<Record, PoolRecord>) return record.rest.cidr_as_found;
    return {};
  }
  const Record record;
};

template <class Record>
core::ForeignRestPtr box(Record record) {
  return std::make_shared<Box<Record>>(std::move(record));
}

/// The content of `rest`; the default when it holds nothing of this format.
template <class Record>
Record unbox(const core::ForeignRestPtr& rest) {
  const auto* held = dynamic_cast<const Box<Record>*>(rest.get());
  return held != nullptr ? held->record : Record();
}

core::Value value_of(BlockRecord record) {
  for (core::Attribute& attribute : record.block.attributes) {
    if (attribute.cooling) attribute.cooling->in_calicos_way = true;
  }
  if (record.rest != BlockRest()) record.block.rest = box(std::move(record.rest));
  return std::move(record.block);
}

core::Value value_of(AffinityRecord record) {
  core::Affinity affinity = record.affinity;
  if (record.state_empty || !record.rest.empty()) affinity.rest = box(std::move(record));
  return affinity;
}

core::Value value_of(HandleRecord record) {
  core::Handle handle = record.handle;
  if (record.blocks_null || !record.rest.empty()) handle.rest = box(std::move(record));
  return handle;
}

core::Value value_of(IpamConfigRecord record) {
  core::IpamConfig config = record.config;
  if (record.persistence_empty || !record.rest.empty()) config.rest = box(std::move(record));
  return config;
}

core::Value value_of(PoolRecord record) {
  core::Pool pool = record.pool;
  pool.unallocatable = record.unallocatable();
  pool.rest = box(std::move(record));
  return pool;
}

core::Value value_of(ReservationRecord record) {
  core::Reservation reservation = record.reservation;
  reservation.rest = box(std::move(record));
  return reservation;
}

core::Value value_of(NodeRecord record) {
  core::Node node = record.node;
  node.rest = box(std::move(record));
  return node;
}

/// A record to write: what was read with the value in its place.
template <class Record, class Value>
Record rewritten(const Value& value, Value Record::*place) {
  Record record = unbox<Record>(value.rest);
  record.*place = value;
  (record.*place).rest = nullptr;
  return record;
}

template <class Record, class Value>
Record rewritten(const Value& value, Value Record::*place, const Birth& birth) {
  Record record = rewritten(value, place);
  if (value.rest == nullptr) {
    record.metadata.uid = birth.uid;
    record.metadata.created = birth.at;
  }
  return record;
}

struct Encoder {
  const Birth& birth;

  std::string operator()(const core::Pool& pool) const { return encode(rewritten(pool, &PoolRecord::pool, birth)); }
  std::string operator()(const core::Reservation& reservation) const {
    return encode(rewritten(reservation, &ReservationRecord::reservation, birth));
  }
  std::string operator()(const core::Node& node) const { return encode(rewritten(node, &NodeRecord::node, birth)); }
  std::string operator()(const core::IpamConfig& config) const {
    return encode(rewritten(config, &IpamConfigRecord::config));
  }
  std::string operator()(const core::Affinity& affinity) const {
    return encode(rewritten(affinity, &AffinityRecord::affinity));
  }
  std::string operator()(const core::Handle& handle) const { return encode(rewritten(handle, &HandleRecord::handle)); }
  std::string operator()(const core::Block& block) const {
    BlockRecord record{block, unbox<BlockRest>(block.rest)};
    record.block.rest = nullptr;
    return encode(record);
  }
  template <class Other>
  std::string operator()(const Other&) const {
    CROFT_ASSERT(false);
  }
};

}  // namespace

Result<core::Value> decode_value(const core::Key& key, std::string_view bytes) {
  TRY(const Key place, key_of(key));
  switch (key.kind) {
    case core::Kind::pool: {
      TRY(PoolRecord record, decode_pool(key.name, bytes));
      return value_of(std::move(record));
    }
    case core::Kind::reservation: {
      TRY(ReservationRecord record, decode_reservation(key.name, bytes));
      return value_of(std::move(record));
    }
    case core::Kind::node: {
      TRY(NodeRecord record, decode_node(key.name, bytes));
      return value_of(std::move(record));
    }
    case core::Kind::ipam_config: {
      TRY(IpamConfigRecord record, decode_ipam_config(bytes));
      return value_of(std::move(record));
    }
    case core::Kind::block: {
      TRY(BlockRecord record, decode_block(std::get<BlockKey>(place), bytes));
      return value_of(std::move(record));
    }
    case core::Kind::affinity: {
      TRY(AffinityRecord record, decode_affinity(std::get<AffinityKey>(place), bytes));
      return value_of(std::move(record));
    }
    case core::Kind::handle: {
      TRY(HandleRecord record, decode_handle(std::get<HandleKey>(place), bytes));
      return value_of(std::move(record));
    }
    default:
      break;
  }
  CROFT_ASSERT(false);
}

std::string encode_value(const core::Value& value, const Birth& birth) { return std::visit(Encoder{birth}, value); }

std::optional<std::string> uid_in(const core::Key& key, std::string_view bytes) {
  const auto metadata = [&]() -> std::optional<Metadata> {
    switch (key.kind) {
      case core::Kind::pool:
        if (auto record = decode_pool(key.name, bytes)) return record->metadata;
        break;
      case core::Kind::reservation:
        if (auto record = decode_reservation(key.name, bytes)) return record->metadata;
        break;
      case core::Kind::node:
        if (auto record = decode_node(key.name, bytes)) return record->metadata;
        break;
      default:
        break;
    }
    return std::nullopt;
  }();
  if (!metadata || metadata->uid.empty()) return std::nullopt;
  return metadata->uid;
}

}  // namespace croft::wire::calico

namespace croft::wire {
namespace {

Error damaged(std::string_view key, std::string_view why) {
  return {ErrorCode::corrupt, fmt::format("{} is damaged: {}", net::echo(key), why), {}};
}

/// Reads `{"v":1,`, what `read` reads, and `}`.
template <class Read>
[[nodiscard]] Result<void> decode(std::string_view key, std::string_view bytes, Read read) {
  if (bytes.size() > kRecordBytesMax) return fail(damaged(key, "it is too long"));
  CanonicalReader in(bytes);
  in.expect("{\"v\":");
  const std::uint32_t version = in.small_number();
  constexpr std::uint32_t kKnown = 1;
  if (in.ok() && version > kKnown) {
    return fail(ErrorCode::newer_version,
                fmt::format("{} has format {}, this program reads up to {}; upgrade Croft here", net::echo(key),
                            version, kKnown));
  }
  if (version == 0) in.reject("format version 0");
  in.expect(",");
  read(in);
  in.expect("}");
  if (const auto finished = in.finish(); !finished) return fail(damaged(key, finished.error().message));
  return {};
}

/// An address in any spelling.
struct AnyAddress {
  static void write(CanonicalWriter& out, const net::Address& address) { out.text(address.to_string()); }
  static void read(CanonicalReader& in, net::Address& value) {
    if (const auto address = net::Address::parse(in.text())) {
      value = *address;
    } else {
      in.reject("gateway is no IP address");
    }
  }
};

bool fits_cooldown(const PoolBeside& beside) { return core::is_cooldown(beside.cooldown); }

// clang-format off: a member a line
constexpr auto kPoolBeside =
    fields(field("cidr", &PoolBeside::cidr), maybe("gateway", &PoolBeside::gateway, AnyAddress{}),
           checked(field("cooldownSeconds", &PoolBeside::cooldown), fits_cooldown, "cooldownSeconds is out of range"),
           unless_false("beingMade", &PoolBeside::being_made), unless_false("beingDeleted", &PoolBeside::being_deleted),
           unless_false("priority", &PoolBeside::priority, UpTo{core::kPoolPriorityMax}));
// clang-format on

}  // namespace

std::string encode_pool_beside(const PoolBeside& beside) {
  CanonicalWriter out(128);
  out.raw("{\"v\":1,");
  kPoolBeside.write(out, beside);
  out.raw("}");
  return out.take();
}

Result<PoolBeside> decode_pool_beside(std::string_view key, std::string_view bytes) {
  PoolBeside beside;
  TRY_VOID(decode(key, bytes, [&](CanonicalReader& in) { kPoolBeside.read(in, beside); }));
  return beside;
}

std::string encode_cooling_beside(const std::vector<core::CoolingBeside>& beside) {
  CanonicalWriter out(64 + 256 * beside.size());
  out.raw("{\"v\":1,");
  write_cooling_beside(out, beside);
  out.raw("}");
  return out.take();
}

Result<std::vector<core::CoolingBeside>> decode_cooling_beside(std::string_view key, std::string_view bytes) {
  std::vector<core::CoolingBeside> beside;
  TRY_VOID(decode(key, bytes, [&](CanonicalReader& in) { read_cooling_beside(in, beside); }));
  return beside;
}

}  // namespace croft::wire

namespace croft::wire::calico {
namespace {

using core::OrchestratorRef;
using core::TunnelKind;

constexpr std::size_t kOrchestratorsMax = 256;

// Members that are passed on, where Calico writes them.
constexpr std::string_view kBgpBefore[] = {"asNumber", "ipv4Address", "ipv6Address"};
constexpr std::string_view kVxlanMac[] = {"vxlanTunnelMACAddr"};
constexpr std::string_view kVxlanMacV6[] = {"vxlanTunnelMACAddrV6"};
constexpr std::string_view kBehindWireguard[] = {"addresses"};

constexpr std::string_view kIpip = "ipv4IPIPTunnelAddr";
constexpr std::string_view kVxlan = "ipv4VXLANTunnelAddr";
constexpr std::string_view kVxlanV6 = "ipv6VXLANTunnelAddr";
constexpr std::string_view kWireguard = "interfaceIPv4Address";
constexpr std::string_view kWireguardV6 = "interfaceIPv6Address";

constexpr std::string_view kPassedOnInSpec[] = {kVxlan, "vxlanTunnelMACAddr", kVxlanV6, "vxlanTunnelMACAddrV6",
                                                "addresses"};
constexpr std::string_view kPassedOnInBgp[] = {"asNumber", "ipv4Address", "ipv6Address", kIpip};
constexpr std::string_view kPassedOnInWireguard[] = {kWireguard, kWireguardV6};

// ---------------------------------------------------------------- reading

struct NodeDraft {
  Frame frame;
  NodeRecord record;
};

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
    {kIpip, [](const JsonAt& at,
               NodeDraft& out) { return read_tunnel(at, TunnelKind::ipip, out.record.node, *out.record.rest.bgp); }},
};

constexpr JsonMember<NodeDraft> kWireguardMembers[] = {
    {kWireguard,
     [](const JsonAt& at, NodeDraft& out) {
       return read_tunnel(at, TunnelKind::wireguard_v4, out.record.node, *out.record.rest.wireguard);
     }},
    {kWireguardV6,
     [](const JsonAt& at, NodeDraft& out) {
       return read_tunnel(at, TunnelKind::wireguard_v6, out.record.node, *out.record.rest.wireguard);
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
    if (!draft.rest.empty()) out.record.rest.orchestrators.emplace_back(draft.ref, std::move(draft.rest));
    out.record.node.orchestrators.push_back(std::move(draft.ref));
  }
  return fault;
}

constexpr JsonMember<NodeDraft> kSpecMembers[] = {
    {"bgp",
     [](const JsonAt& at, NodeDraft& out) {
       if (at.value.is_null()) return MaybeFault();
       return read_kept<NodeDraft>(at, kBgpMembers, out, out.record.rest.bgp.emplace());
     }},
    {kVxlan,
     [](const JsonAt& at, NodeDraft& out) {
       return read_tunnel(at, TunnelKind::vxlan_v4, out.record.node, out.record.rest.spec);
     }},
    {kVxlanV6,
     [](const JsonAt& at, NodeDraft& out) {
       return read_tunnel(at, TunnelKind::vxlan_v6, out.record.node, out.record.rest.spec);
     }},
    {"orchRefs", read_orchestrators},
    {"wireguard",
     [](const JsonAt& at, NodeDraft& out) {
       if (at.value.is_null()) return MaybeFault();
       return read_kept<NodeDraft>(at, kWireguardMembers, out, out.record.rest.wireguard.emplace());
     }},
};

constexpr JsonMember<NodeDraft> kNodeMembers[] = {
    {"kind", [](const JsonAt& at, NodeDraft& out) { return read_kind(at, out.frame); }},
    {"apiVersion", [](const JsonAt& at, NodeDraft&) { return read_api_version(at); }},
    {"metadata", [](const JsonAt& at, NodeDraft& out) { return read_metadata(at, out.frame); }},
    {"spec", [](const JsonAt& at,
                NodeDraft& out) { return read_kept<NodeDraft>(at, kSpecMembers, out, out.record.rest.spec); }},
};

// ---------------------------------------------------------------- writing

/// The tunnel's address, or what was found in its place.
void write_tunnel(JsonWriter& out, const core::Node& node, TunnelKind kind, std::string_view name,
                  const RawMembers& rest) {
  const auto tunnel = std::ranges::find(node.tunnels, kind, [](const auto& t) { return t.kind; });
  if (tunnel == node.tunnels.end()) return write_some(out, rest, {&name, 1});
  out.text(name, tunnel->address.to_string());
}

bool has(const core::Node& node, TunnelKind kind) {
  return std::ranges::any_of(node.tunnels, [&](const auto& tunnel) { return tunnel.kind == kind; });
}

void write_bgp(JsonWriter& out, const NodeRecord& record) {
  if (!record.rest.bgp && !has(record.node, TunnelKind::ipip)) return;
  const RawMembers rest = record.rest.bgp.value_or(RawMembers());
  out.begin_object("bgp");
  write_some(out, rest, kBgpBefore);
  write_tunnel(out, record.node, TunnelKind::ipip, kIpip, rest);
  write_others(out, rest, kPassedOnInBgp);
  out.end_object();
}

void write_wireguard(JsonWriter& out, const NodeRecord& record) {
  if (!record.rest.wireguard && !has(record.node, TunnelKind::wireguard_v4) &&
      !has(record.node, TunnelKind::wireguard_v6)) {
    return;
  }
  const RawMembers rest = record.rest.wireguard.value_or(RawMembers());
  out.begin_object("wireguard");
  write_tunnel(out, record.node, TunnelKind::wireguard_v4, kWireguard, rest);
  write_tunnel(out, record.node, TunnelKind::wireguard_v6, kWireguardV6, rest);
  write_others(out, rest, kPassedOnInWireguard);
  out.end_object();
}

void write_orchestrators(JsonWriter& out, const NodeRecord& record) {
  if (record.node.orchestrators.empty()) return;
  out.begin_array("orchRefs");
  for (const OrchestratorRef& ref : record.node.orchestrators) {
    out.begin_object();
    write_text_if_set(out, "nodeName", ref.node_name);
    out.text("orchestrator", ref.orchestrator);
    const auto rest = std::ranges::find(record.rest.orchestrators, ref, [](const auto& entry) { return entry.first; });
    if (rest != record.rest.orchestrators.end()) write_rest(out, rest->second);
    out.end_object();
  }
  out.end_array();
}

void write_spec(JsonWriter& out, const NodeRecord& record) {
  const RawMembers& rest = record.rest.spec;
  out.begin_object();
  write_bgp(out, record);
  write_tunnel(out, record.node, TunnelKind::vxlan_v4, kVxlan, rest);
  write_some(out, rest, kVxlanMac);
  write_tunnel(out, record.node, TunnelKind::vxlan_v6, kVxlanV6, rest);
  write_some(out, rest, kVxlanMacV6);
  write_orchestrators(out, record);
  write_wireguard(out, record);
  write_some(out, rest, kBehindWireguard);
  write_others(out, rest, kPassedOnInSpec);
  out.end_object();
}

bool has_status(const RawMembers& members) {
  return std::ranges::any_of(members, [](const RawMember& member) { return member.name == "status"; });
}

}  // namespace

Result<NodeRecord> decode_node(const std::string& name, std::string_view bytes) {
  const Key key = ResourceKey{ResourceKey::Kind::node, name};
  NodeDraft draft{{.kind = "Node", .name = name, .metadata = {}}, {}};
  NodeRecord& record = draft.record;
  TRY_VOID(decode_into<NodeDraft>(key, bytes, kNodeMembers, draft, record.rest.members));
  if (!draft.frame.has_name) return fail(damaged(key, "metadata.name: it is missing"));
  record.node.name = name;
  record.node.labels = std::move(draft.frame.metadata.labels);
  draft.frame.metadata.labels.clear();
  record.metadata = std::move(draft.frame.metadata);
  return std::move(record);
}

std::string encode(const NodeRecord& record) {
  JsonWriter out(JsonWriter::Layout::compact);
  begin_resource(out, "Node", record.node.name, record.metadata, record.node.labels);
  out.key("spec");
  write_spec(out, record);
  if (!has_status(record.rest.members)) {
    out.begin_object("status");
    out.end_object();
  }
  write_some(out, record.rest.members, kBehindSpec);
  write_others(out, record.rest.members, kBehindSpec);
  out.end_object();
  return std::move(out).take();
}

namespace {

using core::Attribute;

constexpr auto kOrdinalMax = static_cast<std::uint32_t>(kBlockSizeMax - 1);

bool is_ascii(std::string_view text) {
  std::uint64_t all = 0;
  std::size_t at = 0;
  for (std::uint64_t word = 0; text.size() - at >= sizeof word; at += sizeof word) {
    std::memcpy(&word, text.data() + at, sizeof word);
    all |= word;
  }
  for (; at < text.size(); ++at) all |= static_cast<unsigned char>(text[at]);
  return (all & 0x8080808080808080U) == 0;
}

/// Reads `[a,b,c]`.
template <class T, class ReadOne>
std::vector<T> scan_list(CanonicalReader& in, std::size_t count_expected, ReadOne read_one) {
  std::vector<T> list;
  in.expect("[");
  if (in.accept("]")) return list;
  list.reserve(count_expected);
  do {
    if (list.size() == kBlockSizeMax) in.reject("list longer than a block");
    read_one(list.emplace_back());
  } while (in.another(']'));
  return list;
}

void scan_owner(CanonicalReader& in, core::Block& block) {
  in.expect(",\"affinity\":");
  if (!in.accept("null")) {
    const auto owner = core::parse_affinity_owner(in.text());
    if (!owner) return in.reject("no owner");
    block.affinity = *owner;
  }
  if (in.accept(",\"affinity_claim_time\":")) block.affinity_claim_time = in.time_of_others();
}

void scan_attribute(CanonicalReader& in, Attribute& attribute) {
  bool is_first = true;
  // `name` begins with the comma that a first member doesn't have.
  const auto has = [&](std::string_view name) {
    if (!in.accept(is_first ? name.substr(1) : name)) return false;
    is_first = false;
    return true;
  };
  in.expect("{");
  if (has(",\"handle_id\":")) attribute.handle_id = in.text();
  if (has(",\"secondary\":")) attribute.secondary = in.texts();
  if (has(",\"alternateOwnerAttrs\":")) attribute.alternate_owner = in.texts();
  if (has(",\"releasedAt\":")) attribute.cooling.emplace().released_at.wall = in.time_of_others();
  in.expect("}");
}

void scan_sequence_numbers(CanonicalReader& in, std::map<std::uint32_t, core::SequenceNumber>& numbers) {
  if (in.accept("{}")) return;
  in.expect("{");
  do {
    in.expect("\"");
    const std::uint32_t ordinal = in.small_number();
    in.expect("\":");
    if (!numbers.emplace(ordinal, in.unsigned_number()).second) in.reject("ordinal twice");
  } while (in.another('}'));
}

/// The general way refuses longer texts.
bool has_long_text(const Attribute& attribute) {
  const auto is_long = [](const auto& entry) { return entry.second.size() > kTextBytesMax; };
  return (attribute.handle_id && attribute.handle_id->size() > kTextBytesMax) ||
         std::ranges::any_of(attribute.secondary, is_long) || std::ranges::any_of(attribute.alternate_owner, is_long);
}

}  // namespace

std::optional<BlockDraft> scan_block(std::string_view bytes) {
  if (bytes.size() > kRecordBytesMax || !is_ascii(bytes)) return std::nullopt;
  BlockDraft draft;
  core::Block& block = draft.block;
  CanonicalReader in(bytes);
  in.expect("{\"cidr\":");
  const auto cidr = net::parse_prefix(in.text());
  if (!cidr) return std::nullopt;
  block.cidr = *cidr;
  scan_owner(in, block);
  in.expect(",\"allocations\":");
  block.allocations = scan_list<std::optional<std::uint32_t>>(in, 64, [&](std::optional<std::uint32_t>& index) {
    if (!in.accept("null")) index = in.small_number(kOrdinalMax);
  });
  const std::size_t size = block.allocations.size();
  in.expect(",\"unallocated\":");
  draft.rest.unallocated_null = in.accept("null");
  if (!draft.rest.unallocated_null) {
    draft.unallocated = scan_list<std::uint32_t>(in, size, [&](std::uint32_t& o) { o = in.small_number(kOrdinalMax); });
  }
  in.expect(",\"attributes\":");
  draft.rest.attributes_null = in.accept("null");
  if (!draft.rest.attributes_null) {
    draft.attributes = scan_list<AttributeDraft>(in, size, [&](AttributeDraft& a) { scan_attribute(in, a.attribute); });
  }
  in.expect(",\"sequenceNumber\":");
  block.sequence_number = core::SequenceNumber(in.unsigned_number());
  in.expect(",\"sequenceNumberForAllocation\":");
  draft.rest.sequence_numbers_null = in.accept("null");
  if (!draft.rest.sequence_numbers_null) scan_sequence_numbers(in, block.sequence_number_for_allocation.own());
  in.expect(",\"deleted\":");
  block.deleted = in.boolean();
  in.expect("}");
  if (!in.finish()) return std::nullopt;
  if (std::ranges::any_of(draft.attributes, [](const auto& a) { return has_long_text(a.attribute); })) {
    return std::nullopt;
  }
  return draft;
}

}  // namespace croft::wire::calico
