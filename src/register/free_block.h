#pragma once

#include <compare>
#include <cstdint>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <vector>

#include "base/net/intervals.h"
#include "base/net/prefix.h"
#include "register/records.h"

namespace croft::core {

/// The question for a block that nobody has. The blocks of a pool have one length; a block of any other length keeps
/// its addresses out, whatever is recorded of it: a key is enough. A pool of one block asks for what is in its way.
struct FreeBlock {
  net::Prefix pool;
  int length = 0;
  net::Prefix start;  ///< a block of the pool: the search begins here
  /// Blocks that the decision can't take: it has claimed them itself, or something of them is damaged.
  std::set<net::Prefix> out;
  /// By all keys that the store has. Else those in memory will do, of blocks that somebody claims (store/cached).
  bool as_stored = false;
  /// A block of which this leaves nothing is passed over. It is of the snapshot that asks, and no part of the question.
  std::shared_ptr<const net::Intervals> reserved;
  /// How many blocks further on the search goes, odd; after many steps it goes block by block from the start, and
  /// round. In a crowded pool all who look for the next one meet at the same.
  std::uint64_t step = 1;

  friend bool operator==(const FreeBlock& a, const FreeBlock& b) { return (a <=> b) == 0; }
  friend std::strong_ordering operator<=>(const FreeBlock& a, const FreeBlock& b);
};

struct FoundBlock {
  /// Has the asked length, and shares no address with the block of any key that was known.
  std::optional<net::Prefix> block;
  /// Only keys of blocks that somebody claims were known (store/cached).
  bool is_from_memory = false;
  /// Blocks that are there and were looked up by themselves, where a store does so: one of them may be the asker's own.
  std::vector<net::Prefix> passed;
  /// When there is none: how many blocks begin in the pool, and one of another length that keeps addresses out.
  std::uint64_t there = 0;
  std::optional<net::Prefix> other;
};

/// Answers from the keys of blocks, ascending: of all that may share addresses with the pool.
[[nodiscard]] FoundBlock find_free_block(const FreeBlock& wanted, std::span<const Key> keys);

}  // namespace croft::core
