#pragma once

#include <optional>
#include <span>

#include "store/pause.h"
#include "store/sqlite/commit_queue.h"
#include "store/sqlite/database.h"
#include "store/store.h"

namespace croft::store {

// Records as rows. All within the transaction that is open, or each statement in its own when none is.

[[nodiscard]] Result<std::optional<Record>> read_record(Database& database, const Key& key);

[[nodiscard]] Result<Page> read_page(Database& database, const ListRequest& request);

/// What is stored as the checksum of a record; SQLite's numbers are signed.
[[nodiscard]] std::int64_t row_checksum(std::uint8_t kind, std::string_view name, std::int64_t revision,
                                        std::string_view token, std::string_view value);

/// Everything, in the order of core::Missing; all of one moment inside a transaction.
[[nodiscard]] Result<ReadAnswer> read_all(Database& database, const core::Missing& wanted);

/// What a commit would do to the stored bytes.
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

}  // namespace croft::store
