#pragma once

#include <optional>
#include <set>
#include <span>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "register/records.h"
#include "store/pause.h"
#include "store/sqlite/commit_queue.h"
#include "store/sqlite/database.h"
#include "store/store.h"

namespace croft::store {

// Records as rows. All within the transaction that is open, or each statement in its own when none is.

[[nodiscard]] Result<std::optional<Record>> read_record(Database& database, const Key& key);

/// Those after a name; empty: from the start.
[[nodiscard]] Result<Page> read_page(Database& database, const ListRequest& request, const std::string& after);

/// Everything, in the order of core::Missing; all of one moment inside a transaction.
[[nodiscard]] Result<ReadAnswer> read_all(Database& database, const core::Missing& wanted);

/// The effect of a commit on the stored bytes.
struct Effect {
  const Key* failed_condition = nullptr;  ///< the first key whose condition does not hold
  std::int64_t bytes_added = 0;           ///< negative when the records get smaller
};
[[nodiscard]] Result<Effect> effect_of(Database& database, std::span<const EncodedWrite> writes);

/// Where the pause is: a row of a kind that no record has.
inline constexpr std::int64_t kPauseKind = 255;
[[nodiscard]] const Key& pause_row();
/// Errors: corrupt; newer_version.
[[nodiscard]] Result<std::optional<StoredPause>> read_pause(Database& database);

/// Notes the changes too.
[[nodiscard]] Result<void> apply(Database& database, const PendingCommit& commit, Revision revision);

// Which records changed lately, as rows, so that watches can follow what any process does. Written in the transaction
// of the change. A convenience, not part of the register: bounded, and given up first when the disk is full. An index
// on the revisions of the records would cost a commit two pages and tell nothing of deletions; this costs it one.

/// After this many changes the oldest are forgotten; in steps, so that few commits pay for it.
inline constexpr std::int64_t kChangesMax = 10000;
inline constexpr std::int64_t kForgetStep = 256;

/// The last revision given; inside a read transaction. Error: too_old when not all changes after `position` are known,
/// also for a position of another, later life of the store.
[[nodiscard]] Result<Revision> last_known_change(Database& database, Revision position);

/// The changes after `position` of what is in the scope or followed, each record once, as it is now, in the order of
/// the last changes; inside a read transaction in which they are all known.
[[nodiscard]] Result<std::vector<Change>> changes_after(Database& database, Revision position, const WatchScope& scope,
                                                        const std::set<Key>& followed);

/// Within the write transaction of the changes. `last`: the revision before it.
[[nodiscard]] Result<void> forget_all_changes(Database& database, Revision last);

}  // namespace croft::store
