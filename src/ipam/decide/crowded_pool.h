#pragma once

#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

#include "base/net/prefix.h"
#include "register/pool.h"
#include "register/snapshot.h"

namespace croft::core {

inline constexpr std::uint64_t kCrowdBlocksMax = 4096;
inline constexpr std::size_t kCrowdParts = 48;

/// Finds a free block in a crowded pool by two short answers in place of the list of all blocks: the pool is cut into
/// parts in the order of names; the store counts the blocks of each, and only the names of one part that is not full
/// are read. A hint: what it shows is confirmed by the record itself, and where it shows nothing the list decides.
///
/// Looks at no more than kCrowdBlocksMax blocks around the place in question, and at IPv4 only, whose names can be put
/// in order without writing them; IPv6 pools of blocks are hardly ever crowded.
class CrowdedPool {
 public:
  /// Around the block with index `place`, counted past the last one round from the first.
  CrowdedPool(const Pool& pool, std::uint64_t place);

  /// Asks for the counts of the parts. May leave the reader incomplete.
  void count(Reader& reader) const;

  /// Free blocks as far as counts and the names of one part tell, those that follow `place` first. May leave the reader
  /// incomplete.
  [[nodiscard]] std::vector<net::Prefix> free_blocks(Reader& reader) const;

 private:
  [[nodiscard]] std::size_t parts() const { return ends_.empty() ? 0 : ends_.size() - 1; }
  /// The names from the beginning of a part on, up to but not including those of the next.
  [[nodiscard]] KeyWindow window_of(std::size_t part) const;
  /// The part that a block is in; parts() for one in none.
  [[nodiscard]] std::size_t part_of(const net::Prefix& block) const;
  [[nodiscard]] std::vector<net::Prefix> not_in(const KeysInWindow& seen, std::size_t part) const;
  [[nodiscard]] net::Prefix at(std::uint64_t index) const {
    return pool_.cidr.subprefix(first_ + index % count_, pool_.block_length);
  }

  const Pool& pool_;
  std::uint64_t first_ = 0;  ///< index in the pool of the first block looked at
  std::uint64_t count_ = 0;  ///< how many are
  std::uint64_t place_ = 0;  ///< from `first_`
  std::vector<std::uint32_t>
      ends_;  ///< of parts, in the order of names; part i begins with end i and ends before end i + 1
  std::vector<std::string> names_;  ///< of the ends
};

}  // namespace croft::core
