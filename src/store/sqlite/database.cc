#include "store/sqlite/database.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstring>
#include <map>
#include <set>
#include <thread>

#include <fmt/format.h>

#include "base/assert.h"
#include "base/net/echo.h"
#include "store/sqlite/page_checksum.h"
#include "store/sqlite/raw_counters.h"
#include "store/sqlite/schema.h"
#include "store/sqlite/sqlite_error.h"
#include "store/sqlite/vfs.h"

namespace croft::store {
namespace {

/// Sets a switch of a connection; true when it then reads as set.
bool switch_to(sqlite3* db, int option, int wanted) {
  int now = -1;
  return sqlite3_db_config(db, option, wanted, &now) == SQLITE_OK && now == wanted;
}

/// How the revisions of a generation are told from those of others; 2^48 commits are enough for any register.
constexpr unsigned kGenerationShift = 48;
/// Below the end of those by more than what may be given between two looks.
constexpr std::int64_t kRevisionMax = (std::int64_t{1} << kGenerationShift) - (std::int64_t{1} << 32);

// SQLite's file formats (sqlite.org/walformat.html): the log has a header and frames, each with a header and a page;
// the index begins with two copies of its own header.
constexpr std::uint64_t kIndexRegionBytes = 32768;

struct LogIndexHeader {
  std::uint32_t version = 0;
  std::uint32_t unused = 0;
  std::uint32_t changes = 0;
  std::uint8_t is_set = 0;
  std::uint8_t big_endian_checksums = 0;
  std::uint16_t page_bytes = 0;
  std::uint32_t last_frame = 0;  ///< the number of valid frames
  std::uint32_t pages = 0;
  std::array<std::uint32_t, 2> frame_checksum{};
  std::array<std::uint8_t, 8> salt{};
  std::array<std::uint32_t, 2> checksum{};
};
static_assert(sizeof(LogIndexHeader) == 48);

/// False while somebody changes it.
bool read_header(const volatile void* memory, LogIndexHeader& header) {
  std::array<std::uint32_t, 24> words{};
  const auto* from = static_cast<const volatile std::uint32_t*>(memory);
  // What was read behind the header before this call is older than it, what is read after is not: so who finds the same
  // header twice has seen what belongs to it. On arm64 both fences are needed.
  std::atomic_thread_fence(std::memory_order_acquire);
  for (std::uint32_t& word : words) word = *from++;
  std::atomic_thread_fence(std::memory_order_acquire);
  std::memcpy(static_cast<void*>(&header), words.data(), sizeof header);
  return std::equal(words.begin(), words.begin() + 12, words.begin() + 12);
}

/// How many frames are in the database already, where readers look for them: the word behind the two headers.
std::uint32_t copied_frames(const volatile void* memory) {
  return static_cast<const volatile std::uint32_t*>(memory)[2 * sizeof(LogIndexHeader) / sizeof(std::uint32_t)];
}

/// Where the frame behind so many others begins in the log.
sqlite3_int64 frame_offset(std::uint32_t frames) { return kLogHeaderBytes + sqlite3_int64{frames} * kFrameBytes; }

}  // namespace

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
  for (sqlite3_stmt* statement : statements_) sqlite3_finalize(statement);
  sqlite3_close(db_);
}

Result<void> Database::open() {
  TRY_VOID(open_file());
  TRY_VOID(configure());
  TRY(const std::int64_t version, check_identity());
  TRY_VOID(check_tables(version));
  files_ = opened_files(database_file(), log_file());
  return {};
}

Result<void> Database::open_file() {
  // The caller has resolved the path: a link put there since is not ours to follow.
  constexpr int kFlags = SQLITE_OPEN_READWRITE | SQLITE_OPEN_NOMUTEX | SQLITE_OPEN_EXRESCODE | SQLITE_OPEN_NOFOLLOW |
                         SQLITE_OPEN_PRIVATECACHE;
  const int code = sqlite3_open_v2(path_.c_str(), &db_, kFlags, croft_vfs());
  if (code != SQLITE_OK) return fail(failure(code, "open"));
  believe_pages(db_, belief_);
  return {};
}

Result<void> Database::configure() {
  sqlite3_busy_handler(db_, &Database::wait_for_others, this);
  sqlite3_limit(db_, SQLITE_LIMIT_LENGTH, kValueBytesMax);
  sqlite3_wal_hook(db_, &Database::note_log_pages, this);  // replaces the hook that checkpoints automatically
  const bool switched = switch_to(db_, SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1) &&
                        switch_to(db_, SQLITE_DBCONFIG_TRUSTED_SCHEMA, 0) &&
                        switch_to(db_, SQLITE_DBCONFIG_ENABLE_TRIGGER, 0) &&
                        switch_to(db_, SQLITE_DBCONFIG_ENABLE_VIEW, 0) && switch_to(db_, SQLITE_DBCONFIG_DEFENSIVE, 1);
  if (!switched) return fail(wrong(ErrorCode::internal, "SQLite refuses a switch that Croft needs"));
  int keep_log = 1;
  sqlite3_file_control(db_, "main", SQLITE_FCNTL_PERSIST_WAL, &keep_log);
  int keeps_log = -1;
  sqlite3_file_control(db_, "main", SQLITE_FCNTL_PERSIST_WAL, &keeps_log);
  sqlite3_int64 mapped_bytes = 0;
  sqlite3_file_control(db_, "main", SQLITE_FCNTL_MMAP_SIZE, &mapped_bytes);
  sqlite3_int64 mapped_bytes_now = -1;
  sqlite3_file_control(db_, "main", SQLITE_FCNTL_MMAP_SIZE, &mapped_bytes_now);
  if (keeps_log != 1 || mapped_bytes_now != 0) {
    return fail(wrong(ErrorCode::internal, "SQLite refuses to keep the log or to leave the file unmapped"));
  }
  if (mode_ == Mode::alone) {
    TRY_VOID(check_setting("locking_mode=EXCLUSIVE", "exclusive"));
  }
  return {};
}

Result<void> Database::check_setting(const std::string& pragma, std::string_view expected) {
  TRY(const auto value, ask("PRAGMA " + pragma));
  if (value == expected) return {};
  return fail(wrong(ErrorCode::internal, fmt::format("SQLite answers {} to PRAGMA {}, not {}",
                                                     value.value_or("nothing"), pragma, expected)));
}

Result<std::int64_t> Database::check_identity() {
  // The first statement that reads the file: what is damaged at its start shows here.
  TRY(const auto application, ask("PRAGMA application_id"));
  if (application != std::to_string(kApplicationId)) {
    return fail(wrong(ErrorCode::corrupt, "it is a database of another program; correct the path of the store"));
  }
  TRY(const auto version, ask("PRAGMA user_version"));
  const std::int64_t number = std::strtoll(version.value_or("0").c_str(), nullptr, 10);
  if (number > kSchemaVersion) return fail(newer_version_of(path_, number));
  if (number < 1) return fail(wrong(ErrorCode::corrupt, "its tables have no version; restore it from a backup"));
  if (number >= kVersionWithPageSums && !has_page_sums()) {
    return fail(wrong(ErrorCode::corrupt, "its pages lack the room for checksums; restore it from a backup"));
  }
  // Another journal mode would mean that somebody changed the file; writing in that mode is not what was tested.
  TRY(const auto journal, ask("PRAGMA journal_mode"));
  if (journal != "wal") {
    return fail(wrong(ErrorCode::corrupt, fmt::format("its journal mode is {}, not wal; set it back with "
                                                      "\"PRAGMA journal_mode=wal\"",
                                                      journal.value_or("unknown"))));
  }
  TRY_VOID(ask("PRAGMA synchronous=FULL"));
  for (const auto& [pragma, expected] : {std::pair{"synchronous", "2"}, std::pair{"wal_autocheckpoint", "0"},
                                         std::pair{"secure_delete=OFF", "0"}, std::pair{"journal_size_limit", "-1"}}) {
    TRY_VOID(check_setting(pragma, expected));
  }
  // A page that is written to the log twice in one transaction has a wrong checksum there until the commit.
  TRY_VOID(ask("PRAGMA cache_spill=OFF"));
  return number;
}

/// A trigger, a view, a constraint or an index on an expression would make of our statements what somebody else wrote.
Result<void> Database::check_tables(std::int64_t version) {
  TRY(const auto found, ask(schema_question()));
  const std::string text = found.value_or("");
  const std::size_t blank = text.find(' ');
  if (blank == std::string::npos || !is_schema_of(version, text.substr(0, blank))) {
    const auto stranger = ask(strangers_question());
    return fail(
        wrong(ErrorCode::corrupt,
              fmt::format("it has tables, views, triggers or indexes that Croft did not make{0}; restore it from "
                          "a backup, or take its records along with \"croft --store sqlite:{1} store restore {1} "
                          "--force --cni-cache /var/lib/cni\"",
                          stranger && *stranger ? fmt::format(" ({})", net::echo(**stranger)) : "", path_)));
  }
  counters_page_ = static_cast<std::uint32_t>(std::strtoul(text.c_str() + blank, nullptr, 10));
  return {};
}

std::optional<std::int64_t> Database::revision_in_file(std::int64_t expected) {
  // It is compared, not handed out.
  believe_pages(db_, PageBelief::copied_too);
  const auto found = store::revision_in_file(database_file(), counters_page_, expected);
  believe_pages(db_, belief_);
  return found;
}

Error Database::wrong(ErrorCode code, std::string what) const {
  return {code, fmt::format("cannot open {}: {}", path_, what), {}};
}

Error Database::failure(int code, std::string_view doing) {
  SqliteFailure failure = failure_of(db_, code, doing, path_);
  disk_failed_ = disk_failed_ || failure.disk_failed;
  last_call_was_refused_ = failure.refused;
  met_damage_ = met_damage_ || failure.damage;
  met_page_without_sum_ = met_page_without_sum_ || failure.no_sum;
  return std::move(failure.error);
}

Result<bool> Database::lacks_page_sums() {
  if (!has_page_sums()) return false;
  bool lacks = false;
  const int code = look_for_missing_page_sums(db_, lacks);
  if (code != SQLITE_OK) return fail(failure(code, "read"));
  return lacks;
}

Result<void> Database::give_missing_page_sums() {
  if (is_read_only()) return fail(failure(SQLITE_READONLY, "write"));
  int code = store::give_missing_page_sums(db_);
  for (int i = 0; code == SQLITE_BUSY && wait_for_others(this, i) != 0; ++i) {
    code = store::give_missing_page_sums(db_);
  }
  if (code != SQLITE_OK) return fail(failure(code, "write"));
  return {};
}

Result<std::unique_ptr<Statement>> Database::prepare(Sql sql) {
  sqlite3_stmt*& statement = statements_[static_cast<std::size_t>(sql)];
  if (statement == nullptr) {
    const std::string_view text = text_of(sql);
    const int code = sqlite3_prepare_v3(db_, text.data(), static_cast<int>(text.size()), SQLITE_PREPARE_PERSISTENT,
                                        &statement, nullptr);
    if (code == SQLITE_ERROR) {  // our own texts are right, so the tables are not
      return fail(wrong(ErrorCode::corrupt, fmt::format("{}; restore it from a backup", sqlite3_errmsg(db_))));
    }
    if (code != SQLITE_OK) return fail(failure(code, "read"));
  }
  return std::make_unique<Statement>(*this, statement);
}

Result<void> Database::run(Sql sql) {
  TRY(const auto statement, prepare(sql));
  TRY_VOID(statement->step());
  return {};
}

Result<std::int64_t> Database::number(Sql sql) {
  TRY(const auto statement, prepare(sql));
  TRY(const bool row, statement->step());
  if (!row) return fail(counter_is_missing());
  return statement->number(0);
}

Error Database::counter_is_missing() const {
  return wrong(ErrorCode::corrupt, "a counter is missing; restore it from a backup");
}

void Database::expect_history(const CommitMark& seen) {
  seen_ = seen;
  has_looked_at_history_ = false;
}

Result<void> Database::look_at_history() {
  has_looked_at_history_ = true;
  auto newest = newest_commit(*this, seen_);
  met_other_history_ = met_other_history_ || (!newest && newest.error().code == ErrorCode::conflict);
  if (!newest) return fail(std::move(newest).error());
  seen_ = *newest;
  return {};
}

Result<std::int64_t> Database::last_revision() {
  TRY(const std::int64_t last, number(Sql::last_revision));
  if (last >= 0 && last < kRevisionMax) return last;
  return fail(ErrorCode::corrupt, fmt::format("{0}: its last revision is {1}, which no register reaches; nothing is "
                                              "handed out. Restore a backup with \"croft --store sqlite:{0} store "
                                              "restore BACKUP\"",
                                              path_, last));
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

Revision Database::told(std::int64_t stored) const {
  return Revision((std::uint64_t{generation_} << kGenerationShift) | static_cast<std::uint64_t>(stored));
}

std::int64_t Database::stored(Revision told) const {
  return static_cast<std::int64_t>(told.value & ((std::uint64_t{1} << kGenerationShift) - 1));
}

Result<bool> Database::is_current() {
  LogIndexHeader header;
  bool knows_pages = false;
  const bool has_index = mode_ == Mode::shared && files_.index_memory != nullptr;
  if (has_index) {
    TRY(const auto index, os::file_status(index_path_));
    // A look into memory behind the end of a file that was cut would be deadly.
    if (!index || index->id != files_.index || index->bytes < kIndexRegionBytes) return false;
    knows_pages = read_header(files_.index_memory, header) && header.is_set != 0 && header.page_bytes == kPageBytes;
  }
  // Pages are allocated before the commit that counts them (room.h), so the file is looked at after the count.
  TRY(const auto database, os::file_status(path_));
  if (!database || database->id != files_.database) return false;
  TRY(const auto log, os::file_status(log_path_));
  if (log_file() != nullptr && (!log || log->id != files_.log)) return false;
  if (knows_pages && database->bytes / kPageBytes < header.pages && !log_has_pages_behind(database->bytes))
    return false;
  if (expected_in_file_ > 0) {
    const auto in_file = revision_in_file(expected_in_file_);
    if (in_file && *in_file < expected_in_file_) return false;
  }
  return !has_index || log_is_as_indexed();
}

bool Database::log_has_pages_behind(std::uint64_t file_bytes) {
  sqlite3_file* const log = log_file();
  const auto present = static_cast<std::uint32_t>(file_bytes / kPageBytes);
  // The first page was synced before there was a log, and SQLite removes a log beside an empty file.
  if (log == nullptr || present == 0) return false;
  LogIndexHeader before;
  const std::uint32_t copied = copied_frames(files_.index_memory);
  if (!read_header(files_.index_memory, before) || before.pages <= present) return true;
  sqlite3_int64 log_bytes = 0;
  if (log->pMethods->xFileSize(log, &log_bytes) != SQLITE_OK || frame_offset(before.last_frame) > log_bytes ||
      copied > before.last_frame) {
    return false;
  }
  std::set<std::uint32_t> in_log;
  for (std::uint32_t frame = copied; frame < before.last_frame; ++frame) {
    std::array<std::uint8_t, 4> number{};
    if (log->pMethods->xRead(log, number.data(), 4, frame_offset(frame)) != SQLITE_OK) return false;
    const std::uint32_t page = big_endian(number.data());
    if (page > present && page <= before.pages) in_log.insert(page);
  }
  LogIndexHeader after;
  if (!read_header(files_.index_memory, after) || std::memcmp(&before, &after, sizeof before) != 0 ||
      copied_frames(files_.index_memory) != copied) {
    return true;  // somebody commits or copies just now, and has looked himself
  }
  const std::uint64_t lacking = before.pages - present - in_log.size();
  if (lacking == 0) return true;
  // A page that was taken and given back by one commit is in neither file, nor missed. Any other would be read as
  // zeros, which are no page of a table and no record.
  const auto unused = number(Sql::free_page_count);
  return unused && lacking <= static_cast<std::uint64_t>(*unused);
}

bool Database::log_is_as_indexed() {
  sqlite3_file* const log = log_file();
  LogIndexHeader before;
  if (log == nullptr || !read_header(files_.index_memory, before) || before.is_set == 0) return true;
  if (before.last_frame == 0 || before.page_bytes != kPageBytes) return true;
  const sqlite3_int64 at = frame_offset(before.last_frame - 1);
  std::array<std::uint8_t, kFrameHeaderBytes> frame{};
  const int code = log->pMethods->xRead(log, frame.data(), kFrameHeaderBytes, at);
  const bool ends_so = code == SQLITE_OK && std::memcmp(frame.data() + 8, before.salt.data(), 8) == 0 &&
                       big_endian(frame.data() + 16) == before.frame_checksum[0] &&
                       big_endian(frame.data() + 20) == before.frame_checksum[1];
  const std::uint32_t copied = copied_frames(files_.index_memory);
  const bool finds_all = ends_so &&
                         frames_.are_found(files_.index_memory, *log, before.salt, before.last_frame, copied) &&
                         (before.last_frame > IndexedFrames::kFramesMax || has_copied(*log, copied));
  LogIndexHeader after;
  if (!read_header(files_.index_memory, after) || std::memcmp(&before, &after, sizeof before) != 0) return true;
  return finds_all;
}

bool Database::has_copied(sqlite3_file& log, std::uint32_t frames) {
  if (frames == looked_at_copied_) return true;
  // A page with a newer frame behind those that are copied is left as it is in the file.
  const auto frame = frames_.newest(counters_page_, IndexedFrames::kFramesMax);
  if (frame && *frame <= frames) {
    std::array<std::uint8_t, kPageBytes> page{};
    if (log.pMethods->xRead(&log, page.data(), kPageBytes, frame_offset(*frame - 1) + kFrameHeaderBytes) != SQLITE_OK) {
      return false;
    }
    const auto counters = counters_in_page(page);
    const auto last = counters ? counters->find(1) : std::map<std::int64_t, std::int64_t>::const_iterator();
    if (!counters || last == counters->end()) return false;
    const auto in_file = revision_in_file(last->second);
    if (in_file && *in_file < last->second) return false;
  }
  looked_at_copied_ = frames;
  return true;
}

Result<bool> Database::checkpoint() {
  int in_log = 0;
  int copied = 0;
  const int code = sqlite3_wal_checkpoint_v2(db_, "main", SQLITE_CHECKPOINT_PASSIVE, &in_log, &copied);
  if (code == SQLITE_BUSY) return false;
  if (code != SQLITE_OK) return fail(failure(code, "checkpoint"));
  return in_log == copied;
}

Result<void> Database::begin_log_anew(std::int64_t in_file) {
  TRY(const auto statement, prepare(Sql::begin_log_anew));
  statement->bind(1, in_file);
  TRY_VOID(statement->step());
  return {};
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

}  // namespace croft::store
