#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/error.h"
#include "base/net/intervals.h"
#include "base/net/prefix.h"
#include "register/cooling_beside.h"
#include "register/snapshot.h"

namespace croft::core {

/// What a look for blocks of another length that share addresses with one block found. Two such blocks would give each
/// address of the smaller one two holders.
///
/// Only foreign writers leave blocks of another length in a pool: they change its blockSize, or delete it and make it
/// anew, over blocks that are there. In a store of Croft's own they are what has moved there; whoever makes a block
/// looks, and then nobody has to.
///
/// Two claims at once, made with different ideas of the length, can't both be committed. A claim depends on the pool
/// being as read, and what it looks for here is read no earlier than the pool. Where foreign writers have laid two
/// pools over the same addresses, with blocks of different lengths, a claim in either also writes the set of pools
/// (ask_for_rivals in draft.h): of two at once one is decided again. That rests on both having seen both pools: a
/// decision that was begun before the second was made is not stopped by it.
struct Overlap {
  std::optional<net::Prefix> block;  ///< one of them
  /// There may be some: too many names lie in between to read them all. Only the list of all blocks tells
  /// (stored_blocks).
  bool unknown = false;
  [[nodiscard]] bool none() const { return !block && !unknown; }
};

/// How new the answer has to be. A store that gives it from memory spares itself work that grows with the cluster; a
/// block of another length that was made moments ago is then not seen. Where pools overlap that may be one of another
/// pool: as_new_as_can_be.
enum class Newness : std::uint8_t { as_new_as_can_be, may_lag };

/// Asks for the names among which those of all blocks are that contain `block`, of whatever length, or lie within it:
/// a name is enough, what is stored there need not be readable; of a store that is asked one by one for all blocks of
/// other lengths, which are few. Meaningful once the reader is complete.
[[nodiscard]] Overlap glance_at_overlap(Reader& reader, const net::Prefix& block,
                                        Newness newness = Newness::as_new_as_can_be);
/// The same, and asks for the list of all blocks (stored_blocks) where that leaves it unknown.
[[nodiscard]] Overlap overlap_of(Reader& reader, const net::Prefix& block);

/// The list of all blocks of a family as the store has it: one at hand has the blocks that somebody claims, and no
/// others.
[[nodiscard]] Listing stored_blocks(const Reader& reader, net::Family family);

/// What rests by records beside blocks of other lengths that share addresses with this one (BlockBeside), with the
/// ordinals of this block; several may name one address. Such blocks are gone: Calico deleted them, and the pool has
/// come back with another length. May leave the reader incomplete; a damaged record ends the decision. `others`, if
/// given, gets those blocks.
[[nodiscard]] std::vector<CoolingBeside> rest_of_other_lengths(Reader& reader, const net::Prefix& block,
                                                               std::vector<net::Prefix>* others = nullptr);
/// Asks for the same; the block of a record that is damaged, if one is. What rests there is not known.
[[nodiscard]] std::optional<net::Prefix> damaged_rest(Reader& reader, const net::Prefix& block);

/// Asks for stored_blocks, and for the names of all records beside blocks: with them no look asks for names any more.
void ask_for_lists(Reader& reader, net::Family family);

/// Whether the look takes so many keys that it should be made for one candidate at a time.
[[nodiscard]] bool is_wide_look(const net::Prefix& block);

/// The blocks within `cidr` that are not of this length, from the list of all blocks of the family.
struct OtherBlocks {
  net::Intervals taken;
  std::optional<net::Prefix> example;  ///< one of them
};
[[nodiscard]] OtherBlocks blocks_of_other_lengths(const std::vector<Key>& keys, const net::Prefix& cidr, int length);

/// "block 10.0.0.0/28 overlaps block 10.0.0.0/26, …", with the remedy. There is an overlap, or it is unknown.
[[nodiscard]] std::string overlap_text(const net::Prefix& block, const Overlap& overlap);

}  // namespace croft::core
