#include "ipam/decide/crowded_pool.h"

#include <algorithm>
#include <array>
#include <string>
#include <utility>

#include "register/records.h"

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

CrowdedPool::CrowdedPool(const Pool& pool, std::uint64_t place) : pool_(pool) {
  if (pool.cidr.family() != net::Family::v4) return;
  const std::uint64_t count = std::uint64_t{1} << pool.cidr.subprefix_count_log2(pool.block_length);
  if (count < 2 * kCrowdParts) return;
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
  for (const auto& [order, block] : ends) {
    ends_.push_back(order);
    names_.push_back(block_key(block).name);
  }
}

KeyWindow CrowdedPool::window_of(std::size_t part) const {
  return {{Kind::block, block_names_of(net::Family::v4)}, names_[part], names_[part + 1]};
}

void CrowdedPool::count(Reader& reader) const {
  for (std::size_t part = 0; part < parts(); ++part) static_cast<void>(reader.count(window_of(part)));
}

std::size_t CrowdedPool::part_of(const net::Prefix& block) const {
  const auto end = std::upper_bound(ends_.begin(), ends_.end(), name_order(block));
  // Before the first end and behind the last there is no part.
  return end == ends_.begin() || end == ends_.end() ? parts() : static_cast<std::size_t>(end - ends_.begin()) - 1;
}

std::vector<net::Prefix> CrowdedPool::free_blocks(Reader& reader) const {
  const std::size_t count = parts();
  if (count == 0) return {};
  std::vector<std::uint64_t> room(count + 1);
  for (std::uint64_t i = 0; i < count_; ++i) ++room[part_of(at(i))];
  for (std::size_t i = 0; i < count; ++i) {
    const std::size_t part = (place_ + i) % count;
    const std::uint64_t* taken = reader.count(window_of(part));
    if (taken == nullptr) return {};
    if (*taken >= room[part]) continue;
    const KeysInWindow* seen = reader.window(window_of(part));
    if (seen == nullptr) return {};
    std::vector<net::Prefix> found = not_in(*seen, part);
    if (!found.empty()) return found;
  }
  return {};
}

std::vector<net::Prefix> CrowdedPool::not_in(const KeysInWindow& seen, std::size_t part) const {
  std::vector<net::Prefix> found;
  for (std::uint64_t i = 0; i < count_; ++i) {
    const net::Prefix block = at(place_ + i);
    if (part_of(block) != part) continue;
    const Key key = block_key(block);
    const bool is_shown = !seen.more || (!seen.keys.empty() && key <= seen.keys.back());
    if (is_shown && !std::binary_search(seen.keys.begin(), seen.keys.end(), key)) found.push_back(block);
  }
  return found;
}

}  // namespace croft::core
