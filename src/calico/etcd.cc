#include "calico/etcd.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <utility>

#include <fmt/format.h>

#include "base/net/echo.h"
#include "calico/json.h"

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
  if (attribute.handle_id) {
    out.key("handle_id");
    out.text(*attribute.handle_id);
  }
  if (!attribute.secondary.empty()) {
    out.key("secondary");
    write_texts(out, attribute.secondary);
  }
  if (!attribute.alternate_owner.empty()) {
    out.key("alternateOwnerAttrs");
    write_texts(out, attribute.alternate_owner);
  }
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
  out.key("allocations");
  out.begin_array();
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
  for (const auto& [name, number] : named) {
    out.key(name);
    out.unsigned_integer(number);
  }
  out.end_object();
}

void write_if_set(JsonWriter& out, std::string_view name, bool value) {
  if (!value) return;
  out.key(name);
  out.boolean(value);
}

void write_if_set(JsonWriter& out, std::string_view name, std::uint32_t value) {
  if (value == 0) return;
  out.key(name);
  out.integer(value);
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
  out.key("cidr");
  out.text(record.block.cidr.to_string());
  write_owner(out, record.block);
  write_allocations(out, record.block);
  write_unallocated(out, record);
  write_attributes(out, record);
  out.key("sequenceNumber");
  out.unsigned_integer(record.block.sequence_number.value);
  write_sequence_numbers(out, record);
  out.key("deleted");
  out.boolean(record.block.deleted);
  if (record.rest.host_affinity) {
    out.key("hostAffinity");
    out.text(*record.rest.host_affinity);
  }
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
  out.key("state");
  out.text(is_unsaid ? std::string_view() : named->second);
  out.key("deleted");
  out.boolean(record.affinity.deleted);
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
    for (const auto& [cidr, count] : record.handle.blocks) {
      out.key(cidr);
      out.integer(count);
    }
    out.end_object();
  }
  out.key("deleted");
  out.boolean(record.handle.deleted);
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
  write_if_set(out, "maxBlocksPerHost", config.max_blocks_per_host);
  if (!config.kubevirt_vm_address_persistence.empty() || record.persistence_empty) {
    out.key("kubeVirtVMAddressPersistence");
    out.text(config.kubevirt_vm_address_persistence);
  }
  write_if_set(out, "ipCooldownSeconds", config.ip_cooldown_seconds);
  write_rest(out, record.rest);
  out.end_object();
  return std::move(out).take();
}

}  // namespace croft::wire::calico
