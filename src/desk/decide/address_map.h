#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/net/address.h"
#include "base/net/prefix.h"
#include "base/net/ranges.h"

namespace croft::core::desk {

/// The state of an address on the map. `outside`: no block has it.
enum class Mark : std::uint8_t { outside, free, reserved, cooling, used, borrowed, service };
inline constexpr std::size_t kMarks = 7;
[[nodiscard]] std::string_view name_of(Mark mark);

/// How many addresses are in which state, by Mark.
using Tally = std::array<net::Count, kMarks>;

/// A part of the space, cut into cells of equal size, in the order of their addresses.
struct Tile {
  net::Prefix part;
  int cell_length = 0;  ///< the prefix length of a cell
  std::vector<Tally> cells;
};
/// A tile has at most 2 to the power of this many cells.
inline constexpr int kTileCellsLog2 = 12;

/// The states of all addresses of a register at one moment: a byte for each address that is in a block.
class AddressMap {
 public:
  struct Block {
    net::Prefix cidr;
    std::string owner;  ///< a node, in the form of AffinityOwner; empty: nobody's
    std::vector<Mark> marks;
    std::array<std::uint32_t, kMarks> totals{};
  };

  /// One mark for each address. Blocks do not share addresses: of two that do, each counts.
  void add_block(Block block) { blocks_.push_back(std::move(block)); }
  /// An address with a state of its own, in a block or not; of several of one address the first counts.
  void add(const net::Address& address, Mark mark) { single_.emplace_back(address, mark); }
  /// Addresses that are out of use, also where there is no block.
  void set_reserved(std::shared_ptr<const net::Intervals> reserved) { reserved_ = std::move(reserved); }
  /// To be called when all has been added, before the first question.
  void freeze();

  [[nodiscard]] Mark mark_of(const net::Address& address) const;
  /// The block that has the address; null where there is none.
  [[nodiscard]] const Block* block_of(const net::Address& address) const;
  /// At most 2^`cells_log2` cells, as many as there are addresses where those are fewer. `cells_log2`: 0 to
  /// kTileCellsLog2. Takes as many steps as blocks, and addresses of blocks that are larger than a cell, are in `part`.
  [[nodiscard]] Tile tile(const net::Prefix& part, int cells_log2) const;
  /// The smallest part of `part` that has all its blocks; nothing where there is none.
  [[nodiscard]] std::optional<net::Prefix> occupied(const net::Prefix& part) const;
  [[nodiscard]] const std::vector<Block>& blocks() const { return blocks_; }

 private:
  using Blocks = std::vector<Block>::const_iterator;
  using Single = std::pair<net::Address, Mark>;
  /// The blocks that share addresses with `part`.
  [[nodiscard]] std::pair<Blocks, Blocks> blocks_in(const net::Prefix& part) const;
  void add_block_to(Tile& tile, const Block& block, std::vector<net::Count>& reserved_in_blocks) const;

  std::vector<Block> blocks_;   ///< ascending once frozen
  std::vector<Single> single_;  ///< likewise; then those outside of blocks
  std::shared_ptr<const net::Intervals> reserved_ = std::make_shared<net::Intervals>();
};

}  // namespace croft::core::desk
