#include "store/sqlite/record_table.h"
#include "store/sqlite/sqlite_store.h"
#include "store/sqlite/store_fixture.h"
#include "store/test_commits.h"

namespace croft::store {
namespace {

using namespace std::chrono_literals;

class SqliteWatchTest : public SqliteStoreTest {
 protected:
  [[nodiscard]] std::unique_ptr<Watch> watch_from(Store& store, Revision position) const {
    auto watch = store.watch({{}, {{Kind::high_water_mark, ""}}}, position, soon());
    EXPECT_TRUE(watch) << watch.error().message;
    return watch ? *std::move(watch) : nullptr;
  }
  [[nodiscard]] std::unique_ptr<Watch> watch_from_now(Store& store) const {
    return watch_from(store, store.position(soon()).value());
  }
  [[nodiscard]] ErrorCode refusal_of_watch(Store& store, Revision position) const {
    const auto watch = store.watch({}, position, soon());
    return watch ? ErrorCode::internal : watch.error().code;
  }
  [[nodiscard]] std::int64_t rows() const {
    return std::stoll(as_other_program(path(), "SELECT count(*) FROM changes"));
  }
};

TEST_F(SqliteWatchTest, WithNothingNewItReturnsAtItsDeadline) {
  const auto store = make();
  const auto watch = watch_from_now(*store);
  const Deadline deadline = in(50ms);
  const auto changes = watch->next(deadline);
  ASSERT_TRUE(changes);
  EXPECT_TRUE(changes->empty());
  EXPECT_TRUE(deadline.passed(clock_.now()));
}

TEST_F(SqliteWatchTest, OfSeveralChangesOfARecordTheLastInTheOrderOfTheLast) {
  const auto store = make();
  const auto watch = watch_from_now(*store);
  for (const auto& [name, n] : {std::pair{"a", 1U}, {"b", 2U}, {"a", 3U}}) ASSERT_TRUE(put(*store, name, n));
  const auto changes = watch->next(soon());
  ASSERT_TRUE(changes);
  ASSERT_EQ(changes->size(), 2U);
  EXPECT_EQ((*changes)[0].key, mark_key("b"));
  EXPECT_EQ((*changes)[1].key, mark_key("a"));
  EXPECT_EQ((*changes)[1].record->revision, store->position(soon()).value());
}

TEST_F(SqliteWatchTest, AChangeOfAKindOfANewerProgramIsPassedOver) {
  const auto store = make();
  const auto watch = watch_from_now(*store);
  ASSERT_TRUE(put(*store, "a", 1));
  as_other_program(path(),
                   "INSERT INTO changes(revision, kind, name) SELECT value, 200, 'new' FROM counters WHERE id=1");
  const auto changes = watch->next(soon());
  ASSERT_TRUE(changes) << changes.error().message;
  ASSERT_EQ(changes->size(), 1U);
  EXPECT_EQ(changes->front().key, mark_key("a"));
}

TEST_F(SqliteWatchTest, ADeletionOfNothingIsNoChange) {
  const auto store = make();
  const auto watch = watch_from_now(*store);
  const Write removal{mark_key("none"), std::nullopt, Condition::always()};
  ASSERT_TRUE(store->commit({&removal, 1}, sample_token(1), soon()));
  const auto changes = watch->next(Deadline::after(clock_.now(), 0ms));
  ASSERT_TRUE(changes);
  EXPECT_TRUE(changes->empty());
}

TEST_F(SqliteWatchTest, OldChangesAreForgottenAndThoseWhoNeedThemToldSo) {
  const auto store = make();
  const auto lagging = watch_from_now(*store);
  const Revision start = store->position(soon()).value();
  std::vector<Write> writes;
  for (std::size_t i = 0; i < kCommitWritesMax; ++i) {
    writes.push_back({mark_key(std::to_string(i)), core::HighWaterMark{}, Condition::always()});
  }
  const auto commits = static_cast<int>((kChangesMax + kForgetStep) / static_cast<std::int64_t>(kCommitWritesMax)) + 1;
  for (int i = 0; i < commits; ++i) ASSERT_TRUE(store->commit(writes, sample_token(1), soon()));
  EXPECT_GE(rows(), kChangesMax);
  EXPECT_LE(rows(), kChangesMax + kForgetStep);
  const auto changes = lagging->next(soon());
  ASSERT_FALSE(changes);
  EXPECT_EQ(changes.error().code, ErrorCode::too_old);
  EXPECT_EQ(refusal_of_watch(*store, start), ErrorCode::too_old);
  // What is in the table is followed to its first whole commit, and not beyond.
  const Revision last = store->position(soon()).value();
  const auto known = static_cast<std::uint64_t>(kChangesMax) / kCommitWritesMax - 1;
  EXPECT_EQ(watch_from(*store, Revision(last.value - known))->next(soon())->size(), kCommitWritesMax);
}

TEST_F(SqliteWatchTest, APositionOfALaterLifeIsTooOld) {
  const auto store = make();
  ASSERT_TRUE(put(*store, "a", 1));
  const Revision last = store->position(soon()).value();
  EXPECT_EQ(refusal_of_watch(*store, Revision(last.value + 1)), ErrorCode::too_old) << "a backup was restored";
}

TEST_F(SqliteWatchTest, ANewerProgramThatComesMeanwhileEndsTheUse) {
  const auto store = make();
  ASSERT_TRUE(put(*store, "a", 1));
  as_other_program(path(), "PRAGMA user_version=5");
  EXPECT_EQ(put(*store, "a", 2).error().code, ErrorCode::newer_version);
  EXPECT_EQ(store->get(mark_key("a"), soon()).error().code, ErrorCode::newer_version);
}

TEST_F(SqliteWatchTest, WithoutItsTableTheDatabaseIsDamaged) {
  const auto store = make();
  const auto watch = watch_from_now(*store);
  ASSERT_TRUE(put(*store, "a", 1));
  as_other_program(path(), "DROP TABLE changes");
  EXPECT_EQ(watch->next(soon()).error().code, ErrorCode::corrupt);
  EXPECT_FALSE(put(*store, "a", 2));
}

}  // namespace
}  // namespace croft::store
