#include "history/door/history_file.h"

#include <algorithm>
#include <limits>
#include <string_view>
#include <utility>

#include <fmt/format.h>
#include <sqlite3.h>

#include "base/hex.h"
#include "base/net/u128.h"
#include "base/texts.h"
#include "os/clock.h"
#include "os/files.h"
#include "store/sqlite/database.h"

namespace croft::edge {
namespace {

using core::history::Holder;
using core::history::Holding;
using core::history::Moment;

/// In the header of the file: "Crfh".
constexpr std::int64_t kApplicationId = 0x43726668;
constexpr std::int64_t kTablesVersion = 1;
constexpr int kBusyMs = 5000;
/// Texts that are remembered with their ids.
constexpr std::size_t kIdsMax = 100'000;
/// Rows that one write deletes at most, where it does not add more: of old ones, and of those above the bound.
constexpr std::int64_t kDropOldMax = 1000, kDropMax = 250;
/// Somebody waits for what a range held.
constexpr std::chrono::seconds kRangeTime{2};
constexpr int kStepsBetweenLooks = 10'000;

// The columns of a holding besides its address, times and texts; the same in both tables (docs/formats/history.md).
constexpr const char* kHolderColumns =
    "pool INTEGER, node INTEGER, namespace INTEGER, pod_front INTEGER, pod_back TEXT, uid, network INTEGER, container, "
    "interface INTEGER, handle TEXT";
constexpr const char* kHolderNames =
    "pool, node, namespace, pod_front, pod_back, uid, network, container, interface, handle";

// The last moment before a time is one of milliseconds, and the first behind it.
std::int64_t ms_of(WallTime time) {
  return std::chrono::floor<std::chrono::milliseconds>(time.time_since_epoch()).count();
}
std::int64_t ms_behind(WallTime time) {
  return std::chrono::ceil<std::chrono::milliseconds>(time.time_since_epoch()).count();
}
WallTime time_of(std::int64_t ms) { return WallTime{std::chrono::milliseconds(ms)}; }

std::string bytes_of(const net::Address& address) {
  const net::U128 value = address.value();
  std::string bytes;
  const int size = net::bit_length(address.family()) / 8;
  for (int i = size - 1; i >= 0; --i) bytes.push_back(static_cast<char>((value >> (8 * i)).lo & 0xff));
  return bytes;
}

net::Address address_of(std::string_view bytes) {
  net::U128 value;
  for (const char c : bytes) value = value << 8 | net::U128{static_cast<std::uint8_t>(c)};
  return net::Address::from(bytes.size() == 4 ? net::Family::v4 : net::Family::v6, value);
}

/// The names of a ReplicaSet's pods differ behind the last hyphen: the front is one text for all of them.
std::pair<std::string, std::string> parts_of(const std::string& pod) {
  const std::size_t hyphen = pod.rfind('-');
  if (hyphen == std::string::npos) return {"", pod};
  return {pod.substr(0, hyphen + 1), pod.substr(hyphen + 1)};
}

/// Rows of `ended`: of each address from ?1 to ?2 the two that began last before the time ?3, and the two that began
/// first behind it. Holders of one address follow one another, so that no others touch the time; where the second last
/// began in times that came twice, all of those do. The index finds them however many there are.
constexpr const char* kBesideMoment =
    "WITH RECURSIVE one(address) AS (SELECT min(address) FROM ended WHERE address BETWEEN ?1 AND ?2 UNION ALL SELECT "
    "(SELECT min(address) FROM ended WHERE address > one.address AND address <= ?2) FROM one WHERE one.address IS NOT "
    "NULL), beside AS (SELECT e.* FROM one CROSS JOIN ended e WHERE e.address = one.address AND e.begin >= ifnull("
    "(SELECT min(second, ifnull((SELECT min(since) FROM gaps WHERE twice AND since <= second AND until >= second), "
    "second)) FROM (SELECT begin AS second FROM ended WHERE address=one.address AND begin <= ?3 ORDER BY begin DESC "
    "LIMIT 1 OFFSET 1)), 0) AND "
    "e.begin <= ifnull((SELECT begin FROM ended WHERE address=one.address AND begin >= ?3 ORDER BY begin LIMIT 1 "
    "OFFSET 1), 9223372036854775807)) ";

/// Other texts than fronts of pods' names that end with a hyphen are kept with this behind it: fronts are deleted.
std::string no_front(const std::string& text) { return text.ends_with('-') ? text + "/" : text; }

constexpr const char* kAlive = "SELECT value FROM about WHERE id=2";

constexpr std::size_t kUuidHyphens[] = {8, 13, 18, 23};

/// The bytes of a UUID; nothing for other texts.
std::optional<std::string> packed_uuid(const std::string& text) {
  std::string digits = text;
  for (const std::size_t at : kUuidHyphens) {
    if (text.size() != 36 || text[at] != '-') return std::nullopt;
  }
  std::erase(digits, '-');
  const auto bytes = bytes_of_hex<16>(digits);
  return bytes ? std::optional(std::string(bytes->begin(), bytes->end())) : std::nullopt;
}

/// The same of the 64 digits that name a container.
std::optional<std::string> packed_container(const std::string& text) {
  const auto bytes = bytes_of_hex<32>(text);
  return bytes ? std::optional(std::string(bytes->begin(), bytes->end())) : std::nullopt;
}

std::string unpacked(std::string_view bytes) {
  std::string text = hex_of(bytes);
  if (bytes.size() != 16) return text;
  for (const std::size_t at : kUuidHyphens) text.insert(at, "-");
  return text;
}

}  // namespace

/// A compiled statement with its values, which is kept for the next time. One of each text at a time.
class HistoryFile::Query {
 public:
  Query(HistoryFile& file, const std::string& sql) : file_(file), statement_(file.statements_[sql]) {
    if (statement_ != nullptr) return;
    code_ = sqlite3_prepare_v2(file.db_, sql.c_str(), -1, &statement_, nullptr);
    file.statements_[sql] = statement_;
  }
  ~Query() {
    sqlite3_reset(statement_);
    sqlite3_clear_bindings(statement_);
  }
  Query(const Query&) = delete;
  Query& operator=(const Query&) = delete;

  Query& add(std::int64_t value) {
    if (code_ == SQLITE_OK) code_ = sqlite3_bind_int64(statement_, ++bound_, value);
    return *this;
  }
  Query& add(double value) {
    if (code_ == SQLITE_OK) code_ = sqlite3_bind_double(statement_, ++bound_, value);
    return *this;
  }
  Query& add_text(const std::string& value) {
    const auto size = static_cast<int>(value.size());
    if (code_ == SQLITE_OK && value.empty()) {
      code_ = sqlite3_bind_null(statement_, ++bound_);
    } else if (code_ == SQLITE_OK) {
      code_ = sqlite3_bind_text(statement_, ++bound_, value.data(), size, SQLITE_TRANSIENT);
    }
    return *this;
  }
  Query& add_bytes(const std::string& value) {
    const auto size = static_cast<int>(value.size());
    if (code_ == SQLITE_OK) code_ = sqlite3_bind_blob(statement_, ++bound_, value.data(), size, SQLITE_TRANSIENT);
    return *this;
  }
  Query& add_packed(const std::optional<std::string>& bytes, const std::string& text) {
    return bytes ? add_bytes(*bytes) : add_text(text);
  }

  /// True: a row is there.
  [[nodiscard]] Result<bool> step() {
    if (code_ == SQLITE_OK) code_ = sqlite3_step(statement_);
    const int code = std::exchange(code_, SQLITE_OK);
    if (code == SQLITE_ROW || code == SQLITE_DONE) return code == SQLITE_ROW;
    return fail(file_.error_of(code, "use"));
  }
  [[nodiscard]] Result<void> run() {
    TRY_VOID(step());
    return {};
  }
  [[nodiscard]] std::int64_t number(int column) const { return sqlite3_column_int64(statement_, column); }
  [[nodiscard]] bool is_null(int column) const { return sqlite3_column_type(statement_, column) == SQLITE_NULL; }
  [[nodiscard]] double real(int column) const { return sqlite3_column_double(statement_, column); }
  [[nodiscard]] std::string text(int column) const {
    const void* const data = sqlite3_column_blob(statement_, column);
    const auto size = static_cast<std::size_t>(sqlite3_column_bytes(statement_, column));
    return data == nullptr ? std::string() : std::string(static_cast<const char*>(data), size);
  }
  [[nodiscard]] std::string unpacked_text(int column) const {
    const bool is_packed = sqlite3_column_type(statement_, column) == SQLITE_BLOB;
    return is_packed ? unpacked(text(column)) : text(column);
  }

 private:
  HistoryFile& file_;
  sqlite3_stmt* statement_;
  int code_ = SQLITE_OK;
  int bound_ = 0;
};

HistoryFile::~HistoryFile() {
  for (const auto& [sql, statement] : statements_) sqlite3_finalize(statement);
  sqlite3_close(db_);
}

Result<std::unique_ptr<HistoryFile>> HistoryFile::open(const std::string& path, const HistoryBounds& bounds) {
  std::unique_ptr<HistoryFile> file(new HistoryFile(path, bounds));
  const os::SystemClock clock;
  const auto locked = file->lock_.lock_within(clock, std::chrono::nanoseconds(0));
  if (!locked && locked.error().code == ErrorCode::deadline_exceeded) {
    return fail(ErrorCode::deadline_exceeded, "another process records in {}: name another file here", path);
  }
  if (!locked) return fail(locked.error());
  // SQLite would make it, and what it keeps beside it, for all to read.
  const auto made = os::create_file(path);
  if (!made && made.error().code != ErrorCode::already_exists) return fail(made.error());
  TRY_VOID(file->open(SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE));
  TRY_VOID(file->make_tables());
  TRY(file->alive_, file->number(kAlive));
  return file;
}

Result<std::unique_ptr<HistoryFile>> HistoryFile::open_to_read(const std::string& path) {
  TRY(const auto status, os::file_status(path));
  if (!status) return fail(ErrorCode::not_found, "there is no history {}", path);
  std::unique_ptr<HistoryFile> file(new HistoryFile(path, {}));
  TRY_VOID(file->open(SQLITE_OPEN_READONLY));
  return file;
}

Error HistoryFile::error_of(int code, const char* doing) const {
  const Error error = store::failure_of(db_, code, doing, path_).error;
  if (error.code != ErrorCode::corrupt) return error;
  return make_error(error.code, "the history {0} is damaged: move it, {0}-wal and {0}-shm away, and another one begins",
                    path_);
}

Result<void> HistoryFile::open(int flags) {
  constexpr int kFlags = SQLITE_OPEN_NOMUTEX | SQLITE_OPEN_EXRESCODE | SQLITE_OPEN_PRIVATECACHE;
  const int code = sqlite3_open_v2(path_.c_str(), &db_, flags | kFlags, nullptr);
  if (code != SQLITE_OK) return fail(error_of(code, "open"));
  sqlite3_busy_timeout(db_, kBusyMs);
  TRY(const std::int64_t application, number("PRAGMA application_id"));
  TRY(const std::int64_t version, number("PRAGMA user_version"));
  TRY(const std::int64_t tables, number("SELECT count(*) FROM sqlite_master"));
  const bool is_new = application == 0 && version == 0 && tables == 0;
  if (is_new && (flags & SQLITE_OPEN_CREATE) == 0) {
    return fail(ErrorCode::not_found, "the history {} is being made", path_);
  }
  if (!is_new && application != kApplicationId) {
    return fail(ErrorCode::corrupt, "{} is no history: name another file", path_);
  }
  if (version > kTablesVersion) {
    return fail(ErrorCode::newer_version, "the tables of {} have version {}, this program knows {}: upgrade Croft here",
                path_, version, kTablesVersion);
  }
  return {};
}

Result<void> HistoryFile::make_tables() {
  TRY_VOID(number("PRAGMA journal_mode=WAL"));
  // The last commits may be lost with the power: the history has a gap then.
  TRY_VOID(run("PRAGMA synchronous=NORMAL"));
  TRY_VOID(run("PRAGMA temp_store=MEMORY"));
  TRY_VOID(run("BEGIN IMMEDIATE"));
  for (const std::string& sql : {
           fmt::format("PRAGMA application_id={}", kApplicationId),
           fmt::format("PRAGMA user_version={}", kTablesVersion),
           // 1: the begin of the history; 2: the time until which it is whole. Both in milliseconds.
           std::string("CREATE TABLE IF NOT EXISTS about(id INTEGER PRIMARY KEY, value INTEGER)"),
           std::string("CREATE TABLE IF NOT EXISTS texts(id INTEGER PRIMARY KEY, text TEXT NOT NULL UNIQUE)"),
           fmt::format("CREATE TABLE IF NOT EXISTS open(address BLOB PRIMARY KEY, print INTEGER, begin INTEGER, "
                       "begin_width INTEGER, {}) WITHOUT ROWID",
                       kHolderColumns),
           fmt::format("CREATE TABLE IF NOT EXISTS ended(id INTEGER PRIMARY KEY, address BLOB, begin INTEGER, "
                       "begin_width INTEGER, lasted INTEGER, end_width INTEGER, {})",
                       kHolderColumns),
           // All that the map of an earlier time asks for.
           std::string("CREATE INDEX IF NOT EXISTS ended_by_address ON ended(address, begin, begin_width, lasted, "
                       "end_width)"),
           std::string("CREATE INDEX IF NOT EXISTS ended_by_pod ON ended(pod_front, pod_back)"),
           std::string("CREATE INDEX IF NOT EXISTS open_by_pod ON open(pod_front, pod_back)"),
           std::string("CREATE INDEX IF NOT EXISTS ended_by_node ON ended(node)"),
           std::string("CREATE INDEX IF NOT EXISTS open_by_node ON open(node, begin)"),
           std::string("CREATE TABLE IF NOT EXISTS gaps(since INTEGER PRIMARY KEY, until INTEGER, twice INTEGER)"),
           std::string("CREATE TABLE IF NOT EXISTS unseen(id INTEGER PRIMARY KEY, first BLOB, last BLOB, "
                       "since INTEGER, until INTEGER)"),
           std::string("CREATE INDEX IF NOT EXISTS unseen_by_block ON unseen(first, since)"),
           std::string("CREATE TABLE IF NOT EXISTS uses(at INTEGER, pool INTEGER, used REAL, room REAL, "
                       "PRIMARY KEY(at, pool)) WITHOUT ROWID"),
       }) {
    TRY_VOID(run(sql.c_str()));
  }
  return run("COMMIT");
}

Result<void> HistoryFile::run(const char* sql) {
  Query query(*this, sql);
  return query.run();
}

Result<std::int64_t> HistoryFile::number(const char* sql) {
  Query query(*this, sql);
  TRY(const bool is_there, query.step());
  return is_there ? query.number(0) : 0;
}

// ---------------------------------------------------------------- writing

Result<engine::HistoryLog::State> HistoryFile::state() {
  State state;
  TRY(const std::int64_t alive, number(kAlive));
  if (alive != 0) state.alive = time_of(alive);
  // Rows are added in the order of their ends, but for a clock that was set back.
  TRY(const std::int64_t latest,
      number("SELECT max(ifnull((SELECT max(begin) FROM open), 0), ifnull((SELECT max(begin + lasted) FROM (SELECT "
             "begin, lasted FROM ended ORDER BY id DESC LIMIT 1000)), 0))"));
  state.latest = time_of(latest);
  Query query(*this, "SELECT address, print FROM open ORDER BY address");
  for (;;) {
    TRY(const bool is_there, query.step());
    if (!is_there) return state;
    state.open.emplace(address_of(query.text(0)), static_cast<core::history::Print>(query.number(1)));
  }
}

Result<void> HistoryFile::write(const engine::HistoryEntry& entry) {
  TRY_VOID(run("BEGIN IMMEDIATE"));
  auto done = write_all(entry);
  if (done) done = run("COMMIT");
  if (done) {
    if (entry.alive) alive_ = ms_of(*entry.alive);
    return {};
  }
  static_cast<void>(run("ROLLBACK"));
  ids_.clear();  // those that were made are not there
  return done;
}

Result<void> HistoryFile::write_all(const engine::HistoryEntry& entry) {
  TRY(const std::int64_t written, number(kAlive));
  if (written != alive_) return fail(ErrorCode::unavailable, "somebody else wrote {}: it is opened anew", path_);
  for (const core::history::Changes& changes : entry.changes) {
    for (const auto& ended : changes.ended) TRY_VOID(write_ended(ended));
    for (const auto& begun : changes.begun) TRY_VOID(write_begun(begun));
  }
  if (entry.gap) {
    Query gap(*this,
              "INSERT INTO gaps VALUES(?, ?, ?) ON CONFLICT(since) DO UPDATE SET until=max(until, excluded.until), "
              "twice=max(twice, excluded.twice)");
    const std::int64_t until = ms_behind(entry.gap->until);
    TRY_VOID(gap.add(ms_of(entry.gap->from)).add(until).add(std::int64_t{entry.gap->is_twice}).run());
    Query over(*this, "UPDATE unseen SET until=? WHERE until=?");
    if (entry.begins) TRY_VOID(over.add(until).add(ms_of(core::history::kNotOver)).run());
  }
  for (const engine::UnseenBlock& unseen : entry.unseen) TRY_VOID(write_unseen(unseen));
  TRY_VOID(write_uses(entry));
  if (!entry.alive) return {};
  const std::int64_t alive = ms_of(*entry.alive);
  Query since(*this, "INSERT OR IGNORE INTO about VALUES(1, ?)");
  TRY_VOID(since.add(alive).run());
  Query until(*this, "INSERT OR REPLACE INTO about VALUES(2, ?)");
  TRY_VOID(until.add(alive).run());
  std::size_t added = entry.unseen.size();
  for (const auto& changes : entry.changes) added += changes.ended.size() + changes.begun.size();
  return drop_some(*entry.alive, static_cast<std::int64_t>(added));
}

Result<void> HistoryFile::write_unseen(const engine::UnseenBlock& unseen) {
  const std::string first = bytes_of(unseen.block.first());
  // It is over where it was not yet.
  Query over(*this, "DELETE FROM unseen WHERE first=? AND until=?");
  TRY_VOID(over.add_bytes(first).add(ms_of(core::history::kNotOver)).run());
  Query query(*this, "INSERT INTO unseen(first, last, since, until) VALUES(?, ?, ?, ?)");
  query.add_bytes(first).add_bytes(bytes_of(unseen.block.last()));
  return query.add(ms_of(unseen.from)).add(ms_behind(unseen.until)).run();
}

Result<void> HistoryFile::write_uses(const engine::HistoryEntry& entry) {
  if (entry.uses.empty()) return {};
  for (const engine::PoolUse& use : entry.uses) {
    TRY(const std::int64_t pool, id_of(use.pool));
    Query query(*this, "INSERT OR REPLACE INTO uses VALUES(?, ?, ?, ?)");
    TRY_VOID(query.add(ms_of(entry.at)).add(pool).add(use.used).add(use.room).run());
  }
  Query old(*this, "DELETE FROM uses WHERE at < ?");
  return old.add(ms_of(entry.at - kForecastPast)).run();
}

Result<std::int64_t> HistoryFile::id_of(const std::string& text) {
  if (text.empty()) return 0;
  if (const auto known = ids_.find(text); known != ids_.end()) return known->second;
  if (ids_.size() >= kIdsMax) ids_.clear();
  Query insert(*this, "INSERT OR IGNORE INTO texts(text) VALUES(?)");
  TRY_VOID(insert.add_text(text).run());
  Query select(*this, "SELECT id FROM texts WHERE text=?");
  TRY(const bool is_there, select.add_text(text).step());
  if (!is_there) return fail(ErrorCode::corrupt, "{} loses a text: name another file", path_);
  return ids_[text] = select.number(0);
}

Result<void> HistoryFile::write_begun(const core::history::Begun& begun) {
  const Holding& holding = begun.holding;
  const Holder& holder = holding.holder;
  const auto [front, back] = parts_of(holder.pod);
  Query query(*this, "INSERT OR REPLACE INTO open VALUES(?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)");
  query.add_bytes(bytes_of(holding.address)).add(static_cast<std::int64_t>(begun.print));
  query.add(ms_behind(holding.begin.by)).add(ms_behind(holding.begin.by) - ms_of(holding.begin.after));
  for (const std::string* text : {&holding.pool, &holder.node, &holder.namespace_name, &front}) {
    TRY(const std::int64_t id, id_of(*text));
    query.add(id);
  }
  query.add_text(back).add_packed(packed_uuid(holder.uid), holder.uid);
  TRY(const std::int64_t network, id_of(no_front(holder.network)));
  query.add(network).add_packed(packed_container(holder.container), holder.container);
  TRY(const std::int64_t interface_name, id_of(no_front(holder.interface_name)));
  return query.add(interface_name).add_text(holder.handle).run();
}

Result<void> HistoryFile::write_ended(const core::history::Ended& ended) {
  const std::string address = bytes_of(ended.address);
  const std::int64_t by = ms_behind(ended.end.by);
  Query copy(*this, fmt::format("INSERT INTO ended(address, begin, begin_width, lasted, end_width, {0}) "
                                "SELECT address, begin, begin_width, max(?, begin) - begin, ?, {0} FROM open WHERE "
                                "address=?",
                                kHolderNames));
  TRY_VOID(copy.add(by).add(by - ms_of(ended.end.after)).add_bytes(address).run());
  Query gone(*this, "DELETE FROM open WHERE address=?");
  return gone.add_bytes(address).run();
}

Result<void> HistoryFile::drop_some(WallTime now, std::int64_t added) {
  const std::int64_t oldest = ms_of(now - bounds_.retention);
  TRY(const std::int64_t bytes, number("SELECT (SELECT page_count FROM pragma_page_count) - (SELECT freelist_count "
                                       "FROM pragma_freelist_count)"));
  TRY(const std::int64_t page, number("PRAGMA page_size"));
  TRY_VOID(drop_ended(std::max(kDropOldMax, added), oldest));
  if (bytes * page > bounds_.bytes_max) {
    TRY_VOID(drop_ended(std::max(kDropMax, added), std::numeric_limits<std::int64_t>::max()));
  }
  Query since(*this, "UPDATE about SET value = max(value, ?) WHERE id=1");
  TRY_VOID(since.add(oldest).run());
  // An earlier time may still have an answer, of somebody who held on, and only times that came twice spoil that.
  TRY_VOID(
      run("DELETE FROM unseen WHERE id < (SELECT min(id) FROM unseen) + 1000 AND until <= (SELECT value FROM about "
          "WHERE id=1)"));
  return run(
      "DELETE FROM gaps WHERE since IN (SELECT since FROM gaps WHERE NOT twice ORDER BY since LIMIT 100) AND until <= "
      "(SELECT value FROM about WHERE id=1)");
}

Result<void> HistoryFile::drop_ended(std::int64_t rows, std::int64_t before) {
  // Among the first rows: they were added in the order of their ends, but by clocks that were set.
  const std::string which = " FROM ended WHERE id < (SELECT min(id) FROM ended) + ? AND begin + lasted < ?";
  Query last(*this, "SELECT max(begin + lasted)" + which);
  TRY_VOID(last.add(rows).add(before).step());
  if (last.is_null(0)) return {};
  // The history begins with what is left.
  Query since(*this, "UPDATE about SET value = max(value, ?) WHERE id=1");
  TRY_VOID(since.add(last.number(0)).run());
  TRY_VOID(run("CREATE TEMP TABLE IF NOT EXISTS fronts(id INTEGER PRIMARY KEY)"));
  Query fronts(*this, "INSERT OR IGNORE INTO fronts SELECT pod_front" + which);
  TRY_VOID(fronts.add(rows).add(before).run());
  Query gone(*this, "DELETE" + which);
  TRY_VOID(gone.add(rows).add(before).run());
  // Jobs have names of their own each time. Other texts are few.
  TRY_VOID(
      run("DELETE FROM texts WHERE id IN (SELECT id FROM fronts WHERE NOT EXISTS (SELECT 1 FROM ended WHERE "
          "pod_front=fronts.id) AND NOT EXISTS (SELECT 1 FROM open WHERE pod_front=fronts.id))"));
  ids_.clear();
  return run("DELETE FROM fronts");
}

// ---------------------------------------------------------------- reading

Result<core::history::Reach> HistoryFile::reach() {
  TRY(const std::int64_t since, number("SELECT value FROM about WHERE id=1"));
  TRY(const std::int64_t until, number(kAlive));
  return core::history::Reach{time_of(since), time_of(until)};
}

Result<core::history::Answer> HistoryFile::holder_at(const net::Address& address, const Moment& when) {
  // One look: the recorder may write between two statements.
  TRY_VOID(run("BEGIN"));
  const auto ask = [&]() -> Result<core::history::Answer> {
    HistoryQuestion question;
    question.address = address;
    question.from = when.after;
    question.until = when.by + std::chrono::milliseconds(1);
    question.limit = 4;
    std::vector<Holding> candidates;
    TRY_VOID(take("address=?", question, true, candidates));
    TRY_VOID(take("address=?", question, false, candidates));
    TRY(const auto gap, gap_of(address, when));
    TRY(const auto reach, this->reach());
    auto answer = core::history::answer_at(candidates, gap, reach, when.after);
    if (when.after == when.by) return answer;
    const auto last = core::history::answer_at(candidates, gap, reach, when.by);
    const bool is_sure = answer.is_sure && last.is_sure;
    const std::size_t count = candidates.size();
    if (is_sure && answer.holdings.size() == count && last.holdings.size() == count) return answer;
    return core::history::Answer{std::move(candidates), false,
                                 is_sure ? "it changed in that time" : (answer.is_sure ? last : answer).known};
  };
  auto answer = ask();
  static_cast<void>(run("COMMIT"));
  return answer;
}

Result<HistoryFile::Holders> HistoryFile::holders_at(const net::Prefix& range, WallTime at, std::size_t count_max) {
  struct Limit {
    os::SystemClock clock;
    Deadline deadline = Deadline::after(clock.now(), kRangeTime);
  } limit;
  const auto is_over = [](void* given) {
    const auto& one = *static_cast<Limit*>(given);
    return one.deadline.passed(one.clock.now()) ? 1 : 0;
  };
  sqlite3_progress_handler(db_, kStepsBetweenLooks, is_over, &limit);
  // One look: a holder that ends between two statements is in neither table.
  TRY_VOID(run("BEGIN"));
  auto found = look_at(range, at, count_max);
  sqlite3_progress_handler(db_, 0, nullptr, nullptr);
  static_cast<void>(run("COMMIT"));
  if (found || !limit.deadline.passed(limit.clock.now())) return found;
  return fail(ErrorCode::invalid_argument, "{} has too long a history for one look: choose a smaller part", range);
}

Result<HistoryFile::Holders> HistoryFile::look_at(const net::Prefix& range, WallTime at, std::size_t count_max) {
  using core::history::Gap;
  const std::string first = bytes_of(range.first()), last = bytes_of(range.last());
  TRY(const auto reach, this->reach());
  TRY(const auto gaps, this->gaps(at, at));
  const auto twice = std::ranges::find_if(gaps, &Gap::is_twice);
  const auto of_all =
      twice != gaps.end() ? std::optional(*twice) : (gaps.empty() ? std::nullopt : std::optional(gaps[0]));
  struct Unseen {
    std::string first, last;
    Gap gap;
  };
  std::vector<Unseen> unseen;
  Query blocks(*this,
               "SELECT first, last, since, until FROM unseen WHERE first <= ?2 AND last >= ?1 AND length(first) = "
               "length(?1) AND since <= ?3 AND until > ?3");
  blocks.add_bytes(first).add_bytes(last).add(ms_of(at));
  for (;;) {
    TRY(const bool is_there, blocks.step());
    if (!is_there) break;
    unseen.push_back(
        {blocks.text(0), blocks.text(1), {time_of(blocks.number(2)), time_of(blocks.number(3)), false, true}});
  }
  Holders found;
  const auto nobody =
      core::history::answer_at({}, of_all || unseen.empty() ? of_all : std::optional(unseen[0].gap), reach, at);
  if (!nobody.is_sure) found.open = nobody.known;

  // Those of one address follow one another.
  std::string bytes;
  std::vector<Holding> of_address;
  const auto take_address = [&] {
    auto gap = of_all;
    const auto block =
        std::ranges::find_if(unseen, [&](const Unseen& one) { return one.first <= bytes && bytes <= one.last; });
    if (block != unseen.end() && !(gap && gap->is_twice)) gap = block->gap;
    const auto answer = core::history::answer_at(of_address, gap, reach, at);
    if (!answer.holdings.empty()) found.held.push_back({address_of(bytes), answer.is_sure});
    of_address.clear();
  };
  const bool is_in_order = !(of_all && of_all->is_twice);
  Query query(*this,
              fmt::format("{}SELECT address, begin, begin_width, NULL, 0 FROM open WHERE address BETWEEN ?1 AND ?2 AND "
                          "length(address) = length(?1) AND begin - begin_width <= ?3 UNION ALL "
                          "SELECT address, begin, begin_width, begin + lasted, end_width FROM {} WHERE address BETWEEN "
                          "?1 AND ?2 AND length(address) = length(?1) AND begin - begin_width <= ?3 AND begin + lasted "
                          "> ?3 ORDER BY 1",
                          is_in_order ? kBesideMoment : "", is_in_order ? "beside" : "ended"));
  query.add_bytes(first).add_bytes(last).add(ms_of(at));
  for (;;) {
    TRY(const bool is_there, query.step());
    if (!is_there || query.text(0) != bytes) take_address();
    if (!is_there) return found;
    if (found.held.size() >= count_max) {
      return fail(ErrorCode::invalid_argument, "more than {} addresses of {} were held then: choose a smaller part",
                  count_max, range);
    }
    bytes = query.text(0);
    Holding& one = of_address.emplace_back();
    one.begin = {time_of(query.number(1) - query.number(2)), time_of(query.number(1))};
    if (!query.is_null(3)) one.end = Moment{time_of(query.number(3) - query.number(4)), time_of(query.number(3))};
  }
}

Result<std::vector<Holding>> HistoryFile::holdings(const HistoryQuestion& question) {
  std::string where = "1";
  if (question.address) where += " AND address=?";
  if (!question.pod.empty()) where += " AND pod_back=? AND pod_front=ifnull((SELECT id FROM texts WHERE text=?), 0)";
  if (!question.namespace_name.empty()) where += " AND namespace=(SELECT id FROM texts WHERE text=?)";
  if (!question.node.empty()) where += " AND node=(SELECT id FROM texts WHERE text=?)";
  std::vector<Holding> found;
  // One look: a holder that ends between two statements is in neither table.
  TRY_VOID(run("BEGIN"));
  auto taken = take(where, question, false, found);
  if (taken) taken = take(where, question, true, found);
  static_cast<void>(run("COMMIT"));
  TRY_VOID(taken);
  std::ranges::stable_sort(found, {}, [](const Holding& one) { return one.begin.by; });
  found.erase(found.begin(), found.end() - static_cast<std::ptrdiff_t>(std::min(found.size(), question.limit)));
  return found;
}

Result<void> HistoryFile::take(const std::string& where, const HistoryQuestion& question, bool is_open,
                               std::vector<Holding>& found) {
  const auto text = [](const char* column) { return fmt::format("(SELECT text FROM texts WHERE id={})", column); };
  std::string sql = fmt::format(
      "SELECT address, begin, begin_width, {}, {}, {}, {}, {}, {} || '', pod_back, uid, rtrim({}, '/'), container, "
      "rtrim({}, '/'), handle FROM {} WHERE {}",
      is_open ? "0" : "begin + lasted", is_open ? "0" : "end_width", text("pool"), text("node"), text("namespace"),
      text("pod_front"), text("network"), text("interface"), is_open ? "open" : "ended", where);
  if (question.until) sql += " AND begin - begin_width < ?";
  if (question.from && !is_open) sql += " AND begin + lasted > ?";
  // The index of nodes has the order in which holders ended.
  sql += !question.node.empty() && !is_open ? " ORDER BY id DESC LIMIT ?" : " ORDER BY begin DESC LIMIT ?";
  Query query(*this, sql);
  if (question.address) query.add_bytes(bytes_of(*question.address));
  if (!question.pod.empty()) {
    const auto [front, back] = parts_of(question.pod);
    query.add_text(back).add_text(front);
  }
  if (!question.namespace_name.empty()) query.add_text(question.namespace_name);
  if (!question.node.empty()) query.add_text(question.node);
  if (question.until) query.add(ms_of(*question.until));
  if (question.from && !is_open) query.add(ms_of(*question.from));
  query.add(static_cast<std::int64_t>(question.limit));
  for (;;) {
    TRY(const bool is_there, query.step());
    if (!is_there) return {};
    Holding one;
    one.address = address_of(query.text(0));
    one.begin = {time_of(query.number(1) - query.number(2)), time_of(query.number(1))};
    if (!is_open) one.end = Moment{time_of(query.number(3) - query.number(4)), time_of(query.number(3))};
    one.pool = query.text(5);
    one.holder = {query.text(6),           query.text(7),  query.text(8) + query.text(9),
                  query.unpacked_text(10), query.text(11), query.unpacked_text(12),
                  query.text(13),          query.text(14)};
    found.push_back(std::move(one));
  }
}

Result<std::vector<core::history::Gap>> HistoryFile::gaps(WallTime from, WallTime until) {
  std::vector<core::history::Gap> found;
  Query query(*this, "SELECT since, until, twice FROM gaps WHERE since <= ? AND until > ? ORDER BY since");
  query.add(ms_of(until)).add(ms_of(from));
  for (;;) {
    TRY(const bool is_there, query.step());
    if (!is_there) return found;
    found.push_back({time_of(query.number(0)), time_of(query.number(1)), query.number(2) != 0});
  }
}

Result<std::optional<core::history::Gap>> HistoryFile::gap_of(const net::Address& address, const Moment& when) {
  TRY(const auto gaps, this->gaps(when.after, when.by));
  const auto twice = std::ranges::find_if(gaps, &core::history::Gap::is_twice);
  if (twice != gaps.end()) return std::optional(*twice);
  Query query(
      *this,
      "SELECT min(since), max(until) FROM unseen WHERE first <= ?1 AND last >= ?1 AND length(first) = length(?1) "
      "AND since <= ?2 AND until > ?3");
  TRY_VOID(query.add_bytes(bytes_of(address)).add(ms_of(when.by)).add(ms_of(when.after)).step());
  if (!query.is_null(0)) {
    return std::optional(core::history::Gap{time_of(query.number(0)), time_of(query.number(1)), false, true});
  }
  return gaps.empty() ? std::nullopt : std::optional(gaps.front());
}

Result<std::map<std::string, std::vector<core::history::Use>>> HistoryFile::uses(WallTime since) {
  struct Counted {
    std::vector<core::history::Use> uses;
    std::size_t last = 0;  ///< the number of its last count
  };
  std::map<std::string, Counted> counted;
  std::size_t counts = 0;
  WallTime last{};
  Query query(*this,
              "SELECT (SELECT text FROM texts WHERE id=pool), at, used, room FROM uses WHERE at >= ? ORDER BY at");
  query.add(ms_of(since));
  for (;;) {
    TRY(const bool is_there, query.step());
    if (!is_there) break;
    const WallTime at = time_of(query.number(1));
    counts += std::exchange(last, at) == at ? 0 : 1;
    Counted& one = counted[query.text(0)];
    // It was not there, and is another pool of the same name.
    if (one.last + 1 != counts) one.uses.clear();
    one.uses.push_back({at, query.real(2), query.real(3)});
    one.last = counts;
  }
  std::map<std::string, std::vector<core::history::Use>> found;
  for (auto& [pool, one] : counted) {
    if (one.last == counts) found.emplace(pool, std::move(one.uses));
  }
  return found;
}

Result<std::map<std::string, core::history::Forecast>> HistoryFile::forecasts(WallTime now) {
  TRY(const auto counted, uses(now - kForecastPast));
  std::map<std::string, core::history::Forecast> found;
  for (const auto& [pool, series] : counted) found.emplace(pool, core::history::forecast(series, now));
  return found;
}

}  // namespace croft::edge
