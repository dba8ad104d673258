#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <thread>

#include "store/sqlite/store_fixture.h"
#include "store/sqlite/test_watching_vfs.h"
#include "store/test_records.h"

namespace croft::store {
namespace {

using namespace std::chrono_literals;
namespace fs = std::filesystem;

/// Counts syncs and makes them fail. Its own program: the watch is for the whole process.
class WatchedStoreTest : public SqliteStoreTest {
 protected:
  void TearDown() override {
    watch_.fail_syncs = false;
    watch_.fail_writes = false;
    watch_.sync_delay = 0;
  }

  DiskWatch& watch_ = install_watching_vfs();
};

TEST_F(WatchedStoreTest, ALoneProcessSyncsOnceACommit) {
  make().reset();
  for (std::uint64_t i = 0; i < 5; ++i) {
    const auto before = watch_.syncs.load();
    ASSERT_TRUE(put(*open(path()).value(), "a", i));
    EXPECT_EQ(watch_.syncs - before, 1U);
  }
}

TEST_F(WatchedStoreTest, ADaemonSyncsOnceACommitButForCheckpoints) {
  const auto store = make();
  const auto before = watch_.syncs.load();
  constexpr std::uint64_t kCommits = 500;
  for (std::uint64_t i = 0; i < kCommits; ++i) ASSERT_TRUE(put(*store, "a", i));
  const auto checkpoints = store->checkpoints();
  EXPECT_GT(checkpoints, 0U);
  // A checkpoint: the log, the database; starting the log again: its head, the note of it.
  EXPECT_LE(watch_.syncs - before, kCommits + 4 * checkpoints);
}

TEST_F(WatchedStoreTest, ReadingSyncsAndWritesNothing) {
  make().reset();
  const auto syncs = watch_.syncs.load();
  const auto writes = watch_.writes.load();
  EXPECT_EQ(read(*open(path()).value(), "a"), std::nullopt);
  EXPECT_EQ(watch_.syncs, syncs);
  EXPECT_EQ(watch_.writes, writes);
}

TEST_F(WatchedStoreTest, TheLogKeepsItsSizeWhoeverWrites) {
  make().reset();
  const auto size = fs::file_size(path() + "-wal");
  for (std::uint64_t i = 0; i < 150; ++i) ASSERT_TRUE(put(*open(path()).value(), "a", i));
  const auto store = open(path()).value();
  for (std::uint64_t i = 0; i < 800; ++i) ASSERT_TRUE(put(*store, "a", i));
  EXPECT_EQ(fs::file_size(path() + "-wal"), size);
  EXPECT_EQ(read(*store, "a"), 799U);
}

TEST_F(WatchedStoreTest, ThreadsShareTransactions) {
  const auto store = make();
  const auto before = watch_.syncs.load();
  watch_.sync_delay = std::chrono::nanoseconds(2ms).count();
  constexpr int kThreads = 16;
  constexpr std::uint64_t kEach = 10;
  std::vector<std::thread> threads;
  for (int t = 0; t < kThreads; ++t) {
    threads.emplace_back([&, t] {
      for (std::uint64_t i = 0; i < kEach; ++i) EXPECT_TRUE(put(*store, std::to_string(t), i));
    });
  }
  for (auto& thread : threads) thread.join();
  EXPECT_LT(watch_.syncs - before, kThreads * kEach / 3) << "many commits must share one sync";
  for (int t = 0; t < kThreads; ++t) EXPECT_EQ(read(*store, std::to_string(t)), kEach - 1);
}

TEST_F(WatchedStoreTest, CommitsOfOneGroupHaveTheirOwnConditions) {
  const auto store = make();
  watch_.sync_delay = std::chrono::nanoseconds(2ms).count();
  std::atomic<int> done{0};
  std::atomic<int> conflicts{0};
  std::vector<std::thread> threads;
  for (int t = 0; t < 16; ++t) {
    threads.emplace_back([&] {
      const auto created = create_if_absent(*store, mark_key("a"), core::HighWaterMark{}, sample_token(1), soon());
      if (created) ++done;
      if (!created && created.error().code == ErrorCode::conflict) ++conflicts;
    });
  }
  for (auto& thread : threads) thread.join();
  EXPECT_EQ(done, 1);
  EXPECT_EQ(conflicts, 15);
}

TEST_F(WatchedStoreTest, ASlowSyncDoesNotHoldUpReaders) {
  const auto store = make();
  ASSERT_TRUE(put(*store, "a", 1));
  watch_.sync_delay = std::chrono::nanoseconds(2s).count();
  std::thread writer([&] { EXPECT_TRUE(put(*store, "a", 2)); });
  std::this_thread::sleep_for(100ms);
  EXPECT_EQ(read(*store, "a"), 1U) << "one that waited for the sync reads what it wrote";
  writer.join();
  EXPECT_EQ(read(*store, "a"), 2U);
}

TEST_F(WatchedStoreTest, AFailedSyncIsUnknownAndTheStoreStops) {
  const auto store = make();
  ASSERT_TRUE(put(*store, "a", 1));
  watch_.fail_syncs = true;
  const auto failed = put(*store, "a", 2);
  ASSERT_FALSE(failed);
  EXPECT_EQ(failed.error().code, ErrorCode::unknown_outcome);
  watch_.fail_syncs = false;
  EXPECT_EQ(put(*store, "b", 1).error().code, ErrorCode::unavailable) << "no success after the first failed sync";
  EXPECT_EQ(store->get(mark_key("a"), soon()).error().code, ErrorCode::unavailable) << "what it would say may be wrong";
  const auto reopened = make();
  const auto value = read(*reopened, "a");
  EXPECT_TRUE(value == 1U || value == 2U);
  EXPECT_TRUE(put(*reopened, "b", 1));
}

TEST_F(WatchedStoreTest, AFailedWriteStopsTheStore) {
  const auto store = make();
  ASSERT_TRUE(put(*store, "a", 1));
  watch_.fail_writes = true;
  const auto failed = put(*store, "a", 2);
  ASSERT_FALSE(failed);
  EXPECT_EQ(failed.error().code, ErrorCode::unknown_outcome);
  watch_.fail_writes = false;
  EXPECT_FALSE(put(*store, "a", 3));
  EXPECT_EQ(read(*make(), "a"), 1U);
}

TEST_F(WatchedStoreTest, AKilledHolderOfTheLockHoldsUpNobody) {
  make().reset();
  for (int round = 0; round < 5; ++round) {
    const pid_t pid = ::fork();
    if (pid == 0) {
      const auto store = make();
      for (std::uint64_t i = 0;; ++i) static_cast<void>(put(*store, "child", i));
    }
    std::this_thread::sleep_for(30ms);
    ::kill(pid, SIGKILL);
    ::waitpid(pid, nullptr, 0);
    EXPECT_TRUE(put(*make(), "a", 1));
  }
  EXPECT_TRUE(check(path()));
}

TEST_F(WatchedStoreTest, AStoppedHolderMeansATimelyErrorThatNamesIt) {
  make().reset();
  const pid_t pid = ::fork();
  if (pid == 0) {
    const auto store = make();
    const auto turn = store->take_turn(soon());
    ::raise(SIGSTOP);
    ::_exit(0);
  }
  int status = 0;
  ::waitpid(pid, &status, WUNTRACED);
  const auto store = make();
  const Write write{mark_key("a"), core::HighWaterMark{}, Condition::always()};
  const auto committed = store->commit({&write, 1}, sample_token(1), in(100ms));
  ::kill(pid, SIGKILL);
  ::waitpid(pid, &status, 0);
  ASSERT_FALSE(committed);
  EXPECT_EQ(committed.error().code, ErrorCode::deadline_exceeded);
  EXPECT_NE(committed.error().message.find("process " + std::to_string(pid)), std::string::npos)
      << committed.error().message;
}

TEST_F(WatchedStoreTest, ADeadlineWithinAProcessHolds) {
  const auto store = make();
  const auto turn = store->take_turn(soon());
  ASSERT_TRUE(turn);
  std::thread([&] {
    const Write write{mark_key("a"), core::HighWaterMark{}, Condition::always()};
    const auto committed = store->commit({&write, 1}, sample_token(1), in(50ms));
    ASSERT_FALSE(committed);
    EXPECT_EQ(committed.error().code, ErrorCode::deadline_exceeded);
  }).join();
}

TEST_F(WatchedStoreTest, AStoreReplacedWhileOpenGoesOnWithWhatIsThere) {
  const auto store = make();
  ASSERT_TRUE(put(*store, "a", 1));
  fs::create_directory(scratch_.file("aside"));
  for (const char* suffix : {"", "-wal", "-shm", "-lock"})
    fs::rename(path() + suffix, scratch_.file("aside/croft.db") + suffix);
  EXPECT_EQ(put(*store, "a", 2).error().code, ErrorCode::unavailable);
  make().reset();
  EXPECT_EQ(read(*store, "a"), std::nullopt);
  ASSERT_TRUE(put(*store, "a", 3));
  EXPECT_EQ(read(*make(), "a"), 3U);
  EXPECT_EQ(read(*make_at(scratch_.file("aside/croft.db")), "a"), 1U);
}

TEST_F(WatchedStoreTest, AReaderThatStaysDoesNotStopWriters) {
  const auto store = make();
  sqlite3* reader = nullptr;
  ASSERT_EQ(sqlite3_open(path().c_str(), &reader), SQLITE_OK);
  ASSERT_EQ(sqlite3_exec(reader, "PRAGMA wal_autocheckpoint=0; BEGIN; SELECT count(*) FROM records", nullptr, nullptr,
                         nullptr),
            SQLITE_OK);
  for (std::uint64_t i = 0; i < 400; ++i) ASSERT_TRUE(put(*store, "a", i));
  int keep_log = 1;
  sqlite3_file_control(reader, "main", SQLITE_FCNTL_PERSIST_WAL, &keep_log);
  sqlite3_close(reader);
  for (std::uint64_t i = 0; i < 400; ++i) ASSERT_TRUE(put(*store, "a", i));
  EXPECT_EQ(read(*make(), "a"), 399U);
}

}  // namespace
}  // namespace croft::store
