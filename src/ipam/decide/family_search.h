#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "base/net/prefix.h"
#include "ipam/decide/assign.h"
#include "ipam/decide/claim_choice.h"
#include "ipam/decide/draft.h"
#include "ipam/decide/pool_choice.h"
#include "register/snapshot.h"

namespace croft::core {

/// The result of a step of an assignment, or why it ended; a refusal of a part is one of all.
template <class T>
using AssignFlow = Flow<T, Refusal>;

[[nodiscard]] inline auto refuse(Refusal refusal) { return fail(Stop<Refusal>(std::move(refusal))); }

/// One assignment in the making: what its steps work with, and what they have come to.
struct Assignment {
  Assignment(Reader& to_read, const AssignRequest& asked, const Instant& now)
      : reader(to_read), request(asked), pools(to_read), draft(to_read, pools, now) {
    if (!asked.living.empty()) pools.pass_over(asked.living);
  }

  Reader& reader;
  const AssignRequest& request;
  const std::string handle_id = handle_of(request.owner);
  PoolTable pools;
  Draft draft;
  /// The addresses that the owner held before.
  std::vector<AssignedAddress> held;
  /// Blocks without a free address in which some cool.
  std::set<net::Prefix> cooling;
  Assigned answer;
  bool fresh = false;  ///< the draft has something that was not there before

  /// The labels of the node; none when it has no record, or a damaged one (then choose_pools is told).
  [[nodiscard]] Labels node_labels();
  /// A block that is not there, for the node. Error: corrupt, a mark above which none can be made.
  [[nodiscard]] Flow<Block> make_block(const net::Prefix& cidr);
  /// Answers with the address. `claimed_in`: its block is new.
  void accept(Taken taken, const Pool* claimed_in);
  [[nodiscard]] AssignedAddress described(const Block& block, const net::Address& address, bool held_before) const;
  /// Handle and owner metadata as in docs/notes/calico-ipam.md#plugin-add, and the interface.
  [[nodiscard]] Attribute attribute() const;
  /// The writes when nothing could be assigned: marks on the cooling addresses in the way whose cooldown this boot does
  /// not count yet. So the next try finds the cooldown ended. May leave the reader incomplete.
  [[nodiscard]] std::vector<PlannedWrite> marks();
};

/// The blocks that a node has, as far as one family and the usable pools are concerned. Found by vacancies; beside
/// foreign writers, who don't keep them, by affinities too, and vacancies only say where to look first.
struct OwnBlocks {
  std::vector<net::Prefix> ready;    ///< may have an address now: in the order of pools, the longest ready first
  std::vector<net::Prefix> waiting;  ///< have none before some cooldown ends, if the clock is right
  std::vector<net::Prefix> outside;  ///< in none of the usable pools
  std::map<net::Prefix, const Affinity*> rows;  ///< only beside foreign writers

  /// The affinity row of a block; null when it was not read.
  [[nodiscard]] const Affinity* row(const net::Prefix& cidr) const;
};

/// Asks for what choose() reads of the node's blocks.
void prefetch_own_blocks(Reader& reader, const AffinityOwner& node, net::Family family);

/// Where addresses or a block of one family may be looked for: the pools to use, and the node's blocks in them.
class FamilyPools {
 public:
  FamilyPools(Assignment& assignment, net::Family family) : in_(assignment), family_(family) {}

  /// First of all. Refuses when no pool may be used.
  [[nodiscard]] AssignFlow<void> choose();
  /// Adds the claims that the list of the node's claims did not show at first (Listing::as_stored): the blocks of those
  /// in usable pools.
  [[nodiscard]] Flow<std::vector<net::Prefix>> add_unlabelled();

  [[nodiscard]] const std::vector<const Pool*>& usable() const { return usable_; }
  /// The pools that are not used, and why.
  [[nodiscard]] const std::vector<PoolVerdict>& considered() const { return considered_; }
  [[nodiscard]] const OwnBlocks& own() const { return own_; }
  /// How many blocks of these pools the node has. A row whose block was looked at, and is not there or another's, is
  /// what a claim that failed left: it does not count. May leave the reader incomplete.
  [[nodiscard]] std::size_t owned_in(const std::vector<const Pool*>& pools) const;
  [[nodiscard]] std::size_t owned() const { return owned_in(usable_); }
  /// Whether there is one that really is the node's.
  [[nodiscard]] Flow<bool> owns_any() const;

 protected:
  Assignment& in_;
  const net::Family family_;
  std::vector<const Pool*> usable_;
  std::vector<PoolVerdict> considered_;
  OwnBlocks own_;

 private:
  void find_own_blocks();
};

/// Assigns so many addresses of a family, whichever they are (docs/notes/calico-ipam.md#auto-assign).
[[nodiscard]] AssignFlow<void> assign_automatic(Assignment& assignment, net::Family family, std::uint32_t count);

}  // namespace croft::core
