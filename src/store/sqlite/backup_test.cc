// Copies of a register and the way back.

#include "store/sqlite/backup.h"

#include <filesystem>
#include <fstream>
#include <iterator>

#include <gmock/gmock.h>

#include "store/sqlite/database.h"
#include "store/sqlite/store_fixture.h"

namespace croft::store {
namespace {

namespace fs = std::filesystem;

class BackupTest : public SqliteStoreTest {
 protected:
  [[nodiscard]] std::string backup() const { return scratch_.file("backup"); }
  [[nodiscard]] Result<RegisterCopy> back_up() const { return backup_sqlite_store(path(), backup(), clock_, soon()); }
  [[nodiscard]] Result<void> restore(bool incomplete = false) const {
    TRY(const auto restore, SqliteRestore::begin(path(), backup(), incomplete, clock_, soon()));
    return restore->finish(soon());
  }
};

TEST_F(BackupTest, ARestoredRegisterIsTheOneOfTheBackupAndNothingRememberedFitsIt) {
  const auto store = make();
  ASSERT_TRUE(put(*store, "a", 1));
  const auto copied = back_up();
  ASSERT_TRUE(copied) << copied.error().message;
  EXPECT_EQ(copied->revision, 1U);
  EXPECT_EQ(fs::status(backup()).permissions(), fs::perms::owner_read | fs::perms::owner_write);
  EXPECT_EQ(back_up().error().code, ErrorCode::already_exists);
  const auto later = put(*store, "b", 2);
  ASSERT_TRUE(later);
  const auto restored = restore();
  ASSERT_TRUE(restored) << restored.error().message;
  EXPECT_EQ(read(*store, "a"), 1U);
  EXPECT_EQ(read(*store, "b"), std::nullopt);
  const auto position = make()->position(soon());
  ASSERT_TRUE(position);
  EXPECT_GT(position->value, later->value) << "a revision never comes again";
  ASSERT_TRUE(put(*store, "b", 3));
  EXPECT_EQ(read(*make(), "b"), 3U);
  for (const char* suffix : {"-restore", "-restore-wal", "-restore-shm", "-restore-lock", "-new"}) {
    EXPECT_FALSE(fs::exists(path() + suffix)) << suffix;
  }
}

/// By hand, in the place of the database whose log is there.
TEST_F(BackupTest, NoLogOfTheRegisterFitsABackup) {
  {
    const auto store = make();
    ASSERT_TRUE(put(*store, "a", 1));
    ASSERT_TRUE(back_up());
    ASSERT_TRUE(put(*store, "b", 2));
  }
  const auto stamp = [&](const std::string& file) {
    return stamp_of(std::stoll(as_other_program(file, "PRAGMA user_version")));
  };
  const std::int64_t ahead = stamp_of((stamp(backup()) - stamp(path())) << 8);
  EXPECT_GT(ahead, 1000);
  EXPECT_LT(ahead, (1 << 23) - 1000);
}

TEST_F(BackupTest, ABackupHoldsNoLock) {
  const auto store = make();
  ASSERT_TRUE(put(*store, "a", 1));
  const auto turn = store->take_turn(soon());
  ASSERT_TRUE(turn);
  EXPECT_TRUE(back_up());
}

TEST_F(BackupTest, WhileARegisterIsReplacedNobodyWritesOrReplacesItToo) {
  const auto store = make();
  ASSERT_TRUE(put(*store, "a", 1));
  ASSERT_TRUE(back_up());
  const auto at_once = [&] { return in(std::chrono::milliseconds{10}); };
  {
    const auto restore = SqliteRestore::begin(path(), backup(), false, clock_, soon());
    ASSERT_TRUE(restore) << restore.error().message;
    const auto turn = store->take_turn(at_once());
    ASSERT_FALSE(turn);
    EXPECT_EQ(turn.error().code, ErrorCode::deadline_exceeded);
    const auto another = SqliteRestore::begin(path(), backup(), false, clock_, at_once());
    ASSERT_FALSE(another);
    EXPECT_EQ(another.error().code, ErrorCode::deadline_exceeded);
    ASSERT_TRUE((*restore)->finish(soon()));
  }
  EXPECT_TRUE(store->take_turn(soon()));
  EXPECT_TRUE(restore());
}

TEST_F(BackupTest, WhatIsThereNeedNotBeReadable) {
  ASSERT_TRUE(put(*make(), "a", 1));
  ASSERT_TRUE(back_up());
  for (const char* suffix : {"", "-wal", "-shm", "-lock"}) {
    std::ofstream(path() + suffix, std::ios::trunc) << "garbage";
  }
  const auto restored = restore();
  ASSERT_TRUE(restored) << restored.error().message;
  EXPECT_EQ(read(*make(), "a"), 1U);
  for (const char* suffix : {"", "-wal", "-shm", "-lock"}) fs::remove(path() + suffix);
  ASSERT_TRUE(restore());
  EXPECT_EQ(read(*make(), "a"), 1U);
}

TEST_F(BackupTest, WhatIsNoWholeRegisterIsRefusedAndNothingIsTouched) {
  const auto store = make();
  for (std::uint64_t i = 0; i < 200; ++i) ASSERT_TRUE(put(*store, "a" + std::to_string(i), i));
  EXPECT_EQ(restore().error().code, ErrorCode::not_found);
  ASSERT_TRUE(back_up());
  const auto size = fs::file_size(backup());
  for (const std::uintmax_t cut :
       {size - 4096, size / 2, std::uintmax_t{5000}, std::uintmax_t{10}, std::uintmax_t{0}}) {
    fs::resize_file(backup(), cut);
    EXPECT_EQ(restore().error().code, ErrorCode::corrupt) << cut;
  }
  std::ofstream(backup(), std::ios::trunc) << std::string(10000, 'x');
  EXPECT_EQ(restore().error().code, ErrorCode::corrupt);
  fs::remove(backup());
  as_other_program(backup(), "CREATE TABLE other(x)");
  EXPECT_EQ(restore().error().code, ErrorCode::corrupt);
  EXPECT_EQ(read(*store, "a7"), 7U);
  EXPECT_FALSE(fs::exists(path() + "-restore"));
}

/// One damaged record is set aside by whoever reads it: it must not be the end of all others.
TEST_F(BackupTest, DamagedRecordsAreTakenAlongWhenAsked) {
  {
    const auto store = make();
    for (const char* name : {"a", "b"}) ASSERT_TRUE(put(*store, name, 1));
  }
  as_other_program(path(), "UPDATE records SET checksum=checksum+1 WHERE name='b'");
  ASSERT_TRUE(back_up());
  const auto refused = restore();
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, ErrorCode::corrupt);
  ASSERT_TRUE(restore(true));
  const auto store = make();
  EXPECT_EQ(read(*store, "a"), 1U);
  const auto b = store->get(mark_key("b"), soon());
  ASSERT_TRUE(b && *b);
  EXPECT_FALSE((*b)->value);
}

/// Where the lock file is gone too, the log says what the database must have.
TEST_F(BackupTest, ACopyOfAnOlderDatabaseUnderANewerLogIsTakenOnlyWhenAsked) {
  {
    const auto store = make();
    const auto shorten = [&](std::uint64_t times) {
      for (std::uint64_t i = 0; store->checkpoints() < times; ++i) ASSERT_TRUE(put(*store, "a", i));
    };
    shorten(1);
    ASSERT_TRUE(put(*store, "b", 1));
    fs::copy_file(path(), backup());
    shorten(2);
    ASSERT_TRUE(put(*store, "c", 1));
  }
  fs::copy_file(path() + "-wal", backup() + "-wal");
  EXPECT_EQ(restore().error().code, ErrorCode::corrupt);
  ASSERT_TRUE(restore(true));
}

TEST_F(BackupTest, ACopyThatIsOlderThanItsOwnNoteIsTakenOnlyWhenAsked) {
  {
    const auto store = make();
    ASSERT_TRUE(put(*store, "a", 1));
    fs::copy_file(path(), backup());
    fs::copy_file(path() + "-wal", backup() + "-wal");
    ASSERT_TRUE(put(*store, "a", 2));
  }
  fs::copy_file(path() + "-lock", backup() + "-lock");
  EXPECT_EQ(restore().error().code, ErrorCode::corrupt);
  ASSERT_TRUE(restore(true));
  EXPECT_EQ(read(*make(), "a"), 1U);
}

TEST_F(BackupTest, AnEmptyRegisterIsAnotherOne) {
  const auto store = make();
  const auto before = put(*store, "a", 1);
  ASSERT_TRUE(before);
  {
    const auto restore = SqliteRestore::begin(path(), "", false, clock_, soon());
    ASSERT_TRUE(restore) << restore.error().message;
    ASSERT_TRUE((*restore)->finish(soon()));
  }
  EXPECT_EQ(read(*store, "a"), std::nullopt);
  EXPECT_EQ(store->epoch(), 1U);
  EXPECT_GT(store->position(soon()).value_or(Revision()).value & 0xffffffff, before->value);
  ASSERT_TRUE(put(*make(), "a", 2));
}

}  // namespace
}  // namespace croft::store
