// What becomes of an open store when its files are replaced, removed, cut or damaged under it.

#include <array>
#include <cstring>
#include <fstream>
#include <functional>
#include <initializer_list>
#include <iterator>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <gmock/gmock.h>

#include "store/sqlite/backup.h"
#include "store/sqlite/database.h"
#include "store/sqlite/store_fixture.h"
#include "store/sqlite/transaction.h"
#include "store/test_records.h"

namespace croft::store {
namespace {

namespace fs = std::filesystem;

constexpr std::array kSuffixes{"", "-wal", "-shm", "-lock"};

class ReplacedFilesTest : public SqliteStoreTest {
 protected:
  void copy_to(const std::string& to, std::initializer_list<const char*> suffixes = {"", "-wal", "-shm", "-lock"}) {
    fs::create_directories(to);
    for (const char* suffix : suffixes) {
      fs::copy_file(path() + suffix, to + "/croft.db" + suffix, fs::copy_options::overwrite_existing);
    }
  }
  [[nodiscard]] std::string copy() const { return scratch_.file("copy"); }

  /// Each file of the store is another file from now on.
  void swap_for_copy() {
    fs::create_directories(scratch_.file("aside"));
    for (const char* suffix : kSuffixes) {
      fs::rename(path() + suffix, scratch_.file("aside/croft.db") + suffix);
      fs::copy_file(copy() + "/croft.db" + suffix, path() + suffix);
    }
  }
  /// Into the same inode.
  void overwrite(const std::string& suffix) const {
    std::ifstream from(copy() + "/croft.db" + suffix, std::ios::binary);
    std::ofstream to(path() + suffix, std::ios::binary | std::ios::trunc);
    to << from.rdbuf();
  }
  void flip_bit(const std::string& file, std::uintmax_t at) const {
    std::fstream bytes(file, std::ios::binary | std::ios::in | std::ios::out);
    bytes.seekg(static_cast<std::streamoff>(at));
    const int byte = bytes.get();
    bytes.seekp(static_cast<std::streamoff>(at));
    bytes.put(static_cast<char>(byte ^ 1));
  }
  /// How large the database is for one who does not know of its log, without what is allocated in advance.
  [[nodiscard]] std::uintmax_t bytes_without_log() {
    copy_to(scratch_.file("alone"), {""});
    return std::stoul(as_other_program(scratch_.file("alone/croft.db"), "PRAGMA page_count")) * 4096;
  }
  /// Commits that make the register larger, less than what shortens the log.
  void grow(Store& store) const {
    for (std::uint64_t commit = 0; commit < 4; ++commit) {
      std::vector<Write> writes;
      for (std::uint64_t i = 0; i < 60; ++i) {
        const std::string name = std::to_string(commit) + "-" + std::to_string(i) + std::string(150, 'x');
        writes.push_back({mark_key(name), core::HighWaterMark{core::SequenceNumber(i)}, Condition::always()});
      }
      ASSERT_TRUE(store.commit(writes, sample_token(commit), soon()));
    }
  }
  /// Everything that grow() wrote is there, and a commit succeeds; or the code of the refusal.
  [[nodiscard]] std::optional<ErrorCode> refusal_of_grown(const std::string& at) const {
    if (const auto whole = check(at); !whole) return whole.error().code;
    const auto opened = open(at);
    if (!opened) return opened.error().code;
    const auto all = (*opened)->list({Kind::high_water_mark, ""}, soon());
    if (!all) return all.error().code;
    EXPECT_EQ(all->size(), 240U);
    const auto committed = put(**opened, "0-0" + std::string(150, 'x'), 7);
    if (!committed) return committed.error().code;
    const auto again = check(at);
    return again ? std::nullopt : std::optional(again.error().code);
  }
  enum class Lock : std::uint8_t { kept, put_back, removed };
  void change(Lock lock) const {
    if (lock == Lock::put_back) overwrite("-lock");
    if (lock == Lock::removed) fs::remove(path() + "-lock");
  }
  /// Commits until the log has been begun anew so often.
  void shorten(SqliteStore& store, std::uint64_t times) const {
    for (std::uint64_t i = 0; store.checkpoints() < times; ++i) {
      ASSERT_LT(i, 10'000U);
      ASSERT_TRUE(put(store, "a", i));
    }
    ASSERT_TRUE(put(store, "b", times));
  }
  void restore_itself() const {
    const std::string backup = scratch_.file("restored");
    ASSERT_TRUE(backup_sqlite_store(path(), backup, clock_, soon()));
    const auto restore = SqliteRestore::begin(path(), backup, false, clock_, soon());
    ASSERT_TRUE(restore) << restore.error().message;
    ASSERT_TRUE((*restore)->finish(soon()));
    fs::remove(backup);
  }
  static void write(const std::string& file, const std::string& content) {
    std::ofstream(file, std::ios::binary | std::ios::trunc) << content;
  }
  [[nodiscard]] ErrorCode code_of_reading(Store& store) const {
    const auto record = store.get(mark_key("a"), soon());
    return record ? ErrorCode::internal : record.error().code;
  }
  [[nodiscard]] ErrorCode code_of_opening() const {
    const auto opened = open(path());
    return opened ? ErrorCode::internal : opened.error().code;
  }
};

/// The newest revision is always in the log: what an older database lacks must show all the same, whatever has become
/// of the lock file.
TEST_F(ReplacedFilesTest, AnOlderDatabaseUnderItsNewerLogIsRefused) {
  for (const Lock lock : {Lock::kept, Lock::put_back, Lock::removed}) {
    SCOPED_TRACE(static_cast<int>(lock));
    auto store = make();
    shorten(*store, 1);
    copy_to(copy());
    shorten(*store, 2);
    ASSERT_TRUE(put(*store, "c", 1));
    overwrite("");
    change(lock);
    EXPECT_EQ(code_of_reading(*store), ErrorCode::corrupt) << "while it is open";
    EXPECT_FALSE(put(*store, "d", 1));
    store.reset();
    EXPECT_EQ(code_of_opening(), ErrorCode::corrupt);
    for (const char* suffix : kSuffixes) fs::remove(path() + suffix);
  }
}

TEST_F(ReplacedFilesTest, AnOlderLogBesideItsNewerDatabaseIsRefused) {
  auto store = make();
  ASSERT_TRUE(put(*store, "a", 1));
  copy_to(copy());
  shorten(*store, 1);
  ASSERT_TRUE(put(*store, "c", 1));
  store.reset();
  overwrite("-wal");
  EXPECT_EQ(code_of_opening(), ErrorCode::corrupt);
}

/// What was there before a restore is another register: its files fit the newer ones no more.
TEST_F(ReplacedFilesTest, WhatWasThereBeforeARestoreIsRefused) {
  using Suffixes = std::vector<const char*>;
  for (const bool shortened : {false, true}) {
    for (const Lock lock : {Lock::kept, Lock::removed}) {
      for (const Suffixes& back :
           {Suffixes{""}, Suffixes{"-wal"}, Suffixes{"", "-wal"}, Suffixes{"", "-wal", "-shm"}}) {
        // With the lock file the operator takes the older register, where it is a whole one.
        if (lock == Lock::removed && back.size() > 1) continue;
        SCOPED_TRACE(std::to_string(static_cast<int>(lock)) + back.front() + std::to_string(back.size()));
        auto store = make();
        if (shortened) shorten(*store, 1);
        ASSERT_TRUE(put(*store, "a", 1));
        copy_to(copy());
        ASSERT_TRUE(put(*store, "b", 1));
        restore_itself();
        ASSERT_TRUE(put(*store, "c", 1));
        for (const char* suffix : back) overwrite(suffix);
        if (back.size() == 2) fs::remove(path() + "-shm");
        change(lock);
        store.reset();
        EXPECT_EQ(code_of_opening(), ErrorCode::corrupt);
        for (const char* suffix : kSuffixes) fs::remove(path() + suffix);
      }
    }
  }
}

TEST_F(ReplacedFilesTest, TheDatabaseAloneOfBeforeARestoreIsRefused) {
  auto store = make();
  shorten(*store, 1);
  copy_to(copy());
  ASSERT_TRUE(put(*store, "b", 1));
  restore_itself();
  ASSERT_TRUE(put(*store, "c", 1));
  overwrite("");
  for (const char* suffix : {"-wal", "-shm"}) fs::remove(path() + suffix);
  EXPECT_EQ(code_of_reading(*store), ErrorCode::corrupt) << "while it is open";
  store.reset();
  const Error error = error_of(open(path()));
  EXPECT_EQ(error.code, ErrorCode::corrupt);
  EXPECT_THAT(error.message, testing::HasSubstr(path() + "-lock"));
  // The ways out: the operator means this one, or restores.
  EXPECT_TRUE(SqliteRestore::begin(path(), path(), true, clock_, soon()));
  fs::remove(path() + "-lock");
  EXPECT_TRUE(put(*make(), "d", 1));
}

TEST_F(ReplacedFilesTest, ADatabaseThatTheLogIsStillWholeForIsTaken) {
  auto store = make();
  ASSERT_TRUE(put(*store, "a", 1));
  copy_to(copy());
  ASSERT_TRUE(put(*store, "a", 2));
  store.reset();
  overwrite("");
  EXPECT_EQ(read(*make(), "a"), 2U);
}

TEST_F(ReplacedFilesTest, ADirectorySwappedForABackupIsReadAnew) {
  const auto store = make();
  ASSERT_TRUE(put(*store, "a", 1));
  copy_to(copy());
  const auto before = put(*store, "b", 2);
  ASSERT_TRUE(before);
  const auto position = store->position(soon());
  ASSERT_TRUE(position);
  const auto watch = store->watch({{mark_key("b")}, {}}, *position, soon());
  ASSERT_TRUE(watch);
  swap_for_copy();
  EXPECT_EQ(read(*store, "b"), std::nullopt);
  EXPECT_EQ(read(*store, "a"), 1U);
  ASSERT_TRUE(put(*make(), "b", 3)) << "the same revision again, with another content";
  const auto fooled =
      update_if_revision(*store, mark_key("b"), core::HighWaterMark{}, *before, sample_token(9), soon());
  ASSERT_FALSE(fooled);
  EXPECT_EQ(fooled.error().code, ErrorCode::conflict);
  EXPECT_EQ(read(*store, "b"), 3U);
  const auto changes = (*watch)->next(soon());
  ASSERT_FALSE(changes);
  EXPECT_EQ(changes.error().code, ErrorCode::too_old);
  ASSERT_TRUE(put(*store, "b", 4));
  EXPECT_EQ(read(*make(), "b"), 4U);
}

/// Whatever others write, in whatever order it is looked at.
TEST_F(ReplacedFilesTest, WhatOthersCommitIsNoOtherEpoch) {
  const auto store = make();
  const auto other = make();
  for (std::uint64_t commits : {1, 2, 80, 200}) {
    SCOPED_TRACE(commits);
    for (std::uint64_t i = 0; i < commits; ++i) ASSERT_TRUE(put(*other, "a", i));
    EXPECT_EQ(read(*store, "a"), commits - 1);
    ASSERT_TRUE(put(*store, "b", commits));
    EXPECT_EQ(read(*other, "b"), commits);
  }
  EXPECT_EQ(store->epoch(), 0U);
  EXPECT_EQ(other->epoch(), 0U);
}

TEST_F(ReplacedFilesTest, ThreadsThatReadAndCommitMeetNoOtherEpoch) {
  const auto one = make();
  const auto two = make();
  std::vector<std::jthread> threads;
  for (int i = 0; i < 6; ++i) {
    threads.emplace_back([&, i] {
      SqliteStore& store = i % 2 == 0 ? *one : *two;
      for (std::uint64_t n = 0; n < 60; ++n) {
        EXPECT_TRUE(i < 3 ? put(store, "a" + std::to_string(i), n) : store.position(soon()));
        EXPECT_TRUE(store.get(mark_key("a0"), soon()));
      }
    });
  }
  threads.clear();
  EXPECT_EQ(one->epoch(), 0U);
  EXPECT_EQ(two->epoch(), 0U);
}

TEST_F(ReplacedFilesTest, AnIndexThatIsRemovedLosesNothing) {
  auto store = make();
  ASSERT_TRUE(put(*store, "a", 1));
  fs::remove(path() + "-shm");
  EXPECT_EQ(read(*store, "a"), 1U);
  EXPECT_TRUE(fs::exists(path() + "-shm"));
  fs::remove(path() + "-shm");
  ASSERT_TRUE(put(*store, "a", 2));
  store.reset();
  EXPECT_EQ(read(*make(), "a"), 2U);
}

TEST_F(ReplacedFilesTest, TwoStoresOfOneProcessLetGoOfARemovedIndex) {
  const auto one = make();
  const auto two = make();
  ASSERT_TRUE(put(*one, "a", 1));
  EXPECT_EQ(read(*two, "a"), 1U);
  fs::remove(path() + "-shm");
  std::thread other([&] {
    for (int i = 0; i < 200; ++i) static_cast<void>(two->get(mark_key("a"), soon()));
  });
  for (std::uint64_t i = 0; i < 200; ++i) static_cast<void>(put(*one, "a", i));
  other.join();
  ASSERT_TRUE(put(*one, "a", 500));
  EXPECT_EQ(read(*two, "a"), 500U);
}

TEST_F(ReplacedFilesTest, AnOlderCopyInPlaceIsToldByTheNoteOfTheLastCommit) {
  const auto store = make();
  ASSERT_TRUE(put(*store, "a", 1));
  copy_to(copy());
  ASSERT_TRUE(put(*store, "a", 2));
  overwrite("");
  overwrite("-wal");
  fs::remove(path() + "-shm");
  EXPECT_EQ(code_of_opening(), ErrorCode::corrupt);
  EXPECT_EQ(code_of_reading(*store), ErrorCode::corrupt);
  EXPECT_EQ(put(*store, "a", 3).error().code, ErrorCode::corrupt);
}

TEST_F(ReplacedFilesTest, ALogThatIsRemovedWithItsIndexIsMissed) {
  const auto store = make();
  ASSERT_TRUE(put(*store, "a", 1));
  ASSERT_TRUE(put(*store, "a", 2));
  fs::remove(path() + "-shm");
  fs::remove(path() + "-wal");
  const auto committed = put(*store, "a", 3);
  ASSERT_FALSE(committed);
  EXPECT_EQ(committed.error().code, ErrorCode::corrupt);
  EXPECT_EQ(code_of_opening(), ErrorCode::corrupt);
}

/// After a power cut the database may be as short as it was at the last checkpoint, with a log that has the rest,
/// beside an index of any time before.
TEST_F(ReplacedFilesTest, APowerCutThatShortenedTheDatabaseLosesNothing) {
  const auto store = make();
  const std::uintmax_t synced = bytes_without_log();
  grow(*store);
  copy_to(copy());
  const std::string at = copy() + "/croft.db";
  for (const bool stale_index : {true, false}) {
    std::uintmax_t cuts = 0;
    for (std::uintmax_t size = fs::file_size(path()); size >= synced; size -= 1024) {
      if (size > synced + std::uintmax_t{20} * 4096 && size % 65536 != 0) continue;
      ++cuts;
      SCOPED_TRACE(size);
      copy_to(copy());
      if (!stale_index) fs::remove(at + "-shm");
      fs::resize_file(at, size);
      EXPECT_EQ(refusal_of_grown(at), std::nullopt);
    }
    EXPECT_GT(cuts, 4U);
  }
  for (const std::uintmax_t size : {synced - 1, synced - 4096, std::uintmax_t{4096}, std::uintmax_t{0}}) {
    SCOPED_TRACE(size);
    copy_to(copy());
    fs::resize_file(at, size);
    const auto refused = refusal_of_grown(at);  // lacks what no log has, unless nothing uses it
    EXPECT_TRUE(!refused || refused == ErrorCode::corrupt) << static_cast<int>(*refused);
  }
}

TEST_F(ReplacedFilesTest, APowerCutInACheckpointThatStoppedHalfwayLosesNothing) {
  const auto store = make();
  const std::uintmax_t synced = bytes_without_log();
  ASSERT_TRUE(put(*store, "0-0" + std::string(150, 'x'), 1));
  sqlite3* reader = nullptr;
  ASSERT_EQ(sqlite3_open(path().c_str(), &reader), SQLITE_OK);
  ASSERT_EQ(sqlite3_exec(reader, "BEGIN; SELECT * FROM counters", nullptr, nullptr, nullptr), SQLITE_OK);
  grow(*store);
  as_other_program(path(), "PRAGMA wal_checkpoint(PASSIVE)");
  for (std::uintmax_t size = synced; size < synced + 20 * std::uintmax_t{4096}; size += 4096) {
    SCOPED_TRACE(size);
    copy_to(copy());
    fs::resize_file(copy() + "/croft.db", size);
    EXPECT_EQ(refusal_of_grown(copy() + "/croft.db"), std::nullopt);
  }
  sqlite3_close(reader);
}

TEST_F(ReplacedFilesTest, AnIndexThatIsCutIsMadeAnew) {
  const auto store = make();
  ASSERT_TRUE(put(*store, "a", 1));
  fs::resize_file(path() + "-shm", 0);
  ASSERT_TRUE(put(*store, "a", 2));
  EXPECT_EQ(read(*make(), "a"), 2U);
}

TEST_F(ReplacedFilesTest, OneFlippedBitInTheLogIsToldAtTheNextOpening) {
  std::uintmax_t at = 0;
  {
    const auto store = make();
    for (std::uint64_t i = 1; i <= 8; ++i) ASSERT_TRUE(put(*store, "a" + std::to_string(i), i));
    // In the page of the fourth frame.
    at = 32 + 3 * (24 + 4096) + 24 + 100;
  }
  flip_bit(path() + "-wal", at);
  const Error error = error_of(open(path()));
  EXPECT_EQ(error.code, ErrorCode::corrupt);
  EXPECT_NE(error.message.find("store restore"), std::string::npos) << error.message;
  EXPECT_EQ(error_of(open(path(), {.create = true})).code, ErrorCode::corrupt);
}

TEST_F(ReplacedFilesTest, ADatabaseThatIsGoneWithItsLogIsNotMadeAnew) {
  ASSERT_TRUE(put(*make(), "a", 1));
  fs::remove(path() + "-shm");
  fs::remove(path() + "-wal");
  fs::remove(path());
  EXPECT_EQ(error_of(open(path(), {.create = true})).code, ErrorCode::corrupt);
  EXPECT_EQ(code_of_opening(), ErrorCode::corrupt);
  fs::remove(path() + "-lock");
  EXPECT_EQ(code_of_opening(), ErrorCode::not_found);
  EXPECT_EQ(read(*make(), "a"), std::nullopt);
}

/// Nobody but a restore puts another register at a path, and it notes that.
TEST_F(ReplacedFilesTest, ANoteOfAnotherRegisterIsProofUntilTheLockFileIsRemoved) {
  {
    const auto store = make();
    for (std::uint64_t i = 1; i <= 8; ++i) ASSERT_TRUE(put(*store, "a", i));
  }
  copy_to(copy());
  for (const char* suffix : kSuffixes) fs::remove(path() + suffix);
  ASSERT_TRUE(put(*make(), "a", 1));
  overwrite("-lock");
  EXPECT_EQ(code_of_opening(), ErrorCode::corrupt);
  fs::remove(path() + "-lock");
  ASSERT_TRUE(put(*make(), "a", 4));
  EXPECT_GT(fs::file_size(path() + "-lock"), 0U);
}

TEST_F(ReplacedFilesTest, ADamagedNoteMeansNothing) {
  ASSERT_TRUE(put(*make(), "a", 2));
  flip_bit(path() + "-lock", 30);
  ASSERT_TRUE(put(*make(), "a", 3));
  write(path() + "-lock", "");
  EXPECT_EQ(read(*make(), "a"), 3U);
}

TEST_F(ReplacedFilesTest, ALockFileReplacedUnderATurnIsFollowed) {
  const auto store = make();
  const auto turn = store->take_turn(soon());
  ASSERT_TRUE(turn);
  fs::remove(path() + "-lock");
  ASSERT_TRUE(put(*store, "a", 1));
  const auto other = make();
  const Write write{mark_key("a"), core::HighWaterMark{}, Condition::always()};
  const auto committed = other->commit({&write, 1}, sample_token(1), in(std::chrono::milliseconds{50}));
  ASSERT_FALSE(committed);
  EXPECT_EQ(committed.error().code, ErrorCode::deadline_exceeded);
}

}  // namespace
}  // namespace croft::store
