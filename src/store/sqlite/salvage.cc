#include "store/sqlite/salvage.h"

#include <algorithm>
#include <cstddef>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>

#include <fmt/format.h>

#include "base/net/echo.h"
#include "register/format/records.h"
#include "register/records.h"
#include "store/sqlite/record_table.h"
#include "store/sqlite/schema.h"
#include "store/store.h"

namespace croft::store {
namespace {

constexpr std::string_view kTable =
    "SELECT rowid, kind, name, revision, token, checksum, value FROM records NOT INDEXED";
constexpr std::string_view kIndex = "SELECT rowid, kind, name FROM records INDEXED BY sqlite_autoindex_records_1";
/// A counter is believed this far above what the records say: not every commit leaves one.
constexpr std::int64_t kCounterLeadMax = std::int64_t{1} << 32;

using RowKey = std::pair<std::int64_t, std::string>;  ///< kind and name

struct Row {
  std::optional<RowKey> key;
  std::int64_t revision = 0;
  std::string token;
  std::int64_t checksum = 0;
  std::string value;
};

using Compiled = std::unique_ptr<sqlite3_stmt, int (*)(sqlite3_stmt*)>;

bool is_damage(int code) {
  const int primary = code & 0xff;
  return primary == SQLITE_CORRUPT || primary == SQLITE_TOOBIG || primary == SQLITE_MISMATCH;
}

std::string bytes_of(sqlite3_stmt* row, int column) {
  const void* const data = sqlite3_column_blob(row, column);
  const auto size = static_cast<std::size_t>(sqlite3_column_bytes(row, column));
  return data == nullptr ? std::string() : std::string(static_cast<const char*>(data), size);
}

std::optional<RowKey> key_in(sqlite3_stmt* row, int column) {
  if (sqlite3_column_type(row, column) != SQLITE_INTEGER || sqlite3_column_type(row, column + 1) != SQLITE_TEXT)
    return {};
  const std::int64_t kind = sqlite3_column_int64(row, column);
  if (kind < 0 || kind > 255 || !wire::kind_numbered(static_cast<std::uint8_t>(kind))) return {};
  return RowKey(kind, bytes_of(row, column + 1));
}

Row row_in(sqlite3_stmt* row) {
  return {key_in(row, 1), sqlite3_column_int64(row, 3), bytes_of(row, 4), sqlite3_column_int64(row, 5),
          bytes_of(row, 6)};
}

bool is_whole(const Row& row, const RowKey& key) {
  return row.revision > 0 && row.token.size() == WriteToken().bytes.size() &&
         row.checksum ==
             row_checksum(static_cast<std::uint8_t>(key.first), key.second, row.revision, row.token, row.value);
}

class Salvage {
 public:
  Salvage(sqlite3* damaged, sqlite3* fresh) : damaged_(damaged), fresh_(fresh) {}

  [[nodiscard]] Result<std::vector<Error>> run() {
    TRY_VOID(check_identity());
    TRY_VOID(read_rows());
    sort_out();
    if (whole_.empty() && met_damage_) return fail(ErrorCode::corrupt, "not one record of it can be read");
    TRY_VOID(write_all());
    return std::move(lost_);
  }

 private:
  /// Calls `use` for each row, as far as they can be read. False: damage ended it.
  template <class Use>
  [[nodiscard]] Result<bool> for_each(const std::string& sql, Use use, std::int64_t parameter = 0) {
    sqlite3_stmt* statement = nullptr;
    int code = sqlite3_prepare_v2(damaged_, sql.c_str(), -1, &statement, nullptr);
    const Compiled compiled(statement, &sqlite3_finalize);
    if (code == SQLITE_OK && sqlite3_bind_parameter_count(statement) > 0) sqlite3_bind_int64(statement, 1, parameter);
    while (code == SQLITE_OK && (code = sqlite3_step(statement)) == SQLITE_ROW) {
      use(statement);
      code = SQLITE_OK;
    }
    if (code == SQLITE_DONE) return true;
    if (is_damage(code)) return false;
    return fail(code == SQLITE_ERROR || code == SQLITE_NOTADB ? ErrorCode::corrupt : ErrorCode::unavailable,
                fmt::format("its records cannot be read: {} (SQLite {})", sqlite3_errmsg(damaged_), code));
  }

  [[nodiscard]] Result<void> check_identity() {
    std::int64_t application = 0;
    const auto note = [&](sqlite3_stmt* row) { application = sqlite3_column_int64(row, 0); };
    TRY(const bool read, for_each("PRAGMA application_id", note));
    if (read && application == kApplicationId) return {};
    return fail(ErrorCode::corrupt, "it is no register");
  }

  /// From both ends of the table, and what is left between them one by one, as the index has it.
  [[nodiscard]] Result<void> read_rows() {
    const auto take = [&](sqlite3_stmt* row) { rows_.emplace(sqlite3_column_int64(row, 0), row_in(row)); };
    TRY(const bool all, for_each(fmt::format("{} ORDER BY rowid", kTable), take));
    met_damage_ = !all;
    const auto is_damaged = [](const auto& row) { return !row.second.key || !is_whole(row.second, *row.second.key); };
    if (all && std::none_of(rows_.begin(), rows_.end(), is_damaged)) return {};
    met_damage_ = true;
    if (!all) {
      const auto take_new = [&](sqlite3_stmt* row) {
        if (!rows_.contains(sqlite3_column_int64(row, 0))) take(row);
      };
      TRY_VOID(for_each(fmt::format("{} ORDER BY rowid DESC", kTable), take_new));
    }
    TRY(const bool all_names, read_names("ASC"));
    if (!all_names) TRY_VOID(read_names("DESC"));
    if (all) return {};
    for (const auto& [row_id, key] : names_) {
      if (rows_.contains(row_id)) continue;
      TRY_VOID(for_each(fmt::format("{} WHERE rowid=?1", kTable), take, row_id));
      // Among numbers that are out of order one may not be found.
      if (!rows_.contains(row_id)) unreadable_.insert(key);
    }
    return {};
  }
  [[nodiscard]] Result<bool> read_names(std::string_view order) {
    const auto note = [&](sqlite3_stmt* row) {
      if (auto key = key_in(row, 1)) names_.emplace(sqlite3_column_int64(row, 0), *std::move(key));
    };
    return for_each(fmt::format("{0} ORDER BY kind {1}, name {1}", kIndex, order), note);
  }

  void sort_out() {
    std::vector<std::pair<std::optional<RowKey>, Row>> rest;
    for (auto& [row_id, row] : rows_) {
      const auto named = names_.find(row_id);
      if (row.key && is_whole(row, *row.key)) {
        take_whole(*row.key, row);
      } else if (named != names_.end() && is_whole(row, named->second)) {
        take_whole(named->second, row);
      } else {
        rest.emplace_back(named != names_.end() ? named->second : row.key, std::move(row));
      }
    }
    for (auto& [key, row] : rest) {
      if (key && !whole_.contains(*key) && set_aside_.emplace(*key, std::move(row)).second) continue;
      lost_.push_back({ErrorCode::corrupt,
                       key ? fmt::format("one more record of kind {} is damaged, and may have been another than {}",
                                         name_of_kind(*key), net::echo(key->second))
                           : "a record is damaged, and nothing tells which one it was",
                       {}});
    }
    // One of those is it that the index has and the table has not: its number may be what is damaged.
    for (const auto& [row_id, key] : names_) {
      if (!lost_.empty() && !rows_.contains(row_id) && !set_aside_.contains(key)) unreadable_.insert(key);
    }
    for (const RowKey& key : unreadable_) {
      if (!whole_.contains(key))
        set_aside_.emplace(key, Row{key, 1, std::string(WriteToken().bytes.size(), '\0'), 0, {}});
    }
  }
  static std::string_view name_of_kind(const RowKey& key) {
    return core::name_of(*wire::kind_numbered(static_cast<std::uint8_t>(key.first)));
  }
  void take_whole(const RowKey& key, const Row& row) {
    last_ = std::max(last_, row.revision);
    const auto [taken, is_new] = whole_.try_emplace(key);
    if (is_new || taken->second.revision < row.revision) taken->second = row;
  }

  [[nodiscard]] Result<void> write_all() {
    std::int64_t counted = 0;
    const auto note = [&](sqlite3_stmt* row) {
      counted = std::max<std::int64_t>(counted, sqlite3_column_int64(row, 0));
    };
    TRY_VOID(for_each("SELECT value FROM counters NOT INDEXED WHERE id IN (1, 4)", note));
    if (counted <= last_ + kCounterLeadMax) last_ = std::max(last_, counted);
    TRY_VOID(run("BEGIN"));
    TRY_VOID(run(fmt::format("INSERT OR REPLACE INTO counters VALUES(1, {0}), (3, {0}), (4, {0})", last_)));
    sqlite3_stmt* statement = nullptr;
    TRY_VOID(checked(sqlite3_prepare_v2(fresh_,
                                        "INSERT INTO records(kind, name, revision, token, checksum, value) VALUES(?1, "
                                        "?2, ?3, ?4, ?5, ?6)",
                                        -1, &statement, nullptr)));
    const Compiled insert(statement, &sqlite3_finalize);
    for (const auto* rows : {&whole_, &set_aside_}) {
      for (const auto& [key, row] : *rows) TRY_VOID(put(statement, key, row));
    }
    return run("COMMIT");
  }
  [[nodiscard]] Result<void> put(sqlite3_stmt* insert, const RowKey& key, const Row& row) {
    const auto blob = [&](int parameter, const std::string& bytes) {
      sqlite3_bind_blob(insert, parameter, bytes.data(), static_cast<int>(bytes.size()), SQLITE_STATIC);
    };
    sqlite3_bind_int64(insert, 1, key.first);
    sqlite3_bind_text(insert, 2, key.second.data(), static_cast<int>(key.second.size()), SQLITE_STATIC);
    // Of a damaged one it may be a revision that was never given.
    sqlite3_bind_int64(insert, 3, std::clamp(row.revision, std::int64_t{1}, std::max(last_, std::int64_t{1})));
    blob(4, row.token);
    sqlite3_bind_int64(insert, 5, row.checksum);
    blob(6, row.value);
    const int code = sqlite3_step(insert);
    sqlite3_reset(insert);
    return checked(code == SQLITE_DONE ? SQLITE_OK : code);
  }

  [[nodiscard]] Result<void> run(const std::string& sql) {
    return checked(sqlite3_exec(fresh_, sql.c_str(), nullptr, nullptr, nullptr));
  }
  [[nodiscard]] Result<void> checked(int code) const {
    if (code == SQLITE_OK) return {};
    return fail((code & 0xff) == SQLITE_FULL ? ErrorCode::storage_full : ErrorCode::unavailable,
                fmt::format("its records cannot be written anew: {} (SQLite {})", sqlite3_errmsg(fresh_), code));
  }

  sqlite3* damaged_;
  sqlite3* fresh_;
  bool met_damage_ = false;
  std::multimap<std::int64_t, Row> rows_;  ///< by their numbers, which may be damaged too
  std::map<std::int64_t, RowKey> names_;   ///< what the index says of them
  std::set<RowKey> unreadable_;
  std::map<RowKey, Row> whole_, set_aside_;
  std::int64_t last_ = 0;
  std::vector<Error> lost_;
};

}  // namespace

Result<std::vector<Error>> take_records(sqlite3* damaged, sqlite3* fresh) { return Salvage(damaged, fresh).run(); }

}  // namespace croft::store
