#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "base/result.h"
#include "store/sqlite/database.h"

namespace croft::store {

// The lock file beside a database has one line, the note of the last durable commit: the register's id and revision.
// It is outside the log, so it tells when SQLite takes a damaged log for one that ends early, or a file was put back by
// hand. Written after each commit, without a sync: behind the register it means nothing, ahead of it that acknowledged
// commits are lost.

inline constexpr std::size_t kCommitNoteBytes = 64;

/// kCommitNoteBytes, one line of text.
[[nodiscard]] std::string encode_commit_note(const Identity& note);
/// Nothing when it is none, or a damaged one: then nothing is known.
[[nodiscard]] std::optional<Identity> decode_commit_note(std::string_view bytes);
/// The note in the lock file of a path, without a lock. Nothing when there is none.
[[nodiscard]] std::optional<Identity> read_commit_note(const std::string& database_path);

/// Compares the register with what is expected of it (Database::expect), within a transaction. A restored register also
/// fits the note of the one that it replaced. Errors: corrupt, naming the runbook, when it is another register or older
/// than the note, and when database and log are not of one time; conflict when it is older than what was seen.
[[nodiscard]] Result<Identity> check_identity(Database& database);

}  // namespace croft::store
