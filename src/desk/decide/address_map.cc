#include "desk/decide/address_map.h"

#include <algorithm>

#include "base/net/prefix.h"

namespace croft::core::desk {
namespace {

std::size_t place_of(Mark mark) { return static_cast<std::size_t>(mark); }

/// The smallest prefix that has both.
net::Prefix around(const net::Prefix& a, const net::Prefix& b) {
  net::Prefix both = a;
  while (!both.contains(b)) both = net::Prefix::containing(both.first(), both.length() - 1);
  return both;
}

}  // namespace

std::string_view name_of(Mark mark) {
  constexpr std::array<std::string_view, kMarks> kNames = {"outside", "free",     "reserved", "cooling",
                                                           "used",    "borrowed", "service"};
  return kNames[place_of(mark)];
}

void AddressMap::freeze() {
  std::ranges::sort(blocks_, {}, &Block::cidr);
  std::ranges::stable_sort(single_, {}, &Single::first);
  const auto same = std::ranges::unique(single_, {}, &Single::first);
  single_.erase(same.begin(), same.end());
  std::erase_if(single_, [&](const auto& one) {
    const Block* found = block_of(one.first);
    if (found == nullptr) return false;
    Block& block = blocks_[static_cast<std::size_t>(found - blocks_.data())];
    block.marks[net::ordinal_of(block.cidr, one.first)->value] = one.second;
    return true;
  });
  for (Block& block : blocks_) {
    block.totals = {};
    for (const Mark mark : block.marks) ++block.totals[place_of(mark)];
  }
}

std::pair<AddressMap::Blocks, AddressMap::Blocks> AddressMap::blocks_in(const net::Prefix& part) const {
  const auto before = [](const Block& block, const net::Address& address) { return block.cidr.first() < address; };
  Blocks begin = std::lower_bound(blocks_.begin(), blocks_.end(), part.first(), before);
  if (begin != blocks_.begin() && std::prev(begin)->cidr.overlaps(part)) --begin;
  Blocks end = begin;
  while (end != blocks_.end() && end->cidr.overlaps(part)) ++end;
  return {begin, end};
}

const AddressMap::Block* AddressMap::block_of(const net::Address& address) const {
  const auto [begin, end] = blocks_in(net::Prefix::containing(address, net::bit_length(address.family())));
  return begin == end ? nullptr : &*begin;
}

Mark AddressMap::mark_of(const net::Address& address) const {
  if (const Block* block = block_of(address)) return block->marks[net::ordinal_of(block->cidr, address)->value];
  const auto found = std::ranges::lower_bound(single_, address, {}, &Single::first);
  if (found != single_.end() && found->first == address) return found->second;
  return reserved_->contains(address) ? Mark::reserved : Mark::outside;
}

void AddressMap::add_block_to(Tile& tile, const Block& block, std::vector<net::Count>& reserved_in_blocks) const {
  const auto cell_of = [&](const net::Address& address) {
    const auto cell = net::Prefix::containing(address, tile.cell_length);
    return static_cast<std::size_t>(tile.part.subprefix_index(cell).lo);
  };
  const bool is_in_one_cell = block.cidr.length() >= tile.cell_length;
  if (is_in_one_cell) {
    const std::size_t cell = cell_of(block.cidr.first());
    for (std::size_t mark = 0; mark < kMarks; ++mark) tile.cells[cell][mark] += std::uint64_t{block.totals[mark]};
    reserved_in_blocks[cell] += reserved_->count_in(block.cidr);
    return;
  }
  const net::Prefix shared = block.cidr.contains(tile.part) ? tile.part : block.cidr;
  const std::uint32_t first = net::ordinal_of(block.cidr, shared.first())->value;
  const std::uint32_t last = net::ordinal_of(block.cidr, shared.last())->value;
  const std::uint64_t cell_size = net::Count::of(net::Prefix::containing(shared.first(), tile.cell_length)).as_64();
  const std::size_t first_cell = cell_of(shared.first());
  for (std::uint32_t i = first; i <= last; ++i) {
    tile.cells[first_cell + (i - first) / cell_size][place_of(block.marks[i])] += 1;
  }
  const std::size_t cells = (last - first) / cell_size + 1;
  for (std::size_t cell = first_cell; cell < first_cell + cells; ++cell) {
    reserved_in_blocks[cell] += reserved_->count_in(tile.part.subprefix(cell, tile.cell_length));
  }
}

Tile AddressMap::tile(const net::Prefix& part, int cells_log2) const {
  CROFT_ASSERT(cells_log2 >= 0 && cells_log2 <= kTileCellsLog2);
  Tile tile;
  tile.part = part;
  tile.cell_length = std::min(part.length() + cells_log2, net::bit_length(part.family()));
  const std::size_t count = std::size_t{1} << part.subprefix_count_log2(tile.cell_length);
  tile.cells.resize(count);
  std::vector<net::Count> reserved_in_blocks(count);
  const auto [begin, end] = blocks_in(part);
  for (Blocks block = begin; block != end; ++block) add_block_to(tile, *block, reserved_in_blocks);
  auto lone = std::ranges::lower_bound(single_, part.first(), {}, &Single::first);
  for (std::size_t cell = 0; cell < count; ++cell) {
    const net::Prefix cidr = part.subprefix(cell, tile.cell_length);
    Tally& tally = tile.cells[cell];
    net::Count reserved = reserved_->count_in(cidr) - reserved_in_blocks[cell];
    for (; lone != single_.end() && cidr.contains(lone->first); ++lone) {
      tally[place_of(lone->second)] += 1;
      if (reserved_->contains(lone->first)) reserved -= 1;
    }
    tally[place_of(Mark::reserved)] += reserved;
    net::Count rest = net::Count::of(cidr);
    for (const net::Count& some : tally) rest -= some;
    tally[place_of(Mark::outside)] += rest;
  }
  return tile;
}

std::optional<net::Prefix> AddressMap::occupied(const net::Prefix& part) const {
  const auto [begin, end] = blocks_in(part);
  if (begin == end) return std::nullopt;
  const net::Prefix all = around(begin->cidr, std::prev(end)->cidr);
  return all.contains(part) ? part : all;
}

}  // namespace croft::core::desk
