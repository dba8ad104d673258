#pragma once

#include <array>
#include <bit>
#include <cstdint>
#include <cstring>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include <sqlite3.h>

#include "base/clock.h"
#include "base/result.h"
#include "os/files.h"
#include "store/sqlite/sqlite_store.h"
#include "store/store.h"

namespace croft::store {

// The header of the file. docs/formats/records.md describes it and the tables for people.

/// In the header of the file: "Crof".
inline constexpr std::int64_t kApplicationId = 0x43726f66;
/// In the header of the file, in the lowest 8 bits of user_version (version_of): raised when the tables or the pages
/// change. Newer ones are refused.
inline constexpr std::int64_t kSchemaVersion = 4;

inline constexpr std::int64_t kPageBytes = 4096;

/// No value that SQLite makes or takes is longer: twice what a record may have.
inline constexpr int kValueBytesMax = 16 << 20;

/// Gives the register an id, random and positive.
inline constexpr const char* kGiveRegisterId =
    "INSERT OR REPLACE INTO counters VALUES(5, (random() & 0x7fffffffffffffff) | 1)";

/// Above the version is the stamp: how often the log was begun anew, modulo 2^23. The stamp of the log is the one of
/// the database file or the next one, so files of two times show (Database::fits_its_log).
[[nodiscard]] constexpr std::int64_t version_of(std::int64_t user_version) { return user_version & 0xff; }
[[nodiscard]] constexpr std::int64_t stamp_of(std::int64_t user_version) { return user_version >> 8 & 0x7fffff; }
[[nodiscard]] constexpr std::int64_t user_version(std::int64_t version, std::int64_t stamp) {
  return (stamp & 0x7fffff) << 8 | version;
}

/// A failed SQLite call, as the store sees it.
struct SqliteFailure {
  Error error;
  /// The disk failed, so that what is on it is not known: nothing more may be written or believed before the store is
  /// opened again.
  bool disk_failed = false;
  /// SQLite refused before it changed anything: no room, read-only, or another connection in the way.
  bool refused = false;
};

/// Reads the failure of the last call on `db`: "cannot <doing> <path>: <SQLite's words>; <remedy>".
/// Codes: corrupt (damaged or no database), storage_full, unavailable (busy), read_only, permission_denied, internal.
[[nodiscard]] SqliteFailure failure_of(sqlite3* db, int code, std::string_view doing, const std::string& path);

/// The name of the SQLite file layer of stores: the default one, but a write-ahead log that is there is opened without
/// the flag "create". With it SQLite syncs the directory once in each process that commits: two syncs an ADD of a lone
/// plugin instead of one (docs/adr/0003-sqlite-mode.md). Croft makes the log durable when it makes the store.
///
/// Registers the layer on first use, above the default one then in force.
[[nodiscard]] const char* croft_vfs();

class Database;

/// A compiled statement in use: bind, step, read columns. Reset when it goes out of scope; at most one at a time for
/// each text of a Database.
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

/// Which register a database is, and how far it has come.
struct Identity {
  std::int64_t register_id = 0;  ///< random, for the register's whole life; a restore gives another. 0: none yet
  std::int64_t revision = 0;     ///< the last one given
  std::int64_t replaced = 0;     ///< the register in whose place a restore put this one
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

  /// Opens the file, which must exist, and sets and reads back every setting. Comes
  /// first, once. Errors: not_found, corrupt, newer_version, unavailable, permission_denied; storage_full when
  /// Mode::shared needs room for the index and there is none: Mode::alone needs none.
  [[nodiscard]] Result<void> open();

  /// The disk has failed in some call: what is on it is not known.
  [[nodiscard]] bool disk_failed() const { return disk_failed_; }
  /// The last call that failed was refused before it changed anything: no room, read-only, or others were in the way.
  [[nodiscard]] bool last_call_was_refused() const { return last_call_was_refused_; }

  /// Until when the following calls wait for other connections.
  void set_deadline(Deadline deadline) { deadline_ = deadline; }

  /// Compiles the statement when it is new, and keeps it; `sql` must live as long as the program.
  [[nodiscard]] Result<std::unique_ptr<Statement>> prepare(const char* sql);
  /// A statement without rows, with one parameter at most.
  [[nodiscard]] Result<void> run(const char* sql, std::optional<std::int64_t> parameter = {});
  /// The only number of the only row.
  [[nodiscard]] Result<std::int64_t> number(const char* sql);
  /// Any SQL text, for what is done once: its first column of its first row, or nothing when there is no row.
  [[nodiscard]] Result<std::optional<std::string>> ask(const std::string& text);
  /// Several statements without rows.
  [[nodiscard]] Result<void> execute(const std::string& script);

  /// The last statement was a change and changed something.
  [[nodiscard]] bool has_changed_rows() const { return sqlite3_changes(db_) != 0; }
  /// The row of the last INSERT.
  [[nodiscard]] std::int64_t last_row_id() const { return sqlite3_last_insert_rowid(db_); }
  [[nodiscard]] bool in_transaction() const { return sqlite3_get_autocommit(db_) == 0; }
  [[nodiscard]] bool is_read_only() const { return sqlite3_db_readonly(db_, "main") == 1; }

  /// The least that the register must be in the next transaction, as its note said before that began.
  void expect(const std::optional<Identity>& note) { expected_ = note; }
  [[nodiscard]] const std::optional<Identity>& expected() const { return expected_; }

  /// Read now. Error: corrupt, also for a revision that no register reaches: one given after it could not be told.
  [[nodiscard]] Result<Identity> identity();
  /// Database file and log are of one time, by their stamps (stamp_of). Within a transaction. Error: newer_version,
  /// when a newer program has been here since the file was opened.
  [[nodiscard]] Result<bool> fits_its_log();

  /// Database, log, index and lock file are still the files that this connection has open, none of them shortened.
  /// Four looks at the file system. Once false, everything read through this connection may be void; it must be
  /// closed, with all others of this process, and opened anew. Errors: a path that can't be looked at.
  [[nodiscard]] Result<bool> is_current() const;
  /// Which file the database is.
  [[nodiscard]] std::optional<os::FileId> file() const;

  /// The number that a stored revision has for callers. When the files are replaced under an open store, revisions may
  /// come again with another content: so each opening has a generation, and what was read in an earlier one is no
  /// condition that holds, nor a position, in a later one.
  [[nodiscard]] Revision told(std::int64_t stored) const;
  [[nodiscard]] std::int64_t stored(Revision told) const;

  /// Pages in the log after the last commit of this connection; 0 before its first.
  [[nodiscard]] int log_pages() const { return log_pages_; }
  /// Copies the log's pages into the database as far as readers allow. True: all of them.
  [[nodiscard]] Result<bool> checkpoint();
  /// Writes the next stamp, at the front of the log when all of it has been copied.
  [[nodiscard]] Result<void> begin_log_anew();

  [[nodiscard]] Mode mode() const { return mode_; }
  [[nodiscard]] const std::string& path() const { return path_; }

  /// SQLite's handles of the two files; null while SQLite has none open. For making room in them, nothing else.
  [[nodiscard]] sqlite3_file* database_file() const { return file_behind(SQLITE_FCNTL_FILE_POINTER); }
  [[nodiscard]] sqlite3_file* log_file() const { return file_behind(SQLITE_FCNTL_JOURNAL_POINTER); }

  /// The Error of a failed SQLite call on this connection; notes what it says about the disk.
  [[nodiscard]] Error failure(int code, std::string_view doing);

 private:
  static constexpr std::array<const char*, 4> kSuffixes{"", "-wal", "-shm", "-lock"};
  using Files = std::array<std::optional<os::FileStatus>, kSuffixes.size()>;

  [[nodiscard]] Result<void> open_file();
  [[nodiscard]] Result<void> allocate_index();
  [[nodiscard]] Result<void> configure();
  [[nodiscard]] Result<void> check_header();
  [[nodiscard]] Result<void> check_setting(const std::string& pragma, std::string_view expected);
  [[nodiscard]] Result<Files> look_at_files() const;
  [[nodiscard]] Error wrong(ErrorCode code, std::string_view what) const;
  [[nodiscard]] sqlite3_file* file_behind(int control) const;
  static int wait_for_others(void* self, int attempts);
  static int note_log_pages(void* self, sqlite3* db, const char* name, int pages);

  const std::string path_;
  const Mode mode_;
  const Clock& clock_;
  Deadline deadline_;
  const std::uint16_t generation_;
  sqlite3* db_ = nullptr;
  Files files_;
  std::optional<Identity> expected_;
  int log_pages_ = 0;
  bool disk_failed_ = false;
  bool last_call_was_refused_ = false;
  std::map<const char*, sqlite3_stmt*> statements_;
};

/// A 64-bit sum over several byte strings that tells damage, not attacks: any change within one 8-byte word changes it.
/// Fixed by docs/formats/records.md; stored with every record.
class Checksum {
 public:
  void add(std::uint64_t word) {
    sum_ = (sum_ ^ word) * kMultiplier;
    sum_ ^= sum_ >> 32;
  }
  /// The length, then the bytes in little-endian words, the last one filled up with zeros.
  void add(std::string_view bytes) {
    add(std::uint64_t{bytes.size()});
    for (; bytes.size() >= 8; bytes.remove_prefix(8)) add(word_of(bytes.substr(0, 8)));
    if (!bytes.empty()) add(word_of(bytes));
  }
  [[nodiscard]] std::uint64_t value() const { return sum_; }

 private:
  static constexpr std::uint64_t kStart = 0xcbf29ce484222325;
  static constexpr std::uint64_t kMultiplier = 0x9e3779b97f4a7c15;

  static std::uint64_t word_of(std::string_view bytes) {
    static_assert(std::endian::native == std::endian::little);
    std::uint64_t word = 0;
    std::memcpy(&word, bytes.data(), bytes.size());
    return word;
  }

  std::uint64_t sum_ = kStart;
};

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
/// fits the note of the one that it replaced. Error: corrupt, naming the runbook, when it is another register or older
/// than the note, and when database and log are not of one time.
[[nodiscard]] Result<Identity> check_identity(Database& database);

// ---------------------------------------------------------------- the file

/// The suffix of the lock file beside the database.
inline constexpr const char* kLockSuffix = "-lock";
/// Looks at what a path names without opening it, makes the store if that is wanted, and gives the path without links.
/// After success a plausible file is there. Errors: as open_sqlite_store.
[[nodiscard]] Result<std::string> find_or_create(const std::string& path, const SqliteOptions& options,
                                                 const Clock& clock, Deadline deadline);

/// Says what speaks against opening a path as a database, by its status. Errors: invalid_argument; corrupt.
[[nodiscard]] Result<void> check_file(const std::string& path, const os::FileStatus& status);

/// A database file that is mounted by itself would get a log and a lock of its own beside it: other files than at its
/// own place. Error: corrupt.
[[nodiscard]] Result<void> refuse_mounted_file(const std::string& path, const os::FileStatus& status);

/// Makes a complete, empty, durable database of mode 0600 under a draft name and gives it its final one: at any moment
/// the path names nothing or a whole database. The directory must exist and nothing may be at the path; the store's
/// lock must be held. The leftovers of an interrupted creation are removed.
[[nodiscard]] Result<void> create_database(const std::string& path);

/// Removes a database and the files that SQLite keeps beside it.
[[nodiscard]] Result<void> remove_database(const std::string& path);

/// Makes the log at its full size, and both files durable in their directory by a first commit. The store's lock must
/// be held.
[[nodiscard]] Result<void> make_room(const std::string& path, const Clock& clock, Deadline deadline);

/// Why there is no database at a path without links: corrupt when its log, or what its lock file says, shows that there
/// was one with commits; nothing when none was ever there.
[[nodiscard]] Result<void> refuse_lost_database(const std::string& path);

}  // namespace croft::store
