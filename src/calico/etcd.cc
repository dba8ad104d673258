#include "calico/etcd.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <utility>

#include <fmt/format.h>

#include "base/assert.h"
#include "base/net/echo.h"
#include "base/text/go_text.h"
#include "calico/json.h"
#include "register/pool.h"

namespace croft::wire::calico {
namespace {

using core::AffinityState;
using core::Attribute;
using core::Block;

constexpr std::array<std::pair<AffinityState, std::string_view>, 3> kStates = {{
    {AffinityState::pending, "pending"},
    {AffinityState::confirmed, "confirmed"},
    {AffinityState::pending_deletion, "pendingDeletion"},
}};

// ---------------------------------------------------------------- reading: blocks

MaybeFault read_sequence_number(const JsonAt& at, core::SequenceNumber& out) {
  if (at.value.is_null()) return {};
  if (at.value.kind() != JsonKind::integer) return at.wrong_type("an integer");
  const std::string_view text = at.value.text();
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), out.value);
  if (error == std::errc{} && end == text.data() + text.size()) return {};
  return at.bad_value(fmt::format("{} is no unsigned 64-bit number", text.substr(0, 32)));
}

constexpr JsonMember<AttributeDraft> kAttributeMembers[] = {
    {"handle_id",
     [](const JsonAt& at, AttributeDraft& out) { return read_optional_text(at, out.attribute.handle_id); }},
    {"secondary", [](const JsonAt& at, AttributeDraft& out) { return read_texts(at, out.attribute.secondary.own()); }},
    {"alternateOwnerAttrs",
     [](const JsonAt& at, AttributeDraft& out) { return read_texts(at, out.attribute.alternate_owner.own()); }},
    {"releasedAt",
     [](const JsonAt& at, AttributeDraft& out) {
       return at.value.is_null() ? MaybeFault() : read_time(at, out.attribute.cooling.emplace().released_at.wall);
     }},
};

MaybeFault read_owner(const JsonAt& at, BlockDraft& out) {
  std::optional<std::string> text;
  if (auto fault = read_optional_text(at, text)) return fault;
  if (!text) return {};
  const auto owner = core::parse_affinity_owner(*text);
  if (!owner) return at.bad_value(owner.error().message);
  out.block.affinity = *owner;
  return {};
}

MaybeFault read_claim_time(const JsonAt& at, BlockDraft& out) {
  return at.value.is_null() ? MaybeFault() : read_time(at, out.block.affinity_claim_time.emplace());
}

MaybeFault read_allocations(const JsonAt& at, BlockDraft& out) {
  return read_list<std::optional<std::uint32_t>>(
      at, kBlockSizeMax,
      [](const JsonAt& element, std::optional<std::uint32_t>& index) {
        return element.value.is_null() ? MaybeFault() : read_number(element, kBlockSizeMax - 1, index.emplace());
      },
      out.block.allocations);
}

MaybeFault read_unallocated(const JsonAt& at, BlockDraft& out) {
  out.rest.unallocated_null = at.value.is_null();
  return read_list<std::uint32_t>(
      at, kBlockSizeMax,
      [](const JsonAt& element, std::uint32_t& ordinal) { return read_number(element, kBlockSizeMax - 1, ordinal); },
      out.unallocated);
}

MaybeFault read_attributes(const JsonAt& at, BlockDraft& out) {
  out.rest.attributes_null = at.value.is_null();
  return read_list<AttributeDraft>(
      at, kBlockSizeMax,
      [](const JsonAt& element, AttributeDraft& attribute) {
        return read_kept<AttributeDraft>(element, kAttributeMembers, attribute, attribute.rest);
      },
      out.attributes);
}

MaybeFault read_sequence_numbers(const JsonAt& at, BlockDraft& out) {
  out.rest.sequence_numbers_null = at.value.is_null();
  return read_map(at, out.block.sequence_number_for_allocation.own(),
                  [](const JsonAt& inner, std::uint32_t& ordinal, core::SequenceNumber& value) {
                    const std::string_view name = inner.name;
                    std::from_chars(name.data(), name.data() + name.size(), ordinal);
                    if (std::to_string(ordinal) != name) return MaybeFault(inner.bad_value("its name is no ordinal"));
                    return read_sequence_number(inner, value);
                  });
}

constexpr JsonMember<BlockDraft> kBlockMembers[] = {
    {"cidr", [](const JsonAt& at, BlockDraft& out) { return read_prefix(at, out.block.cidr); }},
    {"affinity", read_owner},
    {"affinity_claim_time", read_claim_time},
    {"allocations", read_allocations},
    {"unallocated", read_unallocated},
    {"attributes", read_attributes},
    {"sequenceNumber",
     [](const JsonAt& at, BlockDraft& out) { return read_sequence_number(at, out.block.sequence_number); }},
    {"sequenceNumberForAllocation", read_sequence_numbers},
    {"deleted", [](const JsonAt& at, BlockDraft& out) { return read_boolean(at, out.block.deleted); }},
    {"hostAffinity", [](const JsonAt& at, BlockDraft& out) { return read_optional_text(at, out.rest.host_affinity); }},
};

/// The ordinals that point at an entry of `attributes`, with their sequence numbers.
std::map<std::uint32_t, core::SequenceNumber> holders_of(const Block& block, std::uint32_t attribute) {
  std::map<std::uint32_t, core::SequenceNumber> holders;
  for (std::uint32_t ordinal = 0; ordinal < block.allocations.size(); ++ordinal) {
    if (block.allocations[ordinal] != attribute) continue;
    holders.emplace(ordinal, core::sequence_of(block, net::Ordinal(ordinal)));
  }
  return holders;
}

/// Error: the code is corrupt, the message without the key.
[[nodiscard]] Result<BlockRecord> finish(BlockDraft draft) {
  const auto size = static_cast<std::uint32_t>(draft.block.allocations.size());
  // check_block looks at the number of allocations before anything that depends on it; with a wrong one the free list
  // stays empty.
  const bool is_sized = draft.block.cidr.is_valid() && draft.block.cidr.last_offset() == net::U128{size} - net::U128{1};
  if (is_sized) {
    auto free_list = core::space::OrderedFreeList::from_order(size, std::move(draft.unallocated));
    if (!free_list) return fail(free_list.error().in("unallocated"));
    draft.block.unallocated = *std::move(free_list);
  }
  for (AttributeDraft& attribute : draft.attributes) draft.block.attributes.push_back(std::move(attribute.attribute));
  TRY_VOID(core::check_block(draft.block));
  for (std::uint32_t i = 0; i < draft.attributes.size(); ++i) {
    if (draft.attributes[i].rest.empty()) continue;
    const Attribute& attribute = draft.block.attributes[i];
    draft.rest.attributes.push_back({holders_of(draft.block, i), attribute.handle_id, attribute.cooling.has_value(),
                                     std::move(draft.attributes[i].rest)});
  }
  return BlockRecord{std::move(draft.block), std::move(draft.rest)};
}

// ---------------------------------------------------------------- reading: the others

constexpr JsonMember<AffinityRecord> kAffinityMembers[] = {
    {"state",
     [](const JsonAt& at, AffinityRecord& out) {
       std::string text;
       if (auto fault = read_text(at, kTextBytesMax, text)) return fault;
       out.state_empty = text.empty();
       if (text.empty()) return MaybeFault();
       const auto state = std::ranges::find(kStates, text, [](const auto& s) { return s.second; });
       if (state == kStates.end()) return MaybeFault(at.bad_value(net::echo(text) + " is no state of an affinity"));
       out.affinity.state = state->first;
       return MaybeFault();
     }},
    {"deleted", [](const JsonAt& at, AffinityRecord& out) { return read_boolean(at, out.affinity.deleted); }},
};

constexpr JsonMember<HandleRecord> kHandleMembers[] = {
    {"block",
     [](const JsonAt& at, HandleRecord& out) {
       out.blocks_null = at.value.is_null();
       return read_map(at, out.handle.blocks, [](const JsonAt& inner, std::string& name, std::uint32_t& count) {
         name = inner.name;
         if (!net::parse_prefix(name)) return MaybeFault(inner.bad_value("its name is no CIDR"));
         return read_number(inner, UINT32_MAX, count);
       });
     }},
    {"deleted", [](const JsonAt& at, HandleRecord& out) { return read_boolean(at, out.handle.deleted); }},
};

constexpr JsonMember<IpamConfigRecord> kConfigMembers[] = {
    {"strict_affinity",
     [](const JsonAt& at, IpamConfigRecord& out) { return read_boolean(at, out.config.strict_affinity); }},
    {"auto_allocate_blocks",
     [](const JsonAt& at, IpamConfigRecord& out) { return read_boolean(at, out.config.auto_allocate_blocks); }},
    {"maxBlocksPerHost",
     [](const JsonAt& at, IpamConfigRecord& out) {
       return read_number(at, UINT32_MAX, out.config.max_blocks_per_host);
     }},
    {"kubeVirtVMAddressPersistence",
     [](const JsonAt& at, IpamConfigRecord& out) {
       auto fault = read_text(at, kTextBytesMax, out.config.kubevirt_vm_address_persistence);
       out.persistence_empty = !at.value.is_null() && out.config.kubevirt_vm_address_persistence.empty();
       return fault;
     }},
    {"ipCooldownSeconds",
     [](const JsonAt& at, IpamConfigRecord& out) {
       return read_number(at, UINT32_MAX, out.config.ip_cooldown_seconds);
     }},
};

// ---------------------------------------------------------------- writing

/// Unknown members of entry `index`, or none.
const RawMembers* rest_of(const BlockRecord& record, std::uint32_t index) {
  if (record.rest.attributes.empty()) return nullptr;
  const Attribute& attribute = record.block.attributes[index];
  const auto holders = holders_of(record.block, index);
  const auto is_same = [&](const AttributeRest& rest) {
    return rest.handle_id == attribute.handle_id && rest.cooling == attribute.cooling.has_value() &&
           std::ranges::any_of(rest.holders, [&](const auto& holder) {
             const auto found = holders.find(holder.first);
             return found != holders.end() && found->second == holder.second;
           });
  };
  const auto rest = std::ranges::find_if(record.rest.attributes, is_same);
  return rest == record.rest.attributes.end() ? nullptr : &rest->members;
}

void write_attribute(JsonWriter& out, const Attribute& attribute, const RawMembers* rest) {
  out.begin_object();
  if (attribute.handle_id) out.text("handle_id", *attribute.handle_id);
  write_texts_if_set(out, "secondary", attribute.secondary);
  write_texts_if_set(out, "alternateOwnerAttrs", attribute.alternate_owner);
  if (attribute.cooling) {
    out.key("releasedAt");
    write_time(out, attribute.cooling->released_at.wall);
  }
  if (rest != nullptr) write_rest(out, *rest);
  out.end_object();
}

void write_owner(JsonWriter& out, const Block& block) {
  out.key("affinity");
  block.affinity ? out.text(core::to_string(*block.affinity)) : out.null();
  if (!block.affinity_claim_time) return;
  out.key("affinity_claim_time");
  write_time(out, *block.affinity_claim_time);
}

void write_allocations(JsonWriter& out, const Block& block) {
  out.begin_array("allocations");
  for (const auto& index : block.allocations) index ? out.integer(*index) : out.null();
  out.end_array();
}

void write_unallocated(JsonWriter& out, const BlockRecord& record) {
  out.key("unallocated");
  const auto order = record.block.unallocated.order();
  if (order.empty() && record.rest.unallocated_null) return out.null();
  out.begin_array();
  for (const std::uint32_t ordinal : order) out.integer(ordinal);
  out.end_array();
}

void write_attributes(JsonWriter& out, const BlockRecord& record) {
  out.key("attributes");
  const auto& attributes = record.block.attributes;
  if (attributes.empty() && record.rest.attributes_null) return out.null();
  out.begin_array();
  for (std::uint32_t i = 0; i < attributes.size(); ++i) write_attribute(out, attributes[i], rest_of(record, i));
  out.end_array();
}

/// In the order of the names as text: 1, 10, 2.
void write_sequence_numbers(JsonWriter& out, const BlockRecord& record) {
  out.key("sequenceNumberForAllocation");
  const auto& numbers = record.block.sequence_number_for_allocation;
  if (numbers.empty() && record.rest.sequence_numbers_null) return out.null();
  std::vector<std::pair<std::string, std::uint64_t>> named;
  named.reserve(numbers.size());
  for (const auto& [ordinal, number] : numbers) named.emplace_back(std::to_string(ordinal), number.value);
  std::ranges::sort(named);
  out.begin_object();
  for (const auto& [name, number] : named) out.unsigned_integer(name, number);
  out.end_object();
}

void write_number_if_set(JsonWriter& out, std::string_view name, std::uint32_t value) {
  if (value == 0) return;
  out.integer(name, value);
}

}  // namespace

Result<BlockRecord> decode_block(const BlockKey& key, std::string_view bytes) {
  auto scanned = scan_block(bytes);
  const bool is_scanned = scanned.has_value();
  BlockDraft draft = is_scanned ? *std::move(scanned) : BlockDraft();
  if (!is_scanned) {
    TRY_VOID(decode_into<BlockDraft>(key, bytes, kBlockMembers, draft, draft.rest.members));
  }
  if (draft.block.cidr != key.cidr) {
    return fail(damaged(key, "its cidr is " + draft.block.cidr.to_string()));
  }
  auto record = finish(std::move(draft));
  if (!record) return fail(damaged(key, record.error().message));
  return record;
}

Result<AffinityRecord> decode_affinity(const AffinityKey& key, std::string_view bytes) {
  AffinityRecord record;
  record.affinity.owner = key.owner;
  record.affinity.cidr = key.cidr;
  record.state_empty = true;
  if (bytes.empty()) return record;
  TRY_VOID(decode_into<AffinityRecord>(key, bytes, kAffinityMembers, record, record.rest));
  return record;
}

Result<HandleRecord> decode_handle(const HandleKey& key, std::string_view bytes) {
  HandleRecord record;
  record.handle.id = key.id;
  record.blocks_null = true;
  TRY_VOID(decode_into<HandleRecord>(key, bytes, kHandleMembers, record, record.rest));
  return record;
}

Result<IpamConfigRecord> decode_ipam_config(std::string_view bytes) {
  IpamConfigRecord record;
  record.config.auto_allocate_blocks = false;  // left out when false
  TRY_VOID(decode_into<IpamConfigRecord>(IpamConfigKey{}, bytes, kConfigMembers, record, record.rest));
  return record;
}

std::string encode(const BlockRecord& record) {
  // A typical attribute has 300 bytes, everything else of an address 30.
  const std::size_t bytes_expected = 300 * record.block.attributes.size() + 30 * record.block.allocations.size() + 300;
  JsonWriter out(JsonWriter::Layout::compact, bytes_expected);
  out.begin_object();
  out.text("cidr", record.block.cidr.to_string());
  write_owner(out, record.block);
  write_allocations(out, record.block);
  write_unallocated(out, record);
  write_attributes(out, record);
  out.unsigned_integer("sequenceNumber", record.block.sequence_number.value);
  write_sequence_numbers(out, record);
  out.boolean("deleted", record.block.deleted);
  if (record.rest.host_affinity) out.text("hostAffinity", *record.rest.host_affinity);
  write_rest(out, record.rest.members);
  out.end_object();
  return std::move(out).take();
}

std::string encode(const AffinityRecord& record) {
  const AffinityState state = record.affinity.state;
  const bool is_unsaid = state == AffinityState::confirmed && record.state_empty;
  const auto named = std::ranges::find(kStates, state, [](const auto& s) { return s.first; });
  JsonWriter out(JsonWriter::Layout::compact);
  out.begin_object();
  out.text("state", is_unsaid ? std::string_view() : named->second);
  out.boolean("deleted", record.affinity.deleted);
  write_rest(out, record.rest);
  out.end_object();
  return std::move(out).take();
}

std::string encode(const HandleRecord& record) {
  JsonWriter out(JsonWriter::Layout::compact);
  out.begin_object();
  out.key("block");
  if (record.handle.blocks.empty() && record.blocks_null) {
    out.null();
  } else {
    out.begin_object();
    for (const auto& [cidr, count] : record.handle.blocks) out.integer(cidr, count);
    out.end_object();
  }
  out.boolean("deleted", record.handle.deleted);
  write_rest(out, record.rest);
  out.end_object();
  return std::move(out).take();
}

std::string encode(const IpamConfigRecord& record) {
  const core::IpamConfig& config = record.config;
  JsonWriter out(JsonWriter::Layout::compact);
  out.begin_object();
  write_if_set(out, "strict_affinity", config.strict_affinity);
  write_if_set(out, "auto_allocate_blocks", config.auto_allocate_blocks);
  write_number_if_set(out, "maxBlocksPerHost", config.max_blocks_per_host);
  if (!config.kubevirt_vm_address_persistence.empty() || record.persistence_empty) {
    out.text("kubeVirtVMAddressPersistence", config.kubevirt_vm_address_persistence);
  }
  write_number_if_set(out, "ipCooldownSeconds", config.ip_cooldown_seconds);
  write_rest(out, record.rest);
  out.end_object();
  return std::move(out).take();
}

namespace {

using core::AffinityOwner;

constexpr std::string_view kBlockRoot = "/calico/ipam/v2/assignment/";
constexpr std::string_view kHostRoot = "/calico/ipam/v2/host/";
constexpr std::string_view kVirtualRoot = "/calico/ipam/v2/virtual/";
constexpr std::string_view kHandleRoot = "/calico/ipam/v2/handle/";
constexpr std::string_view kConfigKey = "/calico/ipam/v2/config";

constexpr std::array<std::pair<ResourceKey::Kind, std::string_view>, 3> kResourceRoots = {{
    {ResourceKey::Kind::pool, "/calico/resources/v3/projectcalico.org/ippools/"},
    {ResourceKey::Kind::reservation, "/calico/resources/v3/projectcalico.org/ipreservations/"},
    {ResourceKey::Kind::node, "/calico/resources/v3/projectcalico.org/nodes/"},
}};

std::string_view root_of(AffinityOwner::Type type) {
  return type == AffinityOwner::Type::host ? kHostRoot : kVirtualRoot;
}

std::string_view family_name(net::Family family) { return family == net::Family::v4 ? "ipv4" : "ipv6"; }

/// `ipv4/block/10.0.0.64-26`.
[[nodiscard]] Result<std::string> print_cidr(const net::Prefix& cidr) {
  if (!cidr.is_valid() || cidr.address().is_v4_mapped()) {
    return fail(ErrorCode::invalid_argument, fmt::format("{} is no prefix that Calico has keys for", cidr.to_string()));
  }
  std::string text = cidr.to_string();
  std::replace(text.begin(), text.end(), '/', '-');
  return fmt::format("{}/block/{}", family_name(cidr.family()), text);
}

[[nodiscard]] Result<void> check_handle(std::string_view id) {
  if (id.empty() || id.size() > core::kKeyNameBytesMax) {
    return fail(ErrorCode::invalid_argument,
                fmt::format("handle of {} bytes: it must have 1 to {}", id.size(), core::kKeyNameBytesMax));
  }
  std::string without_breaks(id);
  std::erase_if(without_breaks, [](char c) { return c == '\r' || c == '\n'; });
  if (id.find('/') != id.npos || !is_plain_text(without_breaks)) {
    return fail(ErrorCode::invalid_argument,
                fmt::format("handle {} has a slash, a control character or bytes that are not UTF-8", net::echo(id)));
  }
  return {};
}

struct Printer {
  [[nodiscard]] Result<std::string> operator()(const BlockKey& key) const {
    TRY(const std::string cidr, print_cidr(key.cidr));
    return std::string(kBlockRoot) + cidr;
  }
  [[nodiscard]] Result<std::string> operator()(const AffinityKey& key) const {
    TRY_VOID(core::check_node_name(key.owner.name));
    TRY(const std::string cidr, print_cidr(key.cidr));
    return fmt::format("{}{}/{}", root_of(key.owner.type), key.owner.name, cidr);
  }
  [[nodiscard]] Result<std::string> operator()(const HostMarkerKey& key) const {
    TRY_VOID(core::check_node_name(key.node));
    return std::string(kHostRoot) + key.node;
  }
  [[nodiscard]] Result<std::string> operator()(const HandleKey& key) const {
    TRY_VOID(check_handle(key.id));
    return std::string(kHandleRoot) + key.id;
  }
  [[nodiscard]] Result<std::string> operator()(const IpamConfigKey&) const { return std::string(kConfigKey); }
  [[nodiscard]] Result<std::string> operator()(const ResourceKey& key) const {
    TRY_VOID(key.kind == ResourceKey::Kind::node ? core::check_node_name(key.name) : core::check_pool_name(key.name));
    return resources_prefix(key.kind) + key.name;
  }
};

/// Removes the text from the front of `rest` if it is there.
bool take(std::string_view& rest, std::string_view text) {
  if (!rest.starts_with(text)) return false;
  rest.remove_prefix(text.size());
  return true;
}

Error damaged_key(std::string_view text, std::string_view why) {
  return {ErrorCode::corrupt, fmt::format("key {} in etcd is damaged: {}", net::echo(text), why), {}};
}

/// The prefix of `ipv4/block/10.0.0.64-26`; whether it is spelled as it should be shows when it is printed again.
std::optional<net::Prefix> parse_cidr(std::string_view text) {
  const std::size_t slash = text.rfind('/');
  if (slash == text.npos) return std::nullopt;
  std::string cidr(text.substr(slash + 1));
  const std::size_t dash = cidr.find('-');
  if (dash == cidr.npos) return std::nullopt;
  cidr[dash] = '/';
  return net::parse_prefix(cidr);
}

/// `node-a/ipv4/block/10.0.0.64-26` or, for hosts, `node-a` alone.
std::optional<Key> parse_owned(AffinityOwner::Type type, std::string_view rest) {
  const std::size_t slash = rest.find('/');
  std::string name(rest.substr(0, slash));
  if (slash == rest.npos) {
    if (type != AffinityOwner::Type::host) return std::nullopt;
    return HostMarkerKey{std::move(name)};
  }
  const auto cidr = parse_cidr(rest.substr(slash + 1));
  if (!cidr) return std::nullopt;
  return AffinityKey{{type, std::move(name)}, *cidr};
}

std::optional<Key> parse_block(std::string_view rest) {
  const auto cidr = parse_cidr(rest);
  if (!cidr) return std::nullopt;
  return BlockKey{*cidr};
}

/// Any key in one of the places, however it is spelled; nothing when a part is missing. Error: not_found.
[[nodiscard]] Result<std::optional<Key>> parse_loosely(std::string_view text) {
  std::string_view rest = text;
  if (text == kConfigKey) return Key(IpamConfigKey{});
  if (take(rest, kBlockRoot)) return parse_block(rest);
  if (take(rest, kHostRoot)) return parse_owned(AffinityOwner::Type::host, rest);
  if (take(rest, kVirtualRoot)) return parse_owned(AffinityOwner::Type::virtual_owner, rest);
  if (take(rest, kHandleRoot)) return Key(HandleKey{std::string(rest)});
  for (const auto& [kind, root] : kResourceRoots) {
    if (take(rest, root)) return Key(ResourceKey{kind, std::string(rest)});
  }
  return fail(ErrorCode::not_found, fmt::format("key {} is none of Calico's address management", net::echo(text)));
}

/// The owner in front of a name such as `host/node-a/ipv4/10.0.0.64/26`.
std::optional<AffinityOwner> owner_in(std::string_view name) {
  AffinityOwner owner;
  if (take(name, "virtual/")) {
    owner.type = AffinityOwner::Type::virtual_owner;
  } else if (!take(name, "host/")) {
    return std::nullopt;
  }
  owner.name = name.substr(0, name.find('/'));
  return owner;
}

struct RecordKey {
  std::optional<core::Key> operator()(const BlockKey& key) const { return core::block_key(key.cidr); }
  std::optional<core::Key> operator()(const AffinityKey& key) const { return core::affinity_key(key.owner, key.cidr); }
  std::optional<core::Key> operator()(const HostMarkerKey&) const { return std::nullopt; }
  std::optional<core::Key> operator()(const HandleKey& key) const { return core::handle_key(key.id); }
  std::optional<core::Key> operator()(const IpamConfigKey&) const {
    return core::Key{core::Kind::ipam_config, "default"};
  }
  std::optional<core::Key> operator()(const ResourceKey& key) const {
    if (key.kind == ResourceKey::Kind::pool) return core::pool_key(key.name);
    if (key.kind == ResourceKey::Kind::reservation) return core::reservation_key(key.name);
    if (key.kind == ResourceKey::Kind::node) return core::node_key(key.name);
    return std::nullopt;
  }
};

}  // namespace

Result<std::string> print_key(const Key& key) { return std::visit(Printer{}, key); }

Result<Key> parse_key(std::string_view text) {
  TRY(const auto key, parse_loosely(text));
  if (!key) return fail(damaged_key(text, "a part of it is missing or no prefix"));
  const auto printed = print_key(*key);
  if (!printed) return fail(damaged_key(text, printed.error().message));
  if (*printed != text) return fail(damaged_key(text, fmt::format("Calico writes {}", net::echo(*printed))));
  return *key;
}

Result<Key> key_of(const core::Key& key) {
  switch (key.kind) {
    case core::Kind::pool:
      return ResourceKey{ResourceKey::Kind::pool, key.name};
    case core::Kind::reservation:
      return ResourceKey{ResourceKey::Kind::reservation, key.name};
    case core::Kind::ipam_config:
      return IpamConfigKey{};
    case core::Kind::block: {
      const auto cidr = core::block_cidr_of(key);
      if (!cidr) return fail(core::cidr_of(key).error());
      return BlockKey{*cidr};
    }
    case core::Kind::affinity: {
      TRY(const net::Prefix cidr, core::cidr_of(key));
      auto owner = owner_in(key.name);
      if (!owner) return fail(ErrorCode::corrupt, fmt::format("affinity {} has no owner", net::echo(key.name)));
      return AffinityKey{*std::move(owner), cidr};
    }
    case core::Kind::handle:
      return HandleKey{key.name};
    case core::Kind::node:
      return ResourceKey{ResourceKey::Kind::node, key.name};
    default:
      break;
  }
  return fail(ErrorCode::invalid_argument, fmt::format("Calico has no {}", core::name_of(key.kind)));
}

std::optional<core::Key> record_of(const Key& key) { return std::visit(RecordKey{}, key); }

std::string blocks_prefix(std::optional<net::Family> family) {
  return family ? fmt::format("{}{}/", kBlockRoot, family_name(*family)) : std::string(kBlockRoot);
}

std::string affinities_prefix(AffinityOwner::Type type) { return std::string(root_of(type)); }

Result<std::string> affinities_prefix(const AffinityOwner& owner, std::optional<net::Family> family) {
  TRY_VOID(core::check_node_name(owner.name));
  const std::string all = fmt::format("{}{}/", root_of(owner.type), owner.name);
  return family ? fmt::format("{}{}/block/", all, family_name(*family)) : all;
}

std::string handles_prefix() { return std::string(kHandleRoot); }

std::string resources_prefix(ResourceKey::Kind kind) {
  for (const auto& [candidate, root] : kResourceRoots) {
    if (candidate == kind) return std::string(root);
  }
  CROFT_ASSERT(false);
}

}  // namespace croft::wire::calico
