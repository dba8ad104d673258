#include "store/sqlite/backup.h"

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <initializer_list>
#include <iterator>
#include <string_view>
#include <utility>

#include <fmt/format.h>
#include <sqlite3.h>

#include "base/assert.h"
#include "os/files.h"
#include "store/sqlite/commit_note.h"
#include "store/sqlite/database.h"
#include "store/sqlite/open_store.h"
#include "store/sqlite/raw_counters.h"
#include "store/sqlite/salvage.h"
#include "store/sqlite/schema.h"
#include "store/sqlite/sqlite_error.h"
#include "store/sqlite/transaction.h"
#include "store/sqlite/vfs.h"

namespace croft::store {
namespace {

constexpr std::string_view kNewSuffix = "-new";
constexpr std::string_view kRowsSuffix = "-rows";  ///< behind a draft's name: one that its rows go into
/// What is only looked at has a draft and a lock of its own, so that several wait for each other and nobody else does.
constexpr std::string_view kLookSuffix = "-look";
constexpr std::string_view kLookLockSuffix = "-look-turn";
/// How long a restore waits for readers of the old register, so that its log may go.
constexpr std::chrono::milliseconds kReadersMax{200};

/// A connection without the settings of a store, through the same layer of files.
class PlainDatabase {
 public:
  PlainDatabase() = default;
  ~PlainDatabase() { sqlite3_close(db_); }
  PlainDatabase(const PlainDatabase&) = delete;
  PlainDatabase& operator=(const PlainDatabase&) = delete;

  [[nodiscard]] Result<void> open(const std::string& path, int how) {
    path_ = path;
    constexpr int kFlags = SQLITE_OPEN_NOMUTEX | SQLITE_OPEN_EXRESCODE;
    sqlite3_close(std::exchange(db_, nullptr));
    TRY_VOID(checked(sqlite3_open_v2(path.c_str(), &db_, how | kFlags, croft_vfs()), "open"));
    // What is only read stays as it is.
    sqlite3_db_config(db_, SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1, nullptr);
    sqlite3_db_config(db_, SQLITE_DBCONFIG_TRUSTED_SCHEMA, 0, nullptr);
    sqlite3_limit(db_, SQLITE_LIMIT_LENGTH, kValueBytesMax);
    return {};
  }
  /// A file of ours: nobody needs it when we die, and no journal is made beside it.
  [[nodiscard]] Result<void> open_draft(const std::string& path) {
    TRY_VOID(open(path, SQLITE_OPEN_READWRITE | SQLITE_OPEN_NOFOLLOW));
    TRY_VOID(run("PRAGMA synchronous=OFF"));
    return run("PRAGMA journal_mode=MEMORY");
  }
  void believe_pages(PageBelief belief) { store::believe_pages(db_, belief); }
  /// Whether they have checksums, once something has been read.
  [[nodiscard]] bool has_page_sums() const { return store::has_page_sums(db_); }
  /// Each page anew, with a checksum.
  [[nodiscard]] Result<void> remake_with_page_sums() {
    TRY_VOID(run("PRAGMA temp_store=MEMORY"));
    if (!give_page_sums(db_)) return fail(ErrorCode::internal, "SQLite makes no room for checksums in " + path_);
    return run("VACUUM");
  }
  [[nodiscard]] Result<void> run(const char* sql) {
    return checked(sqlite3_exec(db_, sql, nullptr, nullptr, nullptr), "write");
  }
  [[nodiscard]] Result<std::uint64_t> number(const char* sql) {
    std::uint64_t value = 0;
    const auto note = [](void* out, int, char** values, char**) {
      *static_cast<std::uint64_t*>(out) = std::strtoull(values[0] == nullptr ? "0" : values[0], nullptr, 10);
      return 0;
    };
    TRY_VOID(checked(sqlite3_exec(db_, sql, note, &value, nullptr), "read"));
    return value;
  }
  /// The file and its log are of one time, as far as their counters tell (commit_note.h).
  [[nodiscard]] bool fits_its_log() {
    const auto page = number("SELECT rootpage FROM sqlite_schema WHERE name='counters'");
    const auto expected = number("SELECT value FROM counters WHERE id=6");
    if (!page || !expected) return true;  // what that is will be seen
    sqlite3_file* file = nullptr;
    sqlite3_file_control(db_, "main", SQLITE_FCNTL_FILE_POINTER, &file);
    const auto least = static_cast<std::int64_t>(*expected);
    const auto in_file = revision_in_file(file, static_cast<std::uint32_t>(*page), least);
    const auto last = number("SELECT value FROM counters WHERE id=1");
    return !in_file || !last || (*in_file >= least && *in_file <= static_cast<std::int64_t>(*last));
  }
  [[nodiscard]] sqlite3* handle() const { return db_; }
  /// Pages, tables and indexes fit each other.
  [[nodiscard]] Result<void> check_whole() {
    std::string verdict;
    const auto note = [](void* out, int, char** values, char**) {
      *static_cast<std::string*>(out) = values[0] == nullptr ? "" : values[0];
      return 0;
    };
    TRY_VOID(checked(sqlite3_exec(db_, "PRAGMA integrity_check(1)", note, &verdict, nullptr), "read"));
    if (verdict == "ok") return {};
    return fail(ErrorCode::corrupt, fmt::format("it is damaged: {}", verdict));
  }
  /// Everything, as of one moment.
  [[nodiscard]] Result<void> copy_from(PlainDatabase& source, Deadline deadline, const Clock& clock) {
    TRY_VOID(source.number("PRAGMA schema_version"));
    if (source.has_page_sums() && !give_page_sums(db_)) {
      return fail(ErrorCode::internal, "SQLite makes no room for checksums in " + path_);
    }
    sqlite3_backup* const copy = sqlite3_backup_init(db_, "main", source.db_, "main");
    if (copy == nullptr) return checked(sqlite3_errcode(db_), "copy to");
    int code = SQLITE_OK;
    do {
      code = sqlite3_backup_step(copy, -1);
      if (code == SQLITE_BUSY || code == SQLITE_LOCKED) sqlite3_sleep(5);
    } while ((code == SQLITE_BUSY || code == SQLITE_LOCKED) && !deadline.passed(clock.now()));
    const int finished = sqlite3_backup_finish(copy);
    if (code == SQLITE_DONE && finished == SQLITE_OK) return {};
    const bool by_source = (code & 0xff) == SQLITE_CORRUPT || (code & 0xff) == SQLITE_NOTADB || code == kRefused;
    return by_source ? source.checked(code, "read") : checked(code == SQLITE_DONE ? finished : code, "copy to");
  }

 private:
  [[nodiscard]] Result<void> checked(int code, std::string_view doing) const {
    if (code == SQLITE_OK) return {};
    Error error = failure_of(db_, code, doing, path_).error;
    if (error.code == ErrorCode::corrupt && code != kRefused)
      error.message = fmt::format("{} is not a whole register: {}", path_, sqlite3_errstr(code));
    return fail(std::move(error));
  }

  std::string path_;
  sqlite3* db_ = nullptr;
};

[[nodiscard]] Result<void> remove_with_side_files(const std::string& path) {
  for (const std::string_view suffix : {"", "-journal", "-wal", "-shm"}) {
    TRY_VOID(os::remove_file_durably(path + std::string(suffix)));
  }
  return {};
}

/// What a look that was killed has left, unless one is under way.
void remove_left_look(const std::string& path, const Clock& clock) {
  const std::string draft = path + std::string(kLookSuffix);
  const std::string turn = path + std::string(kLookLockSuffix);
  const auto left = os::file_status(turn);
  if (!left || !*left) return;
  os::FileLock lock(turn, {.one_name = true});
  if (!lock.lock(clock, Deadline::after(clock.now(), std::chrono::milliseconds{0}))) return;
  static_cast<void>(remove_with_side_files(draft));
  static_cast<void>(remove_with_side_files(draft + std::string(kRowsSuffix)));
  static_cast<void>(os::remove_file_durably(turn));
}

[[nodiscard]] Result<std::uint64_t> last_revision(Database& database) {
  TRY(const std::int64_t last, database.last_revision());
  return static_cast<std::uint64_t>(last);
}

/// Puts what can be read of a draft into a new database of the same name; what can't, as take_records tells.
[[nodiscard]] Result<std::vector<Error>> put_rows_in_a_new_database(const std::string& draft) {
  const std::string rows = draft + std::string(kRowsSuffix);
  std::vector<Error> lost;
  TRY_VOID(remove_with_side_files(rows));
  TRY_VOID(create_database(rows));
  {
    PlainDatabase damaged;
    TRY_VOID(damaged.open(draft, SQLITE_OPEN_READWRITE | SQLITE_OPEN_NOFOLLOW));
    damaged.believe_pages(PageBelief::unchecked);
    PlainDatabase fresh;
    TRY_VOID(fresh.open_draft(rows));
    TRY(lost, take_records(damaged.handle(), fresh.handle()));
    TRY_VOID(fresh.run("PRAGMA journal_mode=WAL"));
  }
  TRY_VOID(remove_with_side_files(draft));
  TRY_VOID(os::rename_durably(rows, draft));
  return lost;
}

/// Of a backup what was said of its draft, and without the remedies of a store: nobody has asked to restore it in
/// place.
std::string told_of_backup(std::string text, const std::string& draft, const std::string& backup) {
  text.resize(std::min(text.size(), text.find("; ")));
  for (std::size_t at = text.find(draft); at != std::string::npos; at = text.find(draft, at + backup.size())) {
    text.replace(at, draft.size(), backup);
  }
  return text;
}

[[nodiscard]] Result<void> refuse_unfinished_backup(const std::string& path, const std::string& backup) {
  TRY(const std::string file, os::resolved_path(backup));
  return file == path ? Result<void>() : refuse_unfinished_restore(file);
}

[[nodiscard]] bool has_replaced(const std::string& path, const CommitNote& other) {
  const std::vector<std::int64_t> ids = read_replaced(path);
  return std::find(ids.begin(), ids.end(), other.register_id) != ids.end();
}

/// A live register of its own is no backup of another one: whoever was told to restore it in its place has forgotten
/// --store. A copy of the directory from before a restore is one of the same.
[[nodiscard]] Result<void> refuse_other_register(const std::string& path, const std::string& backup) {
  TRY(const std::string file, os::resolved_path(backup));
  if (file == path) return {};
  const auto ours = read_commit_note(path);
  const auto theirs = read_commit_note(file);
  if (!ours || !theirs || theirs->of(ours->register_id) || ours->of(theirs->register_id)) return {};
  if (has_replaced(path, *theirs) || has_replaced(file, *ours)) return {};
  return fail(
      ErrorCode::invalid_argument,
      fmt::format("{0} is itself a register, and another one than {1}: {0}{2} says so. If it is meant to stay where it "
                  "is: \"croft --store sqlite:{0} store restore {0}\". If it is to replace {1}, as on a new machine: "
                  "the same command as now with --from-other-register",
                  file, path, kLockSuffix));
}

[[nodiscard]] Result<void> ask_all(Database& database, std::initializer_list<std::string> statements) {
  for (const std::string& statement : statements) TRY_VOID(database.ask(statement));
  return {};
}

}  // namespace

Result<RegisterCopy> backup_sqlite_store(const std::string& path, const std::string& destination, const Clock& clock,
                                         Deadline deadline) {
  TRY(const auto there, os::file_status(destination));
  if (there) {
    return fail(ErrorCode::already_exists, fmt::format("{} is there already; name a new file, a backup is never "
                                                       "overwritten",
                                                       destination));
  }
  TRY(const std::string resolved, find_or_create(path, {}, clock, deadline));
  // Opened as every program does: what is damaged is refused.
  Database opened(resolved, Database::Mode::shared, clock, deadline);
  opened.believe_copied_pages();
  TRY_VOID(open_checked(opened));
  TRY(const std::string target, os::resolved_path(destination));
  const std::string draft = target + std::string(kNewSuffix);
  TRY_VOID(remove_with_side_files(draft));
  TRY_VOID(os::create_file(draft));
  RegisterCopy result;
  {
    PlainDatabase source;
    TRY_VOID(source.open(resolved, SQLITE_OPEN_READWRITE));
    source.believe_pages(PageBelief::copied_too);
    PlainDatabase copy;
    TRY_VOID(copy.open_draft(draft));
    auto copied = copy.copy_from(source, deadline, clock);
    if (copied) {
      copied = copy.check_whole();
      if (!copied && copied.error().code == ErrorCode::corrupt) {
        copied =
            fail(ErrorCode::corrupt, fmt::format("{0} cannot be backed up: {1}; restore a backup with \"croft --store "
                                                 "sqlite:{0} store restore BACKUP\"",
                                                 resolved, copied.error().message));
      }
    }
    // No mode that needs files beside it.
    if (copied) copied = copy.run("PRAGMA journal_mode=MEMORY");
    if (copied) {
      const auto last = copy.number("SELECT value FROM counters WHERE id=1");
      if (last) result.revision = *last;
      if (!last) copied = fail(last.error());
    }
    if (!copied) {
      static_cast<void>(remove_with_side_files(draft));
      return fail(copied.error());
    }
  }
  TRY_VOID(os::sync_file(draft));
  TRY(const auto status, os::file_status(draft));
  if (status) result.bytes = status->bytes;
  TRY_VOID(os::rename_durably(draft, target));
  return result;
}

SqliteRestore::SqliteRestore(std::string path, bool look_only, const Clock& clock)
    : path_(std::move(path)),
      look_only_(look_only),
      draft_(path_ + std::string(look_only ? kLookSuffix : kRestoreDraftSuffix)),
      clock_(clock),
      lock_(path_ + (look_only ? std::string(kLookLockSuffix) : std::string(kLockSuffix)), {.one_name = true}) {}

SqliteRestore::~SqliteRestore() {
  if (!lock_.is_held()) return;
  // While the log is set aside it says that what has the path is not the register (refuse_unfinished_restore).
  const auto aside = os::file_status(path_ + kLogAsideSuffix);
  if (look_only_ || (aside && !*aside)) remove_draft();
  if (look_only_) static_cast<void>(os::remove_file_durably(lock_.path()));
}

void SqliteRestore::remove_draft() const {
  static_cast<void>(remove_with_side_files(draft_));
  static_cast<void>(remove_with_side_files(draft_ + std::string(kRowsSuffix)));
  static_cast<void>(os::remove_file_durably(draft_ + kLockSuffix));
}

Result<std::unique_ptr<SqliteRestore>> SqliteRestore::begin(const std::string& path, const std::string& backup,
                                                            const Options& options, const Clock& clock,
                                                            Deadline deadline) {
  TRY(const auto file, os::file_status(backup));
  if (!file) return fail(ErrorCode::not_found, fmt::format("no backup at {}", backup));
  if (file->type != os::FileStatus::Type::regular || file->bytes == 0) {
    return fail(ErrorCode::corrupt, fmt::format("{} is no backup: give the file that \"croft store backup\" wrote, or "
                                                "the database in a copy of the store's directory",
                                                backup));
  }
  TRY_VOID(os::make_directories(os::directory_of(path)));
  TRY(std::string resolved, os::resolved_path(path));
  TRY(const auto there, os::file_status(resolved));
  if (there) TRY_VOID(refuse_mounted_file(resolved, *there));
  TRY_VOID(refuse_unfinished_backup(resolved, backup));
  if (!options.from_other_register) TRY_VOID(refuse_other_register(resolved, backup));
  std::unique_ptr<SqliteRestore> restore(new SqliteRestore(std::move(resolved), options.look_only, clock));
  TRY_VOID(restore->lock_.lock(clock, deadline));
  TRY_VOID(restore->end_unfinished(deadline));
  if (!options.look_only) remove_left_look(restore->path_, clock);
  TRY_VOID(restore->make_draft(backup, options, deadline));
  return restore;
}

Result<void> SqliteRestore::make_draft(const std::string& backup, const Options& options, Deadline deadline) {
  remove_draft();
  TRY_VOID(os::create_file(draft_));
  {
    PlainDatabase source;
    // A copy of a directory has a log beside it, whose index SQLite must be able to make.
    if (!source.open(backup, SQLITE_OPEN_READWRITE)) TRY_VOID(source.open(backup, SQLITE_OPEN_READONLY));
    // What another program wrote may be whole all the same: that is looked at below.
    source.believe_pages(options.incomplete ? PageBelief::unchecked : PageBelief::copied_too);
    PlainDatabase draft;
    TRY_VOID(draft.open_draft(draft_));
    if (const auto copied = draft.copy_from(source, deadline, clock_); !copied) {
      // What is wrong with a file beside it is no damage, and has its own remedy.
      const Refusal refusal = refusal_of_files();
      const bool is_of_name = refusal.kind == Refusal::Kind::name && !refusal.what.empty() &&
                              copied.error().message.ends_with(refusal.what);
      if (copied.error().code != ErrorCode::corrupt || is_of_name) return fail(copied.error());
      return fail(Error{ErrorCode::corrupt,
                        fmt::format("{} is not a whole register{}", backup,
                                    options.incomplete ? "" : ". With --force what can be read of it is taken"),
                        told_of_backup(copied.error().message, draft_, backup)});
    }
    if (!options.incomplete && !source.fits_its_log()) {
      return fail(ErrorCode::corrupt,
                  fmt::format("{0} and its log {0}-wal are not of one time: it is not the whole register. With --force "
                              "what is left of it is taken",
                              backup));
    }
    TRY_VOID(draft.run("PRAGMA journal_mode=WAL"));
  }
  bool has_sums = false;
  const auto look = [&]() -> Result<void> {
    Database draft(draft_, Database::Mode::shared, clock_, deadline);
    TRY_VOID(draft.open());
    has_sums = draft.has_page_sums();
    return verify(draft, &damaged_);
  };
  const auto remake = [&]() -> Result<void> {
    PlainDatabase draft;
    TRY_VOID(draft.open_draft(draft_));
    TRY_VOID(draft.remake_with_page_sums());
    return draft.run("PRAGMA journal_mode=WAL");
  };
  auto whole = look();
  is_whole_ = whole.has_value();
  if (!whole && whole.error().code == ErrorCode::corrupt && options.incomplete) {
    // A database and a log of two times, an index from which nothing can be read, what others made beside our tables:
    // all that says nothing that the records don't, and each of them has a checksum.
    damaged_.clear();
    auto lost = put_rows_in_a_new_database(draft_);
    whole = lost ? look() : Result<void>(fail(lost.error()));
    if (lost) std::move(lost->begin(), lost->end(), std::back_inserter(damaged_));
  }
  for (Error& damage : damaged_) damage.message = told_of_backup(std::move(damage.message), draft_, backup);
  if (!whole) {
    if (whole.error().code != ErrorCode::corrupt) return fail(whole.error());
    return fail(Error{ErrorCode::corrupt,
                      fmt::format("{} is not a whole register{}", backup,
                                  options.incomplete ? "" : ". With --force what can be read of it is taken"),
                      told_of_backup(whole.error().message, draft_, backup)});
  }
  if (!damaged_.empty() && !options.incomplete) {
    return fail(Error{ErrorCode::corrupt,
                      fmt::format("{} is not a whole register: {} of its records are damaged. With --force it is taken "
                                  "as it is, and they stay set aside",
                                  backup, damaged_.size()),
                      damaged_.front().message});
  }
  if (!has_sums) TRY_VOID(remake());
  Database draft(draft_, Database::Mode::shared, clock_, deadline);
  TRY_VOID(draft.open());
  TRY(revision_, last_revision(draft));
  const auto note = read_commit_note(backup);
  if (const auto checked = check_against(draft, note); !checked && !options.incomplete) {
    if (!note || !note->of(draft.register_id())) {
      return fail(ErrorCode::corrupt,
                  fmt::format("{0} is not the register that {0}{1} names. With --force it is taken all the same",
                              backup, kLockSuffix));
    }
    return fail(ErrorCode::corrupt,
                fmt::format("{0} is at revision {1}, but {0}{2} says that revision {3} was acknowledged: it is not the "
                            "whole register. With --force what is left of it is taken",
                            backup, revision_, kLockSuffix, note->revision));
  }
  return {};
}

Result<void> SqliteRestore::end_unfinished(Deadline deadline) const {
  const auto is_left = [&] { return os::file_status(path_ + kLogAsideSuffix); };
  TRY(const auto left, is_left());
  if (!left) return {};
  os::FileLock of_store(path_ + kLockSuffix, {.one_name = true});
  if (look_only_) TRY_VOID(of_store.lock(clock_, deadline));
  TRY(const auto still_left, is_left());
  return still_left ? put_log_back() : Result<void>();
}

/// The draft is there until it has its place, and as long the log belongs to what has it.
Result<void> SqliteRestore::put_log_back() const {
  TRY(const auto draft, os::file_status(path_ + kRestoreDraftSuffix));
  if (!draft) return os::remove_file_durably(path_ + kLogAsideSuffix);
  TRY_VOID(os::remove_file_durably(path_ + "-shm"));
  return os::rename_durably(path_ + kLogAsideSuffix, path_ + "-wal");
}

SqliteRestore::Here SqliteRestore::look_here(Deadline deadline) const {
  const auto note = read_commit_note(path_);
  Here result{note ? static_cast<std::uint64_t>(note->revision) : 0, false};
  const auto status = os::file_status(path_);
  if (!status || !*status) return result;
  Database here(path_, Database::Mode::shared, clock_, deadline);
  here.believe_copied_pages();  // they go
  if (!here.open()) return result;
  result.revision = std::max(result.revision, last_revision(here).value_or(0));
  // What is refused stays as it is: a checkpoint would hide that database and log are not of one time.
  if (!check_against(here, note)) return result;
  const Deadline readers_are_gone = Deadline::after(clock_.now(), kReadersMax);
  for (;;) {
    const auto complete = here.checkpoint();
    result.needs_no_log = complete && *complete;
    if (!complete || *complete || readers_are_gone.passed(clock_.now())) return result;
    sqlite3_sleep(5);
  }
}

Result<void> SqliteRestore::renew_draft(Deadline deadline) {
  Database draft(draft_, Database::Mode::shared, clock_, deadline);
  TRY_VOID(draft.open());
  TRY(const std::uint64_t last, last_revision(draft));
  const Here here = look_here(deadline);
  new_revision_ = std::max(last, here.revision) + 1;
  needs_no_log_ = here.needs_no_log;
  TRY_VOID(draft.run(Sql::begin_write));
  TRY_VOID(upgrade_tables(draft));
  TRY_VOID(ask_all(draft, {"DELETE FROM changes",
                           fmt::format("UPDATE counters SET value={} WHERE id IN (1, 3, 4)", new_revision_)}));
  TRY_VOID(draft.run(Sql::give_register_id));
  TRY_VOID(draft.run(Sql::commit));
  TRY(new_id_, draft.number(Sql::register_id));
  TRY(const bool complete, draft.checkpoint());
  if (complete) return {};
  return fail(ErrorCode::unavailable, fmt::format("somebody has {} open; try again", draft_));
}

/// The old log must be gone before the new database has the name: it would be applied to it. Where the old database
/// is less without it, it is kept until then: whoever opens it meanwhile is refused, and begin() puts it back.
Result<void> SqliteRestore::take_place() {
  TRY(const auto log, os::file_status(path_ + "-wal"));
  const bool keeps_log = log && !needs_no_log_;
  Result<void> done;
  if (keeps_log) {
    done = os::rename_durably(path_ + "-wal", path_ + kLogAsideSuffix);
  } else {
    done = os::remove_file_durably(path_ + "-wal");
  }
  if (done) done = os::remove_file_durably(path_ + "-shm");
  if (done) done = os::rename_durably(draft_, path_);
  const auto draft = os::file_status(draft_);
  const bool has_place = draft && !*draft;
  if (!done && !has_place && keeps_log) static_cast<void>(put_log_back());
  // What fails behind the rename may be undone by a power cut.
  if (!done) return done;
  return os::remove_file_durably(path_ + kLogAsideSuffix);
}

void SqliteRestore::note_replaced() const {
  const auto note = read_commit_note(path_);
  if (!note) return;
  std::vector<std::int64_t> ids = read_replaced(path_);
  // Which of the two it is that is here, a restore that ended in between left open.
  for (const std::int64_t id : {note->next_id, note->register_id}) {
    if (id != 0 && std::find(ids.begin(), ids.end(), id) == ids.end()) ids.insert(ids.begin(), id);
  }
  lock_.note(encode_replaced(ids), kReplacedNotesAt);
}

Result<void> SqliteRestore::finish(Deadline deadline) {
  CROFT_ASSERT(!look_only_);
  TRY_VOID(renew_draft(deadline));
  for (const char* suffix : {"-wal", "-shm"}) TRY_VOID(os::remove_file_durably(draft_ + suffix));
  TRY_VOID(os::sync_file(draft_));
  // Whoever comes after a crash finds the old register or the new one, both named.
  CommitNote note{new_id_, static_cast<std::int64_t>(new_revision_), static_cast<std::int64_t>(new_revision_)};
  note.next_id = note.register_id;
  note.next_revision = note.revision;
  note_replaced();
  lock_.note(encode_next_note(note), kNextNoteAt);
  TRY_VOID(os::sync_file(lock_.path()));
  TRY_VOID(take_place());
  lock_.note(encode_commit_note(note));
  lock_.note(encode_file_note(note), kCommitNoteBytes);
  return make_room(path_, static_cast<std::int64_t>(new_revision_), clock_, deadline);
}

}  // namespace croft::store
