#include <algorithm>
#include <charconv>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/hex.h"
#include "base/shared_map.h"
#include "register/format/fields.h"
#include "register/format/records.h"
#include "register/pool.h"

namespace croft::wire {
namespace {

using core::Attribute;
using core::Block;
using core::Cooling;
using core::CoolingBeside;

/// A longer list is damage, not a reason to use memory.
constexpr std::uint32_t kOrdinalMax = core::kBlockSizeMax - 1;

std::optional<BootId> boot_of(std::string_view hex) {
  const auto bytes = bytes_of_hex<sizeof(BootId::bytes)>(hex);
  return bytes ? std::optional(BootId{*bytes}) : std::nullopt;
}

/// Nothing unless writing it gives the same texts again.
std::optional<core::ClockMark> mark_of(std::string_view hex, const std::string& text) {
  const auto boot = boot_of(hex);
  std::int64_t count = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), count);
  if (!boot || error != std::errc() || end != text.data() + text.size() || std::to_string(count) != text) return {};
  return core::ClockMark{*boot, std::chrono::nanoseconds{count}};
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

void write_last_holder(CanonicalWriter& out, const Cooling& cooling) {
  const bool has_marks = !cooling.seen.empty() || cooling.cooldown.count() > 0;
  has_marks ? out.texts(with_marks(cooling)) : out.texts(cooling.previous_secondary);
}

void read_last_holder(CanonicalReader& in, Cooling& cooling) {
  cooling.previous_secondary = in.texts();
  take_marks(cooling);
}

// clang-format off: a member a line
constexpr auto kCooling = fields(field("releasedAt", Within{&Cooling::released_at, &Instant::wall}),
                                 field("sinceBootNanoseconds", Within{&Cooling::released_at, &Instant::since_boot}),
                                 field("bootID", Within{&Cooling::released_at, &Instant::boot}, BootIdText{}),
                                 field("previousHandle", &Cooling::previous_handle),
                                 field_of_all("previousSecondary", write_last_holder, read_last_holder));

constexpr auto kAttribute =
    fields(field("handle_id", &Attribute::handle_id, OrNull{}), unless_empty("secondary", &Attribute::secondary),
           unless_empty("alternateOwnerAttrs", &Attribute::alternate_owner), spread<kCooling>(&Attribute::cooling));
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

void write_free_list(CanonicalWriter& out, const Block& block) { write_list(out, Plain{}, block.unallocated.order()); }

void read_free_list(CanonicalReader& in, Block& block) {
  std::vector<std::uint32_t> order;
  one_an_address(UpTo{kOrdinalMax}).read(in, order);
  if (!in.ok()) return;
  const auto size = static_cast<std::uint32_t>(block.allocations.size());
  auto free_list = core::space::OrderedFreeList::from_order(size, std::move(order));
  if (free_list) {
    block.unallocated = *std::move(free_list);
  } else {
    in.reject("unallocated names an ordinal twice or one outside the block");
  }
}

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
           field_of_all("unallocated", write_free_list, read_free_list),
           field("attributes", &Block::attributes, one_an_address(Object<kAttribute>{})),
           field("sequenceNumber", &Block::sequence_number),
           field("sequenceNumberForAllocation", &Block::sequence_number_for_allocation, SequenceNumbers{}),
           field("deleted", &Block::deleted));
// clang-format on

constexpr auto kBesideOrdinal = fields(field("ordinal", &CoolingBeside::ordinal, UpTo{kOrdinalMax}));
constexpr auto kBesideRest =
    fields(field("sequenceNumber", &CoolingBeside::sequence_number), spread<kCooling>(&CoolingBeside::cooling));

/// Ascending by ordinal.
struct CoolingList {
  static void write(CanonicalWriter& out, const CoolingBeside& one) {
    kBesideOrdinal.write(out, one, Lead::brace);
    kBesideRest.write(out, one, Lead::comma);
    out.raw("}");
  }
  static void write(CanonicalWriter& out, const std::vector<CoolingBeside>& list) {
    write_list(out, CoolingList{}, list);
  }
  static void read(CanonicalReader& in, std::vector<CoolingBeside>& list) {
    read_list(in, kOrdinalMax + 1, list, [&](CoolingBeside& one) {
      kBesideOrdinal.read(in, one, Lead::brace);
      const bool is_next = list.size() < 2 || list[list.size() - 2].ordinal < one.ordinal;
      if (!is_next) in.reject("ordinal out of order");
      kBesideRest.read(in, one, Lead::comma);
      in.expect("}");
    });
  }
};

constexpr auto kCoolingBeside = fields(field("cooling", std::identity{}, CoolingList{}));

}  // namespace

std::map<std::string, std::string> previous_secondary_of(const Cooling& cooling) { return with_marks(cooling); }

void BootIdText::write(CanonicalWriter& out, const BootId& boot) { out.text(hex_of(boot.bytes)); }
void BootIdText::read(CanonicalReader& in, BootId& value) {
  const auto boot = boot_of(in.text());
  if (!boot) in.reject("no boot id of 32 hex digits");
  value = boot.value_or(BootId{});
}

void write_members(CanonicalWriter& out, const Cooling& cooling) { kCooling.write(out, cooling, Lead::none); }
void read_members(CanonicalReader& in, Cooling& cooling) { kCooling.read(in, cooling, Lead::none); }
void write_members(CanonicalWriter& out, const Block& block) { kBlock.write(out, block); }
void read_members(CanonicalReader& in, Block& block) { kBlock.read(in, block); }
void write_cooling_beside(CanonicalWriter& out, const std::vector<CoolingBeside>& beside) {
  kCoolingBeside.write(out, beside);
}
void read_cooling_beside(CanonicalReader& in, std::vector<CoolingBeside>& beside) { kCoolingBeside.read(in, beside); }
void write_members(CanonicalWriter& out, const core::BlockBeside& beside) { write_cooling_beside(out, beside.cooling); }
void read_members(CanonicalReader& in, core::BlockBeside& beside) { read_cooling_beside(in, beside.cooling); }

}  // namespace croft::wire
