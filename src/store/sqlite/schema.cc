#include "store/sqlite/schema.h"

#include <array>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/assert.h"
#include "os/files.h"
#include "store/sqlite/sqlite_error.h"

namespace croft::store {
namespace {

// As SQLite keeps them in sqlite_schema, where they are compared to the letter: they must never change.
constexpr std::string_view kRecords = R"sql(CREATE TABLE records(
  kind INTEGER NOT NULL, name TEXT NOT NULL, revision INTEGER NOT NULL, token BLOB NOT NULL, checksum INTEGER NOT NULL,
  value BLOB NOT NULL, PRIMARY KEY(kind, name)) STRICT)sql";
constexpr std::string_view kCounters = "CREATE TABLE counters(id INTEGER PRIMARY KEY, value INTEGER NOT NULL) STRICT";
/// Since version 2.
constexpr std::string_view kChanges =
    "CREATE TABLE changes(id INTEGER PRIMARY KEY, revision INTEGER NOT NULL, kind INTEGER NOT NULL, "
    "name TEXT NOT NULL) STRICT";

constexpr std::string_view kFirstCounters = "INSERT INTO counters VALUES(1, 0), (2, 0)";

/// From version 1 to 2. Of what was before nothing is known.
constexpr std::array<std::string_view, 4> kToVersion2{
    kChanges,
    "INSERT INTO counters SELECT 3, value FROM counters WHERE id=1",
    "INSERT INTO counters SELECT 4, value FROM counters WHERE id=1",
    "PRAGMA user_version=2",
};

/// The counter in whose place the mark of a commit with a revision that kCommitMarks divides is.
constexpr std::int64_t kFirstMark = 16;

constexpr const char* kToVersion3 = "PRAGMA user_version=3";

constexpr std::string_view kDraftSuffix = "-new";

[[nodiscard]] Result<void> remove_drafts(const std::string& draft) {
  for (const std::string_view suffix : {"", "-journal", "-wal", "-shm"}) {
    TRY_VOID(os::remove_file_durably(draft + std::string(suffix)));
  }
  return {};
}

/// Fills an empty file. Its durability comes after: nobody knows the draft.
[[nodiscard]] Result<void> write_draft(const std::string& draft) {
  sqlite3* db = nullptr;
  constexpr int kFlags = SQLITE_OPEN_READWRITE | SQLITE_OPEN_NOMUTEX | SQLITE_OPEN_EXRESCODE | SQLITE_OPEN_NOFOLLOW;
  int code = sqlite3_open_v2(draft.c_str(), &db, kFlags, croft_vfs());
  const std::string settings = fmt::format(
      "PRAGMA page_size={}; PRAGMA auto_vacuum=NONE; PRAGMA synchronous=OFF; "
      "PRAGMA journal_mode=MEMORY",
      kPageBytes);
  const std::string script = fmt::format(
      "BEGIN; {}; {}; {}; {}; {}; {}; PRAGMA application_id={}; COMMIT; PRAGMA journal_mode=WAL;", kRecords, kCounters,
      kFirstCounters, fmt::join(kToVersion2, "; "), kToVersion3, text_of(Sql::give_register_id), kApplicationId);
  if (code == SQLITE_OK) code = sqlite3_exec(db, settings.c_str(), nullptr, nullptr, nullptr);
  if (code == SQLITE_OK && !give_page_sums(db)) code = SQLITE_INTERNAL;
  if (code == SQLITE_OK) code = sqlite3_exec(db, script.c_str(), nullptr, nullptr, nullptr);
  Result<void> written;
  if (code != SQLITE_OK) written = fail(failure_of(db, code, "create", draft).error);
  sqlite3_close(db);
  return written;
}

}  // namespace

std::string_view text_of(Sql sql) {
  switch (sql) {
    case Sql::begin_read:
      return "BEGIN";
    case Sql::begin_write:
      return "BEGIN IMMEDIATE";
    case Sql::commit:
      return "COMMIT";
    case Sql::rollback:
      return "ROLLBACK";
    case Sql::get:
      return "SELECT revision, token, checksum, value FROM records WHERE kind=?1 AND name=?2";
    case Sql::get_revision:
      return "SELECT revision, length(value) FROM records WHERE kind=?1 AND name=?2";
    case Sql::put:
      return "INSERT INTO records(kind, name, revision, token, checksum, value) VALUES(?1, ?2, ?3, ?4, ?5, ?6) "
             "ON CONFLICT(kind, name) DO UPDATE SET revision=?3, token=?4, checksum=?5, value=?6";
    case Sql::remove:
      return "DELETE FROM records WHERE kind=?1 AND name=?2";
    case Sql::list:
      return "SELECT name, revision, token, checksum, value FROM records WHERE kind=?1 AND name>=?2 AND name<?3 "
             "ORDER BY name LIMIT ?4";
    case Sql::list_names:
      return "SELECT name FROM records WHERE kind=?1 AND name>=?2 AND name<?3 ORDER BY name LIMIT ?4";
    case Sql::last_revision:
      return "SELECT value FROM counters WHERE id=1";
    case Sql::set_last_revision:
      return "UPDATE counters SET value=?1 WHERE id IN (1, 4)";
    case Sql::begin_log_anew:
      return "INSERT OR REPLACE INTO counters SELECT 2, (value & 0xffffffff)+1 FROM counters WHERE id=2 "
             "UNION ALL SELECT 6, ?1";
    case Sql::page_count:
      return "PRAGMA page_count";
    case Sql::free_page_count:
      return "PRAGMA freelist_count";
    case Sql::schema_version:
      return "PRAGMA user_version";
    case Sql::last_noted_revision:
      return "SELECT value FROM counters WHERE id=4";
    case Sql::change_floor:
      return "SELECT value FROM counters WHERE id=3";
    case Sql::set_change_floor:
      return "UPDATE counters SET value=?1 WHERE id=3";
    case Sql::note_change:
      return "INSERT INTO changes(revision, kind, name) VALUES(?1, ?2, ?3)";
    case Sql::change_revision:
      return "SELECT revision FROM changes WHERE id=?1";
    case Sql::changes_backwards:
      return "SELECT revision, kind, name FROM changes ORDER BY id DESC";
    case Sql::forget_changes:
      return "DELETE FROM changes WHERE id<=?1";
    case Sql::forget_all_changes:
      return "DELETE FROM changes";
    case Sql::register_id:
      return "SELECT max(iif(id=5, value, 0)), max(iif(id=6, value, 0)) FROM counters";
    case Sql::give_register_id:
      return "INSERT OR REPLACE INTO counters VALUES(5, (random() & 0x7fffffffffffffff) | 1)";
    case Sql::newest_commit: {
      static const std::string kText = fmt::format(
          "SELECT value, (SELECT value FROM counters WHERE id=5), (SELECT value FROM counters WHERE "
          "id={0}+last.value%{1}), "
          "(SELECT value FROM counters WHERE id={0}+?1%{1}) FROM counters AS last WHERE id=1",
          kFirstMark, kCommitMarks);
      return kText;
    }
    case Sql::leave_mark: {
      static const std::string kText = fmt::format(
          "INSERT OR REPLACE INTO counters VALUES({}+?1%{}, (?1 & 0x7fffffff) << 32 | (random() & 0xffffffff)) "
          "RETURNING "
          "value",
          kFirstMark, kCommitMarks);
      return kText;
    }
  }
  CROFT_ASSERT(false);
}

namespace {

/// Whose a row of sqlite_schema is: 1 and 100 are Croft's, as is_schema_of counts them; 0 is SQLite's own.
std::string owner_expression() {
  return fmt::format(
      "CASE WHEN type='table' AND (name='records' AND sql='{}' OR name='counters' AND sql='{}') THEN 1 WHEN "
      "type='index' AND name='sqlite_autoindex_records_1' AND sql IS NULL THEN 1 WHEN type='table' AND name='changes' "
      "AND sql='{}' THEN 100 WHEN type='table' AND name IN ('sqlite_stat1', 'sqlite_stat4') THEN 0 ELSE 10000 END",
      kRecords, kCounters, kChanges);
}

}  // namespace

const std::string& schema_question() {
  static const std::string kQuestion = fmt::format(
      "SELECT sum({}) || ' ' || max(CASE WHEN type='table' AND name='counters' THEN rootpage ELSE 0 END) FROM "
      "sqlite_schema",
      owner_expression());
  return kQuestion;
}

const std::string& strangers_question() {
  static const std::string kQuestion =
      fmt::format("SELECT type || ' ' || name FROM sqlite_schema WHERE {} > 100 LIMIT 1", owner_expression());
  return kQuestion;
}

bool is_schema_of(std::int64_t version, std::string_view answer) {
  // One of version 1 may just be getting its new table.
  return answer == "103" || (version < kVersionWithChanges && answer == "3");
}

Result<void> create_database(const std::string& path) {
  const std::string draft = path + std::string(kDraftSuffix);
  TRY_VOID(remove_drafts(draft));
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

Result<void> upgrade_tables(Database& database) {
  TRY(const std::int64_t version, database.number(Sql::schema_version));
  const bool has_sums = database.has_page_sums();
  if (version == (has_sums ? kSchemaVersion : kVersionWithChanges)) return {};
  if (version > kSchemaVersion) return fail(newer_version_of(database.path(), version));
  if (version < kVersionWithChanges) {
    for (const std::string_view statement : kToVersion2) TRY_VOID(database.ask(std::string(statement)));
  }
  if (has_sums) TRY_VOID(database.ask(kToVersion3));
  return {};
}

}  // namespace croft::store
