#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include <sqlite3.h>

#include "base/clock.h"
#include "base/result.h"
#include "store/sqlite/commit_mark.h"
#include "store/sqlite/indexed_frames.h"
#include "store/sqlite/vfs.h"
#include "store/store.h"

namespace croft::store {

/// The statements a store uses. Each is compiled when it is first needed and kept.
enum class Sql : std::uint8_t {
  begin_read,
  begin_write,
  commit,
  rollback,
  get,
  get_revision,
  put,
  remove,
  list,
  list_names,
  last_revision,
  set_last_revision,
  begin_log_anew,  ///< see Database::begin_log_anew
  page_count,
  free_page_count,
  schema_version,
  last_noted_revision,
  change_floor,
  set_change_floor,
  note_change,
  change_revision,
  changes_backwards,
  forget_changes,
  forget_all_changes,
  register_id,  ///< 0 for none; second column: the revision that the file had when the log was begun, or 0
  give_register_id,
  newest_commit,  ///< its revision, the register's id, its mark, and the mark in the place of revision ?1; or 0
  leave_mark,
};
inline constexpr std::size_t kSqlCount = 28;

class Database;

/// A compiled statement in use: bind, step, read columns. Reset when it goes out of scope; at most one at a time for
/// each Sql of a Database.
class Statement {
 public:
  Statement(Database& database, sqlite3_stmt* statement) : database_(database), statement_(statement) {}
  Statement(const Statement&) = delete;
  Statement& operator=(const Statement&) = delete;
  ~Statement();

  /// Parameters count from 1. Texts and blobs must live until the last step.
  Statement& bind(int parameter, std::int64_t value);
  Statement& bind_text(int parameter, std::string_view value);
  Statement& bind_blob(int parameter, std::string_view value);

  /// True: a row is there. False: the statement is done.
  [[nodiscard]] Result<bool> step();

  /// Columns count from 0. Views are valid until the next step.
  [[nodiscard]] std::int64_t number(int column) const { return sqlite3_column_int64(statement_, column); }
  [[nodiscard]] std::string_view bytes(int column) const;

 private:
  Database& database_;
  sqlite3_stmt* statement_;
  int bind_result_ = SQLITE_OK;
};

/// One connection to a store's database, in the mode of docs/adr/0003-sqlite-mode.md: write-ahead log, full sync, no
/// checkpoint but checkpoint(). Serves one thread at a time. Writing and checkpointing need the store's file lock; the
/// caller holds it.
class Database {
 public:
  enum class Mode : std::uint8_t {
    shared,  ///< the index of the log is in a file that all connections map
    /// The index is in this connection's memory and no other connection can be open: for a full disk, where the file
    /// can't be made. Needs the store's file lock from open to destruction, also for reading.
    alone,
  };

  /// `generation`: see told().
  Database(std::string path, Mode mode, const Clock& clock, Deadline deadline, std::uint16_t generation = 0)
      : path_(std::move(path)), mode_(mode), clock_(clock), deadline_(deadline), generation_(generation) {}
  ~Database();
  Database(const Database&) = delete;
  Database& operator=(const Database&) = delete;

  /// Comes before open(), where it comes: for who compares everything with everything afterwards.
  void believe_copied_pages() { belief_ = PageBelief::copied_too; }

  /// Opens the file, which must exist and may be of an older version, and sets and reads back every setting. Comes
  /// first, once. Errors: not_found, corrupt, newer_version, unavailable, permission_denied; storage_full when
  /// Mode::shared needs room for the index and there is none: Mode::alone needs none.
  [[nodiscard]] Result<void> open();

  /// The disk has failed in some call: what is on it is not known.
  [[nodiscard]] bool disk_failed() const { return disk_failed_; }
  /// What calls have met in the files: damage, or a page that another program copied there (vfs.h). Stays so.
  [[nodiscard]] bool met_damage() const { return met_damage_; }
  [[nodiscard]] bool met_page_without_sum() const { return met_page_without_sum_; }
  /// The last call that failed was refused before it changed anything: no room, read-only, or others were in the way.
  [[nodiscard]] bool last_call_was_refused() const { return last_call_was_refused_; }

  /// Until when the following calls wait for other connections.
  void set_deadline(Deadline deadline) { deadline_ = deadline; }

  /// Compiles the statement when it is new.
  [[nodiscard]] Result<std::unique_ptr<Statement>> prepare(Sql sql);
  /// A statement without parameters and rows.
  [[nodiscard]] Result<void> run(Sql sql);
  /// The only number of the only row.
  [[nodiscard]] Result<std::int64_t> number(Sql sql);
  /// Any SQL text, for what is done once: its first column of its first row, or nothing when there is no row.
  [[nodiscard]] Result<std::optional<std::string>> ask(const std::string& text);

  /// The last statement was a change and changed something.
  [[nodiscard]] bool has_changed_rows() const { return sqlite3_changes(db_) != 0; }
  /// Of the last INSERT.
  [[nodiscard]] std::int64_t last_row_id() const { return sqlite3_last_insert_rowid(db_); }

  [[nodiscard]] bool in_transaction() const { return sqlite3_get_autocommit(db_) == 0; }
  /// Each page has a checksum (vfs.h); a database that an older program made has none.
  [[nodiscard]] bool has_page_sums() const { return store::has_page_sums(db_); }
  /// As in vfs.h.
  [[nodiscard]] Result<bool> lacks_page_sums();
  [[nodiscard]] Result<void> give_missing_page_sums();
  [[nodiscard]] bool is_read_only() const { return sqlite3_db_readonly(db_, "main") == 1; }

  /// The last revision given. Error: corrupt, for a number that no register reaches: revisions of callers have no room
  /// for it, and one given after it could not be read again.
  [[nodiscard]] Result<std::int64_t> last_revision();

  [[nodiscard]] Error counter_is_missing() const;

  /// What the register must have in its history from now on; look_at_history() has not been called then.
  void expect_history(const CommitMark& seen);
  /// Looks for it, within the transaction that is open, if one is. Error: conflict, and the connection has met another
  /// history: everything that is read through it is another register, or of another time, than what was seen.
  [[nodiscard]] Result<void> look_at_history();
  [[nodiscard]] bool has_looked_at_history() const { return has_looked_at_history_; }
  [[nodiscard]] bool met_other_history() const { return met_other_history_; }
  /// The newest commit that was seen.
  [[nodiscard]] const CommitMark& seen() const { return seen_; }
  /// After a commit of its own.
  void set_seen(const CommitMark& mark) { seen_ = mark; }

  /// The last revision that the database file itself has, past the log; nothing when that can't be told. One below
  /// `expected` is read a few times more: a checkpoint may be writing the page.
  [[nodiscard]] std::optional<std::int64_t> revision_in_file(std::int64_t expected);
  /// The least it must be from now on: is_current() looks.
  void expect_in_file(std::int64_t revision) { expected_in_file_ = std::max(expected_in_file_, revision); }
  /// -1 before the first look.
  [[nodiscard]] std::int64_t expected_in_file() const { return expected_in_file_; }

  /// The database, its log and its index are still the files that this connection has open, no page is missing from
  /// them, the file is no older than the log builds on, the end of the log is what the index says it is, and the index
  /// finds all pages in the log. Not inside a transaction. Costs three looks at the file system and reads a page, 24
  /// bytes, and 24 bytes of each frame that is new since the last time. Once false, everything read through this
  /// connection may be void; it must be closed, with all others of this process, and opened anew. Errors: a path that
  /// can't be looked at.
  [[nodiscard]] Result<bool> is_current();
  /// Which file the database is; nothing when that is not known.
  [[nodiscard]] std::optional<os::FileId> file() const { return files_.database; }

  /// Names the register for its whole life (commit_note.h); 0 while it is not known or has none.
  [[nodiscard]] std::int64_t register_id() const { return register_id_; }
  void set_register_id(std::int64_t id) { register_id_ = id; }

  /// The number that a stored revision has for callers. When the files are replaced under an open store, revisions may
  /// come again with another content (a backup was put in their place): so each opening has a generation, and what was
  /// read in an earlier one is no condition that holds, nor a position, in a later one.
  [[nodiscard]] Revision told(std::int64_t stored) const;
  [[nodiscard]] std::int64_t stored(Revision told) const;

  /// Pages in the log after the last commit of this connection; 0 before its first.
  [[nodiscard]] int log_pages() const { return log_pages_; }
  /// Copies the log's pages into the database as far as readers allow. True: all of them.
  [[nodiscard]] Result<bool> checkpoint();

  /// Writes, at the front of the log when all of it has been copied, that the database file has at least this revision,
  /// durably (counter 6).
  [[nodiscard]] Result<void> begin_log_anew(std::int64_t in_file);

  [[nodiscard]] Mode mode() const { return mode_; }
  [[nodiscard]] const std::string& path() const { return path_; }

  /// SQLite's handles of the two files; null while SQLite has none open. For making room in them, nothing else.
  [[nodiscard]] sqlite3_file* database_file() const { return file_behind(SQLITE_FCNTL_FILE_POINTER); }
  [[nodiscard]] sqlite3_file* log_file() const { return file_behind(SQLITE_FCNTL_JOURNAL_POINTER); }

  /// The Error of a failed SQLite call on this connection; notes what it says about the disk.
  [[nodiscard]] Error failure(int code, std::string_view doing);

 private:
  [[nodiscard]] Result<void> open_file();
  [[nodiscard]] Result<void> configure();
  /// The version of the tables.
  [[nodiscard]] Result<std::int64_t> check_identity();
  [[nodiscard]] Result<void> check_tables(std::int64_t version);
  [[nodiscard]] Result<void> check_setting(const std::string& pragma, std::string_view expected);
  [[nodiscard]] bool log_is_as_indexed();
  /// The file has what the index says is copied to it: the counters of that time, or newer ones.
  [[nodiscard]] bool has_copied(sqlite3_file& log, std::uint32_t frames);
  /// Each page in use that a file of so many bytes lacks is in the log, where readers look for it. After a power cut it
  /// is so: the size of the file is durable only with a checkpoint.
  [[nodiscard]] bool log_has_pages_behind(std::uint64_t file_bytes);
  [[nodiscard]] Error wrong(ErrorCode code, std::string what) const;
  [[nodiscard]] sqlite3_file* file_behind(int control) const;
  static int wait_for_others(void* self, int attempts);
  static int note_log_pages(void* self, sqlite3* db, const char* name, int pages);

  std::string path_;
  const std::string log_path_ = path_ + "-wal";
  const std::string index_path_ = path_ + "-shm";
  Mode mode_;
  const Clock& clock_;
  Deadline deadline_;
  sqlite3* db_ = nullptr;
  int log_pages_ = 0;
  bool disk_failed_ = false;
  bool last_call_was_refused_ = false;
  bool met_damage_ = false;
  bool met_page_without_sum_ = false;
  PageBelief belief_ = PageBelief::checked;
  const std::uint16_t generation_;
  std::int64_t register_id_ = 0;
  CommitMark seen_;
  bool has_looked_at_history_ = false;
  bool met_other_history_ = false;
  std::uint32_t counters_page_ = 0;  ///< root of the table `counters`; 0: not known
  std::int64_t expected_in_file_ = -1;
  OpenedFiles files_;
  IndexedFrames frames_;
  std::uint32_t looked_at_copied_ = 0;  ///< frames that the index says are in the file, when they were last looked for
  std::array<sqlite3_stmt*, kSqlCount> statements_{};
};

}  // namespace croft::store
