#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "base/result.h"
#include "store/sqlite/database.h"

namespace croft::store {

/// What the lock file beside a database says of the last durable commit. It is outside the log, so it tells when SQLite
/// takes a damaged log for one that ends early, or a file was put back by hand. Written after each commit, without a
/// sync: behind the register it means nothing, ahead of it that acknowledged commits are lost.
struct CommitNote {
  std::int64_t register_id = 0;  ///< of which register: another one at the same path has another
  std::int64_t revision = 0;
  /// What the database file itself had, past the log, when the log was last begun anew: everything later is in the log.
  /// So an older file under a newer log, which would show its newest revision all the same, is found. 0: not known.
  std::int64_t in_file = 0;
  /// Somebody has met damage in the files: whoever opens them looks at all of it before he believes any of it.
  bool damaged = false;
  friend bool operator==(const CommitNote&, const CommitNote&) = default;
};
inline constexpr std::size_t kCommitNoteBytes = 64;
/// Two more lines of the same form may follow: `in_file`, which changes when the log begins anew, and `damaged`.
inline constexpr std::size_t kFileNoteAt = kCommitNoteBytes;
inline constexpr std::size_t kDamageNoteAt = 2 * kCommitNoteBytes;
inline constexpr std::size_t kNotesBytes = 3 * kCommitNoteBytes;

/// kCommitNoteBytes, one line of text.
[[nodiscard]] std::string encode_commit_note(const CommitNote& note);
[[nodiscard]] std::string encode_file_note(const CommitNote& note);
[[nodiscard]] std::string encode_damage_note(const CommitNote& note);
/// Nothing when it is none, or a damaged one: then nothing is known.
[[nodiscard]] std::optional<CommitNote> decode_commit_note(std::string_view bytes);

/// The note in the lock file of a path, without a lock. Nothing when there is none.
[[nodiscard]] std::optional<CommitNote> read_commit_note(const std::string& database_path);

/// Reads the id of the register into `database`; 0 when it has none, as older programs leave it. Error: corrupt when
/// the register is older than the note, which must have been read before the database was opened, or the log is older
/// than the database file.
[[nodiscard]] Result<void> check_against(Database& database, const std::optional<CommitNote>& note);

/// Refuses a database file that is older than the note says, whatever its log holds. Error: corrupt.
[[nodiscard]] Result<void> check_file_against(Database& database, const CommitNote& note);

/// The error of a register that is at `revision`, older than the note says.
[[nodiscard]] Error commits_lost(const Database& database, std::int64_t revision, const CommitNote& note);

}  // namespace croft::store
