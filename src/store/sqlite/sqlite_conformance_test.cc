#include "os/scratch_directory.h"
#include "store/conformance/conformance.h"
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

 private:
  os::ScratchDirectory scratch_;
  os::SystemClock clock_;
};

INSTANTIATE_TEST_SUITE_P(Sqlite, StoreConformance,
                         testing::Values(BackendCase{"sqlite", [] { return std::make_unique<SqliteBackend>(); }}));

}  // namespace
}  // namespace croft::store
