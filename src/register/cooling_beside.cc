#include "register/cooling_beside.h"

#include <algorithm>
#include <chrono>
#include <optional>

#include "base/assert.h"
#include "register/pool.h"

namespace croft::core {
namespace {

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
  std::stable_sort(by_age.begin(), by_age.end(), [](const CoolingBeside* a, const CoolingBeside* b) {
    return a->cooling.released_at.wall < b->cooling.released_at.wall;
  });
  for (const CoolingBeside* one : by_age) block = with_freed(std::move(block), net::Ordinal(one->ordinal));
  return {without_unused_attributes(std::move(block)), std::move(beside)};
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
