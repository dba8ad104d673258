#pragma once

#include <string>
#include <string_view>

#include <sqlite3.h>

#include "base/error.h"

namespace croft::store {

/// What a failed SQLite call means for the store.
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

}  // namespace croft::store
