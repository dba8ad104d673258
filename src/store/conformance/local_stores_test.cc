#include <sqlite3.h>

#include "os/scratch_directory.h"
#include "store/conformance/conformance.h"
#include "store/memory/memory_store.h"
#include "store/sqlite/sqlite_store.h"

namespace croft::store {
namespace {

class SqliteBackend final : public ConformanceBackend {
 public:
  [[nodiscard]] std::unique_ptr<Store> open() override {
    auto store = open_sqlite_store(scratch_.file("new/croft.db"), {.create = true}, clock_,
                                   Deadline::after(clock_.now(), std::chrono::seconds{30}));
    EXPECT_TRUE(store) << store.error().message;
    if (!store) return nullptr;
    return *std::move(store);
  }
  void damage(const Key& key) override {
    sqlite3* db = nullptr;
    EXPECT_EQ(sqlite3_open(scratch_.file("new/croft.db").c_str(), &db), SQLITE_OK);
    const std::string sql = "UPDATE records SET value=x'7b' WHERE name='" + key.name + "'";
    EXPECT_EQ(sqlite3_exec(db, sql.c_str(), nullptr, nullptr, nullptr), SQLITE_OK) << sqlite3_errmsg(db);
    sqlite3_close(db);
  }
  // Another program than Croft notes no change.
  [[nodiscard]] bool damage_is_watched() const override { return false; }

 private:
  os::ScratchDirectory scratch_;
  os::SystemClock clock_;
};

class MemoryBackend final : public ConformanceBackend {
 public:
  [[nodiscard]] std::unique_ptr<Store> open() override { return std::make_unique<MemoryStore>(first_.data()); }
  void damage(const Key& key) override { first_.damage(key); }
  [[nodiscard]] bool outlives_processes() const override { return false; }

 private:
  MemoryStore first_;
};

INSTANTIATE_TEST_SUITE_P(Memory, StoreConformance,
                         testing::Values(BackendCase{"memory", [] { return std::make_unique<MemoryBackend>(); }}));
INSTANTIATE_TEST_SUITE_P(Sqlite, StoreConformance,
                         testing::Values(BackendCase{"sqlite", [] { return std::make_unique<SqliteBackend>(); }}));

}  // namespace
}  // namespace croft::store
