#include <algorithm>
#include <charconv>
#include <chrono>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>

#include "base/hex.h"
#include "core/register/pool.h"
#include "wire/records/fields.h"

namespace croft::wire {
namespace {

using core::Attribute;
using core::Block;
using core::Cooling;

/// The largest block has 4096 addresses (core::check_block); a longer list is damage, not a reason to use memory.
constexpr std::uint32_t kOrdinalMax = 4095;

std::optional<BootId> boot_of(std::string_view hex) {
  const auto bytes = bytes_of_hex<sizeof(BootId::bytes)>(hex);
  return bytes ? std::optional(BootId{*bytes}) : std::nullopt;
}

BootId read_boot(CanonicalReader& in) {
  const auto boot = boot_of(in.text());
  if (!boot) in.reject("no boot id of 32 hex digits");
  return boot.value_or(BootId{});
}

/// Nothing unless writing it gives the same texts again.
std::optional<core::ClockMark> mark_of(std::string_view hex, const std::string& text) {
  const auto boot = boot_of(hex);
  std::int64_t count = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), count);
  if (!boot || error != std::errc() || end != text.data() + text.size() || std::to_string(count) != text) return {};
  return core::ClockMark{*boot, std::chrono::nanoseconds{count}};
}

void write_attribute(CanonicalWriter& out, const Attribute& attribute) {
  out.raw("{\"handle_id\":");
  if (attribute.handle_id) {
    out.text(*attribute.handle_id);
  } else {
    out.raw("null");
  }
  if (!attribute.secondary.empty()) out.raw(",\"secondary\":").texts(attribute.secondary);
  if (!attribute.alternate_owner.empty()) out.raw(",\"alternateOwnerAttrs\":").texts(attribute.alternate_owner);
  if (attribute.cooling) {
    out.raw(",");
    write_cooling(out, *attribute.cooling);
  }
  out.raw("}");
}

Attribute read_attribute(CanonicalReader& in) {
  Attribute attribute;
  in.expect("{\"handle_id\":");
  if (!in.accept("null")) attribute.handle_id = in.text();
  if (in.accept(",\"secondary\":")) attribute.secondary = in.texts();
  if (in.accept(",\"alternateOwnerAttrs\":")) attribute.alternate_owner = in.texts();
  if (in.accept(",")) attribute.cooling = read_cooling(in);
  in.expect("}");
  return attribute;
}

/// Of at most one element an address.
template <class ReadOne>
auto read_ordinals(CanonicalReader& in, ReadOne read_one) {
  return read_list(in, kOrdinalMax + 1, read_one);
}

void write_sequence_numbers(CanonicalWriter& out, const std::map<std::uint32_t, core::SequenceNumber>& numbers) {
  char separator = '{';
  for (const auto& [ordinal, sequence_number] : numbers) {
    out.raw({&separator, 1}).raw("\"").number(std::uint64_t{ordinal}).raw("\":").number(sequence_number.value);
    separator = ',';
  }
  out.raw(numbers.empty() ? "{}" : "}");
}

/// Ascending by number, not by text.
std::map<std::uint32_t, core::SequenceNumber> read_sequence_numbers(CanonicalReader& in) {
  std::map<std::uint32_t, core::SequenceNumber> numbers;
  if (in.accept("{}")) return numbers;
  in.expect("{");
  do {
    in.expect("\"");
    const std::uint32_t ordinal = in.small_number(kOrdinalMax);
    in.expect("\":");
    if (!numbers.empty() && numbers.rbegin()->first >= ordinal) in.reject("ordinal out of order");
    numbers.emplace_hint(numbers.end(), ordinal, in.unsigned_number());
  } while (in.another('}'));
  return numbers;
}

void write_owner_and_claim(CanonicalWriter& out, const Block& block) {
  if (block.affinity) out.raw(",\"affinity\":").text(core::to_string(*block.affinity));
  if (block.affinity_claim_time) out.raw(",\"affinityClaimTime\":").time(*block.affinity_claim_time);
}

void read_owner_and_claim(CanonicalReader& in, Block& block) {
  if (in.accept(",\"affinity\":")) {
    const auto owner = core::parse_affinity_owner(in.text());
    if (owner) {
      block.affinity = *owner;
    } else {
      in.reject("affinity is neither host:NAME nor virtual:NAME");
    }
  }
  if (in.accept(",\"affinityClaimTime\":")) block.affinity_claim_time = in.time();
}

void read_free_list(CanonicalReader& in, Block& block) {
  auto order = read_ordinals(in, [&] { return in.small_number(kOrdinalMax); });
  if (!in.ok()) return;
  const auto size = static_cast<std::uint32_t>(block.allocations.size());
  auto free_list = core::space::OrderedFreeList::from_order(size, std::move(order));
  if (free_list) {
    block.unallocated = *std::move(free_list);
  } else {
    in.reject("unallocated names an ordinal twice or one outside the block");
  }
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
  std::int64_t count = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), count);
  const bool reads = error == std::errc() && end == text.data() + text.size() && std::to_string(count) == text;
  const bool is_one = reads && count > 0 && count <= core::kCooldownMax.count();
  return std::chrono::seconds{is_one ? count : 0};
}

/// What reads as marks is taken out of the texts; anything else under such a name stays a text.
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

}  // namespace

void write_cooling(CanonicalWriter& out, const Cooling& cooling) {
  out.raw("\"releasedAt\":").time(cooling.released_at.wall);
  out.raw(",\"sinceBootNanoseconds\":").number(std::int64_t{cooling.released_at.since_boot.count()});
  out.raw(",\"bootID\":");
  out.text(hex_of(cooling.released_at.boot.bytes));
  out.raw(",\"previousHandle\":").text(cooling.previous_handle);
  out.raw(",\"previousSecondary\":");
  const bool has_marks = !cooling.seen.empty() || cooling.cooldown.count() > 0;
  has_marks ? out.texts(with_marks(cooling)) : out.texts(cooling.previous_secondary);
}

Cooling read_cooling(CanonicalReader& in) {
  Cooling cooling;
  in.expect("\"releasedAt\":");
  cooling.released_at.wall = in.time();
  in.expect(",\"sinceBootNanoseconds\":");
  cooling.released_at.since_boot = std::chrono::nanoseconds{in.signed_number()};
  in.expect(",\"bootID\":");
  cooling.released_at.boot = read_boot(in);
  in.expect(",\"previousHandle\":");
  cooling.previous_handle = in.text();
  in.expect(",\"previousSecondary\":");
  cooling.previous_secondary = in.texts();
  take_marks(cooling);
  return cooling;
}

void write_block(CanonicalWriter& out, const Block& block) {
  out.raw("\"cidr\":");
  write_prefix(out, block.cidr);
  write_owner_and_claim(out, block);
  out.raw(",\"allocations\":");
  write_list(out, block.allocations, [&](const std::optional<std::uint32_t>& index) {
    index ? out.number(std::uint64_t{*index}) : out.raw("null");
  });
  out.raw(",\"unallocated\":");
  write_list(out, block.unallocated.order(), [&](std::uint32_t o) { out.number(std::uint64_t{o}); });
  out.raw(",\"attributes\":");
  write_list(out, block.attributes, [&](const Attribute& attribute) { write_attribute(out, attribute); });
  out.raw(",\"sequenceNumber\":").number(block.sequence_number.value);
  out.raw(",\"sequenceNumberForAllocation\":");
  write_sequence_numbers(out, block.sequence_number_for_allocation);
  out.raw(",\"deleted\":").boolean(block.deleted);
}

Block read_block(CanonicalReader& in) {
  Block block;
  in.expect("\"cidr\":");
  block.cidr = read_prefix(in);
  read_owner_and_claim(in, block);
  in.expect(",\"allocations\":");
  block.allocations = read_ordinals(in, [&]() -> std::optional<std::uint32_t> {
    if (in.accept("null")) return std::nullopt;
    return in.small_number(kOrdinalMax);
  });
  in.expect(",\"unallocated\":");
  read_free_list(in, block);
  in.expect(",\"attributes\":");
  block.attributes = read_ordinals(in, [&] { return read_attribute(in); });
  in.expect(",\"sequenceNumber\":");
  block.sequence_number = core::SequenceNumber(in.unsigned_number());
  in.expect(",\"sequenceNumberForAllocation\":");
  block.sequence_number_for_allocation = read_sequence_numbers(in);
  in.expect(",\"deleted\":");
  block.deleted = in.boolean();
  return block;
}

namespace {

constexpr std::uint32_t kBesideOrdinalMax = 4095;

}  // namespace

void write_cooling_beside(CanonicalWriter& out, const std::vector<core::CoolingBeside>& beside) {
  out.raw("\"cooling\":");
  std::string_view separator = "[";
  for (const core::CoolingBeside& one : beside) {
    out.raw(separator).raw("{\"ordinal\":").number(std::uint64_t{one.ordinal});
    out.raw(",\"sequenceNumber\":").number(one.sequence_number.value).raw(",");
    write_cooling(out, one.cooling);
    out.raw("}");
    separator = ",";
  }
  out.raw(beside.empty() ? "[]" : "]");
}

std::vector<core::CoolingBeside> read_cooling_beside(CanonicalReader& in) {
  std::vector<core::CoolingBeside> beside;
  in.expect("\"cooling\":");
  if (in.accept("[]")) return beside;
  in.expect("[");
  do {
    core::CoolingBeside one;
    in.expect("{\"ordinal\":");
    one.ordinal = in.small_number(kBesideOrdinalMax);
    if (!beside.empty() && one.ordinal <= beside.back().ordinal) in.reject("ordinal out of order");
    in.expect(",\"sequenceNumber\":");
    one.sequence_number = core::SequenceNumber(in.unsigned_number());
    in.expect(",");
    one.cooling = read_cooling(in);
    in.expect("}");
    beside.push_back(std::move(one));
  } while (in.another(']') && beside.size() <= kBesideOrdinalMax);
  return beside;
}

}  // namespace croft::wire
