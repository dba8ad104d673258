#pragma once

#include <cstdint>
#include <string>

#include "base/result.h"
#include "store/sqlite/database.h"

namespace croft::store {

// The tables of a store's database and its identity. docs/formats/records.md describes both for people.

/// In the header of the file: "Crof".
inline constexpr std::int64_t kApplicationId = 0x43726f66;
/// In the header of the file, in the lowest 8 bits of user_version (version_of): raised when the tables or the pages
/// change. Newer ones are refused. Version 3 differs in 8 reserved bytes of each page, which SQLite passes over: it is
/// read and written as it is, and stays version 3.
inline constexpr std::int64_t kSchemaVersion = 4;
inline constexpr std::int64_t kOldestVersion = 3;

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

/// Makes a complete, empty, durable database of mode 0600 under a draft name and gives it its final one: at any moment
/// the path names nothing or a whole database. The directory must exist and nothing may be at the path; the store's
/// lock must be held. The leftovers of an interrupted creation are removed.
[[nodiscard]] Result<void> create_database(const std::string& path);

/// Removes a database and the files that SQLite keeps beside it.
[[nodiscard]] Result<void> remove_database(const std::string& path);

[[nodiscard]] Error newer_version_of(const std::string& path, std::int64_t version);

}  // namespace croft::store
