#pragma once

#include <vector>

#include "ipam/use/transact.h"

namespace croft::engine {

/// Commits the writes of one plan, one by one, to a store that has no atomic commit
/// (docs/notes/calico-ipam.md#write-order). `as_read` is the snapshot the plan was made from. The order:
///
///   1. claims are announced (affinity rows `pending`, new pools disabled), new blocks are made, empty;
///   2. what the plan depends on is looked at once more (below); handles count up, and claims of blocks that were made
///      are confirmed; claims to be given up say so (`pendingDeletion`), high-water marks of blocks that go are raised;
///   3. the blocks are written, each against the revision read: the first one decides;
///   4. the other claims are confirmed, handles count what their blocks hold, rows go, hints are written.
///
/// Handles and claim rows may count too high, never too low. So nothing has to be taken back, whatever stops a commit
/// part-way. A handle that counts too many is lowered by the next call that plans it, its DEL or the collector
/// (core::plan_mend_handle). A row without its block goes with the next claim. A call that is decided again finds its
/// own part: an address that its owner holds is the answer. Two things only are put right at once. An empty block whose
/// pool changed meanwhile is removed by its maker. A claim whose block could not be given up, and is its owner's still,
/// says again that it holds.
///
/// A handle is written each time that an address comes to it, also where it counts enough: a late write of its old
/// revision fails then. It is lowered or deleted under the revision that was read before the blocks were written; each
/// block that it counts too many in is written by the plan. So a block's write that is still in flight fails, and one
/// whose maker counted up since makes the lowering fail (conflict: the plan is made again).
///
/// A block that is made rests on what the plan only looked at: its pool, and the mark of a block that came and went. A
/// look before the block is made proves nothing of the moment after. So the block is made first, empty; then both are
/// looked at, in the store itself; only then a holder is written into it:
///
/// - Deleting a pool disables it, then lists its blocks. Either the claim finds another pool than it read, or the list
///   has its block.
/// - A mark is raised before its block is deleted, and the block can be made only after that: the look sees the mark.
///
/// Records that are no part of this are written with step 3, in the order of the plan: of node ranges the node's record
/// first. A crash leaves a node with one family of two, or a cursor behind, which the next call for the node completes.
///
/// Success: all is written, but for rows, hints and counts that may stay too high. Errors: of commit_once; and that of
/// the write which would have enabled a new pool, which is then there and disabled, marked as half made
/// (core::Pool::being_made): who asks for it again completes it, and the message names the remedy. After any of them
/// repeating the operation is right.
[[nodiscard]] Result<void> commit_in_order(const Context& context, const core::Snapshot& as_read,
                                           std::vector<store::Write> writes, Deadline deadline);

}  // namespace croft::engine
