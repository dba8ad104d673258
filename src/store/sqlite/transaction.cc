#include "store/sqlite/transaction.h"

#include <algorithm>

#include <fmt/format.h>

#include "store/sqlite/change_table.h"
#include "store/sqlite/record_table.h"
#include "store/sqlite/room.h"
#include "store/sqlite/schema.h"

namespace croft::store {
namespace {

Error conflict_on(const Database& database, const Key& key) {
  return {ErrorCode::conflict,
          fmt::format("{} {} in {} was changed by somebody else; read again", core::name_of(key.kind), key.name,
                      database.path()),
          {}};
}

void roll_back(Database& database) {
  // Some failures have ended the transaction already. When the rollback itself fails, nothing was committed either.
  if (database.in_transaction()) static_cast<void>(database.run(Sql::rollback));
}

/// The commits of a group on their way into one transaction.
class Group {
 public:
  Group(Database& database, std::span<PendingCommit* const> commits, const std::optional<CommitNote>& note,
        bool forget_changes)
      : database_(database), commits_(commits), note_(note), forget_changes_(forget_changes) {}

  /// Applies all and commits. On failure nothing was applied, unless the error is unknown_outcome.
  [[nodiscard]] Result<void> run() {
    auto log_reserved = reserve_log(database_);
    if (!log_reserved && log_reserved.error().code != ErrorCode::storage_full) return log_reserved;
    TRY_VOID(begin());
    TRY_VOID(check_against(database_, note_));
    TRY_VOID(database_.look_at_history());
    TRY(const std::int64_t last, database_.last_revision());
    revision_ = database_.told(last);
    TRY_VOID(upgrade_tables(database_));
    TRY_VOID(forget_changes_ ? forget_all_changes(database_, revision_) : begin_changes(database_));
    for (const PendingCommit* commit : commits_) TRY_VOID(add(*commit));
    if (applied_ == 0) return {};  // the caller rolls back
    if (adds_data_ && !log_reserved) return log_reserved;
    TRY_VOID(set_last_revision());
    TRY(const std::int64_t id, register_id());
    TRY(CommitMark mark, leave_mark(database_, database_.stored(revision_)));
    mark.register_id = id;
    TRY_VOID(reserve_pages(database_, adds_data_));
    TRY_VOID(commit());
    database_.set_register_id(id);
    database_.set_seen(mark);
    return {};
  }

  [[nodiscard]] std::vector<Result<Revision>>& results() { return results_; }

 private:
  [[nodiscard]] Result<void> begin() {
    if (database_.is_read_only()) return fail(database_.failure(SQLITE_READONLY, "write"));
    return database_.run(Sql::begin_write);
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
      results_.push_back(fail(conflict_on(database_, *effect.failed_condition)));
      return {};
    }
    ++revision_.value;
    TRY_VOID(apply(database_, commit, revision_));
    adds_data_ = adds_data_ || effect.bytes_added > kReleaseBytesMax;
    ++applied_;
    results_.push_back(revision_);
    return {};
  }

  [[nodiscard]] Result<void> set_last_revision() {
    TRY(const auto statement, database_.prepare(Sql::set_last_revision));
    statement->bind(1, database_.stored(revision_));
    TRY_VOID(statement->step());
    return {};
  }

  /// A register that an older program made gets its id with the first commit.
  [[nodiscard]] Result<std::int64_t> register_id() {
    if (database_.register_id() != 0) return database_.register_id();
    TRY_VOID(database_.run(Sql::give_register_id));
    return database_.number(Sql::register_id);
  }

  /// The one moment that decides. SQLite undoes what didn't fit or was refused before anything was committed; after
  /// other failures the commit may be on the disk, or come to be there.
  [[nodiscard]] Result<void> commit() {
    auto committed = database_.run(Sql::commit);
    if (committed || database_.last_call_was_refused()) return committed;
    return fail(ErrorCode::unknown_outcome, "the outcome of a commit is not known: " + committed.error().message);
  }

  Database& database_;
  std::span<PendingCommit* const> commits_;
  const std::optional<CommitNote>& note_;
  const bool forget_changes_;
  Revision revision_;
  std::vector<Result<Revision>> results_;
  std::size_t applied_ = 0;
  bool adds_data_ = false;
};

/// One transaction for all. On failure the same error for each.
std::vector<Result<Revision>> commit_together(Database& database, std::span<PendingCommit* const> commits,
                                              const std::optional<CommitNote>& note, bool forget_changes = false) {
  Group group(database, commits, note, forget_changes);
  const auto done = group.run();
  roll_back(database);
  if (done) return std::move(group.results());
  return std::vector<Result<Revision>>(commits.size(), fail(done.error()));
}

bool is_full(const Result<Revision>& result) { return !result && result.error().code == ErrorCode::storage_full; }

}  // namespace

ReadTransaction::~ReadTransaction() {
  if (begun_ && database_.in_transaction()) static_cast<void>(database_.run(Sql::commit));
}

std::vector<Result<Revision>> commit_group(Database& database, std::span<PendingCommit* const> group,
                                           const std::optional<CommitNote>& note) {
  auto results = commit_together(database, group, note);
  if (!is_full(results.front())) return results;
  // A log that a reader kept from being started again may be what is full.
  const auto in_file = database.last_revision();
  if (in_file && database.checkpoint().value_or(false)) static_cast<void>(database.begin_log_anew(*in_file));
  for (std::size_t i = 0; i < group.size(); ++i) {
    results[i] = std::move(commit_together(database, group.subspan(i, 1), note).front());
    // What watches could follow gives its room to the register.
    if (is_full(results[i])) {
      results[i] = std::move(commit_together(database, group.subspan(i, 1), note, /*forget_changes=*/true).front());
    }
  }
  return results;
}

bool is_log_long(const Database& database) { return database.log_pages() >= kLogPagesMax; }

Result<bool> shorten_log(Database& database, const std::function<void(std::int64_t in_file)>& note) {
  if (!is_log_long(database)) return false;
  // Before the checkpoint: where somebody removed the lock file, another may commit behind it.
  TRY(const std::int64_t in_file, database.last_revision());
  TRY(const bool complete, database.checkpoint());
  // The next write starts the log again from its front. It must come from a process that knows of the checkpoint: one
  // that opens the store alone would take the old log for news. So it is made now.
  if (!complete) return false;
  note(in_file);
  database.expect_in_file(in_file);
  TRY_VOID(database.begin_log_anew(in_file));
  return true;
}

Result<void> verify_pages(Database& database) {
  TRY(const auto checked, database.ask("PRAGMA integrity_check(1)"));
  const std::string verdict = checked.value_or("no answer");
  if (verdict.find(fmt::format("error code={}", kRefused)) != std::string::npos) {
    return fail(database.failure(kRefused, "read"));
  }
  if (verdict != "ok") {
    return fail(
        ErrorCode::corrupt,
        fmt::format("{0} is damaged: {1}; restore a backup with \"croft --store sqlite:{0} store restore BACKUP\"",
                    database.path(), verdict));
  }
  return {};
}

Result<void> verify(Database& database, std::vector<Error>* damaged) {
  TRY_VOID(verify_pages(database));
  const ReadTransaction as_of_one_moment(database);
  TRY_VOID(as_of_one_moment.begun());
  TRY(const std::int64_t last, database.last_revision());
  for (std::size_t kind = 0; kind < core::kKindCount; ++kind) {
    ListRequest request;
    request.kind = static_cast<Kind>(kind);
    request.limit = kListLimitMax;
    for (bool more = true; more;) {
      TRY(const Page page, read_page(database, request));
      for (const Record& record : page.records) {
        const Error* const damage = core::damage_of(record.value);
        if (damage != nullptr && damaged == nullptr) return fail(*damage);
        if (damage != nullptr) damaged->push_back(*damage);
      }
      const auto is_newer = [&](const Record& r) {
        return core::damage_of(r.value) == nullptr && r.revision > database.told(last);
      };
      if (std::any_of(page.records.begin(), page.records.end(), is_newer)) {
        return fail(ErrorCode::corrupt,
                    fmt::format("{} has records of a revision that was never given; restore it from "
                                "a backup",
                                database.path()));
      }
      more = page.more;
      if (more) request.after = page.records.back().key.name;
    }
  }
  return {};
}

Result<void> adopt_copied_pages(const std::string& path, Database::Mode mode, const Clock& clock, Deadline deadline) {
  const auto note = read_commit_note(path);
  Database database(path, mode, clock, deadline);
  database.believe_copied_pages();
  TRY_VOID(database.open());
  TRY(const bool lacks, database.lacks_page_sums());
  if (!lacks) return {};
  TRY_VOID(check_against(database, note));
  // A damaged record is set aside by whoever reads it, here as ever.
  std::vector<Error> damaged;
  TRY_VOID(verify(database, &damaged));
  return database.give_missing_page_sums();
}

}  // namespace croft::store
