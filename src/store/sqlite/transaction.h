#pragma once

#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/result.h"
#include "store/sqlite/commit_note.h"
#include "store/sqlite/commit_queue.h"
#include "store/sqlite/database.h"

namespace croft::store {

/// While it lives, all reads of a connection see one moment.
class ReadTransaction {
 public:
  explicit ReadTransaction(Database& database) : database_(database), begun_(database.run(Sql::begin_read)) {}
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
/// order; what it means is Store::commit's. All are refused as corrupt when the register is older than the note says.
[[nodiscard]] std::vector<Result<Revision>> commit_group(Database& database, std::span<PendingCommit* const> group,
                                                         const std::optional<CommitNote>& note);

/// Whether shorten_log() has something to do.
[[nodiscard]] bool is_log_long(const Database& database);
/// When the log has become long, copies it into the database and starts it again from the front of its file. A process
/// that opens the store alone reads the whole log, so a short one keeps plugins quick. True: it was copied, and `note`
/// was told of the revision that the database file has from then on, before the log begins anew.
[[nodiscard]] Result<bool> shorten_log(Database& database, const std::function<void(std::int64_t in_file)>& note);

/// Reads the whole database; corrupt when SQLite finds damage, a record is unreadable, or one has a newer revision than
/// was ever given. With `damaged`, records that are unreadable are noted there, and no error: a store sets them aside.
[[nodiscard]] Result<void> verify(Database& database, std::vector<Error>* damaged = nullptr);
/// The first part of it: pages, tables and indexes as SQLite knows them.
[[nodiscard]] Result<void> verify_pages(Database& database);

/// Gives the pages that another program copied from the log their checksums, once everything in the store was read and
/// compared: damage of a page that has none shows only so. Does nothing where each has one. Needs the gate, and no
/// other connection of this process with Mode::alone. Errors: corrupt, and those of opening.
[[nodiscard]] Result<void> adopt_copied_pages(const std::string& path, Database::Mode mode, const Clock& clock,
                                              Deadline deadline);

/// The log is shortened when it has this many pages.
inline constexpr int kLogPagesMax = 128;

}  // namespace croft::store
