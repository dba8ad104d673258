#pragma once

#include <span>
#include <vector>

#include "base/clock.h"
#include "base/result.h"
#include "store/sqlite/commit_queue.h"
#include "store/sqlite/database.h"

namespace croft::store {

/// While it lives, all reads of a connection see one moment.
class ReadTransaction {
 public:
  explicit ReadTransaction(Database& database) : database_(database), begun_(database.run("BEGIN")) {}
  ReadTransaction(const ReadTransaction&) = delete;
  ReadTransaction& operator=(const ReadTransaction&) = delete;
  ~ReadTransaction();
  [[nodiscard]] const Result<void>& begun() const { return begun_; }

 private:
  Database& database_;
  Result<void> begun_;
};

// The following need the gate.

/// Applies commits in one transaction, each if its conditions hold after those before it. When the disk is too full for
/// all together, each gets a transaction of its own, so that those which free room succeed. One result a commit, in
/// order; what it means is Store::commit's. `last`: what the register is afterwards, where something was committed. All
/// are refused when the register is not what is expected (check_identity).
[[nodiscard]] std::vector<Result<Revision>> commit_group(Database& database, std::span<PendingCommit* const> group,
                                                         Identity& last);

/// The log is shortened when it has this many pages.
inline constexpr int kLogPagesMax = 128;
/// When the log has become long, copies it into the database and starts it again from the front of its file. A process
/// that opens the store alone reads the whole log, so a short one keeps plugins quick. True: it was copied.
[[nodiscard]] Result<bool> shorten_log(Database& database);

/// SQLite's integrity_check: pages, tables and indexes. Error: corrupt.
[[nodiscard]] Result<void> verify_pages(Database& database);
/// The same, and then each record; those that are damaged are named in `damaged`, and are no error.
[[nodiscard]] Result<void> verify(Database& database, std::vector<Error>& damaged);

// Room on the disk is taken before it is needed, so that a release succeeds on a full disk. Both need the gate.
//
// - The log is kept at kLogBytesMin or more, written full of zeros once and then overwritten from the start after each
//   checkpoint: a commit neither needs new blocks nor, once they have been written, changes the file's metadata.
// - The database file is kept kSparePages larger than its content needs. Commits that add data leave that reserve,
// others
//   may use it: a release with a cooldown adds about a page, and a full node has 250 pods.
// - Every page that a commit adds is allocated in the file before the commit: a checkpoint never runs out of space, so
//   the log never grows because it can't be emptied.

inline constexpr std::int64_t kLogBytesMin = 2 << 20;
inline constexpr std::int64_t kSparePages = 384;

/// A commit that adds no more than this to the stored bytes may use the reserve: a release replaces the holder of an
/// address by a note of its cooldown and may add a vacancy.
inline constexpr std::int64_t kReleaseBytesMax = 512;

/// Brings the log to its size. Error: storage_full; a commit that does not add data may go on nevertheless.
[[nodiscard]] Result<void> reserve_log(Database& database);

/// Inside a write transaction, before its commit: room for its pages, and for the reserve. Error: storage_full.
[[nodiscard]] Result<void> reserve_pages(Database& database, bool adds_data);

}  // namespace croft::store
