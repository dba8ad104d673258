#pragma once

#include <chrono>
#include <filesystem>
#include <memory>
#include <string>

#include <gtest/gtest.h>
#include <sqlite3.h>

#include "os/clock.h"
#include "os/scratch_directory.h"
#include "store/sqlite/sqlite_store.h"
#include "store/test_records.h"

namespace croft::store {

/// A directory for one SQLite store and short ways to use it. For tests only.
class SqliteStoreTest : public testing::Test {
 protected:
  using Opened = Result<std::unique_ptr<SqliteStore>>;

  [[nodiscard]] std::string path() const { return scratch_.file("croft.db"); }
  [[nodiscard]] Deadline in(std::chrono::nanoseconds span) const { return Deadline::after(clock_.now(), span); }
  [[nodiscard]] Deadline soon() const { return in(std::chrono::seconds{30}); }

  [[nodiscard]] Opened open(const std::string& at, SqliteOptions options = {}) const {
    return open_sqlite_store(at, options, clock_, soon());
  }
  /// The store, made if need be.
  [[nodiscard]] std::unique_ptr<SqliteStore> make() const { return make_at(path()); }
  [[nodiscard]] std::unique_ptr<SqliteStore> make_at(const std::string& at) const {
    auto opened = open(at, {.create = true});
    EXPECT_TRUE(opened) << opened.error().message;
    return opened ? *std::move(opened) : nullptr;
  }
  [[nodiscard]] static Error error_of(const Opened& opened) {
    EXPECT_FALSE(opened);
    return opened ? Error{} : opened.error();
  }

  [[nodiscard]] static Key mark_key(const std::string& name) { return {Kind::high_water_mark, name}; }
  [[nodiscard]] Result<Revision> put(Store& store, const std::string& name, std::uint64_t n) const {
    const Write write{mark_key(name), core::HighWaterMark{core::SequenceNumber(n)}, Condition::always()};
    return store.commit({&write, 1}, sample_token(n), soon());
  }
  [[nodiscard]] std::optional<std::uint64_t> read(Store& store, const std::string& name) const {
    const auto record = store.get(mark_key(name), soon());
    EXPECT_TRUE(record) << record.error().message;
    if (!record || !*record) return std::nullopt;
    return std::get<core::HighWaterMark>(*(*record)->value).sequence_number.value;
  }

  /// Opens it, and has every page looked at.
  [[nodiscard]] Result<void> check(const std::string& at) const {
    const auto opened = open(at);
    if (!opened) return fail(opened.error());
    return check_sqlite_pages(at, clock_, soon());
  }

  /// What SQLite says to a statement, with plain settings: another program that writes the file.
  static std::string as_other_program(const std::string& at, const std::string& sql) { return ask(at, sql); }
  static std::string ask(const std::string& at, const std::string& sql) {
    sqlite3* db = nullptr;
    std::string answer;
    const auto note = [](void* out, int, char** values, char**) {
      *static_cast<std::string*>(out) = values[0] == nullptr ? "" : values[0];
      return 0;
    };
    EXPECT_EQ(sqlite3_open_v2(at.c_str(), &db, SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE, nullptr), SQLITE_OK);
    EXPECT_EQ(sqlite3_exec(db, sql.c_str(), note, &answer, nullptr), SQLITE_OK) << sqlite3_errmsg(db);
    sqlite3_close(db);
    return answer;
  }

  os::SystemClock clock_;
  os::ScratchDirectory scratch_;
};

}  // namespace croft::store
