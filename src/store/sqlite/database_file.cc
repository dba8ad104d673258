#include "store/sqlite/database_file.h"

#include <fmt/format.h>

#include "os/file_lock.h"
#include "os/files.h"
#include "store/sqlite/database.h"
#include "store/sqlite/transaction.h"

namespace croft::store {

namespace {

/// Counters: 1 the last revision, 3 the revision up to which changes are forgotten, 5 the register's id, 7 the id of
/// the register that it replaced.
constexpr const char* kTables = R"sql(
CREATE TABLE records(
  kind INTEGER NOT NULL, name TEXT NOT NULL, revision INTEGER NOT NULL, token BLOB NOT NULL, checksum INTEGER NOT NULL,
  value BLOB NOT NULL, PRIMARY KEY(kind, name)) STRICT;
CREATE TABLE counters(id INTEGER PRIMARY KEY, value INTEGER NOT NULL) STRICT;
CREATE TABLE changes(
  id INTEGER PRIMARY KEY, revision INTEGER NOT NULL, kind INTEGER NOT NULL, name TEXT NOT NULL) STRICT;
INSERT INTO counters VALUES(1, 0), (3, 0);
)sql";

/// Fills an empty file. Its durability comes after: nobody knows the draft.
[[nodiscard]] Result<void> write_draft(const std::string& draft) {
  sqlite3* db = nullptr;
  constexpr int kFlags = SQLITE_OPEN_READWRITE | SQLITE_OPEN_NOMUTEX | SQLITE_OPEN_EXRESCODE | SQLITE_OPEN_NOFOLLOW;
  int code = sqlite3_open_v2(draft.c_str(), &db, kFlags, croft_vfs());
  const std::string script = fmt::format(
      "PRAGMA page_size={}; PRAGMA auto_vacuum=NONE; PRAGMA synchronous=OFF; PRAGMA journal_mode=MEMORY; BEGIN; {} {}; "
      "PRAGMA application_id={}; PRAGMA user_version={}; COMMIT; PRAGMA journal_mode=WAL",
      kPageBytes, kTables, kGiveRegisterId, kApplicationId, kSchemaVersion);
  if (code == SQLITE_OK) code = sqlite3_exec(db, script.c_str(), nullptr, nullptr, nullptr);
  Result<void> written;
  if (code != SQLITE_OK) written = fail(failure_of(db, code, "create", draft).error);
  sqlite3_close(db);
  return written;
}

}  // namespace

Result<void> remove_database(const std::string& path) {
  for (const char* suffix : {"", "-wal", "-shm"}) TRY_VOID(os::remove_file_durably(path + suffix));
  return {};
}

Result<void> create_database(const std::string& path) {
  const std::string draft = path + "-new";
  TRY_VOID(remove_database(draft));
  TRY_VOID(os::create_file(draft));
  TRY_VOID(write_draft(draft));
  TRY_VOID(os::sync_file(draft));
  return os::rename_durably(draft, path);
}

namespace {

Error nothing_there(const std::string& path) {
  return {ErrorCode::not_found,
          fmt::format("no store at {}; \"croft pool create\" makes one, or correct the path", path),
          {}};
}

[[nodiscard]] Result<void> create_under_lock(const std::string& path, const Clock& clock, Deadline deadline) {
  os::FileLock lock(path + kLockSuffix, {.one_name = true});
  TRY_VOID(lock.lock(clock, deadline));
  TRY(const auto there, os::file_status(path));
  if (there) return {};  // another process was quicker
  TRY_VOID(refuse_lost_database(path));
  TRY_VOID(create_database(path));
  return make_room(path, clock, deadline);
}

}  // namespace

Result<void> check_file(const std::string& path, const os::FileStatus& status) {
  if (status.type != os::FileStatus::Type::regular) {
    return fail(
        ErrorCode::invalid_argument,
        fmt::format("store {} is {}, not a regular file; correct the path", path,
                    status.type == os::FileStatus::Type::directory ? "a directory" : "a pipe, socket or device"));
  }
  if (status.bytes == 0) {
    return fail(ErrorCode::corrupt, fmt::format("store {} is empty: follow docs/runbooks/backup-and-restore.md to "
                                                "restore it, or remove it if no database was ever in it",
                                                path));
  }
  return refuse_mounted_file(path, status);
}

Result<void> refuse_mounted_file(const std::string& path, const os::FileStatus& status) {
  if (!status.is_mount_point) return {};
  return fail(ErrorCode::corrupt,
              fmt::format("store {} is mounted by itself, and would get a log and a lock of its own "
                          "here; mount the directory it is in",
                          path));
}

Result<void> make_room(const std::string& path, const Clock& clock, Deadline deadline) {
  Database database(path, Database::Mode::shared, clock, deadline);
  TRY_VOID(database.open());
  TRY_VOID(reserve_log(database));
  TRY_VOID(database.run("BEGIN IMMEDIATE"));
  TRY_VOID(reserve_pages(database, /*adds_data=*/true));
  TRY_VOID(database.begin_log_anew());
  return database.run("COMMIT");
}

Result<void> refuse_lost_database(const std::string& path) {
  TRY(const auto log, os::file_status(path + "-wal"));
  const auto note = read_commit_note(path);
  // Commits of the log would be applied to a new database.
  if (!note && !(log && log->bytes > 0)) return {};
  return fail(ErrorCode::corrupt,
              fmt::format("store {0} is gone, and its {1} says that it had commits. Follow "
                          "docs/runbooks/backup-and-restore.md, or, when none of its pods runs, remove {0}-wal and "
                          "{0}{2} to start with nothing",
                          path, note ? "lock file" : "log", kLockSuffix));
}

Result<std::string> find_or_create(const std::string& path, const SqliteOptions& options, const Clock& clock,
                                   Deadline deadline) {
  if (options.create) TRY_VOID(os::make_directories(os::directory_of(path)));
  auto resolved = os::resolved_path(path);
  if (!resolved && resolved.error().code == ErrorCode::not_found && !options.create) return fail(nothing_there(path));
  if (!resolved) return resolved;
  TRY(auto status, os::file_status(*resolved));
  if (!status && options.create) {
    TRY_VOID(create_under_lock(*resolved, clock, deadline));
    TRY(status, os::file_status(*resolved));
  }
  if (!status) {
    TRY_VOID(refuse_lost_database(*resolved));
    return fail(nothing_there(path));
  }
  TRY_VOID(check_file(*resolved, *status));
  return resolved;
}

}  // namespace croft::store
