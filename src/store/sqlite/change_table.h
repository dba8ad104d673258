#pragma once

#include <set>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "register/records.h"
#include "store/sqlite/database.h"
#include "store/store.h"

namespace croft::store {

// Which records changed lately, as rows, so that watches can follow what any process does. Written in the transaction
// of the change. A convenience, not part of the register: bounded, and given up first when the disk is full. An index
// on the revisions of the records would cost a commit two pages and tell nothing of deletions; this costs it one.

/// After this many changes the oldest are forgotten; in steps, so that few commits pay for it.
inline constexpr std::int64_t kChangesMax = 10000;
inline constexpr std::int64_t kForgetStep = 256;

/// What is known: every change after `floor`, up to `last`, the last revision given.
struct KnownChanges {
  Revision floor;
  Revision last;
  /// The changes after the position are all known. False too for a position of another, later life of the store.
  [[nodiscard]] bool reach_back_to(Revision position) const { return floor <= position && position <= last; }
};

/// To be asked inside a read transaction.
[[nodiscard]] Result<KnownChanges> known_changes(Database& database);

/// The changes after `position` of what is in the scope or followed, each record once, as it is now, in the order of
/// the last changes; inside a read transaction in which known_changes() reach back to the position.
[[nodiscard]] Result<std::vector<Change>> changes_after(Database& database, Revision position, const WatchScope& scope,
                                                        const std::set<Key>& followed);

// The following belong into the write transaction of the changes.

[[nodiscard]] Result<void> note_change(Database& database, std::int64_t kind, std::string_view name, Revision revision);
/// `last`: the revision before the transaction.
[[nodiscard]] Result<void> forget_all_changes(Database& database, Revision last);

}  // namespace croft::store
