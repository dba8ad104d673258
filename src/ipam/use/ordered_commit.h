#pragma once

#include <vector>

#include "ipam/use/transact.h"

namespace croft::engine {

/// Commits the writes of one plan, one by one, to a store that has no atomic commit
/// (docs/reference/calico-ipam.md#write-order). `as_read` is the snapshot the plan was made from. The order, and what
/// it is for:
///
///   1. what the plan depends on is looked at once more; where it makes blocks, after these (below);
///   2. claims are announced (affinity rows `pending`, new pools disabled), new blocks are made, empty, handles count
///   up,
///      claims to be given up say so (`pendingDeletion`), high-water marks of blocks that go are raised;
///   3. the blocks are written, each against the revision read: the first one decides;
///   4. claims are confirmed, handles count down, rows go, hints are written.
///
/// A crash in between leaves a handle that counts too many, a claim that is not confirmed or given up to the end, a
/// hint that is missing: never an address of two holders, an address without its handle, or an owned block without its
/// row. The next use repairs claims; the next release of the handle, or core::plan_mend_handle, its count.
///
/// A block that is made rests on what the plan only looked at: that its pool still is as read, that no higher mark was
/// left by a block that came and went. A look before the block is
/// made proves nothing of the moment after. So the block is made first, empty; then all of that is looked at, in the
/// store itself, never in a memory of it; only then a holder is written into the block. If anything has changed, the
/// block is taken back, and the plan is made again. Why that is enough:
///
/// - Deleting a pool writes the pool first (it must be disabled), then lists its blocks. A claim makes its block, then
///   reads the pool. Either the claim finds another pool than it read, or the list has its block: an empty one is then
///   deleted, and the claim's next write of it fails; one that is in use refuses the deletion. A row whose block was
///   never made needs no such care: it is no right to make one.
/// - A mark is raised before its block is deleted, and the block can be made only after that: the look sees the mark.
///
/// Of Services and the ranges they take from (services/decide/changes.h): what is taken is marked in the ranges before
/// the Service is written, with the blocks; what is given back only afterwards, with the counting down, and again if
/// others changed the range meanwhile. A crash in between leaves bits that nobody holds, never two holders of one; the
/// repair of the ranges finds them.
///
/// Handle counts are not increments, as in Calico, but what the blocks hold, and are lowered only by who has read the
/// handle, then written the block, and finds the handle unchanged. So whoever counted up before that read and has not
/// written the block yet fails at the block, and whoever counted up after it makes the lowering fail. Counting up
/// therefore always changes the handle, by one too many if need be.
///
/// Records that are no part of this are written with step 3, in the order of the plan. Of node ranges the plan puts the
/// node's record first, then its ranges, each made only if absent, then their set with the cursor; to give back, the
/// set and then the ranges. A range that was made stays, whatever fails behind it: who asks again for its node gets it
/// (what two leave beside each other: noderanges/decide/surplus.h).
/// So a crash leaves a node with one family of two, or a cursor behind, which the next call for the node completes.
///
/// What is taken back may have been seen meanwhile. Who answers with an address that is held already writes its block
/// once more (assign.cc); a block that others have changed since stays.
///
/// A conflict at a block may hide that the block was written and that another has written it since, when an
/// intermediary repeats requests. So it is looked at before anything is taken back, and what it needs stays: the
/// handles of whom it holds, its owner's row. Who plans again finds it, and `earlier` says that it may be its own work.
/// Where it can't be read, nothing is taken back.
///
/// Success: the blocks are written; step 4 was tried. The value says whether it left every handle of the plan as the
/// plan has it. Errors: of commit_once; and that of the write which would have enabled a new pool, which is then there
/// and disabled, marked as half made (core::Pool::being_made): who asks for it again completes it, and the message
/// names the remedy. Unless it is unknown_outcome, or of that write, nothing holds any more:
/// what was written was taken back, blocks included (their sequence numbers stay raised), except what others have
/// changed since, and records of nodes and their ranges. With unknown_outcome everything stays as it is. In both cases
/// repeating the operation is right. A write that a store refuses after it was done, as what it has kept is not what
/// was sent (a policy of a Kubernetes API changed it), is taken back as any other.
[[nodiscard]] Result<bool> commit_in_order(const Context& context, const core::Snapshot& as_read,
                                           std::vector<store::Write> writes, Deadline deadline, Earlier& earlier);

/// How long taking back may last, whatever became of the caller's deadline: a time-out must not leave handles behind.
/// But no longer than Context::ends_by.
inline constexpr std::chrono::seconds kTakeBackTime{30};

}  // namespace croft::engine
