#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/result.h"
#include "ipam/use/transact.h"
#include "register/snapshot.h"
#include "store/store.h"

// Combining: calls that wait for one node are decided one after the other on one snapshot, each on the plans before it.
// They are written in one commit (docs/adr/0013-combining.md).

namespace croft::engine {

/// The outcome of a call of a batch.
enum class BatchFate : std::uint8_t {
  waits,  ///< nothing yet: there was no room, or an earlier call of its owner goes first. The next batch has it
  done,   ///< its plan is committed, durably: the answer it kept holds
  /// It is to be decided again by itself, on the store: it plans nothing, is refused, met an error or lasting
  /// conflicts, or the commit's outcome is unknown. Its use case finds what is there.
  alone,
  failed,  ///< `error` is its answer: nothing was changed for it
};

/// A call as a batch takes it. Made by the use cases (assign.h, release.h).
struct BatchedCall {
  /// Decides as for transact(), and keeps its answer. The plan's answer says whether that is final once the plan is
  /// committed; if not, the plan is dropped and the call goes alone.
  std::function<core::Step<bool>(const core::Snapshot&, const Instant&)> decide;
  std::string owner;   ///< whose calls keep their order
  Deadline not_after;  ///< a moment after which nothing may be begun for it
  /// Whether its caller has gone its own way sooner; empty: it can't.
  std::function<bool(const Instant& now)> is_left{};
  BatchFate fate = BatchFate::waits;
  std::optional<Error> error{};
};

/// The blocks in which a handle counts more than they have, as a snapshot shows them. Both are written in one commit,
/// or the handle first. Such a difference is left by an earlier try, or a memory shows two moments: the handle read
/// just now beside an older block. A decision on it would give a second address, or forget one.
[[nodiscard]] std::vector<core::KeyOf<core::Block>> blocks_at_odds(const core::Snapshot& snapshot,
                                                                   const std::string& handle_id);

/// The reading that one batch leaves to the next, as after its commit, where one writer alone has the records that
/// its calls rest on. It is dropped where somebody may have written meanwhile; each commit still proves what it rests
/// on.
struct BatchMemory {
  std::optional<Loader> loader{};  ///< nothing: the next batch reads
  std::uint64_t epoch = 0;         ///< of the store (store::Store::epoch)
};

/// The result of a batch.
struct BatchDone {
  std::size_t commits = 0;   ///< tried
  bool from_memory = false;  ///< what was done had been decided from memory alone
  std::size_t most = 0;      ///< for the next batch
};

/// Decides the calls that wait, in their order, and commits their plans at once. It works first on `cached`; after a
/// conflict, or when the store was away, on a fresh reading of `direct.store`. No call's refusal, damage, haste or size
/// fails or delays another:
/// - who plans nothing that is final leaves no trace in what the others see, and goes alone;
/// - a later call of an owner whose earlier one was not planned waits for that one;
/// - what does not fit beside the others (kCommitWritesMax) waits, with all behind it, and so does what is not decided
/// after a twentieth of a second;
/// - after a conflict a commit has a quarter of the calls, and the others wait; who conflicts by itself goes alone;
/// - whose time is over, or whose caller has left, is not begun (failed: deadline_exceeded); the others are tried again
///   without it. A commit that was begun has the time of the batch (Context::time_limit): one call's end fails no
///   other.
/// A store that stays away or is read-only fails all that were planned. On a store without atomic commits the writes go
/// in the order of commit_in_order. Nothing is believed that came from memory and was not confirmed by the commit.
/// `most`: calls of one commit, as the last batch left it (BatchDone::most). With `memory`, for stores with atomic
/// commits, the first try rests on that instead of on a reading of `cached`, and fills it.
BatchDone commit_together(const Context& direct, store::Store& cached, std::span<BatchedCall> calls,
                          std::size_t most = store::kCommitWritesMax, BatchMemory* memory = nullptr);

}  // namespace croft::engine
