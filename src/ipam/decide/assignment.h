#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "base/net/intervals.h"
#include "ipam/decide/assign.h"
#include "ipam/decide/draft.h"
#include "ipam/decide/pool_choice.h"
#include "ipam/decide/refusal.h"
#include "register/flow.h"
#include "register/snapshot.h"

namespace croft::core {

/// The result of a step of an assignment, or why it ended; a refusal of a part is one of all.
template <class T>
using AssignFlow = Flow<T, Refusal>;

[[nodiscard]] inline auto refuse(Refusal refusal) { return fail(Stop<Refusal>(std::move(refusal))); }

/// One assignment in the making: what its steps work with, and what they have come to. assign_explicit.h serves wanted
/// addresses, assign_automatic.h any.
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
  /// The commit holds no more.
  [[nodiscard]] bool unfinished() const { return draft.size() >= kAssignBlocksMax; }
  [[nodiscard]] AssignedAddress described(const Block& block, const net::Address& address, bool held_before) const;
  /// Handle and owner metadata as in docs/notes/calico-ipam.md#plugin-add, and the interface.
  [[nodiscard]] Attribute attribute() const;
  /// The writes when nothing could be assigned: marks on the cooling addresses in the way whose cooldown this boot does
  /// not count yet. So the next try finds the cooldown ended. May leave the reader incomplete.
  [[nodiscard]] std::vector<PlannedWrite> marks();
};

/// Serves addresses of one family that are wanted exactly, beside those of the family that the owner holds already: one
/// that is not wanted any more refuses all.
[[nodiscard]] AssignFlow<void> assign_explicit(Assignment& assignment, const std::vector<net::Address>& wanted,
                                               const std::vector<AssignedAddress>& held);

/// Assigns so many addresses of a family, whichever they are (docs/notes/calico-ipam.md#auto-assign).
[[nodiscard]] AssignFlow<void> assign_automatic(Assignment& assignment, net::Family family, std::uint32_t count);

}  // namespace croft::core
