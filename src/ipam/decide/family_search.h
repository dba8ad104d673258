#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "base/net/prefix.h"
#include "ipam/decide/assignment.h"
#include "ipam/decide/claim.h"
#include "ipam/decide/draft.h"

namespace croft::core {

/// The blocks that a node has, as far as one family and the usable pools are concerned. Found by vacancies; beside
/// foreign writers, who don't keep them, by affinities too, and vacancies only say where to look first.
struct OwnBlocks {
  std::vector<net::Prefix> ready;    ///< may have an address now: in the order of pools, the longest ready first
  std::vector<net::Prefix> waiting;  ///< have none before some cooldown ends, if the clock is right
  std::vector<net::Prefix> outside;  ///< in none of the usable pools
  std::map<net::Prefix, const Affinity*> rows;  ///< only beside foreign writers

  /// The affinity row of a block; null when it was not read.
  [[nodiscard]] const Affinity* row(const net::Prefix& cidr) const;
  /// How many blocks of the usable pools the node has. A row whose block was looked at, and is not there or another's,
  /// is what a claim that failed left: it does not count. May leave the reader incomplete.
  [[nodiscard]] std::size_t count(Reader& reader, const AffinityOwner& node, net::Family family,
                                  const std::vector<const Pool*>& usable) const;
  /// One of them, if there is any, that really is the node's.
  [[nodiscard]] Flow<std::optional<net::Prefix>> any(Reader& reader, const AffinityOwner& node, net::Family family,
                                                     const std::vector<const Pool*>& usable) const;
};

/// Asks for what find_own_blocks reads.
void prefetch_own_blocks(Reader& reader, const AffinityOwner& node, net::Family family);

[[nodiscard]] OwnBlocks find_own_blocks(Reader& reader, const AffinityOwner& node, net::Family family,
                                        const std::vector<const Pool*>& usable, WallTime now);

/// The search of one family for addresses, or for a block: where it may look, what it has found so far, and why it has
/// not found more.
class FamilySearch {
 public:
  /// `missing` addresses are to be found.
  FamilySearch(Assignment& assignment, net::Family family, std::uint32_t missing)
      : in_(assignment), family_(family), missing_(missing) {}

  /// The pools to use and the node's blocks in them; first of all.
  [[nodiscard]] AssignFlow<void> choose();

  [[nodiscard]] const std::vector<const Pool*>& usable() const { return usable_; }
  [[nodiscard]] const OwnBlocks& own() const { return own_; }
  [[nodiscard]] std::uint32_t missing() const { return missing_; }
  /// Blocks that this decision has claimed, or met as the node's own while it looked for one to claim.
  [[nodiscard]] const std::set<net::Prefix>& claimed() const { return claimed_; }

  /// Takes from the node's own blocks, in the order given.
  [[nodiscard]] AssignFlow<void> take_from_own(const std::vector<net::Prefix>& blocks);
  /// The same from those that the node's claims did not show at first (Listing::as_stored), before another is claimed.
  [[nodiscard]] AssignFlow<void> take_from_unlabelled();
  /// The same from one that was met by itself.
  [[nodiscard]] AssignFlow<void> take_from_found(const net::Prefix& cidr);
  /// Refuses when the node may have no further block, unless its waiting ones have what is missing after all.
  [[nodiscard]] AssignFlow<void> check_may_claim();
  /// Whether the node has as many blocks as it may. May leave the reader incomplete.
  [[nodiscard]] bool is_at_limit();
  /// Makes a block that the node has no claim on yet, and takes from it.
  [[nodiscard]] AssignFlow<void> claim_new(const net::Prefix& cidr, const Pool& pool);
  /// The record of the node's claim on a block is damaged: the block is passed over, and noted. The record must have
  /// been asked for.
  [[nodiscard]] bool is_claim_damaged(const net::Prefix& cidr);
  /// Takes from a block that another node left, which is the node's from now on. False: nothing was to be had of it.
  [[nodiscard]] bool take_over(Block block, const Pool& pool);
  /// Takes as much as is missing and there; true when that was something.
  bool take_all(Block block, const Pool* claimed_in = nullptr);
  /// A block that may have nobody's claim may have come late, where a commit writes one record. The request was given
  /// up long ago, and a successor came and went. Its number is raised above the mark which that one left, before
  /// anything is taken. False when that can't be read.
  [[nodiscard]] Flow<bool> raise_number(Block& block, bool is_claimed = false);

  /// Why a pool has nothing; what is known already stays.
  void note_reason(const Pool& pool, const std::string& reason) { reasons_.emplace(&pool, reason); }
  void note_borrowed_out(const Pool& pool);
  /// Why it has no block to claim.
  void note_claimless(const Pool& pool, const ClaimChoice& choice);
  /// Every usable pool and why it has nothing.
  [[nodiscard]] Refusal exhaustion() const;

 private:
  [[nodiscard]] AssignFlow<void> take_from_own(const net::Prefix& cidr);
  [[nodiscard]] AssignFlow<void> claim(const net::Prefix& cidr, const Pool& pool);
  [[nodiscard]] AssignFlow<void> complete_claim(const net::Prefix& cidr, bool has_row);
  void note_cooling(const Block& block);
  [[nodiscard]] const Pool* pool_of(const net::Prefix& cidr) const { return in_.pools.containing(cidr.first()); }

  Assignment& in_;
  const net::Family family_;
  std::uint32_t missing_;
  std::vector<const Pool*> usable_;
  std::vector<PoolVerdict> considered_;
  OwnBlocks own_;
  std::set<net::Prefix> claimed_;
  std::size_t newly_owned_ = 0;  ///< of these, those that the node had no claim on
  /// The first end of a cooldown in blocks that were looked at, by pool.
  std::map<const Pool*, WallTime> first_ends_;
  std::map<const Pool*, std::string> reasons_;
  std::set<const Pool*> shared_;  ///< pools in which other nodes have blocks too
  /// Why addresses that may be free were not taken: what rests there is in a record that can't be read.
  std::optional<Error> passed_over_;
};

}  // namespace croft::core
