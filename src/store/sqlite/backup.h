#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/result.h"
#include "os/file_lock.h"
#include "store/sqlite/database.h"

namespace croft::store {

// Copies of a whole register by SQLite's backup API, and the way back. A backup is one SQLite file, mode 0600, without
// a log.

struct RegisterCopy {
  std::uint64_t revision = 0;  ///< the last one given
  std::uint64_t bytes = 0;
};

/// Writes what the store at `path` has at one moment to a new file, durably; the name names nothing or the whole copy.
/// Holds no lock: everything else goes on. Errors: already_exists; not_found; those of opening a store.
[[nodiscard]] Result<RegisterCopy> backup_sqlite_store(const std::string& path, const std::string& destination,
                                                       const Clock& clock, Deadline deadline);

/// Puts a backup, or an empty register, in place of the store at a path. While it lives, nobody else writes to that
/// store.
///
/// begin() makes a draft beside the store, a store of its own, which may be changed through open_sqlite_store; finish()
/// gives it its place. Programs that have the old one open notice (ConnectionPool). A crash in between leaves the old
/// register or the new one; where somebody reads the old one all the time, or it is damaged, perhaps one that is
/// refused, and the restore is run again.
class SqliteRestore {
 public:
  /// `backup` may be a file of backup_sqlite_store, or the database in a copy of a store's directory, its log beside
  /// it, also the store itself; empty: a register without records. With `incomplete` also a copy that its own lock file
  /// says more of than is in it, or that has damaged records. Errors: not_found, and corrupt where it is no whole
  /// register: neither draft nor lock stay; those of FileLock::lock.
  [[nodiscard]] static Result<std::unique_ptr<SqliteRestore>> begin(const std::string& path, const std::string& backup,
                                                                    bool incomplete, const Clock& clock,
                                                                    Deadline deadline);
  ~SqliteRestore();
  SqliteRestore(const SqliteRestore&) = delete;
  SqliteRestore& operator=(const SqliteRestore&) = delete;

  /// The path of the draft; nobody may have it open at finish().
  [[nodiscard]] const std::string& draft() const { return draft_; }
  [[nodiscard]] std::uint64_t revision_of_backup() const { return revision_; }
  /// The errors of records that are damaged in it, each named: they stay so, and set aside.
  [[nodiscard]] const std::vector<Error>& damaged() const { return damaged_; }

  /// The register gets a new id and a revision above all that were ever given here, so that nothing that anybody
  /// remembers of the old one fits it.
  [[nodiscard]] Result<void> finish(Deadline deadline);

 private:
  SqliteRestore(std::string path, const Clock& clock);
  [[nodiscard]] Result<void> make_draft(const std::string& backup, bool incomplete, Deadline deadline);
  [[nodiscard]] Result<Identity> end_old(Deadline deadline) const;
  [[nodiscard]] Result<Identity> renew_draft(Deadline deadline) const;
  void remove_draft() const;

  const std::string path_;
  const std::string draft_;
  const Clock& clock_;
  os::FileLock lock_;
  std::uint64_t revision_ = 0;
  std::vector<Error> damaged_;
};

}  // namespace croft::store
