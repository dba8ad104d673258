#include "ipam/decide/own_blocks.h"

#include <algorithm>
#include <set>
#include <tuple>

namespace croft::core {
namespace {

using net::Prefix;

/// The place of the pool that contains a block among the usable ones; nothing when none does.
std::optional<std::size_t> place_of(const Prefix& block, const std::vector<const Pool*>& usable) {
  const auto it = std::find_if(usable.begin(), usable.end(), [&](const Pool* p) { return p->cidr.contains(block); });
  if (it == usable.end()) return {};
  return static_cast<std::size_t>(it - usable.begin());
}

std::vector<Prefix> owned_in(Reader& reader, const AffinityOwner& node, net::Family family,
                             const std::vector<const Pool*>& usable) {
  std::vector<Prefix> result;
  for (const Key& key : reader.keys({Kind::affinity, owned_names_of(node, family)})) {
    if (const auto cidr = cidr_of(key); cidr && place_of(*cidr, usable)) result.push_back(*cidr);
  }
  return result;
}

}  // namespace

const Affinity* OwnBlocks::row(const Prefix& cidr) const {
  const auto it = rows.find(cidr);
  return it == rows.end() ? nullptr : it->second;
}

std::size_t OwnBlocks::count(Reader& reader, const AffinityOwner& node, net::Family family,
                             const std::vector<const Pool*>& usable) const {
  if (!reader.foreign_writers()) return owned_in(reader, node, family, usable).size();
  return static_cast<std::size_t>(std::count_if(rows.begin(), rows.end(), [&](const auto& row) {
    if (!place_of(row.first, usable)) return false;
    const auto key = block_key(row.first);
    if (reader.snapshot().find(key) == nullptr || reader.damage(key) != nullptr) return true;
    const Block* block = reader.find(key);
    return block != nullptr && !block->deleted && block->affinity == node;
  }));
}

Flow<std::optional<Prefix>> OwnBlocks::any(Reader& reader, const AffinityOwner& node, net::Family family,
                                           const std::vector<const Pool*>& usable) const {
  for (const Prefix& cidr : owned_in(reader, node, family, usable)) {
    const Block* block = reader.sound(block_key(cidr));
    TRY_VOID(reader.ready());
    if (block != nullptr && block->affinity == node) return std::optional(cidr);
  }
  TRY_VOID(reader.ready());
  return std::optional<Prefix>();
}

void prefetch_own_blocks(Reader& reader, const AffinityOwner& node, net::Family family) {
  if (!reader.lacks(Kind::vacancy)) static_cast<void>(reader.list({Kind::vacancy, owned_names_of(node, family)}));
  if (!reader.foreign_writers()) return;
  static_cast<void>(reader.sound({Kind::affinity, owned_names_of(node, family)}));
}

OwnBlocks find_own_blocks(Reader& reader, const AffinityOwner& node, net::Family family,
                          const std::vector<const Pool*>& usable, WallTime now) {
  OwnBlocks own;
  if (reader.foreign_writers()) {
    for (const auto& [key, value] : reader.sound({Kind::affinity, owned_names_of(node, family)})) {
      const auto* row = std::get_if<Affinity>(&value);
      if (row != nullptr && !row->deleted) own.rows[row->cidr] = row;
    }
  }
  // Without a vacancy last: then most likely there is nothing to find.
  std::set<std::tuple<bool, std::size_t, WallTime, Prefix>> ready, waiting;
  std::set<Prefix> outside, hinted;
  if (!reader.lacks(Kind::vacancy)) {
    for (const auto& [key, value] : reader.list({Kind::vacancy, owned_names_of(node, family)})) {
      const auto cidr = cidr_of(key);
      const auto* vacancy = std::get_if<Vacancy>(&value);
      if (!cidr || vacancy == nullptr) continue;  // a hint that can't be read is no hint
      if (reader.foreign_writers() && own.row(*cidr) == nullptr) continue;
      hinted.insert(*cidr);
      if (const auto place = place_of(*cidr, usable)) {
        (vacancy->ready_at <= now ? ready : waiting).emplace(false, *place, vacancy->ready_at, *cidr);
      } else {
        outside.insert(*cidr);
      }
    }
    // Only the name of a damaged vacancy is known.
    for (const auto& [key, value] : reader.damaged({Kind::vacancy, owned_names_of(node, family)})) {
      const auto cidr = cidr_of(key);
      const auto place = cidr ? place_of(*cidr, usable) : std::nullopt;
      if (place && hinted.insert(*cidr).second) ready.emplace(true, *place, WallTime{}, *cidr);
    }
  }
  for (const auto& [cidr, row] : own.rows) {
    if (hinted.contains(cidr)) continue;
    if (const auto place = place_of(cidr, usable)) {
      ready.emplace(true, *place, WallTime{}, cidr);
    } else {
      outside.insert(cidr);
    }
  }
  for (const auto& entry : ready) own.ready.push_back(std::get<3>(entry));
  for (const auto& entry : waiting) own.waiting.push_back(std::get<3>(entry));
  own.outside.assign(outside.begin(), outside.end());
  return own;
}

}  // namespace croft::core
