#include "store/sqlite/transaction.h"

#include <algorithm>
#include <cerrno>
#include <limits>
#include <vector>

#include "base/texts.h"
#include "os/system_error.h"
#include "store/sqlite/database.h"
#include "store/sqlite/record_table.h"

namespace croft::store {
namespace {

/// The database file grows in steps of this.
constexpr int kChunkBytes = static_cast<int>(kSparePages * kPageBytes);

Error no_room(const Database& database) { return os::system_error("make room in", database.path(), ENOSPC); }

/// The size of a file of SQLite's; negative when it can't be had.
std::int64_t bytes_of(sqlite3_file* file) {
  sqlite3_int64 bytes = -1;
  if (file == nullptr || file->pMethods->xFileSize(file, &bytes) != SQLITE_OK) return -1;
  return bytes;
}

/// Allocates blocks up to `bytes`, rounded up to whole chunks.
bool extend(sqlite3_file* file, std::int64_t bytes) {
  int chunk = kChunkBytes;
  sqlite3_int64 wanted = bytes;
  return file != nullptr && file->pMethods->xFileControl(file, SQLITE_FCNTL_CHUNK_SIZE, &chunk) == SQLITE_OK &&
         file->pMethods->xFileControl(file, SQLITE_FCNTL_SIZE_HINT, &wanted) == SQLITE_OK && bytes_of(file) >= bytes;
}

void roll_back(Database& database) {
  // Some failures have ended the transaction already. When the rollback itself fails, nothing was committed either.
  if (database.in_transaction()) static_cast<void>(database.run("ROLLBACK"));
}

/// The commits of a group on their way into one transaction.
class Group {
 public:
  Group(Database& database, std::span<PendingCommit* const> commits, bool forget_changes)
      : database_(database), commits_(commits), forget_changes_(forget_changes) {}

  /// Applies all and commits; the answer is what the register is then. On failure nothing was applied, unless the error
  /// is unknown_outcome.
  [[nodiscard]] Result<Identity> run() {
    auto log_reserved = reserve_log(database_);
    if (!log_reserved && log_reserved.error().code != ErrorCode::storage_full) return fail(log_reserved.error());
    TRY_VOID(begin());
    TRY(Identity identity, check_identity(database_));
    revision_ = database_.told(identity.revision);
    if (forget_changes_) TRY_VOID(forget_all_changes(database_, revision_));
    for (const PendingCommit* commit : commits_) TRY_VOID(add(*commit));
    if (applied_ == 0) return identity;  // the caller rolls back
    if (adds_data_ && !log_reserved) return fail(log_reserved.error());
    identity.revision = database_.stored(revision_);
    TRY_VOID(database_.run("UPDATE counters SET value=?1 WHERE id=1", identity.revision));
    TRY_VOID(reserve_pages(database_, adds_data_));
    TRY_VOID(commit());
    return identity;
  }

  [[nodiscard]] std::vector<Result<Revision>>& results() { return results_; }

 private:
  [[nodiscard]] Result<void> begin() {
    if (database_.is_read_only()) return fail(database_.failure(SQLITE_READONLY, "write"));
    return database_.run("BEGIN IMMEDIATE");
  }

  [[nodiscard]] Result<void> add(const PendingCommit& commit) {
    if (!commit.changes_pause) {
      TRY(const auto pause, read_pause(database_));
      if (pause) {
        results_.push_back(fail(paused(pause->pause)));
        return {};
      }
    }
    TRY(const Effect effect, effect_of(database_, commit.writes));
    if (effect.failed_condition != nullptr) {
      results_.push_back(fail(conflict_on(*effect.failed_condition, database_.path())));
      return {};
    }
    ++revision_.value;
    TRY_VOID(apply(database_, commit, revision_));
    adds_data_ = adds_data_ || effect.bytes_added > kReleaseBytesMax;
    ++applied_;
    results_.push_back(revision_);
    return {};
  }

  /// The one moment that decides. SQLite undoes what didn't fit or was refused before anything was committed; after
  /// other failures the commit may be on the disk, or come to be there.
  [[nodiscard]] Result<void> commit() {
    auto committed = database_.run("COMMIT");
    if (committed || database_.last_call_was_refused()) return committed;
    return fail(ErrorCode::unknown_outcome, "the outcome of a commit is not known: " + committed.error().message);
  }

  Database& database_;
  std::span<PendingCommit* const> commits_;
  const bool forget_changes_;
  Revision revision_;
  std::vector<Result<Revision>> results_;
  std::size_t applied_ = 0;
  bool adds_data_ = false;
};

/// One transaction for all. On failure the same error for each.
std::vector<Result<Revision>> commit_together(Database& database, std::span<PendingCommit* const> commits,
                                              Identity& last, bool forget_changes = false) {
  Group group(database, commits, forget_changes);
  const auto done = group.run();
  roll_back(database);
  if (!done) return std::vector<Result<Revision>>(commits.size(), fail(done.error()));
  last = *done;
  return std::move(group.results());
}

bool is_full(const Result<Revision>& result) { return !result && result.error().code == ErrorCode::storage_full; }

}  // namespace

Result<void> reserve_log(Database& database) {
  sqlite3_file* const log = database.log_file();
  std::int64_t bytes = bytes_of(log);
  if (bytes >= kLogBytesMin) return {};
  if (bytes < 0) return fail(no_room(database));
  const std::vector<char> zeros(1U << 16, '\0');
  for (; bytes < kLogBytesMin; bytes += static_cast<std::int64_t>(zeros.size())) {
    const auto count = static_cast<int>(std::min<std::int64_t>(kLogBytesMin - bytes, std::ssize(zeros)));
    if (log->pMethods->xWrite(log, zeros.data(), count, bytes) != SQLITE_OK) return fail(no_room(database));
  }
  const int synced = log->pMethods->xSync(log, SQLITE_SYNC_NORMAL);
  if (synced != SQLITE_OK) return fail(database.failure(synced, "sync the log of"));
  return {};
}

Result<void> reserve_pages(Database& database, bool adds_data) {
  TRY(const std::int64_t pages, database.number("PRAGMA page_count"));
  TRY(const std::int64_t unused, database.number("PRAGMA freelist_count"));
  sqlite3_file* const file = database.database_file();
  const std::int64_t allocated = bytes_of(file) / kPageBytes;
  const bool has_pages = allocated >= pages;
  if (has_pages && unused + allocated - pages >= kSparePages) return {};
  if (extend(file, (pages + std::max<std::int64_t>(kSparePages - unused, 0)) * kPageBytes)) return {};
  if (has_pages && !adds_data) return {};
  return fail(no_room(database));
}

ReadTransaction::~ReadTransaction() {
  if (begun_ && database_.in_transaction()) static_cast<void>(database_.run("COMMIT"));
}

std::vector<Result<Revision>> commit_group(Database& database, std::span<PendingCommit* const> group, Identity& last) {
  auto results = commit_together(database, group, last);
  if (!is_full(results.front())) return results;
  // A log that a reader kept from being started again may be what is full.
  if (database.checkpoint().value_or(false)) static_cast<void>(database.begin_log_anew());
  for (std::size_t i = 0; i < group.size(); ++i) {
    results[i] = std::move(commit_together(database, group.subspan(i, 1), last).front());
    // The changes that watches could follow give their room to the register.
    if (is_full(results[i])) {
      results[i] = std::move(commit_together(database, group.subspan(i, 1), last, /*forget_changes=*/true).front());
    }
  }
  return results;
}

Result<bool> shorten_log(Database& database) {
  if (database.log_pages() < kLogPagesMax) return false;
  TRY(const bool complete, database.checkpoint());
  if (!complete) return false;
  // The next write starts the log again from its front. It must come from a process that knows of the checkpoint: one
  // that opens the store alone would take the old log for news. So it is made now.
  TRY_VOID(database.begin_log_anew());
  return true;
}

Result<void> verify_pages(Database& database) {
  TRY(const auto checked, database.ask("PRAGMA integrity_check(1)"));
  if (checked == "ok") return {};
  return fail(ErrorCode::corrupt, "{} is damaged: {}; follow docs/runbooks/backup-and-restore.md", database.path(),
              checked.value_or("no answer"));
}

Result<void> verify(Database& database, std::vector<Error>& damaged) {
  TRY_VOID(verify_pages(database));
  const ReadTransaction as_of_one_moment(database);
  TRY_VOID(as_of_one_moment.begun());
  for (std::size_t kind = 0; kind < core::kKindCount; ++kind) {
    TRY(const Page page,
        read_page(database, {static_cast<Kind>(kind), "", std::numeric_limits<std::int32_t>::max()}, ""));
    for (const Record& record : page.records) {
      if (!record.value) damaged.push_back(record.value.error());
    }
  }
  return {};
}

}  // namespace croft::store
