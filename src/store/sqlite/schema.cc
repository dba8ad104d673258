#include "store/sqlite/schema.h"

#include <fmt/format.h>

#include "os/files.h"
#include "store/sqlite/database.h"

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

Error newer_version_of(const std::string& path, std::int64_t version) {
  return {ErrorCode::newer_version,
          fmt::format("cannot use {}: its tables have version {}, this program knows up to {}; upgrade Croft here",
                      path, version, kSchemaVersion),
          {}};
}

}  // namespace croft::store
