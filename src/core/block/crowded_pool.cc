#include "core/block/crowded_pool.h"

#include <algorithm>
#include <array>
#include <string>
#include <utility>

#include "core/block/records.h"

namespace croft::core {
namespace {

/// Octets by the order of their decimal texts: 0, 1, 10, 100, 101, … What follows an octet in a name, `.` or `/`, comes
/// before all digits.
std::array<std::uint8_t, 256> text_ranks() {
  std::array<std::string, 256> texts;
  for (std::size_t i = 0; i < texts.size(); ++i) texts[i] = std::to_string(i);
  std::array<std::string, 256> sorted = texts;
  std::sort(sorted.begin(), sorted.end());
  std::array<std::uint8_t, 256> ranks{};
  for (std::size_t i = 0; i < texts.size(); ++i) {
    ranks[i] = static_cast<std::uint8_t>(std::lower_bound(sorted.begin(), sorted.end(), texts[i]) - sorted.begin());
  }
  return ranks;
}

/// Orders IPv4 blocks of one length as their names do.
std::uint32_t name_order(const net::Prefix& block) {
  static const std::array<std::uint8_t, 256> kRanks = text_ranks();
  const std::uint32_t address = static_cast<std::uint32_t>(block.first().value().lo);
  std::uint32_t order = 0;
  for (int shift = 24; shift >= 0; shift -= 8) order = order << 8 | kRanks[address >> shift & 0xff];
  return order;
}

}  // namespace

CrowdedPool::CrowdedPool(const Pool& pool, std::uint64_t count, std::uint64_t place) : pool_(pool) {
  if (pool.cidr.family() != net::Family::v4 || count < 2 * kCrowdParts) return;
  count_ = std::min(count, kCrowdBlocksMax);
  place %= count;
  first_ = place - place % count_;
  place_ = place - first_;
  std::vector<std::pair<std::uint32_t, net::Prefix>> ends;
  for (std::size_t i = 0; i < kCrowdParts; ++i) {
    const net::Prefix block = at(i * count_ / kCrowdParts);
    ends.emplace_back(name_order(block), block);
  }
  std::sort(ends.begin(), ends.end());
  for (const auto& [order, block] : ends) ends_.push_back(order);
  for (std::size_t i = 0; i + 1 < ends.size(); ++i) {
    parts_.push_back({{Kind::block, block_names_of(net::Family::v4)},
                      block_key(ends[i].second).name,
                      block_key(ends[i + 1].second).name});
  }
}

void CrowdedPool::count(Reader& reader) const {
  for (const KeyWindow& part : parts_) static_cast<void>(reader.count(part));
}

std::size_t CrowdedPool::part_of(const net::Prefix& block) const {
  const std::uint32_t order = name_order(block);
  const auto end = std::upper_bound(ends_.begin(), ends_.end(), order);
  if (end == ends_.begin() || end == ends_.end() || *(end - 1) == order) return parts_.size();
  return static_cast<std::size_t>(end - ends_.begin()) - 1;
}

std::vector<net::Prefix> CrowdedPool::free_blocks(Reader& reader) const {
  std::vector<std::uint64_t> room(parts_.size() + 1);
  for (std::uint64_t i = 0; i < count_; ++i) ++room[part_of(at(i))];
  std::vector<net::Prefix> found;
  const std::size_t start = count_ == 0 ? 0 : std::min(part_of(at(place_)), parts_.size());
  for (std::size_t k = 0; k < parts_.size() && found.empty(); ++k) {
    const std::size_t chosen = (start + k) % parts_.size();
    const std::uint64_t* taken = reader.count(parts_[chosen]);
    if (taken == nullptr || *taken >= room[chosen]) continue;
    const KeysInWindow* seen = reader.window(parts_[chosen]);
    if (seen == nullptr) return {};
    for (std::uint64_t i = 0; i < count_; ++i) {
      const net::Prefix block = at(place_ + i);
      if (part_of(block) != chosen) continue;
      const Key key = block_key(block);
      const bool is_shown = !seen->more || (!seen->keys.empty() && key < seen->keys.back());
      if (is_shown && !std::binary_search(seen->keys.begin(), seen->keys.end(), key)) found.push_back(block);
    }
  }
  return found;
}

}  // namespace croft::core
