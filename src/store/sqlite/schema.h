#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/result.h"
#include "store/sqlite/database.h"
#include "store/sqlite/page_checksum.h"

namespace croft::store {

// The tables of a store's database and its identity. docs/formats/records.md describes both for people.

/// In the header of the file: "Crof".
inline constexpr std::int64_t kApplicationId = 0x43726f66;
/// In the header of the file: raised when the tables or the pages change. Newer ones are refused; older ones are read
/// as they are, and their tables upgraded by the first commit. Version 3 has the tables of version 2 and a checksum in
/// each page, which only a new file can have (create_database, SqliteRestore).
inline constexpr std::int64_t kSchemaVersion = kVersionWithPageSums;
/// From this version on changes are noted (change_table.h).
inline constexpr std::int64_t kVersionWithChanges = 2;

[[nodiscard]] std::string_view text_of(Sql sql);

/// No value that SQLite makes or takes is longer: twice what a record may have.
inline constexpr int kValueBytesMax = 16 << 20;

/// A statement that looks at all that a database has of tables, indexes, views and triggers. Its one column: whose they
/// are (is_schema_of), a space, the first page of the table `counters`. What ANALYZE notes about tables may be there:
/// it changes no answer.
[[nodiscard]] const std::string& schema_question();
/// One that names the first of them that is not Croft's.
[[nodiscard]] const std::string& strangers_question();
/// They are those, to the letter, that Croft makes for this version, and no others.
[[nodiscard]] bool is_schema_of(std::int64_t version, std::string_view answer);

/// Makes a complete, empty, durable database of mode 0600 under a draft name and gives it its final one: at any moment
/// the path names nothing or a whole database. The directory must exist and nothing may be at the path; the store's
/// lock must be held. What an interrupted creation left is removed.
[[nodiscard]] Result<void> create_database(const std::string& path);

/// Brings the tables to the last version that the pages allow, inside a write transaction: with it they are new or as
/// they were. Does nothing where they are. Error: newer_version, when a newer program has been here since the file was
/// opened.
[[nodiscard]] Result<void> upgrade_tables(Database& database);

[[nodiscard]] Error newer_version_of(const std::string& path, std::int64_t version);

}  // namespace croft::store
