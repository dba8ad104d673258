#include "store/sqlite/database.h"

#include <array>
#include <cerrno>
#include <charconv>
#include <chrono>
#include <thread>

#include <sqlite3.h>

#include "base/assert.h"
#include "base/texts.h"
#include "os/file_lock.h"
#include "os/files.h"
#include "os/system_error.h"
#include "store/sqlite/transaction.h"

namespace croft::store {

namespace {

bool is_no_space(int system_errno) { return system_errno == ENOSPC || system_errno == EDQUOT || system_errno == EFBIG; }

bool is_failed_sync(int code) {
  return code == SQLITE_IOERR_FSYNC || code == SQLITE_IOERR_DIR_FSYNC || code == SQLITE_IOERR_TRUNCATE ||
         code == SQLITE_IOERR_CLOSE;
}

/// SQLite can't make its shared index file as large as it needs: a lone process on a full disk. The database can still
/// be used by one connection with the index in its own memory (Database::Mode::alone).
bool is_lack_of_room_for_index(int code, int system_errno) {
  if (code == SQLITE_IOERR_SHMSIZE) return true;
  const bool opening = code == SQLITE_IOERR_SHMOPEN || code == SQLITE_IOERR_SHMMAP || (code & 0xff) == SQLITE_CANTOPEN;
  return opening && is_no_space(system_errno);
}

struct Meaning {
  ErrorCode code;
  const char* remedy;
};

Meaning meaning_of(int primary) {
  switch (primary) {
    case SQLITE_CORRUPT:
    case SQLITE_NOTADB:
    case SQLITE_FORMAT:
      return {ErrorCode::corrupt, "nothing was changed: follow docs/runbooks/backup-and-restore.md"};
    case SQLITE_BUSY:
    case SQLITE_LOCKED:
    case SQLITE_PROTOCOL:
      return {ErrorCode::unavailable, "another program uses the store without Croft's lock: stop it"};
    case SQLITE_NOMEM:
      return {ErrorCode::unavailable, "give this process more memory"};
    default:
      return {ErrorCode::internal, "look at the kernel log for errors of the disk"};
  }
}

constexpr const char* kName = "croft";
sqlite3_vfs* base_vfs = nullptr;

int open_file(sqlite3_vfs*, const char* path, sqlite3_file* file, int flags, int* flags_out) {
  int is_there = 0;
  if ((flags & SQLITE_OPEN_WAL) != 0) base_vfs->xAccess(base_vfs, path, SQLITE_ACCESS_EXISTS, &is_there);
  if (is_there != 0) flags &= ~SQLITE_OPEN_CREATE;
  return base_vfs->xOpen(base_vfs, path, file, flags, flags_out);
}

bool register_vfs() {
  CROFT_ASSERT(sqlite3_initialize() == SQLITE_OK);
  base_vfs = sqlite3_vfs_find(nullptr);
  CROFT_ASSERT(base_vfs != nullptr);
  static sqlite3_vfs ours = *base_vfs;
  ours.zName = kName;
  ours.pNext = nullptr;
  ours.xOpen = open_file;
  return sqlite3_vfs_register(&ours, /*makeDflt=*/0) == SQLITE_OK;
}

/// Sets a switch of a connection; true when it then reads as set.
bool switch_to(sqlite3* db, int option, int wanted) {
  int now = -1;
  return sqlite3_db_config(db, option, wanted, &now) == SQLITE_OK && now == wanted;
}

/// How the revisions of a generation are told from those of others; 2^48 commits are enough for any register.
constexpr unsigned kGenerationShift = 48;
/// Below the end of those by more than what may be given between two looks.
constexpr std::int64_t kRevisionMax = (std::int64_t{1} << kGenerationShift) - (std::int64_t{1} << 32);

/// The first region of the log's index, enough for 4062 frames (sqlite.org/walformat.html).
constexpr int kIndexBytes = 32768;
/// With less than this free, other programs may take the last blocks while we allocate ours.
constexpr std::uint64_t kComfortableBytes = 1 << 20;
// Where these are in the file (sqlite.org/fileformat.html). The format is 2 where there is a log.
constexpr int kFormatAt = 18;
constexpr int kUserVersionAt = 60;

[[nodiscard]] Error newer_version_of(const std::string& path, std::int64_t version) {
  return make_error(ErrorCode::newer_version,
                    "cannot use {}: its tables have version {}, this program knows up to {}; upgrade Croft here", path,
                    version, kSchemaVersion);
}

}  // namespace

SqliteFailure failure_of(sqlite3* db, int code, std::string_view doing, const std::string& path) {
  int primary = code & 0xff;
  if (code == SQLITE_IOERR_NOMEM) primary = SQLITE_NOMEM;
  if (code == SQLITE_IOERR_SHORT_READ) primary = SQLITE_CORRUPT;  // the file ends too early: no call has failed
  const int system_errno = db == nullptr ? 0 : sqlite3_system_errno(db);
  const bool lacks_index = is_lack_of_room_for_index(code, system_errno);
  SqliteFailure failure;
  failure.disk_failed = primary == SQLITE_IOERR && !lacks_index && (is_failed_sync(code) || !is_no_space(system_errno));
  failure.refused = primary == SQLITE_FULL || primary == SQLITE_READONLY || primary == SQLITE_BUSY;
  // The operating system explains some better than SQLite's words.
  const bool is_of_system = primary == SQLITE_IOERR || primary == SQLITE_CANTOPEN;
  if (primary == SQLITE_FULL || lacks_index) {
    failure.error = os::system_error(doing, path, ENOSPC);
  } else if (primary == SQLITE_READONLY || primary == SQLITE_PERM) {
    failure.error = os::system_error(doing, path, os::is_on_read_only_file_system(path) ? EROFS : EACCES);
  } else if (is_of_system && !is_failed_sync(code) && system_errno != 0) {
    failure.error = os::system_error(doing, path, system_errno);
  } else {
    const Meaning meaning = meaning_of(primary);
    failure.error = make_error(meaning.code, "cannot {} {}: {} (SQLite {}); {}", doing, path, sqlite3_errstr(code),
                               code, meaning.remedy);
  }
  return failure;
}

const char* croft_vfs() {
  static const bool kRegistered = register_vfs();
  CROFT_ASSERT(kRegistered);
  return kName;
}

Statement::~Statement() {
  sqlite3_reset(statement_);
  sqlite3_clear_bindings(statement_);
}

Statement& Statement::bind(int parameter, std::int64_t value) {
  if (bind_result_ == SQLITE_OK) bind_result_ = sqlite3_bind_int64(statement_, parameter, value);
  return *this;
}

Statement& Statement::bind_text(int parameter, std::string_view value) {
  if (bind_result_ == SQLITE_OK) {
    bind_result_ = sqlite3_bind_text(statement_, parameter, value.data(), static_cast<int>(value.size()), nullptr);
  }
  return *this;
}

Statement& Statement::bind_blob(int parameter, std::string_view value) {
  if (bind_result_ == SQLITE_OK) {
    const char* data = value.empty() ? "" : value.data();  // a null pointer would bind NULL
    bind_result_ = sqlite3_bind_blob(statement_, parameter, data, static_cast<int>(value.size()), nullptr);
  }
  return *this;
}

Result<bool> Statement::step() {
  const int code = bind_result_ == SQLITE_OK ? sqlite3_step(statement_) : bind_result_;
  if (code == SQLITE_ROW || code == SQLITE_DONE) return code == SQLITE_ROW;
  return fail(database_.failure(code, "use"));
}

std::string_view Statement::bytes(int column) const {
  const void* data = sqlite3_column_blob(statement_, column);
  const int size = sqlite3_column_bytes(statement_, column);
  return data == nullptr ? std::string_view()
                         : std::string_view(static_cast<const char*>(data), static_cast<std::size_t>(size));
}

Database::~Database() {
  for (const auto& [text, statement] : statements_) sqlite3_finalize(statement);
  sqlite3_close(db_);
}

Result<void> Database::open() {
  TRY(const Files before, look_at_files());
  TRY_VOID(open_file());
  TRY_VOID(configure());
  TRY_VOID(check_header());
  TRY(files_, look_at_files());
  // Replaced just now: as if it had been before, so that is_current() says so.
  if (before[0] && files_[0] && before[0]->id != files_[0]->id) files_ = before;
  return {};
}

Result<void> Database::open_file() {
  // The caller has resolved the path: a link put there since is not ours to follow.
  constexpr int kFlags = SQLITE_OPEN_READWRITE | SQLITE_OPEN_NOMUTEX | SQLITE_OPEN_EXRESCODE | SQLITE_OPEN_NOFOLLOW |
                         SQLITE_OPEN_PRIVATECACHE;
  const int code = sqlite3_open_v2(path_.c_str(), &db_, kFlags, croft_vfs());
  if (code != SQLITE_OK) return fail(failure(code, "open"));
  return {};
}

/// SQLite writes one byte to each 4 KiB of the index, which leaves holes on a file system of smaller blocks: on a full
/// disk the first store into a hole would kill the process with SIGBUS. So its blocks are allocated before it is used.
Result<void> Database::allocate_index() {
  sqlite3_file* const file = database_file();
  std::uint8_t format = 0;
  const bool has_log =
      file != nullptr && file->pMethods->xRead(file, &format, 1, kFormatAt) == SQLITE_OK && format == 2;
  void volatile* memory = nullptr;
  // Where that fails SQLite meets the same, and says why.
  if (!has_log || file->pMethods->xShmMap(file, 0, kIndexBytes, 1, &memory) != SQLITE_OK || memory == nullptr)
    return {};
  TRY(const auto index, os::file_status(path_ + "-shm"));
  if (index && index->allocated_bytes >= kIndexBytes) return {};
  if (os::available_bytes(path_) < kComfortableBytes) return fail(failure(SQLITE_IOERR_SHMSIZE, "open"));
  // Stores that change nothing, also when other processes write to it at the same time.
  for (int at = 0; at < kIndexBytes; at += kPageBytes) {
    __atomic_fetch_or(static_cast<volatile char*>(memory) + at, char{0}, __ATOMIC_SEQ_CST);
  }
  return {};
}

Result<void> Database::configure() {
  sqlite3_busy_handler(db_, &Database::wait_for_others, this);
  sqlite3_limit(db_, SQLITE_LIMIT_LENGTH, kValueBytesMax);
  sqlite3_wal_hook(db_, &Database::note_log_pages, this);  // replaces the hook that checkpoints automatically
  int keep_log = 1;
  sqlite3_file_control(db_, "main", SQLITE_FCNTL_PERSIST_WAL, &keep_log);
  sqlite3_int64 mapped_bytes = 0;
  sqlite3_file_control(db_, "main", SQLITE_FCNTL_MMAP_SIZE, &mapped_bytes);
  if (!switch_to(db_, SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1) || !switch_to(db_, SQLITE_DBCONFIG_TRUSTED_SCHEMA, 0) ||
      !switch_to(db_, SQLITE_DBCONFIG_ENABLE_TRIGGER, 0)) {
    return fail(wrong(ErrorCode::internal, "SQLite refuses a switch that Croft needs"));
  }
  if (mode_ == Mode::alone) return check_setting("locking_mode=EXCLUSIVE", "exclusive");
  return allocate_index();
}

Result<void> Database::check_setting(const std::string& pragma, std::string_view expected) {
  TRY(const auto value, ask("PRAGMA " + pragma));
  if (value == expected) return {};
  return fail(wrong(ErrorCode::internal, fmt::format("SQLite answers {} to PRAGMA {}, not {}",
                                                     value.value_or("nothing"), pragma, expected)));
}

Result<void> Database::check_header() {
  // The first statement that reads the file: what is damaged at its start shows here.
  TRY(const auto application, ask("PRAGMA application_id"));
  if (application != std::to_string(kApplicationId)) {
    return fail(wrong(ErrorCode::corrupt, "it is a database of another program; correct the path of the store"));
  }
  TRY(const std::int64_t stamped, number("PRAGMA user_version"));
  const std::int64_t version = version_of(stamped);
  if (version > kSchemaVersion) return fail(newer_version_of(path_, version));
  if (version < kSchemaVersion)
    return fail(wrong(ErrorCode::corrupt, fmt::format("its tables have version {}, this program knows {} only; restore "
                                                      "a backup (docs/runbooks/backup-and-restore.md)",
                                                      version, kSchemaVersion)));
  // Another journal mode would mean that somebody changed the file; writing in that mode is not what was tested.
  TRY(const auto journal, ask("PRAGMA journal_mode"));
  if (journal != "wal") {
    return fail(wrong(ErrorCode::corrupt, fmt::format("its journal mode is {}, not wal, as of a backup that was put "
                                                      "here by hand; use `croft store restore BACKUP --cni-cache "
                                                      "/var/lib/cni` (docs/runbooks/backup-and-restore.md)",
                                                      journal.value_or("unknown"))));
  }
  TRY_VOID(ask("PRAGMA synchronous=FULL"));
  for (const auto& [pragma, expected] : {std::pair{"synchronous", "2"}, std::pair{"wal_autocheckpoint", "0"},
                                         std::pair{"secure_delete=OFF", "0"}, std::pair{"journal_size_limit", "-1"}}) {
    TRY_VOID(check_setting(pragma, expected));
  }
  return {};
}

Error Database::wrong(ErrorCode code, std::string_view what) const {
  return make_error(code, "cannot open {}: {}", path_, what);
}

Error Database::failure(int code, std::string_view doing) {
  SqliteFailure failure = failure_of(db_, code, doing, path_);
  disk_failed_ = disk_failed_ || failure.disk_failed;
  last_call_was_refused_ = failure.refused;
  return std::move(failure.error);
}

Result<std::unique_ptr<Statement>> Database::prepare(const char* sql) {
  sqlite3_stmt*& statement = statements_[sql];
  if (statement == nullptr) {
    const int code = sqlite3_prepare_v3(db_, sql, -1, SQLITE_PREPARE_PERSISTENT, &statement, nullptr);
    if (code == SQLITE_ERROR) {  // our own texts are right, so the tables are not
      return fail(wrong(ErrorCode::corrupt, fmt::format("{}; restore it from a backup", sqlite3_errmsg(db_))));
    }
    if (code != SQLITE_OK) return fail(failure(code, "read"));
  }
  return std::make_unique<Statement>(*this, statement);
}

Result<void> Database::run(const char* sql, std::optional<std::int64_t> parameter) {
  TRY(const auto statement, prepare(sql));
  if (parameter) statement->bind(1, *parameter);
  TRY_VOID(statement->step());
  return {};
}

Result<std::int64_t> Database::number(const char* sql) {
  TRY(const auto statement, prepare(sql));
  TRY(const bool row, statement->step());
  if (row) return statement->number(0);
  return fail(wrong(ErrorCode::corrupt, "a counter is missing; restore it from a backup"));
}

Result<std::optional<std::string>> Database::ask(const std::string& text) {
  sqlite3_stmt* compiled = nullptr;
  const int code = sqlite3_prepare_v2(db_, text.c_str(), static_cast<int>(text.size()), &compiled, nullptr);
  if (code != SQLITE_OK) return fail(failure(code, "open"));
  const std::unique_ptr<sqlite3_stmt, int (*)(sqlite3_stmt*)> owner(compiled, &sqlite3_finalize);
  Statement statement(*this, compiled);
  TRY(const bool row, statement.step());
  if (!row) return std::optional<std::string>();
  return std::optional(std::string(statement.bytes(0)));
}

Result<void> Database::execute(const std::string& script) {
  const int code = sqlite3_exec(db_, script.c_str(), nullptr, nullptr, nullptr);
  if (code != SQLITE_OK) return fail(failure(code, "write"));
  return {};
}

Result<Identity> Database::identity() {
  TRY(const auto row, prepare("SELECT value, ifnull((SELECT value FROM counters WHERE id=5), 0), ifnull((SELECT value "
                              "FROM counters WHERE id=7), 0) FROM counters WHERE id=1"));
  TRY(const bool found, row->step());
  const Identity identity{row->number(1), row->number(0), row->number(2)};
  if (found && identity.revision >= 0 && identity.revision < kRevisionMax) return identity;
  return fail(ErrorCode::corrupt,
              "{}: its last revision is {}, which no register reaches; nothing is handed out. Follow "
              "docs/runbooks/backup-and-restore.md",
              path_, found ? std::to_string(identity.revision) : "missing");
}

Result<bool> Database::fits_its_log() {
  TRY(const std::int64_t in_log, number("PRAGMA user_version"));
  if (version_of(in_log) > kSchemaVersion) return fail(newer_version_of(path_, version_of(in_log)));
  sqlite3_file* const file = database_file();
  std::array<std::uint8_t, 4> bytes{};
  if (file == nullptr || file->pMethods->xRead(file, bytes.data(), 4, kUserVersionAt) != SQLITE_OK) return true;
  std::int64_t in_file = 0;
  for (const std::uint8_t byte : bytes) in_file = in_file << 8 | byte;
  const std::int64_t ahead = stamp_of(in_log - user_version(0, stamp_of(in_file)));
  return ahead == 0 || ahead == 1;
}

Revision Database::told(std::int64_t stored) const {
  return Revision((std::uint64_t{generation_} << kGenerationShift) | static_cast<std::uint64_t>(stored));
}

std::int64_t Database::stored(Revision told) const {
  return static_cast<std::int64_t>(told.value & ((std::uint64_t{1} << kGenerationShift) - 1));
}

Result<Database::Files> Database::look_at_files() const {
  Files files;
  for (std::size_t i = 0; i < files.size(); ++i) {
    const bool is_none_of_ours = mode_ == Mode::alone && i == 2;
    if (is_none_of_ours) continue;
    TRY(files[i], os::file_status(path_ + kSuffixes[i]));
  }
  return files;
}

Result<bool> Database::is_current() const {
  TRY(const Files now, look_at_files());
  for (std::size_t i = 0; i < now.size(); ++i) {
    if (now[i].has_value() != files_[i].has_value()) return false;
    if (!now[i]) continue;
    // A checkpoint may give back pages that the database had in reserve.
    const std::uint64_t least = i == 0 ? 1 : files_[i]->bytes;
    if (now[i]->id != files_[i]->id || now[i]->bytes < least) return false;
  }
  return true;
}

std::optional<os::FileId> Database::file() const { return files_[0] ? std::optional(files_[0]->id) : std::nullopt; }

Result<bool> Database::checkpoint() {
  int in_log = 0;
  int copied = 0;
  const int code = sqlite3_wal_checkpoint_v2(db_, "main", SQLITE_CHECKPOINT_PASSIVE, &in_log, &copied);
  if (code == SQLITE_BUSY) return false;
  if (code != SQLITE_OK) return fail(failure(code, "checkpoint"));
  return in_log == copied;
}

Result<void> Database::begin_log_anew() {
  TRY(const std::int64_t now, number("PRAGMA user_version"));
  return execute(fmt::format("PRAGMA user_version={}", user_version(version_of(now), stamp_of(now) + 1)));
}

sqlite3_file* Database::file_behind(int control) const {
  sqlite3_file* file = nullptr;
  sqlite3_file_control(db_, "main", control, &file);
  return file != nullptr && file->pMethods != nullptr ? file : nullptr;
}

int Database::wait_for_others(void* self, int attempts) {
  constexpr int kQuickAttempts = 5;
  const auto& database = *static_cast<Database*>(self);
  if (database.deadline_.passed(database.clock_.now())) return 0;
  std::this_thread::sleep_for(std::chrono::microseconds(attempts < kQuickAttempts ? 200 : 5000));
  return 1;
}

int Database::note_log_pages(void* self, sqlite3*, const char*, int pages) {
  static_cast<Database*>(self)->log_pages_ = pages;
  return SQLITE_OK;
}

namespace {

constexpr std::size_t kLockFileBytesMax = 1U << 16;

/// "croft ", 16 hexadecimal digits, a space, 20 decimal ones, a space, 16 hexadecimal ones of the checksum of all
/// before that space, spaces, a newline.
constexpr std::string_view kMark = "croft ";
constexpr std::size_t kIdAt = 6;
constexpr std::size_t kRevisionAt = 23;
constexpr std::size_t kSummed = 43;

std::uint64_t sum_of(std::string_view text) {
  Checksum sum;
  sum.add(text);
  return sum.value();
}

template <class Number>
bool read_number(std::string_view text, int base, Number& number) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number, base);
  return error == std::errc() && end == text.data() + text.size();
}

Error refused(const Database& database, const std::string& why) {
  return make_error(ErrorCode::corrupt,
                    "{0} {1}. Nothing is handed out; follow docs/runbooks/backup-and-restore.md: \"croft --store "
                    "sqlite:{0} store restore BACKUP --cni-cache /var/lib/cni\"",
                    database.path(), why);
}

}  // namespace

std::string encode_commit_note(const Identity& note) {
  const std::string text = fmt::format("{}{:016x} {:020}", kMark, note.register_id, note.revision);
  return fmt::format("{:<{}}\n", fmt::format("{} {:016x}", text, sum_of(text)), kCommitNoteBytes - 1);
}

std::optional<Identity> decode_commit_note(std::string_view bytes) {
  if (bytes.size() < kCommitNoteBytes || !bytes.starts_with(kMark)) return std::nullopt;
  Identity note;
  std::uint64_t sum = 0;
  const bool read = read_number(bytes.substr(kIdAt, 16), 16, note.register_id) &&
                    read_number(bytes.substr(kRevisionAt, 20), 10, note.revision) &&
                    read_number(bytes.substr(kSummed + 1, 16), 16, sum);
  if (!read || sum != sum_of(bytes.substr(0, kSummed))) return std::nullopt;
  return note;
}

std::optional<Identity> read_commit_note(const std::string& database_path) {
  const auto bytes = os::read_file(database_path + kLockSuffix, kLockFileBytesMax);
  return bytes ? decode_commit_note(*bytes) : std::nullopt;
}

Result<Identity> check_identity(Database& database) {
  TRY(const Identity now, database.identity());
  TRY(const bool fits, database.fits_its_log());
  const std::optional<Identity>& note = database.expected();
  if (!fits) return fail(refused(database, "and its log -wal are of two times: one of them was put back by hand"));
  if (note && note->register_id != now.register_id && note->register_id != now.replaced) {
    return fail(
        refused(database, fmt::format("is not the register that was here, which {}-lock names", database.path())));
  }
  if (note && now.revision < note->revision) {
    return fail(refused(database, fmt::format("is at revision {}, but {}-lock says that revision {} was acknowledged: "
                                              "commits are lost, as its log is damaged or a file was put back by hand",
                                              now.revision, database.path(), note->revision)));
  }
  return now;
}

namespace {

/// Counters: 1 the last revision, 3 the revision up to which changes are forgotten, 5 the register's id, 7 the id of
/// the register that it replaced.
constexpr const char* kTables = R"sql(
CREATE TABLE records(
  kind INTEGER NOT NULL, name TEXT NOT NULL, revision INTEGER NOT NULL, token BLOB NOT NULL, checksum INTEGER NOT NULL,
  value BLOB NOT NULL, PRIMARY KEY(kind, name)) STRICT;
CREATE TABLE counters(id INTEGER PRIMARY KEY, value INTEGER NOT NULL) STRICT;
CREATE TABLE changes(
  id INTEGER PRIMARY KEY, revision INTEGER NOT NULL, kind INTEGER NOT NULL, name TEXT NOT NULL) STRICT;
INSERT INTO counters VALUES(1, 0), (3, 0);
)sql";

/// Fills an empty file. Its durability comes after: nobody knows the draft.
[[nodiscard]] Result<void> write_draft(const std::string& draft) {
  sqlite3* db = nullptr;
  constexpr int kFlags = SQLITE_OPEN_READWRITE | SQLITE_OPEN_NOMUTEX | SQLITE_OPEN_EXRESCODE | SQLITE_OPEN_NOFOLLOW;
  int code = sqlite3_open_v2(draft.c_str(), &db, kFlags, croft_vfs());
  const std::string script = fmt::format(
      "PRAGMA page_size={}; PRAGMA auto_vacuum=NONE; PRAGMA synchronous=OFF; PRAGMA journal_mode=MEMORY; BEGIN; {} {}; "
      "PRAGMA application_id={}; PRAGMA user_version={}; COMMIT; PRAGMA journal_mode=WAL",
      kPageBytes, kTables, kGiveRegisterId, kApplicationId, kSchemaVersion);
  if (code == SQLITE_OK) code = sqlite3_exec(db, script.c_str(), nullptr, nullptr, nullptr);
  Result<void> written;
  if (code != SQLITE_OK) written = fail(failure_of(db, code, "create", draft).error);
  sqlite3_close(db);
  return written;
}

Error nothing_there(const std::string& path) {
  return make_error(ErrorCode::not_found, "no store at {}; \"croft pool create\" makes one, or correct the path", path);
}

[[nodiscard]] Result<void> create_under_lock(const std::string& path, const Clock& clock, Deadline deadline) {
  os::FileLock lock(path + kLockSuffix, {.one_name = true});
  TRY_VOID(lock.lock(clock, deadline));
  TRY(const auto there, os::file_status(path));
  if (there) return {};  // another process was quicker
  TRY_VOID(refuse_lost_database(path));
  TRY_VOID(create_database(path));
  return make_room(path, clock, deadline);
}

}  // namespace

Result<void> remove_database(const std::string& path) {
  for (const char* suffix : {"", "-wal", "-shm"}) TRY_VOID(os::remove_file_durably(path + suffix));
  return {};
}

Result<void> create_database(const std::string& path) {
  const std::string draft = path + "-new";
  TRY_VOID(remove_database(draft));
  TRY_VOID(os::create_file(draft));
  TRY_VOID(write_draft(draft));
  TRY_VOID(os::sync_file(draft));
  return os::rename_durably(draft, path);
}

Result<void> check_file(const std::string& path, const os::FileStatus& status) {
  if (status.type != os::FileStatus::Type::regular) {
    return fail(ErrorCode::invalid_argument, "store {} is {}, not a regular file; correct the path", path,
                status.type == os::FileStatus::Type::directory ? "a directory" : "a pipe, socket or device");
  }
  if (status.bytes == 0) {
    return fail(ErrorCode::corrupt,
                "store {} is empty: follow docs/runbooks/backup-and-restore.md to "
                "restore it, or remove it if no database was ever in it",
                path);
  }
  return refuse_mounted_file(path, status);
}

Result<void> refuse_mounted_file(const std::string& path, const os::FileStatus& status) {
  if (!status.is_mount_point) return {};
  return fail(ErrorCode::corrupt,
              "store {} is mounted by itself, and would get a log and a lock of its own "
              "here; mount the directory it is in",
              path);
}

Result<void> make_room(const std::string& path, const Clock& clock, Deadline deadline) {
  Database database(path, Database::Mode::shared, clock, deadline);
  TRY_VOID(database.open());
  TRY_VOID(reserve_log(database));
  TRY_VOID(database.run("BEGIN IMMEDIATE"));
  TRY_VOID(reserve_pages(database, /*adds_data=*/true));
  TRY_VOID(database.begin_log_anew());
  return database.run("COMMIT");
}

Result<void> refuse_lost_database(const std::string& path) {
  TRY(const auto log, os::file_status(path + "-wal"));
  const auto note = read_commit_note(path);
  // Commits of the log would be applied to a new database.
  if (!note && !(log && log->bytes > 0)) return {};
  return fail(ErrorCode::corrupt,
              "store {0} is gone, and its {1} says that it had commits. Follow "
              "docs/runbooks/backup-and-restore.md, or, when none of its pods runs, remove {0}-wal and "
              "{0}{2} to start with nothing",
              path, note ? "lock file" : "log", kLockSuffix);
}

Result<std::string> find_or_create(const std::string& path, const SqliteOptions& options, const Clock& clock,
                                   Deadline deadline) {
  if (options.create) TRY_VOID(os::make_directories(os::directory_of(path)));
  auto resolved = os::resolved_path(path);
  if (!resolved && resolved.error().code == ErrorCode::not_found && !options.create) return fail(nothing_there(path));
  if (!resolved) return resolved;
  TRY(auto status, os::file_status(*resolved));
  if (!status && options.create) {
    TRY_VOID(create_under_lock(*resolved, clock, deadline));
    TRY(status, os::file_status(*resolved));
  }
  if (!status) {
    TRY_VOID(refuse_lost_database(*resolved));
    return fail(nothing_there(path));
  }
  TRY_VOID(check_file(*resolved, *status));
  return resolved;
}

}  // namespace croft::store
