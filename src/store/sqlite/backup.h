#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/result.h"
#include "os/file_lock.h"

namespace croft::store {

// Copies of a whole register, and the way back. A backup is one SQLite file, mode 0600, without a log.

struct RegisterCopy {
  std::uint64_t revision = 0;  ///< the last one given
  std::uint64_t bytes = 0;
};

/// Writes what the store at `path` has at one moment to a new file, durably; the name names nothing or the whole copy.
/// Holds no lock: everything else goes on. Errors: already_exists; not_found; those of opening a store.
[[nodiscard]] Result<RegisterCopy> backup_sqlite_store(const std::string& path, const std::string& destination,
                                                       const Clock& clock, Deadline deadline);

/// Puts a backup in place of the store at a path. While it lives, nobody else writes to that store (but with
/// Options::look_only).
///
/// begin() makes a draft beside the store, a store of its own, which may be changed through open_sqlite_store; finish()
/// gives it its place. Programs that have the old one open notice (ConnectionPool). After a crash or a failure before
/// the end of finish() there is the new register, or the whole old one: with its log, or with all of it in the
/// database, or, where that could not be, with the log set aside. Then it is refused (refuse_unfinished_restore), and
/// begin() puts the log back first.
class SqliteRestore {
 public:
  struct Options {
    /// Also take a copy whose own lock file says that commits are missing from it, or that has damaged records.
    bool incomplete = false;
    /// Also take what is itself a register, and another one than that which is to be replaced.
    bool from_other_register = false;
    /// Only to see what would come of it: the store goes on meanwhile, and there is no finish().
    bool look_only = false;
  };

  /// `backup` may be a file of backup_sqlite_store, or the database in a copy of a store's directory, its log beside
  /// it, also the store itself. Errors: not_found, and corrupt where it is no whole register: neither draft nor lock
  /// stay; those of FileLock::lock.
  [[nodiscard]] static Result<std::unique_ptr<SqliteRestore>> begin(const std::string& path, const std::string& backup,
                                                                    const Options& options, const Clock& clock,
                                                                    Deadline deadline);
  ~SqliteRestore();
  SqliteRestore(const SqliteRestore&) = delete;
  SqliteRestore& operator=(const SqliteRestore&) = delete;

  /// The path of the draft; nobody may have it open at finish().
  [[nodiscard]] const std::string& draft() const { return draft_; }
  [[nodiscard]] std::uint64_t revision_of_backup() const { return revision_; }
  /// Whether it was taken as it is. Else pages of it are damaged or not of one time, and only its records were taken
  /// (Options::incomplete).
  [[nodiscard]] bool is_whole() const { return is_whole_; }
  /// Of records that are damaged in it, each named: they stay so, and set aside.
  [[nodiscard]] const std::vector<Error>& damaged() const { return damaged_; }

  /// The register gets a new id and a revision above all that were ever given here, so that nothing that anybody
  /// remembers of the old one fits it.
  [[nodiscard]] Result<void> finish(Deadline deadline);

 private:
  SqliteRestore(std::string path, bool look_only, const Clock& clock);
  [[nodiscard]] Result<void> make_draft(const std::string& backup, const Options& options, Deadline deadline);
  [[nodiscard]] Result<void> renew_draft(Deadline deadline);
  /// Mends what a restore has left that ended in between.
  [[nodiscard]] Result<void> end_unfinished(Deadline deadline) const;
  [[nodiscard]] Result<void> put_log_back() const;
  [[nodiscard]] Result<void> take_place();
  /// That what is here was here, so that a copy of it is known as its own when it has been replaced.
  void note_replaced() const;
  /// What is to be replaced.
  struct Here {
    std::uint64_t revision = 0;  ///< as far as anything tells
    bool needs_no_log = false;   ///< all of it is in the database
  };
  [[nodiscard]] Here look_here(Deadline deadline) const;
  void remove_draft() const;

  const std::string path_;
  const bool look_only_;
  const std::string draft_;
  const Clock& clock_;
  os::FileLock lock_;
  std::uint64_t revision_ = 0;
  bool is_whole_ = true;
  std::vector<Error> damaged_;
  std::int64_t new_id_ = 0;
  std::uint64_t new_revision_ = 0;
  bool needs_no_log_ = false;
};

}  // namespace croft::store
