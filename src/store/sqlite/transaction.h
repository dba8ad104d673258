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

/// Whether shorten_log() has something to do.
[[nodiscard]] bool is_log_long(const Database& database);
/// When the log has become long, copies it into the database and starts it again from the front of its file. A process
/// that opens the store alone reads the whole log, so a short one keeps plugins quick. True: it was copied.
[[nodiscard]] Result<bool> shorten_log(Database& database);

/// SQLite's integrity_check: pages, tables and indexes. Error: corrupt.
[[nodiscard]] Result<void> verify_pages(Database& database);
/// The same, and then each record; those that are damaged are named in `damaged`, and are no error.
[[nodiscard]] Result<void> verify(Database& database, std::vector<Error>& damaged);

/// The log is shortened when it has this many pages.
inline constexpr int kLogPagesMax = 128;

}  // namespace croft::store
