#pragma once

#include <memory>
#include <string>

#include "base/clock.h"
#include "base/result.h"
#include "os/files.h"
#include "store/pause.h"
#include "store/store.h"

namespace croft::store {

struct SqliteOptions {
  /// Make the store when there is none: its directory (mode 0700) and its files (0600).
  bool create = false;
  /// The caller holds the store's lock, as SqliteRestore does: it is not taken, and nothing may be committed.
  bool lock_is_held = false;
};

/// A store in one SQLite file, shared by all programs of one machine at once (docs/adr/0003-sqlite-mode.md).
///
/// Beside `<file>` there are `-wal` and `-shm` (SQLite's) and `-lock` (ours): they belong together and are copied,
/// moved and mounted only as a directory. Every write happens while `-lock` is locked, so no other program may write
/// the file.
///
/// The files are looked at before each use: when they were replaced, the store goes on with what is there now. Then
/// what was read before is void: conditions on its revisions don't hold any more (conflict), and watches end (too_old).
/// Where acknowledged commits are missing (check_identity) every call fails with corrupt.
///
/// Safe to call from several threads; reads go on while a commit waits for the disk. Commits of several threads share
/// transactions. A process that forks must not use the store in the child. Turns and watches must end before the store
/// does.
///
/// Watches see what other processes do within about 20 ms, and know the last 10,000 changes; fewer after the disk was
/// full.
class SqliteStore : public Store, public Pausable {
 public:
  /// How often this object began the log anew; for tests.
  [[nodiscard]] virtual std::uint64_t checkpoints() const = 0;
  /// Which file the database is that this object has open, looked at anew. Errors: those of every call.
  [[nodiscard]] virtual Result<os::FileId> file(Deadline deadline) = 0;
};

/// Opens the store in the file `path`; of links in it the file they lead to. `clock` must outlive the store.
/// Errors, each naming the path: not_found (no store there and none to be made; says how to make one); corrupt (empty,
/// no database, another program's, of inconsistent files, mounted by itself); newer_version;
/// invalid_argument (no regular file, loop of links); permission_denied; read_only or storage_full (only when it is to
/// be made); deadline_exceeded. Never waits longer than the deadline for others, and for odd files not at all.
[[nodiscard]] Result<std::unique_ptr<SqliteStore>> open_sqlite_store(const std::string& path,
                                                                     const SqliteOptions& options, const Clock& clock,
                                                                     Deadline deadline);

/// Reads every page of a store and compares its index with its records; what the records say is not looked at. Error:
/// corrupt, when something is damaged; else those of opening.
[[nodiscard]] Result<void> check_sqlite_pages(const std::string& path, const Clock& clock, Deadline deadline);

}  // namespace croft::store
