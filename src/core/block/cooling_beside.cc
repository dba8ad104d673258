#include "core/block/cooling_beside.h"

#include <algorithm>

#include "base/assert.h"

namespace croft::core {

std::pair<Block, std::vector<CoolingBeside>> without_cooling(Block block) {
  std::vector<CoolingBeside> beside;
  for (std::uint32_t ordinal = 0; ordinal < block.allocations.size(); ++ordinal) {
    const Attribute* attribute = attribute_of(block, net::Ordinal(ordinal));
    if (attribute == nullptr || !attribute->cooling || attribute->cooling->in_calicos_way) continue;
    beside.push_back({ordinal, sequence_of(block, net::Ordinal(ordinal)), *attribute->cooling});
  }
  if (beside.empty()) return {std::move(block), {}};
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
    if (one.ordinal >= block.allocations.size() || !block.unallocated.take(net::Ordinal(one.ordinal))) continue;
    Attribute attribute;
    attribute.cooling = one.cooling;
    block.attributes.push_back(std::move(attribute));
    block.allocations[one.ordinal] = static_cast<std::uint32_t>(block.attributes.size() - 1);
    const bool fits = one.sequence_number.value != 0 && one.sequence_number <= block.sequence_number;
    if (fits) block.sequence_number_for_allocation[one.ordinal] = one.sequence_number;
  }
  return block;
}

}  // namespace croft::core
