#include "store/sqlite/backup.h"

#include <algorithm>
#include <chrono>
#include <utility>

#include <sqlite3.h>

#include "base/texts.h"
#include "os/files.h"
#include "store/sqlite/database.h"
#include "store/sqlite/transaction.h"

namespace croft::store {
namespace {

/// How long a restore waits for readers of the old register, so that all of it is in its database before its log goes.
constexpr std::chrono::milliseconds kReadersMax{200};

using Plain = std::unique_ptr<sqlite3, int (*)(sqlite3*)>;

[[nodiscard]] Result<void> checked(sqlite3* db, int code, const char* doing, const std::string& path) {
  if (code == SQLITE_OK) return {};
  return fail(failure_of(db, code, doing, path).error);
}

/// A connection without the settings of a store.
[[nodiscard]] Result<Plain> open_plain(const std::string& path, int how) {
  sqlite3* db = nullptr;
  const int code = sqlite3_open_v2(path.c_str(), &db, how | SQLITE_OPEN_NOMUTEX | SQLITE_OPEN_EXRESCODE, croft_vfs());
  Plain owner(db, &sqlite3_close);
  TRY_VOID(checked(db, code, "open", path));
  sqlite3_db_config(db, SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1, nullptr);  // what is only read stays as it is
  sqlite3_db_config(db, SQLITE_DBCONFIG_TRUSTED_SCHEMA, 0, nullptr);
  sqlite3_limit(db, SQLITE_LIMIT_LENGTH, kValueBytesMax);
  return owner;
}

/// A backup's stamp is so far from its register's that the log of a living one does not fit it, should somebody put the
/// backup in the database's place by hand.
constexpr std::int64_t kFarStamp = std::int64_t{1} << 22;

[[nodiscard]] Result<void> run(sqlite3* db, const char* sql, const std::string& path) {
  return checked(db, sqlite3_exec(db, sql, nullptr, nullptr, nullptr), "write", path);
}

/// Everything of one database, as of one moment, into a new file.
[[nodiscard]] Result<void> copy(const std::string& from, const std::string& to, const Clock& clock, Deadline deadline) {
  // A copy of a directory has a log beside it, whose index SQLite must be able to make.
  auto source = open_plain(from, SQLITE_OPEN_READWRITE);
  if (!source) source = open_plain(from, SQLITE_OPEN_READONLY);
  if (!source) return fail(source.error());
  TRY_VOID(os::create_file(to));
  TRY(const Plain target, open_plain(to, SQLITE_OPEN_READWRITE | SQLITE_OPEN_NOFOLLOW));
  TRY_VOID(run(target.get(), "PRAGMA synchronous=OFF; PRAGMA journal_mode=MEMORY", to));
  sqlite3_backup* const backup = sqlite3_backup_init(target.get(), "main", source->get(), "main");
  if (backup == nullptr) return checked(target.get(), sqlite3_errcode(target.get()), "copy to", to);
  int code = sqlite3_backup_step(backup, -1);
  while ((code == SQLITE_BUSY || code == SQLITE_LOCKED) && !deadline.passed(clock.now())) {
    sqlite3_sleep(5);
    code = sqlite3_backup_step(backup, -1);
  }
  const int finished = sqlite3_backup_finish(backup);
  const bool is_by_source = (code & 0xff) == SQLITE_CORRUPT || (code & 0xff) == SQLITE_NOTADB;
  if (is_by_source) return checked(source->get(), code, "read", from);
  TRY_VOID(checked(target.get(), code == SQLITE_DONE ? finished : code, "copy to", to));
  return run(target.get(), "PRAGMA journal_mode=WAL", to);
}

Error no_register(const std::string& backup, Error why) {
  return {ErrorCode::corrupt,
          fmt::format("{} is not a whole register. Give another backup, or begin with nothing by --empty "
                      "(docs/runbooks/backup-and-restore.md)",
                      backup),
          std::move(why.message)};
}

}  // namespace

Result<RegisterCopy> backup_sqlite_store(const std::string& path, const std::string& destination, const Clock& clock,
                                         Deadline deadline) {
  TRY(const auto there, os::file_status(destination));
  if (there) {
    return fail(ErrorCode::already_exists,
                "{} is there already; name a new file, a backup is never "
                "overwritten",
                destination);
  }
  TRY(const std::string resolved, find_or_create(path, {}, clock, deadline));
  TRY(const std::string target, os::resolved_path(destination));
  const std::string draft = target + "-new";
  TRY_VOID(remove_database(draft));
  RegisterCopy result;
  std::int64_t far_stamp = 0;
  const auto make = [&]() -> Result<void> {
    {
      Database there_now(resolved, Database::Mode::shared, clock, deadline);
      there_now.expect(read_commit_note(resolved));
      TRY_VOID(there_now.open());
      const ReadTransaction as_of_one_moment(there_now);
      TRY_VOID(as_of_one_moment.begun());
      TRY_VOID(check_identity(there_now));
    }
    TRY_VOID(copy(resolved, draft, clock, deadline));
    {
      Database copied(draft, Database::Mode::shared, clock, deadline);
      TRY_VOID(copied.open());
      TRY_VOID(verify_pages(copied));
      TRY(const std::int64_t stamped, copied.number("PRAGMA user_version"));
      far_stamp = user_version(version_of(stamped), stamp_of(stamped) + kFarStamp);
      TRY(const Identity identity, copied.identity());
      result.revision = static_cast<std::uint64_t>(identity.revision);
    }
    // No mode that needs files beside it.
    TRY(const Plain plain, open_plain(draft, SQLITE_OPEN_READWRITE));
    const std::string settings = fmt::format("PRAGMA journal_mode=DELETE; PRAGMA user_version={}", far_stamp);
    return run(plain.get(), settings.c_str(), draft);
  };
  if (auto made = make(); !made) {
    static_cast<void>(remove_database(draft));
    return fail(made.error().in("cannot back up " + resolved));
  }
  TRY_VOID(os::sync_file(draft));
  TRY(const auto status, os::file_status(draft));
  if (status) result.bytes = status->bytes;
  TRY_VOID(os::rename_durably(draft, target));
  return result;
}

SqliteRestore::SqliteRestore(std::string path, const Clock& clock)
    : path_(std::move(path)),
      draft_(path_ + "-restore"),
      clock_(clock),
      lock_(path_ + kLockSuffix, {.one_name = true}) {}

SqliteRestore::~SqliteRestore() {
  if (lock_.is_held()) remove_draft();
}

void SqliteRestore::remove_draft() const {
  static_cast<void>(remove_database(draft_));
  static_cast<void>(os::remove_file_durably(draft_ + kLockSuffix));
}

Result<std::unique_ptr<SqliteRestore>> SqliteRestore::begin(const std::string& path, const std::string& backup,
                                                            bool incomplete, const Clock& clock, Deadline deadline) {
  TRY(const auto file, os::file_status(backup));
  if (!backup.empty() && !file) return fail(ErrorCode::not_found, "no backup at {}", backup);
  if (!backup.empty() && (file->type != os::FileStatus::Type::regular || file->bytes == 0)) {
    return fail(ErrorCode::corrupt,
                "{} is no backup: give the file that \"croft store backup\" wrote, or "
                "the database in a copy of the store's directory",
                backup);
  }
  TRY_VOID(os::make_directories(os::directory_of(path)));
  TRY(std::string resolved, os::resolved_path(path));
  TRY(const auto there, os::file_status(resolved));
  if (there) TRY_VOID(refuse_mounted_file(resolved, *there));
  std::unique_ptr<SqliteRestore> restore(new SqliteRestore(std::move(resolved), clock));
  TRY_VOID(restore->lock_.lock(clock, deadline));
  restore->remove_draft();
  if (backup.empty()) {
    TRY_VOID(create_database(restore->draft_));
  } else {
    TRY_VOID(restore->make_draft(backup, incomplete, deadline));
  }
  return restore;
}

Result<void> SqliteRestore::make_draft(const std::string& backup, bool incomplete, Deadline deadline) {
  const auto note = read_commit_note(backup);
  {
    // As of a directory that was copied while somebody wrote.
    Database source(backup, Database::Mode::shared, clock_, deadline);
    const bool fits = !source.open() || source.fits_its_log().value_or(true);
    if (!fits && !incomplete) {
      return fail(ErrorCode::corrupt,
                  "{0} and its log {0}-wal are of two times: it is not the whole "
                  "register. With --force what is left of it is taken",
                  backup);
    }
  }
  const auto copy_and_look = [&]() -> Result<void> {
    TRY_VOID(copy(backup, draft_, clock_, deadline));
    Database draft(draft_, Database::Mode::shared, clock_, deadline);
    TRY_VOID(draft.open());
    TRY(const Identity identity, draft.identity());
    revision_ = static_cast<std::uint64_t>(identity.revision);
    return verify(draft, damaged_);
  };
  auto whole = copy_and_look();
  if (!whole && whole.error().code == ErrorCode::corrupt) return fail(no_register(backup, std::move(whole).error()));
  if (!whole || incomplete) return whole;
  if (!damaged_.empty()) {
    return fail(Error{ErrorCode::corrupt,
                      fmt::format("{} is not a whole register: {} of its records are damaged. With --force it is taken "
                                  "as it is, and they stay set aside",
                                  backup, damaged_.size()),
                      damaged_.front().message});
  }
  if (!note || static_cast<std::uint64_t>(note->revision) <= revision_) return {};
  return fail(ErrorCode::corrupt,
              "{0} is at revision {1}, but {0}{2} says that revision {3} was acknowledged: it is not the "
              "whole register. With --force what is left of it is taken",
              backup, revision_, kLockSuffix, note->revision);
}

/// Brings all of the old register into its database, as far as it can be read. The answer: its id by the note, and its
/// last revision, as far as anything tells.
Result<Identity> SqliteRestore::end_old(Deadline deadline) const {
  Identity last = read_commit_note(path_).value_or(Identity());
  TRY(const auto there, os::file_status(path_));
  if (!there || there->bytes == 0) return last;
  Database old(path_, Database::Mode::shared, clock_, deadline);
  if (!old.open()) return last;
  if (const auto identity = old.identity()) last.revision = std::max(last.revision, identity->revision);
  const Deadline readers_are_gone = Deadline::after(clock_.now(), kReadersMax);
  for (auto done = old.checkpoint(); done && !*done && !readers_are_gone.passed(clock_.now()); done = old.checkpoint())
    sqlite3_sleep(5);
  return last;
}

Result<Identity> SqliteRestore::renew_draft(Deadline deadline) const {
  TRY(const Identity last, end_old(deadline));
  Database draft(draft_, Database::Mode::shared, clock_, deadline);
  TRY_VOID(draft.open());
  TRY(const Identity identity, draft.identity());
  TRY_VOID(draft.run("BEGIN IMMEDIATE"));
  TRY_VOID(
      draft.execute(fmt::format("DELETE FROM changes; UPDATE counters SET value={} WHERE id IN (1, 3); "
                                "INSERT OR REPLACE INTO counters VALUES(7, {})",
                                std::max(identity.revision, last.revision) + 1, last.register_id)));
  TRY_VOID(draft.run(kGiveRegisterId));
  TRY(const Identity renewed, draft.identity());
  // A log of before fits no more.
  TRY_VOID(draft.execute(fmt::format("PRAGMA user_version={}", user_version(kSchemaVersion, renewed.register_id))));
  TRY_VOID(draft.run("COMMIT"));
  TRY(const bool complete, draft.checkpoint());
  if (complete) return renewed;
  return fail(ErrorCode::unavailable, "somebody has {} open; try again", draft_);
}

Result<void> SqliteRestore::finish(Deadline deadline) {
  TRY(const Identity renewed, renew_draft(deadline));
  for (const char* suffix : {"-wal", "-shm"}) TRY_VOID(os::remove_file_durably(draft_ + suffix));
  TRY_VOID(os::sync_file(draft_));
  // The old log must be gone before the new database has the name: it would be applied to it.
  for (const char* suffix : {"-wal", "-shm"}) TRY_VOID(os::remove_file_durably(path_ + suffix));
  TRY_VOID(os::rename_durably(draft_, path_));
  TRY_VOID(make_room(path_, clock_, deadline));
  lock_.note(encode_commit_note(renewed));
  return os::sync_file(lock_.path());
}

}  // namespace croft::store
