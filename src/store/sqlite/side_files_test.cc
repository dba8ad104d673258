// What stands beside a store under the names that SQLite looks for.

#include <sys/stat.h>

#include <fstream>

#include "store/sqlite/backup.h"
#include "store/sqlite/store_fixture.h"

namespace croft::store {
namespace {

namespace fs = std::filesystem;

class SideFilesTest : public SqliteStoreTest {
 protected:
  void SetUp() override {
    ASSERT_TRUE(put(*make(), "a", 1));
    as_other_croft(path(), "PRAGMA wal_checkpoint(TRUNCATE)");
    for (const char* suffix : {"-wal", "-shm"}) fs::remove(path() + suffix);
    std::ofstream(victim()) << "precious";
  }
  [[nodiscard]] std::string victim() const { return scratch_.file("victim"); }

  /// A journal of a crash in a commit to several databases: SQLite rolls back and then deletes `named`.
  void put_journal(const std::string& at, const std::string& named) const {
    const auto number = [](std::uint32_t n) {
      return std::string{static_cast<char>(n >> 24), static_cast<char>(n >> 16), static_cast<char>(n >> 8),
                         static_cast<char>(n)};
    };
    const std::string magic = "\xd9\xd5\x05\xf9\x20\xa1\x63\xd7";
    std::string header = magic + number(0) + number(0) +
                         number(static_cast<std::uint32_t>(fs::file_size(path()) / 4096)) + number(512) + number(4096);
    header.resize(512);
    std::uint32_t sum = 0;
    for (const char c : named) sum += static_cast<std::uint32_t>(static_cast<signed char>(c));
    std::ofstream(at, std::ios::binary) << header << number(0x40000000 / 4096 + 1) << named
                                        << number(static_cast<std::uint32_t>(named.size())) << number(sum) << magic;
  }

  /// Every way to the store is refused with this name, at once.
  void expect_refused(const std::string& name) const {
    const auto start = clock_.now().since_boot;
    const auto told = [&](const Error& error) {
      EXPECT_EQ(error.code, ErrorCode::corrupt) << error.message;
      EXPECT_NE(error.message.find(name), std::string::npos) << error.message;
      EXPECT_NE(error.message.find("remove it"), std::string::npos) << error.message;
    };
    told(error_of(open(path())));
    told(error_of(open(path(), {.create = true, .verify = true})));
    const auto copied = backup_sqlite_store(path(), scratch_.file("copy"), clock_, soon());
    ASSERT_FALSE(copied);
    told(copied.error());
    for (const bool incomplete : {false, true}) {
      const auto restored =
          SqliteRestore::begin(scratch_.file("new.db"), path(), {.incomplete = incomplete}, clock_, soon());
      if (restored || name != path() + "-shm") {
        ASSERT_FALSE(restored);
        told(restored.error());
      }
    }
    EXPECT_LT(clock_.now().since_boot - start, std::chrono::seconds{2});
  }
};

TEST_F(SideFilesTest, ARollbackJournalDeletesNothing) {
  put_journal(path() + "-journal", victim());
  expect_refused(path() + "-journal");
  EXPECT_TRUE(fs::exists(victim()));
  EXPECT_TRUE(fs::exists(path() + "-journal")) << "it is left for people to look at";
  fs::remove(path() + "-journal");
  EXPECT_EQ(read(*make(), "a"), 1U);
}

TEST_F(SideFilesTest, AJournalBesideABackupDeletesNothing) {
  ASSERT_TRUE(backup_sqlite_store(path(), scratch_.file("backup"), clock_, soon()));
  put_journal(scratch_.file("backup-journal"), victim());
  const auto restored = SqliteRestore::begin(path(), scratch_.file("backup"), {.incomplete = true}, clock_, soon());
  ASSERT_FALSE(restored);
  EXPECT_EQ(restored.error().code, ErrorCode::corrupt);
  EXPECT_TRUE(fs::exists(victim()));
  EXPECT_EQ(read(*make(), "a"), 1U);
}

TEST_F(SideFilesTest, AJournalThatComesLaterIsToldToThoseWhoOpen) {
  const auto store = make();
  put_journal(path() + "-journal", victim());
  EXPECT_EQ(read(*store, "a"), 1U);
  EXPECT_TRUE(put(*store, "a", 2)) << "who has it open never looks";
  EXPECT_EQ(error_of(open(path())).code, ErrorCode::corrupt);
  EXPECT_TRUE(fs::exists(victim()));
}

TEST_F(SideFilesTest, WhatIsNoRegularFileIsNeitherOpenedNorChanged) {
  for (const std::string suffix : {"-journal", "-wal", "-shm"}) {
    SCOPED_TRACE(suffix);
    const std::string at = path() + suffix;
    ASSERT_EQ(::mkfifo(at.c_str(), 0600), 0);
    expect_refused(at);
    fs::remove(at);
    fs::create_directory(at);
    expect_refused(at);
    fs::remove(at);
    fs::create_symlink(victim(), at);
    expect_refused(at);
    fs::remove(at);
    fs::create_symlink(scratch_.file("nothing"), at);
    expect_refused(at);
    EXPECT_FALSE(fs::exists(scratch_.file("nothing")));
    fs::remove(at);
    fs::create_symlink("/dev/zero", at);
    expect_refused(at);
    fs::remove(at);
    fs::create_hard_link(victim(), at);
    expect_refused(at);
    fs::remove(at);
  }
  std::string content;
  std::ifstream(victim()) >> content;
  EXPECT_EQ(content, "precious");
  EXPECT_EQ(read(*make(), "a"), 1U);
}

/// The note of the newest commit is written into the lock file.
TEST_F(SideFilesTest, ALockThatIsAnothersFileIsNotWrittenInto) {
  const std::string lock = path() + "-lock";
  fs::remove(lock);
  fs::create_hard_link(victim(), lock);
  const auto store = open(path());
  const auto done = store ? put(**store, "b", 2) : Result<Revision>(fail(store.error()));
  ASSERT_FALSE(done);
  const Error& refusal = done.error();
  EXPECT_NE(refusal.message.find("has 2 names"), std::string::npos) << refusal.message;
  std::string content;
  std::ifstream(victim()) >> content;
  EXPECT_EQ(content, "precious");
}

TEST_F(SideFilesTest, LinksUnderTheNamesOfDraftsAreReplacedAndNotFollowed) {
  const auto made = scratch_.file("made.db");
  for (const char* suffix : {"-new", "-new-journal", "-new-wal", "-new-shm"})
    fs::create_symlink(victim(), made + suffix);
  EXPECT_TRUE(put(*make_at(made), "a", 1));
  const auto backup = scratch_.file("backup");
  for (const char* suffix : {"-new", "-new-journal", "-new-wal", "-new-shm"})
    fs::create_symlink(victim(), backup + suffix);
  EXPECT_TRUE(backup_sqlite_store(path(), backup, clock_, soon()));
  for (const char* suffix : {"-restore", "-restore-journal", "-restore-wal", "-restore-shm", "-restore-lock"})
    fs::create_symlink(victim(), path() + suffix);
  {
    const auto restore = SqliteRestore::begin(path(), backup, {}, clock_, soon());
    ASSERT_TRUE(restore) << restore.error().message;
    EXPECT_TRUE((*restore)->finish(soon()));
  }
  std::string content;
  std::ifstream(victim()) >> content;
  EXPECT_EQ(content, "precious");
  EXPECT_EQ(read(*make(), "a"), 1U);
}

}  // namespace
}  // namespace croft::store
