#include "wire/records/records.h"

#include <algorithm>

#include <fmt/format.h>

#include "base/assert.h"
#include "wire/records/canonical_json.h"
#include "wire/records/fields.h"

namespace croft::wire {
namespace {

using core::Kind;

constexpr EnumTexts<core::PoolUse, 3> kPoolUses = {{
    {core::PoolUse::workload, "Workload"},
    {core::PoolUse::tunnel, "Tunnel"},
    {core::PoolUse::load_balancer, "LoadBalancer"},
}};
constexpr EnumTexts<core::AssignmentMode, 2> kAssignmentModes = {{
    {core::AssignmentMode::automatic, "Automatic"},
    {core::AssignmentMode::manual, "Manual"},
}};
constexpr EnumTexts<core::Encapsulation, 3> kEncapsulations = {{
    {core::Encapsulation::never, "Never"},
    {core::Encapsulation::always, "Always"},
    {core::Encapsulation::cross_subnet, "CrossSubnet"},
}};
constexpr EnumTexts<core::AffinityState, 3> kAffinityStates = {{
    {core::AffinityState::pending, "pending"},
    {core::AffinityState::confirmed, "confirmed"},
    {core::AffinityState::pending_deletion, "pendingDeletion"},
}};
constexpr EnumTexts<core::AffinityOwner::Type, 2> kOwnerTypes = {{
    {core::AffinityOwner::Type::host, "host"},
    {core::AffinityOwner::Type::virtual_owner, "virtual"},
}};

constexpr EnumTexts<core::TunnelKind, 5> kTunnelKinds = {{
    {core::TunnelKind::ipip, "ipip"},
    {core::TunnelKind::vxlan_v4, "vxlan"},
    {core::TunnelKind::vxlan_v6, "vxlanV6"},
    {core::TunnelKind::wireguard_v4, "wireguard"},
    {core::TunnelKind::wireguard_v6, "wireguardV6"},
}};

// One pair of functions a kind: the members after the version, in the order of docs/formats/records.md.

void write(CanonicalWriter& out, const core::Pool& pool) {
  out.raw("\"name\":").text(pool.name).raw(",\"cidr\":");
  write_prefix(out, pool.cidr);
  out.raw(",\"blockSize\":").number(std::int64_t{pool.block_length});
  out.raw(",\"disabled\":").boolean(pool.disabled);
  out.raw(",\"nodeSelector\":").text(pool.node_selector);
  out.raw(",\"namespaceSelector\":").text(pool.namespace_selector);
  out.raw(",\"allowedUses\":");
  std::string_view separator = "[";
  for (const core::PoolUse use : pool.allowed_uses) {
    out.raw(separator);
    write_enum(out, kPoolUses, use);
    separator = ",";
  }
  out.raw(pool.allowed_uses.empty() ? "[]" : "]").raw(",\"assignmentMode\":");
  write_enum(out, kAssignmentModes, pool.assignment_mode);
  out.raw(",\"ipipMode\":");
  write_enum(out, kEncapsulations, pool.ipip_mode);
  out.raw(",\"vxlanMode\":");
  write_enum(out, kEncapsulations, pool.vxlan_mode);
  out.raw(",\"natOutgoing\":").boolean(pool.nat_outgoing);
  out.raw(",\"disableBGPExport\":").boolean(pool.disable_bgp_export);
  if (pool.gateway) out.raw(",\"gateway\":").text(pool.gateway->to_string());
  out.raw(",\"cooldownSeconds\":").number(std::int64_t{pool.cooldown.count()});
}

net::Address read_address(CanonicalReader& in) {
  const std::string text = in.text();
  if (const auto address = net::Address::parse(text); address && address->to_string() == text) return *address;
  in.reject("no IP address in its canonical form \"" + text + "\"");
  return {};
}

std::vector<core::PoolUse> read_pool_uses(CanonicalReader& in) {
  std::vector<core::PoolUse> uses;
  if (in.accept("[]")) return uses;
  in.expect("[");
  do {
    uses.push_back(read_enum(in, kPoolUses));
  } while (in.another(']'));
  return uses;
}

void read_pool_selectors(CanonicalReader& in, core::Pool& pool) {
  in.expect(",\"nodeSelector\":");
  pool.node_selector = in.text();
  in.expect(",\"namespaceSelector\":");
  pool.namespace_selector = in.text();
  in.expect(",\"allowedUses\":");
  pool.allowed_uses = read_pool_uses(in);
  in.expect(",\"assignmentMode\":");
  pool.assignment_mode = read_enum(in, kAssignmentModes);
}

void read_pool_network(CanonicalReader& in, core::Pool& pool) {
  in.expect(",\"ipipMode\":");
  pool.ipip_mode = read_enum(in, kEncapsulations);
  in.expect(",\"vxlanMode\":");
  pool.vxlan_mode = read_enum(in, kEncapsulations);
  in.expect(",\"natOutgoing\":");
  pool.nat_outgoing = in.boolean();
  in.expect(",\"disableBGPExport\":");
  pool.disable_bgp_export = in.boolean();
  if (in.accept(",\"gateway\":")) pool.gateway = read_address(in);
  in.expect(",\"cooldownSeconds\":");
  pool.cooldown = std::chrono::seconds{in.signed_number()};
  if (in.ok() && !core::is_cooldown(pool.cooldown)) in.reject("cooldownSeconds is out of range");
}

core::Pool read_pool(CanonicalReader& in) {
  constexpr std::uint32_t kBlockLengthMax = 128;
  core::Pool pool;
  in.expect("\"name\":");
  pool.name = in.text();
  in.expect(",\"cidr\":");
  pool.cidr = read_prefix(in);
  in.expect(",\"blockSize\":");
  const auto length = static_cast<int>(in.small_number(kBlockLengthMax));
  pool.block_length = length;
  if (in.ok() && !core::is_block_length(pool.cidr, length)) in.reject("blockSize is out of range for the cidr");
  in.expect(",\"disabled\":");
  pool.disabled = in.boolean();
  read_pool_selectors(in, pool);
  read_pool_network(in, pool);
  return pool;
}

void write(CanonicalWriter& out, const core::Reservation& reservation) {
  out.raw("\"name\":").text(reservation.name).raw(",\"reservedCIDRs\":");
  std::string_view separator = "[";
  for (const net::Prefix& cidr : reservation.cidrs) {
    out.raw(separator);
    write_prefix(out, cidr);
    separator = ",";
  }
  out.raw(reservation.cidrs.empty() ? "[]" : "]");
}

core::Reservation read_reservation(CanonicalReader& in) {
  core::Reservation reservation;
  in.expect("\"name\":");
  reservation.name = in.text();
  in.expect(",\"reservedCIDRs\":");
  if (in.accept("[]")) return reservation;
  in.expect("[");
  do {
    reservation.cidrs.push_back(read_prefix(in));
  } while (in.another(']'));
  return reservation;
}

void write(CanonicalWriter& out, const core::IpamConfig& config) {
  out.raw("\"strictAffinity\":").boolean(config.strict_affinity);
  out.raw(",\"autoAllocateBlocks\":").boolean(config.auto_allocate_blocks);
  out.raw(",\"maxBlocksPerHost\":").number(std::uint64_t{config.max_blocks_per_host});
  out.raw(",\"kubeVirtVMAddressPersistence\":").text(config.kubevirt_vm_address_persistence);
  out.raw(",\"ipCooldownSeconds\":").number(std::uint64_t{config.ip_cooldown_seconds});
}

core::IpamConfig read_ipam_config(CanonicalReader& in) {
  core::IpamConfig config;
  in.expect("\"strictAffinity\":");
  config.strict_affinity = in.boolean();
  in.expect(",\"autoAllocateBlocks\":");
  config.auto_allocate_blocks = in.boolean();
  in.expect(",\"maxBlocksPerHost\":");
  config.max_blocks_per_host = in.small_number();
  in.expect(",\"kubeVirtVMAddressPersistence\":");
  config.kubevirt_vm_address_persistence = in.text();
  in.expect(",\"ipCooldownSeconds\":");
  config.ip_cooldown_seconds = in.small_number();
  return config;
}

void write(CanonicalWriter& out, const core::Block& block) { write_block(out, block); }
void write(CanonicalWriter& out, const core::RangeAllocation& range) { write_range_allocation(out, range); }
void write(CanonicalWriter& out, const core::Service& service) { write_service(out, service); }
void write(CanonicalWriter& out, const core::ForeignService& foreign) { write_service(out, foreign.service); }
void write(CanonicalWriter& out, const core::BlockBeside& beside) { write_cooling_beside(out, beside.cooling); }
void write(CanonicalWriter& out, const core::IpAddressObject& object) { write_ip_address(out, object); }
void write(CanonicalWriter& out, const core::ServiceCidrObject& object) { write_service_cidr(out, object); }
void write(CanonicalWriter& out, const core::NodeRange& range) { write_node_range(out, range); }
void write(CanonicalWriter& out, const core::NodeRangeSet& set) { write_node_range_set(out, set); }

void write(CanonicalWriter& out, const core::Affinity& affinity) {
  out.raw("\"cidr\":");
  write_prefix(out, affinity.cidr);
  out.raw(",\"node\":").text(affinity.owner.name).raw(",\"type\":");
  write_enum(out, kOwnerTypes, affinity.owner.type);
  out.raw(",\"state\":");
  write_enum(out, kAffinityStates, affinity.state);
  out.raw(",\"deleted\":").boolean(affinity.deleted);
}

core::Affinity read_affinity(CanonicalReader& in) {
  core::Affinity affinity;
  in.expect("\"cidr\":");
  affinity.cidr = read_prefix(in);
  in.expect(",\"node\":");
  affinity.owner.name = in.text();
  in.expect(",\"type\":");
  affinity.owner.type = read_enum(in, kOwnerTypes);
  in.expect(",\"state\":");
  affinity.state = read_enum(in, kAffinityStates);
  in.expect(",\"deleted\":");
  affinity.deleted = in.boolean();
  return affinity;
}

void write(CanonicalWriter& out, const core::Handle& handle) {
  out.raw("\"handleID\":").text(handle.id).raw(",\"block\":");
  std::string_view separator = "{";
  for (const auto& [cidr, count] : handle.blocks) {
    out.raw(separator).text(cidr).raw(":").number(std::uint64_t{count});
    separator = ",";
  }
  out.raw(handle.blocks.empty() ? "{}" : "}").raw(",\"deleted\":").boolean(handle.deleted);
}

std::map<std::string, std::uint32_t> read_handle_blocks(CanonicalReader& in) {
  std::map<std::string, std::uint32_t> blocks;
  if (in.accept("{}")) return blocks;
  in.expect("{");
  do {
    std::string cidr = in.text();
    in.expect(":");
    if (!blocks.empty() && blocks.rbegin()->first >= cidr) in.reject("member out of order");
    blocks.emplace_hint(blocks.end(), std::move(cidr), in.small_number());
  } while (in.another('}'));
  return blocks;
}

core::Handle read_handle(CanonicalReader& in) {
  core::Handle handle;
  in.expect("\"handleID\":");
  handle.id = in.text();
  in.expect(",\"block\":");
  handle.blocks = read_handle_blocks(in);
  in.expect(",\"deleted\":");
  handle.deleted = in.boolean();
  return handle;
}

void write(CanonicalWriter& out, const core::RemovedNode& removed) {
  out.raw("\"node\":").text(removed.node).raw(",\"held\":");
  std::string_view separator = "{";
  for (const auto& [block, sequence] : removed.held) {
    out.raw(separator).text(block).raw(":").number(sequence.value);
    separator = ",";
  }
  out.raw(removed.held.empty() ? "{}" : "}");
}

core::RemovedNode read_removed_node(CanonicalReader& in) {
  core::RemovedNode removed;
  in.expect("\"node\":");
  removed.node = in.text();
  in.expect(",\"held\":");
  if (in.accept("{}")) return removed;
  in.expect("{");
  do {
    std::string block = in.text();
    in.expect(":");
    if (!removed.held.empty() && removed.held.rbegin()->first >= block) in.reject("member out of order");
    removed.held.emplace_hint(removed.held.end(), std::move(block), core::SequenceNumber(in.unsigned_number()));
  } while (in.another('}'));
  return removed;
}

void write(CanonicalWriter& out, const core::Vacancy& vacancy) { out.raw("\"readyAt\":").time(vacancy.ready_at); }

core::Vacancy read_vacancy(CanonicalReader& in) {
  in.expect("\"readyAt\":");
  return {in.time()};
}

void write(CanonicalWriter& out, const core::ClaimCursor& cursor) {
  out.raw("\"lastClaimed\":");
  write_prefix(out, cursor.last_claimed);
}

core::ClaimCursor read_claim_cursor(CanonicalReader& in) {
  in.expect("\"lastClaimed\":");
  return {read_prefix(in)};
}

void write(CanonicalWriter& out, const core::HighWaterMark& mark) {
  out.raw("\"sequenceNumber\":").number(mark.sequence_number.value);
}

core::HighWaterMark read_high_water_mark(CanonicalReader& in) {
  in.expect("\"sequenceNumber\":");
  return {core::SequenceNumber(in.unsigned_number())};
}

/// Stores refuse them before.
void write(CanonicalWriter&, const core::Damaged&) { CROFT_ASSERT(false); }

void write(CanonicalWriter& out, const core::PoolSet& set) { out.raw("\"generation\":").number(set.generation); }

core::PoolSet read_pool_set(CanonicalReader& in) {
  in.expect("\"generation\":");
  return {in.unsigned_number()};
}

void write(CanonicalWriter& out, const core::Node& node) {
  out.raw("\"name\":").text(node.name).raw(",\"labels\":").texts(node.labels).raw(",\"orchRefs\":");
  std::string_view separator = "[";
  for (const core::OrchestratorRef& reference : node.orchestrators) {
    out.raw(separator).raw("{\"nodeName\":").text(reference.node_name);
    out.raw(",\"orchestrator\":").text(reference.orchestrator).raw("}");
    separator = ",";
  }
  out.raw(node.orchestrators.empty() ? "[]" : "]").raw(",\"tunnelAddresses\":");
  separator = "[";
  for (const core::TunnelAddress& tunnel : node.tunnels) {
    out.raw(separator).raw("{\"address\":").text(tunnel.address.to_string()).raw(",\"kind\":");
    write_enum(out, kTunnelKinds, tunnel.kind);
    out.raw("}");
    separator = ",";
  }
  out.raw(node.tunnels.empty() ? "[]" : "]");
}

core::TunnelAddress read_tunnel(CanonicalReader& in) {
  core::TunnelAddress tunnel;
  in.expect("{\"address\":");
  tunnel.address = read_address(in);
  in.expect(",\"kind\":");
  tunnel.kind = read_enum(in, kTunnelKinds);
  in.expect("}");
  return tunnel;
}

core::OrchestratorRef read_node_reference(CanonicalReader& in) {
  core::OrchestratorRef reference;
  in.expect("{\"nodeName\":");
  reference.node_name = in.text();
  in.expect(",\"orchestrator\":");
  reference.orchestrator = in.text();
  in.expect("}");
  return reference;
}

core::Node read_node(CanonicalReader& in) {
  core::Node node;
  in.expect("\"name\":");
  node.name = in.text();
  in.expect(",\"labels\":");
  node.labels = in.texts();
  in.expect(",\"orchRefs\":");
  if (!in.accept("[]")) {
    in.expect("[");
    do {
      node.orchestrators.push_back(read_node_reference(in));
    } while (in.another(']'));
  }
  in.expect(",\"tunnelAddresses\":");
  if (in.accept("[]")) return node;
  in.expect("[");
  do {
    node.tunnels.push_back(read_tunnel(in));
  } while (in.another(']'));
  return node;
}

core::Value read_value(CanonicalReader& in, Kind kind) {
  switch (kind) {
    case Kind::pool:
      return read_pool(in);
    case Kind::reservation:
      return read_reservation(in);
    case Kind::ipam_config:
      return read_ipam_config(in);
    case Kind::block:
      return read_block(in);
    case Kind::affinity:
      return read_affinity(in);
    case Kind::handle:
      return read_handle(in);
    case Kind::vacancy:
      return read_vacancy(in);
    case Kind::claim_cursor:
      return read_claim_cursor(in);
    case Kind::high_water_mark:
      return read_high_water_mark(in);
    case Kind::pool_set:
      return read_pool_set(in);
    case Kind::node:
      return read_node(in);
    case Kind::range_allocation:
      return read_range_allocation(in);
    case Kind::service:
      return read_service(in);
    case Kind::ip_address:
      return read_ip_address(in);
    case Kind::service_cidr:
      return read_service_cidr(in);
    case Kind::node_range:
      return read_node_range(in);
    case Kind::node_range_set:
      return read_node_range_set(in);
    case Kind::removed_node:
      return read_removed_node(in);
    case Kind::foreign_service:
      return core::ForeignService{read_service(in)};
    case Kind::block_beside:
      return core::BlockBeside{read_cooling_beside(in)};
  }
  CROFT_ASSERT(false);
}

/// The key that the value says it belongs to; nothing for kinds whose values don't say.
struct OwnKey {
  std::optional<core::Key> operator()(const core::Pool& pool) const { return core::pool_key(pool.name); }
  std::optional<core::Key> operator()(const core::Reservation& r) const { return core::reservation_key(r.name); }
  std::optional<core::Key> operator()(const core::Block& block) const { return core::block_key(block.cidr); }
  std::optional<core::Key> operator()(const core::Affinity& affinity) const {
    return core::affinity_key(affinity.owner, affinity.cidr);
  }
  std::optional<core::Key> operator()(const core::Node& node) const { return core::node_key(node.name); }
  std::optional<core::Key> operator()(const core::Handle& handle) const { return core::handle_key(handle.id); }
  std::optional<core::Key> operator()(const core::Service& service) const { return core::service_key(service.name); }
  std::optional<core::Key> operator()(const core::ForeignService& foreign) const {
    return core::foreign_service_key(foreign.service.name);
  }
  std::optional<core::Key> operator()(const core::IpAddressObject& object) const {
    return core::ip_address_key(object.address);
  }
  std::optional<core::Key> operator()(const core::ServiceCidrObject& object) const {
    return core::service_cidr_key(object.name);
  }
  std::optional<core::Key> operator()(const core::RemovedNode& removed) const {
    return core::removed_node_key(removed.node);
  }
  std::optional<core::Key> operator()(const core::NodeRange& range) const { return core::node_range_key(range.cidr); }
  template <class Other>
  std::optional<core::Key> operator()(const Other&) const {
    return std::nullopt;
  }
};

Error damaged(const core::Key& key, std::string_view why) {
  return {ErrorCode::corrupt,
          fmt::format("record {} {} is damaged: {}; restore the store from a backup", core::name_of(key.kind), key.name,
                      why),
          {}};
}

/// Reads `{"v":N,`. Error: newer_version.
[[nodiscard]] Result<void> read_version(CanonicalReader& in, const core::Key& key) {
  in.expect("{\"v\":");
  const std::uint32_t version = in.small_number();
  const std::uint32_t known = core::traits_of(key.kind).version;
  if (in.ok() && version > known) {
    return fail(ErrorCode::newer_version,
                fmt::format("record {} {} has format {}, this program reads up to {}; upgrade Croft here",
                            core::name_of(key.kind), key.name, version, known));
  }
  if (version == 0) in.reject("format version 0");
  in.expect(",");
  return {};
}

}  // namespace

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
  std::visit([&](const auto& record) { write(out, record); }, value);
  out.raw("}");
  return out.take();
}

Result<core::Value> decode_record(const core::Key& key, std::string_view bytes) {
  if (bytes.size() > kRecordBytesMax) {
    return fail(damaged(key, fmt::format("{} bytes are more than {}", bytes.size(), kRecordBytesMax)));
  }
  CanonicalReader in(bytes);
  TRY_VOID(read_version(in, key));
  core::Value value = read_value(in, key.kind);
  in.expect("}");
  if (const auto finished = in.finish(); !finished) return fail(damaged(key, finished.error().message));
  const auto own_key = std::visit(OwnKey{}, value);
  if (own_key && *own_key != key) return fail(damaged(key, "it says that it is " + own_key->name));
  if (const auto* block = std::get_if<core::Block>(&value)) {
    if (const auto checked = core::check_block(*block); !checked) return fail(damaged(key, checked.error().message));
  }
  return value;
}

}  // namespace croft::wire
