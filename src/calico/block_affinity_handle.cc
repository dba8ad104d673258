#include <algorithm>
#include <charconv>
#include <cstring>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "base/assert.h"
#include "base/printable.h"
#include "base/texts.h"
#include "calico/json.h"
#include "register/format/canonical_json.h"

namespace croft::wire::calico {
namespace {

using core::AffinityState;
using core::Attribute;
using core::Block;

/// Unknown members of an entry of a block's `attributes`, and what tells that entry again after the block changed: who
/// held which ordinals, by which sequence numbers.
struct AttributeRest {
  std::map<std::uint32_t, core::SequenceNumber> holders;
  std::optional<std::string> handle_id;
  bool cooling = false;
  RawMembers members;
};

// The members that core has no place for. The default is that of a record that Calico just made; the marks of absence
// are only looked at while what was absent is empty.

struct BlockRest final : core::ForeignRest {
  bool attributes_null = true, unallocated_null = false, sequence_numbers_null = false;
  std::optional<std::string> host_affinity;
  std::vector<AttributeRest> attributes;
  RawMembers members;
};

/// The same of an affinity, a handle or the configuration.
struct SmallRest final : core::ForeignRest {
  /// Old affinities have no state, which means confirmed; a handle's blocks are null;
  /// `kubeVirtVMAddressPersistence` is there and empty.
  bool is_unsaid = false;
  RawMembers members;
};

using AffinityDraft = Draft<core::Affinity, SmallRest>;
using HandleDraft = Draft<core::Handle, SmallRest>;
using ConfigDraft = Draft<core::IpamConfig, SmallRest>;

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
  out.unallocated_null = at.value.is_null();
  return read_list<std::uint32_t>(
      at, kBlockSizeMax,
      [](const JsonAt& element, std::uint32_t& ordinal) { return read_number(element, kBlockSizeMax - 1, ordinal); },
      out.unallocated);
}

MaybeFault read_attributes(const JsonAt& at, BlockDraft& out) {
  out.attributes_null = at.value.is_null();
  return read_list<AttributeDraft>(
      at, kBlockSizeMax,
      [](const JsonAt& element, AttributeDraft& attribute) {
        return read_kept<AttributeDraft>(element, kAttributeMembers, attribute, attribute.rest);
      },
      out.attributes);
}

MaybeFault read_sequence_numbers(const JsonAt& at, BlockDraft& out) {
  out.sequence_numbers_null = at.value.is_null();
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
    {"hostAffinity", [](const JsonAt& at, BlockDraft& out) { return read_optional_text(at, out.host_affinity); }},
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
[[nodiscard]] Result<Block> finish(BlockDraft draft) {
  Block block = std::move(draft.block);
  const auto size = static_cast<std::uint32_t>(block.allocations.size());
  // check_block looks at the number of allocations before anything that depends on it; with a wrong one the free list
  // stays empty.
  const bool is_sized = block.cidr.is_valid() && block.cidr.last_offset() == net::U128{size} - net::U128{1};
  if (is_sized) {
    auto free_list = core::space::OrderedFreeList::from_order(size, std::move(draft.unallocated));
    if (!free_list) return fail(free_list.error().in("unallocated"));
    block.unallocated = *std::move(free_list);
  }
  for (AttributeDraft& attribute : draft.attributes) block.attributes.push_back(std::move(attribute.attribute));
  TRY_VOID(core::check_block(block));
  const auto rest = std::make_shared<BlockRest>();
  for (std::uint32_t i = 0; i < draft.attributes.size(); ++i) {
    Attribute& attribute = block.attributes[i];
    if (attribute.cooling) attribute.cooling->in_calicos_way = true;
    if (draft.attributes[i].rest.empty()) continue;
    rest->attributes.push_back({holders_of(block, i), attribute.handle_id, attribute.cooling.has_value(),
                                std::move(draft.attributes[i].rest)});
  }
  const bool is_plain = draft.attributes_null && !draft.unallocated_null && !draft.sequence_numbers_null &&
                        !draft.host_affinity && draft.members.empty();
  if (is_plain) return block;
  rest->attributes_null = draft.attributes_null;
  rest->unallocated_null = draft.unallocated_null;
  rest->sequence_numbers_null = draft.sequence_numbers_null;
  rest->host_affinity = std::move(draft.host_affinity);
  rest->members = std::move(draft.members);
  block.rest = rest;
  return block;
}

// ---------------------------------------------------------------- reading: the others

constexpr JsonMember<AffinityDraft> kAffinityMembers[] = {
    {"state",
     [](const JsonAt& at, AffinityDraft& out) {
       std::string text;
       if (auto fault = read_text(at, kTextBytesMax, text)) return fault;
       out.rest->is_unsaid = text.empty();
       if (text.empty()) return MaybeFault();
       const auto state = value_in(core::kAffinityStates, text);
       if (!state) return MaybeFault(at.bad_value(echo(text) + " is no state of an affinity"));
       out.record.state = *state;
       return MaybeFault();
     }},
    {"deleted", [](const JsonAt& at, AffinityDraft& out) { return read_boolean(at, out.record.deleted); }},
};

constexpr JsonMember<HandleDraft> kHandleMembers[] = {
    {"block",
     [](const JsonAt& at, HandleDraft& out) {
       out.rest->is_unsaid = at.value.is_null();
       return read_map(at, out.record.blocks, [](const JsonAt& inner, std::string& name, std::uint32_t& count) {
         name = inner.name;
         if (!net::parse_prefix(name)) return MaybeFault(inner.bad_value("its name is no CIDR"));
         return read_number(inner, UINT32_MAX, count);
       });
     }},
    {"deleted", [](const JsonAt& at, HandleDraft& out) { return read_boolean(at, out.record.deleted); }},
};

constexpr JsonMember<ConfigDraft> kConfigMembers[] = {
    {"strict_affinity",
     [](const JsonAt& at, ConfigDraft& out) { return read_boolean(at, out.record.strict_affinity); }},
    {"auto_allocate_blocks",
     [](const JsonAt& at, ConfigDraft& out) { return read_boolean(at, out.record.auto_allocate_blocks); }},
    {"maxBlocksPerHost",
     [](const JsonAt& at, ConfigDraft& out) { return read_number(at, UINT32_MAX, out.record.max_blocks_per_host); }},
    {"kubeVirtVMAddressPersistence",
     [](const JsonAt& at, ConfigDraft& out) {
       auto fault = read_text(at, kTextBytesMax, out.record.kubevirt_vm_address_persistence);
       out.rest->is_unsaid = !at.value.is_null() && out.record.kubevirt_vm_address_persistence.empty();
       return fault;
     }},
    {"ipCooldownSeconds",
     [](const JsonAt& at, ConfigDraft& out) { return read_number(at, UINT32_MAX, out.record.ip_cooldown_seconds); }},
};

// ---------------------------------------------------------------- writing

/// Unknown members of entry `index`, or none.
const RawMembers* members_of(const Block& block, const BlockRest& rest, std::uint32_t index) {
  if (rest.attributes.empty()) return nullptr;
  const Attribute& attribute = block.attributes[index];
  const auto holders = holders_of(block, index);
  const auto is_same = [&](const AttributeRest& one) {
    return one.handle_id == attribute.handle_id && one.cooling == attribute.cooling.has_value() &&
           std::ranges::any_of(one.holders, [&](const auto& holder) {
             const auto found = holders.find(holder.first);
             return found != holders.end() && found->second == holder.second;
           });
  };
  const auto same = std::ranges::find_if(rest.attributes, is_same);
  return same == rest.attributes.end() ? nullptr : &same->members;
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

void write_unallocated(JsonWriter& out, const Block& block, const BlockRest& rest) {
  out.key("unallocated");
  const auto order = block.unallocated.order();
  if (order.empty() && rest.unallocated_null) return out.null();
  out.begin_array();
  for (const std::uint32_t ordinal : order) out.integer(ordinal);
  out.end_array();
}

void write_attributes(JsonWriter& out, const Block& block, const BlockRest& rest) {
  out.key("attributes");
  const auto& attributes = block.attributes;
  if (attributes.empty() && rest.attributes_null) return out.null();
  out.begin_array();
  for (std::uint32_t i = 0; i < attributes.size(); ++i) {
    write_attribute(out, attributes[i], members_of(block, rest, i));
  }
  out.end_array();
}

/// In the order of the names as text: 1, 10, 2.
void write_sequence_numbers(JsonWriter& out, const Block& block, const BlockRest& rest) {
  out.key("sequenceNumberForAllocation");
  const auto& numbers = block.sequence_number_for_allocation;
  if (numbers.empty() && rest.sequence_numbers_null) return out.null();
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

[[nodiscard]] Result<core::Value> decode_block(const core::Key& key, std::string_view bytes) {
  const auto cidr = core::block_cidr_of(key);
  if (!cidr) return fail(core::cidr_of(key).error());
  auto draft = scan_block(bytes);
  if (!draft) {
    draft.emplace();
    TRY_VOID(decode_into<BlockDraft>(key, bytes, kBlockMembers, *draft, draft->members));
  }
  if (draft->block.cidr != *cidr) return fail(damaged(key, "its cidr is " + draft->block.cidr.to_string()));
  auto block = finish(*std::move(draft));
  if (!block) return fail(damaged(key, block.error().message));
  return core::Value(*std::move(block));
}

template <class D>
[[nodiscard]] Result<core::Value> decode_small(const core::Key& key, std::string_view bytes,
                                               std::span<const JsonMember<D>> members, D draft) {
  TRY_VOID(decode_into<D>(key, bytes, members, draft, draft.rest->members));
  if (draft.rest->is_unsaid || !draft.rest->members.empty()) draft.record.rest = std::move(draft.rest);
  return core::Value(std::move(draft.record));
}

[[nodiscard]] Result<core::Value> decode_affinity(const core::Key& key, std::string_view bytes) {
  AffinityDraft draft;
  TRY(draft.record.cidr, core::cidr_of(key));
  auto owner = owner_in(key.name);
  if (!owner) return fail(ErrorCode::corrupt, "affinity {} has no owner", echo(key.name));
  draft.record.owner = *std::move(owner);
  draft.rest->is_unsaid = true;
  return decode_small<AffinityDraft>(key, bytes.empty() ? "{}" : bytes, kAffinityMembers, std::move(draft));
}

}  // namespace

Result<core::Value> decode_other(const core::Key& key, std::string_view bytes) {
  if (key.kind == core::Kind::block) return decode_block(key, bytes);
  if (key.kind == core::Kind::affinity) return decode_affinity(key, bytes);
  if (key.kind == core::Kind::handle) {
    HandleDraft draft;
    draft.record.id = key.name;
    draft.rest->is_unsaid = true;
    return decode_small<HandleDraft>(key, bytes, kHandleMembers, std::move(draft));
  }
  CROFT_ASSERT(key.kind == core::Kind::ipam_config);
  ConfigDraft draft;
  draft.record.auto_allocate_blocks = false;  // left out when false
  return decode_small<ConfigDraft>(key, bytes, kConfigMembers, std::move(draft));
}

std::string encode(const Block& block, const Birth&) {
  const auto& rest = rest_of<BlockRest>(block.rest);
  // A typical attribute has 300 bytes, everything else of an address 30.
  const std::size_t bytes_expected = 300 * block.attributes.size() + 30 * block.allocations.size() + 300;
  JsonWriter out(JsonWriter::Layout::compact, bytes_expected);
  out.begin_object();
  out.text("cidr", block.cidr.to_string());
  write_owner(out, block);
  write_allocations(out, block);
  write_unallocated(out, block, rest);
  write_attributes(out, block, rest);
  out.unsigned_integer("sequenceNumber", block.sequence_number.value);
  write_sequence_numbers(out, block, rest);
  out.boolean("deleted", block.deleted);
  if (rest.host_affinity) out.text("hostAffinity", *rest.host_affinity);
  write_rest(out, rest.members);
  out.end_object();
  return std::move(out).take();
}

std::string encode(const core::Affinity& affinity, const Birth&) {
  const auto& rest = rest_of<SmallRest>(affinity.rest);
  const bool is_unsaid = affinity.state == AffinityState::confirmed && rest.is_unsaid;
  JsonWriter out(JsonWriter::Layout::compact);
  out.begin_object();
  out.text("state", is_unsaid ? std::string_view() : word_in(core::kAffinityStates, affinity.state));
  out.boolean("deleted", affinity.deleted);
  write_rest(out, rest.members);
  out.end_object();
  return std::move(out).take();
}

std::string encode(const core::Handle& handle, const Birth&) {
  const auto& rest = rest_of<SmallRest>(handle.rest);
  JsonWriter out(JsonWriter::Layout::compact);
  out.begin_object();
  out.key("block");
  if (handle.blocks.empty() && rest.is_unsaid) {
    out.null();
  } else {
    out.begin_object();
    for (const auto& [cidr, count] : handle.blocks) out.integer(cidr, count);
    out.end_object();
  }
  out.boolean("deleted", handle.deleted);
  write_rest(out, rest.members);
  out.end_object();
  return std::move(out).take();
}

std::string encode(const core::IpamConfig& config, const Birth&) {
  const auto& rest = rest_of<SmallRest>(config.rest);
  JsonWriter out(JsonWriter::Layout::compact);
  out.begin_object();
  write_if_set(out, "strict_affinity", config.strict_affinity);
  write_if_set(out, "auto_allocate_blocks", config.auto_allocate_blocks);
  write_number_if_set(out, "maxBlocksPerHost", config.max_blocks_per_host);
  if (!config.kubevirt_vm_address_persistence.empty() || rest.is_unsaid) {
    out.text("kubeVirtVMAddressPersistence", config.kubevirt_vm_address_persistence);
  }
  write_number_if_set(out, "ipCooldownSeconds", config.ip_cooldown_seconds);
  write_rest(out, rest.members);
  out.end_object();
  return std::move(out).take();
}

namespace {

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
  draft.unallocated_null = in.accept("null");
  if (!draft.unallocated_null) {
    draft.unallocated = scan_list<std::uint32_t>(in, size, [&](std::uint32_t& o) { o = in.small_number(kOrdinalMax); });
  }
  in.expect(",\"attributes\":");
  draft.attributes_null = in.accept("null");
  if (!draft.attributes_null) {
    draft.attributes = scan_list<AttributeDraft>(in, size, [&](AttributeDraft& a) { scan_attribute(in, a.attribute); });
  }
  in.expect(",\"sequenceNumber\":");
  block.sequence_number = core::SequenceNumber(in.unsigned_number());
  in.expect(",\"sequenceNumberForAllocation\":");
  draft.sequence_numbers_null = in.accept("null");
  if (!draft.sequence_numbers_null) scan_sequence_numbers(in, block.sequence_number_for_allocation.own());
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
