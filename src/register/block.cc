#include "register/block.h"

#include <limits>
#include <utility>

#include <fmt/format.h>

#include "base/assert.h"
#include "base/letters.h"
#include "base/planted.h"
#include "base/texts.h"
#include "base/time_text.h"
#include "register/pool.h"

namespace croft::core {
namespace {

using net::Ordinal;

/// The first number of a block that is made in the last years that a wall clock of 64 bits knows.
constexpr std::uint64_t kSequenceOfWallMax = kHighWaterMarkMax - (std::uint64_t{1} << 40);

/// The largest number that can be read.
constexpr std::uint64_t kSequenceReadMax = std::numeric_limits<std::int64_t>::max() - 1;

template <class... Values>
auto corrupt(const Block& block, fmt::format_string<Values...> what, Values&&... values) {
  return fail(ErrorCode::corrupt, "block {} contradicts itself: {}", block.cidr,
              fmt::format(what, std::forward<Values>(values)...));
}

std::uint32_t attribute_index(Block& block, const Attribute& attribute) {
  const auto it = std::find(block.attributes.begin(), block.attributes.end(), attribute);
  if (it != block.attributes.end()) return static_cast<std::uint32_t>(it - block.attributes.begin());
  block.attributes.push_back(attribute);
  return static_cast<std::uint32_t>(block.attributes.size() - 1);
}

/// Drops attributes nobody refers to and renumbers the rest.
void prune_attributes(Block& block) {
  std::vector<std::optional<std::uint32_t>> renumbered(block.attributes.size());
  std::vector<Attribute> kept;
  for (auto& index : block.allocations) {
    if (!index) continue;
    auto& renumber = renumbered[*index];
    if (!renumber) {
      renumber = static_cast<std::uint32_t>(kept.size());
      kept.push_back(std::move(block.attributes[*index]));
    }
    index = renumber;
  }
  block.attributes = std::move(kept);
}

/// Records the holder of an ordinal that has just left the free list.
void allocate(Block& block, Ordinal ordinal, const Attribute& attribute) {
  block.allocations[ordinal.value] = attribute_index(block, attribute);
  block.sequence_number_for_allocation[ordinal.value] = block.sequence_number;
}

void free_ordinal(Block& block, std::uint32_t ordinal) {
  block.allocations[ordinal].reset();
  block.sequence_number_for_allocation.erase(ordinal);
  const bool was_taken = block.unallocated.give_back(Ordinal(ordinal));
  CROFT_ASSERT(was_taken);
}

const Cooling* cooling_of(const Block& block, std::uint32_t ordinal) {
  const auto index = block.allocations[ordinal];
  if (!index || !block.attributes[*index].cooling) return nullptr;
  return &*block.attributes[*index].cooling;
}

/// `span` after `time`; the end of time when that is sooner.
WallTime later(WallTime time, std::chrono::nanoseconds span) {
  if (span.count() > 0 && time > WallTime::max() - span) return WallTime::max();
  if (span.count() < 0 && time < WallTime::min() - span) return WallTime::min();
  return time + span;
}

/// Since when this boot has counted a cooldown; nothing when it has not. A moment that this boot has yet to reach is
/// none of its own, whatever the record says.
std::optional<std::chrono::nanoseconds> counted_since(const Cooling& cooling, const Instant& now) {
  if (now.boot == BootId{}) return {};
  std::optional<std::chrono::nanoseconds> since;
  const auto consider = [&](const BootId& boot, std::chrono::nanoseconds at) {
    const bool is_of_this_boot = boot == now.boot || is_planted("cooldown_across_boots");
    if (is_of_this_boot && at.count() >= 0 && at <= now.since_boot && (!since || at < *since)) since = at;
  };
  consider(cooling.released_at.boot, cooling.released_at.since_boot);
  for (const ClockMark& mark : cooling.seen) consider(mark.boot, mark.since_boot);
  return since;
}

/// More writes than a block sees while an address of it rests: a new block counts from the nanoseconds of its making,
/// so a gap above this is no count of writes but the time between two makings.
constexpr std::uint64_t kWritesMax = std::uint64_t{1} << 36;

/// When this block was made at the latest, if what is recorded is of one before it: its release came before that.
std::optional<WallTime> made_after(const CoolingBeside& one, const Block& block) {
  const std::uint64_t number = block.sequence_number.value;
  const std::uint64_t before = one.sequence_number.value;
  const bool is_of_one_before = before != 0 && before < number && number - before > kWritesMax;
  if (!is_of_one_before || number > kSequenceMax) return {};
  return WallTime(std::chrono::nanoseconds(static_cast<std::int64_t>(number)));
}

/// Whether no cooldown that began then can have outlasted the making.
bool has_ended(const Cooling& cooling, WallTime made) {
  return cooling.released_at.wall < made - (kCooldownMax + kClockSkewMax);
}

}  // namespace

std::string_view name_of(AddressState state) {
  static constexpr Words<AddressState, 4> kStates{{{"free", AddressState::free},
                                                   {"held", AddressState::held},
                                                   {"cooling", AddressState::cooling},
                                                   {"reserved", AddressState::reserved}}};
  return word_in(kStates, state);
}

std::uint32_t block_size(const net::Prefix& cidr) {
  const int host_bits = net::bit_length(cidr.family()) - cidr.length();
  CROFT_ASSERT(host_bits >= 0 && (std::uint32_t{1} << std::min(host_bits, 31)) <= kBlockSizeMax);
  return std::uint32_t{1} << host_bits;
}

Block new_block(const net::Prefix& cidr, std::optional<AffinityOwner> owner, const Instant& now,
                std::optional<SequenceNumber> high_water_mark) {
  Block block;
  block.cidr = cidr;
  if (owner) block.affinity_claim_time = next_whole_second(now.wall);
  block.affinity = std::move(owner);
  const std::uint32_t size = block_size(cidr);
  block.allocations.resize(size);
  block.unallocated = space::OrderedFreeList::all_free(size);
  const auto since_epoch = static_cast<std::uint64_t>(std::max<std::int64_t>(now.wall.time_since_epoch().count(), 1));
  const std::uint64_t wall = std::min(since_epoch, kSequenceOfWallMax);
  if (is_planted("sequence_restarts")) return block;
  block.sequence_number = SequenceNumber(high_water_mark ? std::max(wall, high_water_mark->value + 1) : wall);
  return block;
}

Result<void> check_block(const Block& block) {
  if (!block.cidr.is_valid()) return corrupt(block, "it has no cidr");
  const int host_bits = net::bit_length(block.cidr.family()) - block.cidr.length();
  if (host_bits > kBlockHostBitsMax) return corrupt(block, "it has more than {} addresses", kBlockSizeMax);
  const std::uint32_t size = std::uint32_t{1} << host_bits;
  if (block.allocations.size() != size) {
    return corrupt(block, "{} allocations for {} addresses", block.allocations.size(), size);
  }
  if (block.unallocated.size() != size) return corrupt(block, "its free list is of another size");
  if (block.sequence_number.value > kSequenceReadMax) return corrupt(block, "its sequence number is out of range");
  std::vector<bool> referenced(block.attributes.size());
  std::uint32_t free = 0;
  for (std::uint32_t ordinal = 0; ordinal < size; ++ordinal) {
    const auto index = block.allocations[ordinal];
    if (index && *index >= block.attributes.size()) {
      return corrupt(block, "ordinal {} points at attribute {} of {}", ordinal, *index, block.attributes.size());
    }
    if (index) referenced[*index] = true;
    if (!index) ++free;
    if (block.unallocated.is_free(Ordinal(ordinal)) == index.has_value()) {
      return corrupt(block, "ordinal {} is {}", ordinal,
                     index ? "both allocated and unallocated" : "neither allocated nor unallocated");
    }
  }
  if (block.unallocated.free_count() != free) return corrupt(block, "its free list has another length");
  if (block.deleted && free != size) {
    return corrupt(block, "it is deleted, and {} of its addresses are taken", size - free);
  }
  for (const auto& [ordinal, sequence] : block.sequence_number_for_allocation) {
    if (ordinal >= size) return corrupt(block, "sequence number for ordinal {} of {}", ordinal, size);
    if (sequence > block.sequence_number) {
      return corrupt(block, "ordinal {} is newer than its block", ordinal);
    }
  }
  for (std::size_t i = 0; i < referenced.size(); ++i) {
    if (!referenced[i]) return corrupt(block, "attribute {} belongs to no ordinal", i);
    if (block.attributes[i].cooling && block.attributes[i].handle_id) {
      return corrupt(block, "attribute {} is both held and cooling", i);
    }
  }
  return {};
}

Result<void> check_writable(const Block& block) {
  TRY_VOID(check_block(block));
  if (block.sequence_number.value <= kSequenceMax) return {};
  return corrupt(block, "its sequence number {} has no room to grow; restore it from a backup",
                 block.sequence_number.value);
}

bool cooldown_ended(const Cooling& cooling, std::chrono::seconds cooldown, const Instant& now) {
  return cooldown_end(cooling, cooldown, now) <= now.wall;
}

WallTime cooldown_end(const Cooling& cooling, std::chrono::seconds cooldown, const Instant& now) {
  if (is_planted("cooldown_by_wall_clock")) return later(cooling.released_at.wall, cooldown);
  if (const auto counted = counted_since(cooling, now)) return later(now.wall, cooldown - (now.since_boot - *counted));
  const auto unknown = cooling.in_calicos_way ? std::chrono::nanoseconds{0} : std::chrono::nanoseconds{kClockSkewMax};
  return std::max(later(now.wall, cooldown - now.since_boot),
                  later(later(cooling.released_at.wall, cooldown), unknown));
}

Cooling with_clock_mark(Cooling cooling, const Instant& now) {
  if (now.boot == BootId{}) return cooling;  // this machine can't tell its boots apart
  if (cooling.in_calicos_way || counted_since(cooling, now)) return cooling;
  std::erase_if(cooling.seen, [&](const ClockMark& mark) { return mark.boot == now.boot; });  // of a moment yet to come
  const ClockMark mark{now.boot, now.since_boot};
  if (cooling.seen.size() < kClockMarksMax) {
    cooling.seen.insert(std::lower_bound(cooling.seen.begin(), cooling.seen.end(), mark), mark);
  }
  return cooling;
}

Block with_clock_marks(Block block, const Instant& now) {
  for (Attribute& attribute : block.attributes) {
    if (attribute.cooling) attribute.cooling = with_clock_mark(*std::move(attribute.cooling), now);
  }
  return block;
}

Block with_cooled_freed(Block block, const Cooldowns& cooldowns, const Instant& now) {
  std::vector<std::pair<WallTime, std::uint32_t>> ended;
  for (std::uint32_t ordinal = 0; ordinal < block.allocations.size(); ++ordinal) {
    const Cooling* cooling = cooling_of(block, ordinal);
    if (cooling == nullptr) continue;
    const std::chrono::seconds cooldown = cooldowns.of(*cooling);
    const WallTime end = cooldown_end(*cooling, cooldown, now);
    if (end <= now.wall && !is_planted("rest_for_ever")) ended.emplace_back(end, ordinal);
  }
  if (ended.empty()) return block;
  std::sort(ended.begin(), ended.end());
  for (const auto& [end, ordinal] : ended) free_ordinal(block, ordinal);
  prune_attributes(block);
  return block;
}

std::optional<WallTime> first_cooldown_end(const Block& block, const Cooldowns& cooldowns, const Instant& now) {
  std::optional<WallTime> first;
  for (const Attribute& attribute : block.attributes) {
    if (!attribute.cooling) continue;
    const WallTime end = cooldown_end(*attribute.cooling, cooldowns.of(*attribute.cooling), now);
    if (!first || end < *first) first = end;
  }
  return first;
}

std::optional<Taken> take_next(Block block, const Attribute& attribute, const IsReserved& is_reserved) {
  const auto ordinal = block.unallocated.take_next_if(
      [&](Ordinal candidate) { return !is_reserved(net::address_at(block.cidr, candidate)); });
  if (!ordinal) return {};
  const net::Address address = net::address_at(block.cidr, *ordinal);
  allocate(block, *ordinal, attribute);
  return Taken{std::move(block), address};
}

Result<Taken> take_address(Block block, const net::Address& address, const Attribute& attribute) {
  const auto ordinal = net::ordinal_of(block.cidr, address);
  CROFT_ASSERT(ordinal.has_value());
  if (!block.unallocated.take(*ordinal)) {
    return fail(ErrorCode::already_exists, "{} is {}", address, name_of(state_of(block, *ordinal)));
  }
  allocate(block, *ordinal, attribute);
  return Taken{std::move(block), address};
}

std::uint32_t free_count(const Block& block, const IsReserved& is_reserved) {
  const auto order = block.unallocated.order();
  return static_cast<std::uint32_t>(std::count_if(order.begin(), order.end(), [&](std::uint32_t ordinal) {
    return !is_reserved(net::address_at(block.cidr, Ordinal(ordinal)));
  }));
}

AddressState state_of(const Block& block, Ordinal ordinal) {
  CROFT_ASSERT(ordinal.value < block.allocations.size());
  if (!block.allocations[ordinal.value]) return AddressState::free;
  return cooling_of(block, ordinal.value) != nullptr ? AddressState::cooling : AddressState::held;
}

std::string member_of(const std::map<std::string, std::string>& attributes, const char* key) {
  const auto found = attributes.find(key);
  return found != attributes.end() ? found->second : std::string();
}

PodIdentity pod_of(const std::map<std::string, std::string>& attributes) {
  return {member_of(attributes, kPodKey), member_of(attributes, kNamespaceKey), member_of(attributes, kPodUidKey)};
}

bool is_borrowed(const Block& block, const Attribute& holder) {
  const std::string node = member_of(holder.secondary, kNodeKey);
  return !node.empty() && (!block.affinity || block.affinity->name != node);
}

const Attribute* attribute_of(const Block& block, Ordinal ordinal) {
  CROFT_ASSERT(ordinal.value < block.allocations.size());
  const auto index = block.allocations[ordinal.value];
  return index ? &block.attributes[*index] : nullptr;
}

SequenceNumber sequence_of(const Block& block, Ordinal ordinal) {
  const auto it = block.sequence_number_for_allocation.find(ordinal.value);
  return it == block.sequence_number_for_allocation.end() ? SequenceNumber() : it->second;
}

std::vector<Ordinal> held_by(const Block& block, const Owner& owner) {
  std::vector<bool> is_owners(block.attributes.size());
  for (std::size_t i = 0; i < is_owners.size(); ++i) {
    const Attribute& attribute = block.attributes[i];
    is_owners[i] = attribute.handle_id && matches(owner, *attribute.handle_id, attribute.secondary);
  }
  std::vector<Ordinal> result;
  for (std::uint32_t ordinal = 0; ordinal < block.allocations.size(); ++ordinal) {
    const auto index = block.allocations[ordinal];
    if (index && is_owners[*index]) result.emplace_back(ordinal);
  }
  return result;
}

Block with_freed(Block block, Ordinal ordinal) {
  free_ordinal(block, ordinal.value);
  prune_attributes(block);
  return block;
}

Block release(Block block, std::span<const Ordinal> ordinals, const Cooldowns& cooldowns, const Instant& now) {
  const bool calicos_way = cooldowns.calicos_way();
  // Nobody knows the cooldown of a damaged pool; that is no reason to rest for ever once it is mended.
  const auto recorded = calicos_way ? std::chrono::seconds{0} : std::min(cooldowns.own, kCooldownMax);
  for (const Ordinal ordinal : ordinals) {
    CROFT_ASSERT(state_of(block, ordinal) == AddressState::held);
    if ((!calicos_way && cooldowns.own.count() == 0) || is_planted("cooling_forgotten")) {
      free_ordinal(block, ordinal.value);
      continue;
    }
    const Attribute& held = *attribute_of(block, ordinal);
    Attribute cooling;
    Instant released_at = now;
    if (is_planted("released_an_hour_early")) released_at.since_boot -= std::chrono::hours{1};
    cooling.cooling = Cooling{released_at, held.handle_id.value_or(""), held.secondary, calicos_way, {}, recorded};
    block.allocations[ordinal.value] = attribute_index(block, cooling);
    block.sequence_number_for_allocation[ordinal.value] = block.sequence_number;
  }
  prune_attributes(block);
  return block;
}

bool is_empty(const Block& block) {
  if (block.unallocated.free_count() == block.unallocated.size()) return true;
  const auto is_windows = [](const Attribute& attribute) {
    return attribute.handle_id && equals_ignoring_case(*attribute.handle_id, kWindowsReservedHandle);
  };
  const auto is_nobodys = [&](const Attribute& attribute) {
    return is_windows(attribute) || (is_planted("cooling_counts_as_empty") && attribute.cooling);
  };
  return std::all_of(block.attributes.begin(), block.attributes.end(), is_nobodys);
}

Block with_next_sequence_number(Block block) {
  CROFT_ASSERT(block.sequence_number.value <= kSequenceMax + 1024);  // check_writable, and a few writes since
  block.sequence_number = SequenceNumber(block.sequence_number.value + 1);
  return block;
}

std::pair<Block, std::vector<CoolingBeside>> without_cooling(Block block) {
  std::vector<CoolingBeside> beside;
  for (std::uint32_t ordinal = 0; ordinal < block.allocations.size(); ++ordinal) {
    const Attribute* attribute = attribute_of(block, net::Ordinal(ordinal));
    if (attribute == nullptr || !attribute->cooling || attribute->cooling->in_calicos_way) continue;
    beside.push_back({ordinal, sequence_of(block, net::Ordinal(ordinal)), *attribute->cooling});
  }
  if (beside.empty()) return {std::move(block), std::move(beside)};
  std::vector<const CoolingBeside*> by_age;
  for (const CoolingBeside& one : beside) by_age.push_back(&one);
  std::ranges::stable_sort(by_age, {}, [](const CoolingBeside* one) { return one->cooling.released_at.wall; });
  for (const CoolingBeside* one : by_age) free_ordinal(block, one->ordinal);
  prune_attributes(block);
  return {std::move(block), std::move(beside)};
}

Block with_cooling(Block block, const std::vector<CoolingBeside>& beside) {
  for (const CoolingBeside& one : beside) {
    const auto made = made_after(one, block);
    if (made && has_ended(one.cooling, *made)) continue;
    if (one.ordinal >= block.allocations.size() || !block.unallocated.take(net::Ordinal(one.ordinal))) continue;
    Attribute attribute;
    attribute.cooling = one.cooling;
    // Released by a clock far ahead it would rest for as long.
    if (made) attribute.cooling->released_at.wall = std::min(one.cooling.released_at.wall, *made);
    block.attributes.push_back(std::move(attribute));
    block.allocations[one.ordinal] = static_cast<std::uint32_t>(block.attributes.size() - 1);
    const bool fits = !made && one.sequence_number.value != 0 && one.sequence_number <= block.sequence_number;
    if (fits) block.sequence_number_for_allocation[one.ordinal] = one.sequence_number;
  }
  return block;
}

}  // namespace croft::core
