#pragma once

#include <cstdint>
#include <optional>

#include "base/space/sparse_taken_set.h"

namespace croft::store::hostlocal {

/// Which places hold reservations whose content has a given hash: a hash table with open addressing and linear probing
/// over cells that lie anywhere. `Cells` offers `size()` (a power of two), `get(i)` and `set(i, cell)`; a cell of 0 is
/// unused. Two contents may share a hash, so what is found has to be looked at. Damaged cells give wrong answers, never
/// an endless loop.
template <class Cells>
class HolderTable {
 public:
  explicit HolderTable(Cells& cells) : cells_(cells) {}

  /// Calls f(SparsePlace) for each place with this hash.
  template <class F>
  void for_each(std::uint32_t hash, F&& f) const {
    const std::uint32_t size = cells_.size();
    std::uint32_t index = hash & (size - 1);
    for (std::uint32_t probes = 0; probes < size; ++probes, index = (index + 1) & (size - 1)) {
      const std::uint64_t cell = cells_.get(index);
      if (cell == 0) return;
      if (hash_of(cell) == hash) f(place_of(cell));
    }
  }

  /// False when there is no room, or the place is too far up to be written down.
  bool add(std::uint32_t hash, core::space::SparsePlace place) {
    if (place.slot >= kSlotsMax) return false;
    const std::uint32_t size = cells_.size();
    std::uint32_t index = hash & (size - 1);
    for (std::uint32_t probes = 0; probes < size; ++probes, index = (index + 1) & (size - 1)) {
      if (cells_.get(index) != 0) continue;
      cells_.set(index, cell_of(hash, place));
      return true;
    }
    return false;
  }

  /// False when it is not there. Entries that probing brought behind it move up, so that no mark has to stay.
  bool remove(std::uint32_t hash, core::space::SparsePlace place) {
    const std::uint32_t mask = cells_.size() - 1;
    const auto found = find(hash, place);
    if (!found) return false;
    std::uint32_t hole = *found;
    std::uint32_t index = hole;
    for (std::uint32_t probes = 0; probes <= mask; ++probes) {
      index = (index + 1) & mask;
      const std::uint64_t cell = cells_.get(index);
      if (cell == 0) break;
      const std::uint32_t home = hash_of(cell) & mask;
      // It may move into the hole unless its home lies behind the hole on the way to it.
      if (((index - home) & mask) < ((index - hole) & mask)) continue;
      cells_.set(hole, cell);
      hole = index;
    }
    cells_.set(hole, 0);
    return true;
  }

  static std::uint32_t hash_of(std::uint64_t cell) { return static_cast<std::uint32_t>(cell >> 32); }

 private:
  static constexpr std::uint32_t kBits = 64;
  static constexpr std::uint32_t kSlotsMax = 1U << 25;

  static std::uint64_t cell_of(std::uint32_t hash, core::space::SparsePlace place) {
    return (std::uint64_t{hash} << 32) | (place.slot * kBits + place.bit + 1);
  }
  static core::space::SparsePlace place_of(std::uint64_t cell) {
    const auto number = static_cast<std::uint32_t>(cell) - 1;
    return {number / kBits, number % kBits};
  }
  [[nodiscard]] std::optional<std::uint32_t> find(std::uint32_t hash, core::space::SparsePlace place) const {
    const std::uint32_t size = cells_.size();
    const std::uint64_t wanted = cell_of(hash, place);
    std::uint32_t index = hash & (size - 1);
    for (std::uint32_t probes = 0; probes < size; ++probes, index = (index + 1) & (size - 1)) {
      const std::uint64_t cell = cells_.get(index);
      if (cell == 0) return std::nullopt;
      if (cell == wanted) return index;
    }
    return std::nullopt;
  }

  Cells& cells_;
};

}  // namespace croft::store::hostlocal
