#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

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
  /// The register that a restore is about to put here, or has put here, and its revision then: noted durably before its
  /// rename, so that the one at the path is always one of the two that are named. 0: none.
  std::int64_t next_id = 0;
  std::int64_t next_revision = 0;

  /// What is known of a register; nothing when it is another one than was here.
  [[nodiscard]] std::optional<CommitNote> of(std::int64_t id) const;
  friend bool operator==(const CommitNote&, const CommitNote&) = default;
};
inline constexpr std::size_t kCommitNoteBytes = 64;
/// More lines of the same form may follow: `in_file`, which changes when the log begins anew, `damaged`, and the next
/// register.
inline constexpr std::size_t kFileNoteAt = kCommitNoteBytes;
inline constexpr std::size_t kDamageNoteAt = 2 * kCommitNoteBytes;
inline constexpr std::size_t kNextNoteAt = 3 * kCommitNoteBytes;
inline constexpr std::size_t kNotesBytes = 4 * kCommitNoteBytes;
/// Behind them, a line each: the registers that restores have replaced at this path, the last one first.
inline constexpr std::size_t kReplacedNotesAt = kNotesBytes;
inline constexpr std::size_t kReplacedMax = 32;

/// kCommitNoteBytes, one line of text.
[[nodiscard]] std::string encode_commit_note(const CommitNote& note);
[[nodiscard]] std::string encode_file_note(const CommitNote& note);
[[nodiscard]] std::string encode_damage_note(const CommitNote& note);
[[nodiscard]] std::string encode_next_note(const CommitNote& note);
/// At most kReplacedMax lines: ids of registers.
[[nodiscard]] std::string encode_replaced(const std::vector<std::int64_t>& register_ids);
/// Nothing when it is none, or a damaged one: then nothing is known.
[[nodiscard]] std::optional<CommitNote> decode_commit_note(std::string_view bytes);

/// The note in the lock file of a path, without a lock. Nothing when there is none.
[[nodiscard]] std::optional<CommitNote> read_commit_note(const std::string& database_path);

/// The ids of the registers that were here before restores replaced them, as far as they are known.
[[nodiscard]] std::vector<std::int64_t> read_replaced(const std::string& database_path);

/// Reads the id of the register into `database`; 0 when it has none, as older programs leave it. Error: corrupt when
/// the register is older than the note, or another one; and when the database file and its log are not of one time: the
/// log says what the file had when it was begun (counter 6), and the file, past the log, what it has.
/// The note must have been read before, and inside a write transaction under the lock.
[[nodiscard]] Result<void> check_against(Database& database, const std::optional<CommitNote>& note);

/// Opens a database and checks it against the note at its path, which is the answer. Errors: those of both.
[[nodiscard]] Result<std::optional<CommitNote>> open_checked(Database& database);

}  // namespace croft::store
