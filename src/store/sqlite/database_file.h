#pragma once

#include <string>

#include "base/clock.h"
#include "base/result.h"
#include "os/files.h"
#include "store/sqlite/sqlite_store.h"

namespace croft::store {

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
