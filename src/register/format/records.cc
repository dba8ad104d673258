#include "register/format/records.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <chrono>
#include <cstddef>
#include <functional>
#include <tuple>
#include <utility>
#include <variant>
#include <vector>

#include <fmt/format.h>

#include "base/hex.h"
#include "base/shared_map.h"
#include "base/text/base64.h"
#include "base/texts.h"
#include "register/format/field_table.h"
#include "register/owner.h"

namespace croft::wire {
namespace {

using core::Attribute;
using core::Block;
using core::Cooling;
using core::CoolingBeside;
using core::Kind;
using core::Service;
using core::ServiceCidrObject;
using core::ServiceName;
using core::ServicePort;
using core::StockAddress;
using core::StockAddressState;
using core::StockDoubt;
using core::StockIntent;
using core::StockNode;

constexpr Words<core::TunnelKind, 5> kTunnelKinds = {{
    {"ipip", core::TunnelKind::ipip},
    {"vxlan", core::TunnelKind::vxlan_v4},
    {"vxlanV6", core::TunnelKind::vxlan_v6},
    {"wireguard", core::TunnelKind::wireguard_v4},
    {"wireguardV6", core::TunnelKind::wireguard_v6},
}};

// A table a kind: the members after the version, in the order of docs/formats/records.md.

/// A longer list is damage, not a reason to use memory.
constexpr std::uint32_t kOrdinalMax = core::kBlockSizeMax - 1;

std::optional<BootId> boot_of(std::string_view hex) {
  const auto bytes = bytes_of_hex<sizeof(BootId::bytes)>(hex);
  return bytes ? std::optional(BootId{*bytes}) : std::nullopt;
}

/// Nothing unless writing it gives the same text again.
std::optional<std::int64_t> number_in(const std::string& text) {
  std::int64_t count = 0;
  std::from_chars(text.data(), text.data() + text.size(), count);
  return std::to_string(count) == text ? std::optional(count) : std::nullopt;
}

std::optional<core::ClockMark> mark_of(std::string_view hex, const std::string& text) {
  const auto boot = boot_of(hex);
  const auto count = number_in(text);
  if (!boot || !count) return {};
  return core::ClockMark{*boot, std::chrono::nanoseconds{*count}};
}

/// Marks are kept among the texts of `previousSecondary`, which every version carries along: one that knows nothing of
/// them reads the record, and takes them for what the last holder had.
constexpr std::string_view kMarkKey = "croft-clock-mark/";

/// The same for the cooldown that held at the release, in seconds.
constexpr std::string_view kCooldownMarkKey = "croft-cooldown";

std::map<std::string, std::string> with_marks(const Cooling& cooling) {
  std::map<std::string, std::string> texts = cooling.previous_secondary;
  if (cooling.cooldown.count() > 0) {
    texts.insert_or_assign(std::string(kCooldownMarkKey), std::to_string(cooling.cooldown.count()));
  }
  for (std::size_t i = 0; i < cooling.seen.size(); ++i) {
    const core::ClockMark& mark = cooling.seen[i];
    texts.insert_or_assign(std::string(kMarkKey) + hex_of(mark.boot.bytes), std::to_string(mark.since_boot.count()));
  }
  return texts;
}

std::chrono::seconds cooldown_of(const std::string& text) {
  const auto count = number_in(text);
  const bool is_one = count && *count > 0 && *count <= core::kCooldownMax.count();
  return std::chrono::seconds{is_one ? *count : 0};
}

/// Texts that read as marks are taken out; anything else under such a name stays a text.
void take_marks(Cooling& cooling) {
  const std::string cooldown_key(kCooldownMarkKey);
  if (const auto found = cooling.previous_secondary.find(cooldown_key); found != cooling.previous_secondary.end()) {
    cooling.cooldown = cooldown_of(found->second);
    if (cooling.cooldown.count() > 0) cooling.previous_secondary.erase(cooldown_key);
  }
  const auto& texts = cooling.previous_secondary.get();
  const auto first = texts.lower_bound(std::string(kMarkKey));
  if (first == texts.end() || !first->first.starts_with(kMarkKey)) return;
  std::map<std::string, std::string> rest;
  for (const auto& [name, text] : texts) {
    const auto mark = name.starts_with(kMarkKey) ? mark_of(name.substr(kMarkKey.size()), text) : std::nullopt;
    if (mark) {
      cooling.seen.push_back(*mark);
    } else {
      rest.emplace(name, text);
    }
  }
  if (!cooling.seen.empty()) cooling.previous_secondary = std::move(rest);
}

/// The last holder's texts and the marks.
struct LastHolder {
  static void write(CanonicalWriter& out, const Cooling& cooling) {
    const bool has_marks = !cooling.seen.empty() || cooling.cooldown.count() > 0;
    has_marks ? out.texts(with_marks(cooling)) : out.texts(cooling.previous_secondary);
  }
  static void read(CanonicalReader& in, Cooling& cooling) {
    cooling.previous_secondary = in.texts();
    take_marks(cooling);
  }
};

struct BootIdText {
  static void write(CanonicalWriter& out, const BootId& boot) { out.text(hex_of(boot.bytes)); }
  static void read(CanonicalReader& in, BootId& value) {
    const auto boot = boot_of(in.text());
    if (!boot) in.reject("no boot id of 32 hex digits");
    value = boot.value_or(BootId{});
  }
};

// clang-format off: a member a line
constexpr auto kCooling = fields(field("releasedAt", Within{&Cooling::released_at, &Instant::wall}),
                                 field("sinceBootNanoseconds", Within{&Cooling::released_at, &Instant::since_boot}),
                                 field("bootID", Within{&Cooling::released_at, &Instant::boot}, BootIdText{}),
                                 field("previousHandle", &Cooling::previous_handle),
                                 field("previousSecondary", std::identity{}, LastHolder{}));

constexpr auto kAttribute =
    fields(field("handle_id", &Attribute::handle_id, OrNull{}), maybe("secondary", &Attribute::secondary),
           maybe("alternateOwnerAttrs", &Attribute::alternate_owner), spread<kCooling>(&Attribute::cooling));
// clang-format on

/// host:NAME or virtual:NAME.
struct OwnerText {
  static void write(CanonicalWriter& out, const core::AffinityOwner& owner) { out.text(core::to_string(owner)); }
  static void read(CanonicalReader& in, core::AffinityOwner& value) {
    if (auto owner = core::parse_affinity_owner(in.text())) {
      value = *std::move(owner);
    } else {
      in.reject("affinity is neither host:NAME nor virtual:NAME");
    }
  }
};

/// A list of at most one element an address.
template <class Form>
constexpr ListOf<Form> one_an_address(Form form) {
  return {form, kOrdinalMax + 1};
}

/// As long as the allocations before it.
struct FreeList {
  static void write(CanonicalWriter& out, const Block& block) { write_list(out, Plain{}, block.unallocated.order()); }
  static void read(CanonicalReader& in, Block& block) {
    std::vector<std::uint32_t> order;
    one_an_address(UpTo{kOrdinalMax}).read(in, order);
    if (!in.ok()) return;
    const auto size = static_cast<std::uint32_t>(block.allocations.size());
    auto free_list = core::space::OrderedFreeList::from_order(size, std::move(order));
    if (!free_list) return in.reject("unallocated names an ordinal twice or one outside the block");
    block.unallocated = *std::move(free_list);
  }
};

/// An object by ordinal, ascending by number, not by text.
struct SequenceNumbers {
  using Map = SharedMap<std::uint32_t, core::SequenceNumber>;

  static void write(CanonicalWriter& out, const Map& numbers) {
    std::string_view separator = "{";
    for (const auto& [ordinal, sequence_number] : numbers) {
      out.raw(separator).raw("\"").number(std::uint64_t{ordinal}).raw("\":").number(sequence_number.value);
      separator = ",";
    }
    out.raw(numbers.empty() ? "{}" : "}");
  }
  static void read(CanonicalReader& in, Map& value) {
    value.clear();
    if (in.accept("{}")) return;
    Map::Map numbers;
    in.expect("{");
    do {
      in.expect("\"");
      const std::uint32_t ordinal = in.small_number(kOrdinalMax);
      in.expect("\":");
      if (!numbers.empty() && numbers.rbegin()->first >= ordinal) in.reject("ordinal out of order");
      numbers.emplace_hint(numbers.end(), ordinal, in.unsigned_number());
    } while (in.another('}'));
    value = std::move(numbers);
  }
};

// clang-format off: a member a line
constexpr auto kBlock =
    fields(field("cidr", &Block::cidr), maybe("affinity", &Block::affinity, OwnerText{}),
           maybe("affinityClaimTime", &Block::affinity_claim_time),
           field("allocations", &Block::allocations, one_an_address(OrNull<UpTo>{UpTo{kOrdinalMax}})),
           field("unallocated", std::identity{}, FreeList{}),
           field("attributes", &Block::attributes, one_an_address(Object<kAttribute>{})),
           field("sequenceNumber", &Block::sequence_number),
           field("sequenceNumberForAllocation", &Block::sequence_number_for_allocation, SequenceNumbers{}),
           field("deleted", &Block::deleted));
// clang-format on

constexpr auto kBeside =
    fields(field("ordinal", &CoolingBeside::ordinal, UpTo{kOrdinalMax}),
           field("sequenceNumber", &CoolingBeside::sequence_number), spread<kCooling>(&CoolingBeside::cooling));

bool ascends(const std::vector<CoolingBeside>& list) {
  return std::ranges::adjacent_find(list, std::greater_equal{}, &CoolingBeside::ordinal) == list.end();
}

constexpr auto kCoolingBeside = fields(
    checked(field("cooling", std::identity{}, one_an_address(Object<kBeside>{})), ascends, "ordinal out of order"));

// clang-format off: a member a line
constexpr std::uint32_t kBlockLengthMax = 128;

bool fits_block_length(const core::Pool& pool) { return core::is_block_length(pool.cidr, pool.block_length); }
bool fits_cooldown(const core::Pool& pool) { return core::is_cooldown(pool.cooldown); }
bool has_room_above(const core::HighWaterMark& mark) { return mark.sequence_number.value <= core::kHighWaterMarkMax; }

constexpr auto kPool =
    fields(field("name", &core::Pool::name), field("cidr", &core::Pool::cidr),
           checked(field("blockSize", &core::Pool::block_length, UpTo{kBlockLengthMax}), fits_block_length,
                   "blockSize is out of range for the cidr"),
           field("disabled", &core::Pool::disabled), field("nodeSelector", &core::Pool::node_selector),
           field("namespaceSelector", &core::Pool::namespace_selector),
           field("allowedUses", &core::Pool::allowed_uses, ListOf<OneOf<core::kPoolUses>>{.max = kNoListMax}),
           field("assignmentMode", &core::Pool::assignment_mode, OneOf<core::kAssignmentModes>{}),
           field("ipipMode", &core::Pool::ipip_mode, OneOf<core::kEncapsulations>{}),
           field("vxlanMode", &core::Pool::vxlan_mode, OneOf<core::kEncapsulations>{}),
           field("natOutgoing", &core::Pool::nat_outgoing), field("disableBGPExport", &core::Pool::disable_bgp_export),
           maybe("gateway", &core::Pool::gateway),
           checked(field("cooldownSeconds", &core::Pool::cooldown), fits_cooldown, "cooldownSeconds is out of range"),
           maybe("priority", &core::Pool::priority, UpTo{core::kPoolPriorityMax}),
           maybe("beingDeleted", &core::Pool::being_deleted));

constexpr auto kReservation =
    fields(field("name", &core::Reservation::name),
           field("reservedCIDRs", &core::Reservation::cidrs, ListOf<Plain>{.max = kNoListMax}));

constexpr auto kIpamConfig =
    fields(field("strictAffinity", &core::IpamConfig::strict_affinity),
           field("autoAllocateBlocks", &core::IpamConfig::auto_allocate_blocks),
           field("maxBlocksPerHost", &core::IpamConfig::max_blocks_per_host),
           field("kubeVirtVMAddressPersistence", &core::IpamConfig::kubevirt_vm_address_persistence),
           field("ipCooldownSeconds", &core::IpamConfig::ip_cooldown_seconds));

constexpr auto kAffinity = fields(
    field("cidr", &core::Affinity::cidr), field("node", Within{&core::Affinity::owner, &core::AffinityOwner::name}),
    field("type", Within{&core::Affinity::owner, &core::AffinityOwner::type}, OneOf<core::kOwnerTypes>{}),
    field("state", &core::Affinity::state, OneOf<core::kAffinityStates>{}), field("deleted", &core::Affinity::deleted));

constexpr auto kHandle = fields(field("handleID", &core::Handle::id), field("block", &core::Handle::blocks),
                                field("deleted", &core::Handle::deleted));

constexpr auto kVacancy = fields(field("readyAt", &core::Vacancy::ready_at));
constexpr auto kHighWaterMark =
    fields(checked(field("sequenceNumber", &core::HighWaterMark::sequence_number), has_room_above,
                   "sequenceNumber leaves a block above it no room to count"));
constexpr auto kPoolSet = fields(field("generation", &core::PoolSet::generation));

constexpr auto kOrchestratorRef = fields(field("nodeName", &core::OrchestratorRef::node_name),
                                         field("orchestrator", &core::OrchestratorRef::orchestrator));
constexpr auto kTunnel = fields(field("address", &core::TunnelAddress::address),
                                field("kind", &core::TunnelAddress::kind, OneOf<kTunnelKinds>{}));
constexpr auto kNode =
    fields(field("name", &core::Node::name), field("labels", &core::Node::labels),
           field("orchRefs", &core::Node::orchestrators, ListOf<Object<kOrchestratorRef>>{.max = kNoListMax}),
           field("tunnelAddresses", &core::Node::tunnels, ListOf<Object<kTunnel>>{.max = kNoListMax}));

constexpr auto kRemovedNode = fields(field("node", &core::RemovedNode::node), field("held", &core::RemovedNode::held));

constexpr auto kNamespace = fields(field("name", &core::Namespace::name), field("labels", &core::Namespace::labels));

constexpr auto kPort =
    fields(field("name", &ServicePort::name), field("protocol", &ServicePort::protocol, OneOf<core::kProtocols>{}),
           field("port", &ServicePort::port), field("targetPort", &ServicePort::target_port),
           field("nodePort", &ServicePort::node_port), field("appProtocol", &ServicePort::app_protocol));

constexpr auto kService =
    fields(field("namespace", Within{&Service::name, &ServiceName::name_space}),
           field("name", Within{&Service::name, &ServiceName::name}), field("uid", &Service::uid),
           field("created", &Service::created), field("labels", &Service::labels),
           field("selector", &Service::selector), field("type", &Service::type, OneOf<core::kServiceTypes>{}),
           field("clusterIP", &Service::cluster_ip), field("clusterIPs", &Service::cluster_ips),
           field("ipFamilies", &Service::ip_families, ListOf<OneOf<core::kFamilies>>{}),
           maybe("ipFamilyPolicy", &Service::ip_family_policy, OneOf<core::kFamilyPolicies>{}),
           field("ports", &Service::ports, ListOf<Object<kPort>>{}), field("externalName", &Service::external_name),
           field("externalTrafficPolicy", &Service::external_traffic_policy, OneOf<core::kTrafficPolicies>{}),
           field("externalTrafficPolicyGiven", &Service::external_traffic_policy_given),
           field("healthCheckNodePort", &Service::health_check_node_port),
           maybe("allocateLoadBalancerNodePorts", &Service::allocate_load_balancer_node_ports),
           maybe("loadBalancerClass", &Service::load_balancer_class), field("deleting", &Service::deleting));

constexpr auto kForeignService = fields(spread<kService>(&core::ForeignService::service));

constexpr auto kServiceCidr =
    fields(field("name", &ServiceCidrObject::name), field("cidrs", &ServiceCidrObject::cidrs));

constexpr std::uint32_t kLengthMax = 128;

struct Base64 {
  static void write(CanonicalWriter& out, const std::string& bytes) {
    out.raw("\"").raw(encode_base64(bytes)).raw("\"");  // none of its characters needs an escape
  }
  static void read(CanonicalReader& in, std::string& bytes) {
    if (auto data = decode_base64(in.text())) {
      bytes = *std::move(data);
    } else {
      in.reject("data is no base64");
    }
  }
};

constexpr auto kRangeAllocation =
    fields(field("range", &core::RangeAllocation::range), field("data", &core::RangeAllocation::data, Base64{}));

constexpr auto kNodeRange = fields(field("node", &core::NodeRange::node), field("cidr", &core::NodeRange::cidr));

constexpr auto kClusterCidr = fields(field("cidr", &core::ClusterCidr::cidr),
                                     field("nodeLength", &core::ClusterCidr::node_length, UpTo{kLengthMax}));
constexpr auto kNodeRangeSet =
    fields(field("generation", &core::NodeRangeSet::generation),
           field("clusterCIDRs", &core::NodeRangeSet::cluster_cidrs, ListOf<Object<kClusterCidr>>{}),
           field("excluded", &core::NodeRangeSet::excluded), field("cursors", &core::NodeRangeSet::cursors));

constexpr Words<StockAddressState, 8> kWarmStates = {{
    {"probing", StockAddressState::probing},
    {"free", StockAddressState::free},
    {"held", StockAddressState::held},
    {"cooling", StockAddressState::cooling},
    {"releasing", StockAddressState::releasing},
    {"lending", StockAddressState::lending},
    {"lent", StockAddressState::lent},
    {"quarantined", StockAddressState::quarantined},
}};
constexpr Words<StockDoubt, 3> kWarmDoubts = {{
    {"not_in_cloud", StockDoubt::not_in_cloud},
    {"used_by_host", StockDoubt::used_by_host},
    {"used_by_pod", StockDoubt::used_by_pod},
}};
constexpr Words<StockIntent::What, 2> kWarmWhats = {{
    {"allocate", StockIntent::What::allocate},
    {"borrow", StockIntent::What::borrow},
}};

struct MacText {
  static void write(CanonicalWriter& out, const net::Mac& mac) { out.text(mac.to_string()); }
  static void read(CanonicalReader& in, net::Mac& value) { read_canonical(in, value, "MAC address"); }
};

constexpr std::uint32_t kPrefixLengthMax = 128;

bool is_of_its_family(const StockAddress& address) {
  return address.address.is_valid() &&
         std::cmp_less_equal(address.prefix_length, net::bit_length(address.address.family()));
}

/// Members are there where the state says so, and only there.
bool fits_its_state(const StockAddress& address) {
  const bool has_holder = !address.owner.container_id.empty() || !address.pod.name.empty();
  return (address.state == StockAddressState::cooling) == address.cooling.has_value() &&
         (address.state == StockAddressState::held) == has_holder;
}

/// Each once, in order: one set has one spelling.
bool is_ascending(const StockAddress& address) {
  return std::ranges::adjacent_find(address.doubts, std::greater_equal{}) == address.doubts.end();
}

/// No limit has one spelling.
bool has_room(const StockNode& node) { return node.node_max != 0U; }

constexpr auto kStockAddress = fields(
    field("address", &StockAddress::address),
    checked(field("prefixLength", &StockAddress::prefix_length, UpTo{kPrefixLengthMax}), is_of_its_family,
            "prefixLength is out of range for the address"),
    maybe("gateway", &StockAddress::gateway), field("mac", &StockAddress::mac, MacText{}),
    field("vpc", &StockAddress::vpc), field("subnet", &StockAddress::subnet), field("object", &StockAddress::object),
    field("state", &StockAddress::state, OneOf<kWarmStates>{}), field("since", &StockAddress::since),
    field("created", &StockAddress::created), field("recycled", &StockAddress::recycled),
    field("recycledAt", &StockAddress::recycled_at), maybe("verified", &StockAddress::verified),
    field("network", Within{&StockAddress::owner, &core::Owner::network}),
    field("containerID", Within{&StockAddress::owner, &core::Owner::container_id}),
    field("interface", Within{&StockAddress::owner, &core::Owner::interface_name}),
    field("namespace", Within{&StockAddress::pod, &core::PodIdentity::namespace_name}),
    field("pod", Within{&StockAddress::pod, &core::PodIdentity::name}),
    field("podUID", Within{&StockAddress::pod, &core::PodIdentity::uid}), field("netns", &StockAddress::netns),
    maybe("extra", &StockAddress::extra), maybe("cooling", &StockAddress::cooling, Object<kCooling>{}),
    maybe("otherMAC", &StockAddress::other_mac, MacText{}),
    checked(maybe("doubts", &StockAddress::doubts, ListOf<OneOf<kWarmDoubts>>{.max = kWarmDoubts.size()}), is_ascending,
            "its doubts are not in order"),
    field("peer", &StockAddress::peer), field("request", &StockAddress::request),
    checked(field("why", &StockAddress::why), fits_its_state, "its members do not fit its state"));

constexpr auto kWarmIntent =
    fields(field("id", &StockIntent::id), field("what", &StockIntent::what, OneOf<kWarmWhats>{}),
           field("count", &StockIntent::count), maybe("address", &StockIntent::address),
           field("mac", &StockIntent::mac, MacText{}), field("subnet", &StockIntent::subnet),
           field("peer", &StockIntent::peer), field("begun", &StockIntent::begun),
           field("bootID", Within{&StockIntent::begun_at, &core::ClockMark::boot}, BootIdText{}),
           field("sinceBootNanoseconds", Within{&StockIntent::begun_at, &core::ClockMark::since_boot}),
           field("process", &StockIntent::process), field("processStarted", &StockIntent::process_started));

constexpr auto kStockNode = fields(
    field("node", &StockNode::node), field("mac", &StockNode::mac, MacText{}), field("vpc", &StockNode::vpc),
    field("subnet", &StockNode::subnet), field("object", &StockNode::object), field("zone", &StockNode::zone),
    field("region", &StockNode::region), field("project", &StockNode::project), field("low", &StockNode::low),
    field("high", &StockNode::high), field("cooldownSeconds", &StockNode::cooldown_seconds),
    field("generation", &StockNode::term), checked(maybe("nodeMax", &StockNode::node_max), has_room, "nodeMax is 0"));
// clang-format on

/// By Kind.
constexpr auto kTables =
    std::tie(kPool, kReservation, kIpamConfig, kBlock, kAffinity, kHandle, kVacancy, kHighWaterMark, kPoolSet, kNode,
             kRangeAllocation, kService, kServiceCidr, kNodeRange, kNodeRangeSet, kRemovedNode, kForeignService,
             kNamespace, kStockAddress, kWarmIntent, kStockNode);
static_assert(std::tuple_size_v<decltype(kTables)> == core::kKindCount);

template <std::size_t kIndex>
core::Value read_record(CanonicalReader& in) {
  core::Value value(std::in_place_index<kIndex>);
  std::get<kIndex>(kTables).read(in, std::get<kIndex>(value));
  return value;
}

template <std::size_t... kIndices>
core::Value read_value(CanonicalReader& in, Kind kind, std::index_sequence<kIndices...>) {
  using Read = core::Value (*)(CanonicalReader&);
  constexpr std::array<Read, sizeof...(kIndices)> kReaders = {read_record<kIndices>...};
  return kReaders[static_cast<std::size_t>(kind)](in);
}

// The key that a value says it belongs to; nothing for kinds whose values don't say.
using OwnKey = std::optional<core::Key>;
OwnKey own_key(const core::Pool& pool) { return core::pool_key(pool.name); }
OwnKey own_key(const core::Reservation& reservation) { return core::reservation_key(reservation.name); }
OwnKey own_key(const Block& block) { return core::block_key(block.cidr); }
OwnKey own_key(const core::Affinity& affinity) { return core::affinity_key(affinity.owner, affinity.cidr); }
OwnKey own_key(const core::Node& node) { return core::node_key(node.name); }
OwnKey own_key(const core::Handle& handle) { return core::handle_key(handle.id); }
OwnKey own_key(const Service& service) { return core::service_key(service.name); }
OwnKey own_key(const core::ForeignService& foreign) { return core::foreign_service_key(foreign.service.name); }
OwnKey own_key(const ServiceCidrObject& object) { return core::service_cidr_key(object.name); }
OwnKey own_key(const core::RemovedNode& removed) { return core::removed_node_key(removed.node); }
OwnKey own_key(const core::Namespace& name_space) { return core::namespace_key(name_space.name); }
OwnKey own_key(const core::NodeRange& range) { return core::node_range_key(range.cidr); }
OwnKey own_key(const StockAddress& address) { return core::warm_address_key(address.address); }
OwnKey own_key(const StockIntent& intent) { return core::warm_intent_key(intent.id); }
template <class Other>
OwnKey own_key(const Other&) {
  return std::nullopt;
}

Error damaged(const core::Key& key, std::string_view why) {
  return make_error(ErrorCode::corrupt, "record {} {} is damaged: {}; restore the store from a backup",
                    core::name_of(key.kind), key.name, why);
}

/// Reads `{"v":N,`. Error: newer_version.
[[nodiscard]] Result<void> read_version(CanonicalReader& in, const core::Key& key) {
  in.expect("{\"v\":");
  const std::uint32_t version = in.small_number();
  const std::uint32_t known = core::traits_of(key.kind).version;
  if (in.ok() && version > known) {
    return fail(ErrorCode::newer_version, "record {} {} has format {}, this program reads up to {}; upgrade Croft here",
                core::name_of(key.kind), key.name, version, known);
  }
  if (version == 0) in.reject("format version 0");
  in.expect(",");
  return {};
}

}  // namespace

void write_cooling_beside(CanonicalWriter& out, const std::vector<CoolingBeside>& beside) {
  kCoolingBeside.write(out, beside);
}
void read_cooling_beside(CanonicalReader& in, std::vector<CoolingBeside>& beside) { kCoolingBeside.read(in, beside); }

std::uint8_t number_of(Kind kind) { return core::traits_of(kind).number; }

std::optional<Kind> kind_numbered(std::uint8_t number) {
  const auto* row =
      std::find_if(core::kKinds.begin(), core::kKinds.end(), [&](const auto& k) { return k.number == number; });
  return row == core::kKinds.end() ? std::nullopt : std::optional(row->kind);
}

std::string encode_record(const core::Value& value) {
  constexpr std::size_t kUsualAttributeBytes = 400;
  std::size_t bytes = 512;
  if (const auto* block = std::get_if<core::Block>(&value)) bytes += block->attributes.size() * kUsualAttributeBytes;
  if (const auto* range = std::get_if<core::RangeAllocation>(&value)) bytes += range->data.size() / 3 * 4;
  CanonicalWriter out(bytes);
  out.raw("{\"v\":").number(std::uint64_t{core::traits_of(core::kind_of(value)).version}).raw(",");
  const auto write = [&]<class Record>(const Record& record) {
    std::get<static_cast<std::size_t>(core::kKindOf<Record>)>(kTables).write(out, record);
  };
  std::visit(write, value);
  out.raw("}");
  return out.take();
}

Result<core::Value> decode_record(const core::Key& key, std::string_view bytes) {
  if (bytes.size() > kRecordBytesMax) {
    return fail(damaged(key, fmt::format("{} bytes are more than {}", bytes.size(), kRecordBytesMax)));
  }
  CanonicalReader in(bytes);
  TRY_VOID(read_version(in, key));
  core::Value value = read_value(in, key.kind, std::make_index_sequence<core::kKindCount>{});
  in.expect("}");
  if (const auto finished = in.finish(); !finished) return fail(damaged(key, finished.error().message));
  const OwnKey own = std::visit([](const auto& record) { return own_key(record); }, value);
  if (own && *own != key) return fail(damaged(key, "it says that it is " + own->name));
  if (const auto* block = std::get_if<core::Block>(&value)) {
    if (const auto checked = core::check_block(*block); !checked) return fail(damaged(key, checked.error().message));
  }
  if (const auto* handle = std::get_if<core::Handle>(&value)) {
    if (const auto checked = core::check_block_names(*handle); !checked)
      return fail(damaged(key, checked.error().message));
  }
  return value;
}

}  // namespace croft::wire
