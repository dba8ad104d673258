// Copies of a register and the way back.

#include "store/sqlite/backup.h"

#include <filesystem>
#include <fstream>
#include <iterator>
#include <set>

#include <gmock/gmock.h>

#include "store/sqlite/commit_note.h"
#include "store/sqlite/store_fixture.h"

namespace croft::store {
namespace {

namespace fs = std::filesystem;

class BackupTest : public SqliteStoreTest {
 protected:
  [[nodiscard]] std::string backup() const { return scratch_.file("backup"); }
  [[nodiscard]] Result<RegisterCopy> back_up() const { return backup_sqlite_store(path(), backup(), clock_, soon()); }
  [[nodiscard]] Result<void> restore(SqliteRestore::Options options = {}) const {
    TRY(const auto restore, SqliteRestore::begin(path(), backup(), options, clock_, soon()));
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

TEST_F(BackupTest, ABackupHoldsNoLock) {
  const auto store = make();
  ASSERT_TRUE(put(*store, "a", 1));
  const auto turn = store->take_turn(soon());
  ASSERT_TRUE(turn);
  EXPECT_TRUE(back_up());
}

TEST_F(BackupTest, ALookAtWhatARestoreWouldDoHoldsNoLock) {
  const auto store = make();
  ASSERT_TRUE(put(*store, "a", 1));
  ASSERT_TRUE(back_up());
  const auto turn = store->take_turn(soon());
  ASSERT_TRUE(turn);
  {
    const auto look = SqliteRestore::begin(path(), backup(), {.look_only = true}, clock_, soon());
    ASSERT_TRUE(look) << look.error().message;
    EXPECT_EQ(read(*make_at((*look)->draft()), "a"), 1U);
    ASSERT_TRUE(put(*store, "a", 2));
    const auto another =
        SqliteRestore::begin(path(), backup(), {.look_only = true}, clock_, in(std::chrono::milliseconds{10}));
    ASSERT_FALSE(another);
    EXPECT_EQ(another.error().code, ErrorCode::deadline_exceeded);
  }
  EXPECT_EQ(read(*store, "a"), 2U);
  for (const auto& entry : fs::directory_iterator(scratch_.path())) {
    EXPECT_EQ(entry.path().string().find("-look"), std::string::npos) << entry.path();
  }
}

TEST_F(BackupTest, WhileARegisterIsReplacedNobodyWritesOrReplacesItToo) {
  const auto store = make();
  ASSERT_TRUE(put(*store, "a", 1));
  ASSERT_TRUE(back_up());
  const auto at_once = [&] { return in(std::chrono::milliseconds{10}); };
  {
    const auto restore = SqliteRestore::begin(path(), backup(), {}, clock_, soon());
    ASSERT_TRUE(restore) << restore.error().message;
    const auto turn = store->take_turn(at_once());
    ASSERT_FALSE(turn);
    EXPECT_EQ(turn.error().code, ErrorCode::deadline_exceeded);
    const auto another = SqliteRestore::begin(path(), backup(), {}, clock_, at_once());
    ASSERT_FALSE(another);
    EXPECT_EQ(another.error().code, ErrorCode::deadline_exceeded);
    ASSERT_TRUE((*restore)->finish(soon()));
  }
  EXPECT_TRUE(store->take_turn(soon()));
  EXPECT_TRUE(restore());
}

/// A plain SQLite that is the last to close the register copies its log, and the pages have no checksum of ours then.
/// Who reads on gives them one, under the lock: who restores has that himself.
TEST_F(BackupTest, WhoRestoresReadsWhatIsThereThoughAnotherProgramHasCopiedItsLog) {
  {
    const auto store = make();
    for (std::uint64_t i = 0; i < 100; ++i) ASSERT_TRUE(put(*store, "a" + std::to_string(i), i));
  }
  ASSERT_TRUE(back_up());
  as_other_program(path(), "SELECT count(*) FROM records");
  const auto restore = SqliteRestore::begin(path(), backup(), {}, clock_, soon());
  ASSERT_TRUE(restore) << restore.error().message;
  const auto there = open_sqlite_store(path(), {.verify = true, .lock_is_held = true}, clock_, soon());
  ASSERT_TRUE(there) << there.error().message;
  EXPECT_EQ(read(**there, "a7"), 7U);
  ASSERT_TRUE((*restore)->finish(soon()));
  EXPECT_EQ(read(*make(), "a7"), 7U);
}

TEST_F(BackupTest, WhatALookThatWasKilledLeftIsRemoved) {
  {
    const auto store = make();
    ASSERT_TRUE(put(*store, "a", 1));
  }
  ASSERT_TRUE(back_up());
  for (const char* suffix : {"-look", "-look-turn", "-look-rows"}) std::ofstream(path() + suffix) << "left";
  ASSERT_TRUE(restore());
  for (const char* suffix : {"-look", "-look-turn", "-look-rows"}) EXPECT_FALSE(fs::exists(path() + suffix)) << suffix;
}

TEST_F(BackupTest, WhatAnalyzeNotesIsLetBeAndWhatOthersMadeIsLeftBehindWhenAsked) {
  {
    const auto store = make();
    ASSERT_TRUE(put(*store, "a", 1));
  }
  as_other_croft(path(), "ANALYZE");
  EXPECT_EQ(read(*make(), "a"), 1U);
  as_other_croft(path(), "CREATE INDEX mine ON records(value)");
  {
    const auto refused = SqliteRestore::begin(path(), path(), {}, clock_, soon());
    ASSERT_FALSE(refused);
    EXPECT_EQ(refused.error().code, ErrorCode::corrupt);
    EXPECT_THAT(refused.error().message + refused.error().details, testing::HasSubstr("index mine"));
  }
  const auto asked = SqliteRestore::begin(path(), path(), {.incomplete = true}, clock_, soon());
  ASSERT_TRUE(asked) << asked.error().message << asked.error().details;
  ASSERT_TRUE((*asked)->finish(soon()));
  EXPECT_EQ(read(*make(), "a"), 1U);
  EXPECT_EQ(as_other_program(path(), "SELECT count(*) FROM sqlite_schema WHERE name='mine'"), "0");
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

/// Who was told to restore it, and forgot which store he means.
TEST_F(BackupTest, AnotherLiveRegisterIsNoBackup) {
  const std::string other = scratch_.file("other/croft.db");
  ASSERT_TRUE(put(*make_at(other), "a", 1));
  ASSERT_TRUE(put(*make(), "b", 1));
  for (const bool force : {false, true}) {
    const auto refused = SqliteRestore::begin(path(), other, {.incomplete = force}, clock_, soon());
    ASSERT_FALSE(refused);
    EXPECT_EQ(refused.error().code, ErrorCode::invalid_argument);
    EXPECT_THAT(refused.error().message,
                testing::HasSubstr("croft --store sqlite:" + other + " store restore " + other));
  }
  EXPECT_EQ(read(*make(), "b"), 1U);
  // Who says so may. What its lock file proves still counts: here the log is missing.
  ASSERT_TRUE(put(*make_at(other), "a", 2));
  fs::create_directory(scratch_.file("torn"));
  const std::string torn = scratch_.file("torn/croft.db");
  fs::copy_file(other, torn);
  fs::copy_file(other + "-lock", torn + "-lock");
  const auto begin = [&](const std::string& from) {
    return SqliteRestore::begin(path(), from, {.from_other_register = true}, clock_, soon());
  };
  const auto incomplete = begin(torn);
  ASSERT_FALSE(incomplete);
  EXPECT_EQ(incomplete.error().code, ErrorCode::corrupt);
  const auto taken = begin(other);
  ASSERT_TRUE(taken) << taken.error().message;
  ASSERT_TRUE((*taken)->finish(soon()));
  EXPECT_EQ(read(*make(), "a"), 2U);
}

/// As the runbook's first step makes one, and as a backup by `cp -a`: its lock file is in it.
TEST_F(BackupTest, ACopyOfTheDirectoryIsABackupHoweverOftenOneWasRestored) {
  const auto copy_all = [&](const std::string& name) {
    fs::create_directory(scratch_.file(name));
    for (const char* suffix : {"", "-wal", "-lock"}) {
      if (fs::exists(path() + suffix)) fs::copy_file(path() + suffix, scratch_.file(name + "/croft.db" + suffix));
    }
    return scratch_.file(name + "/croft.db");
  };
  const auto restored = [&](const std::string& from, SqliteRestore::Options options) -> Result<void> {
    TRY(const auto restore, SqliteRestore::begin(path(), from, options, clock_, soon()));
    return options.look_only ? Result<void>() : restore->finish(soon());
  };
  ASSERT_TRUE(put(*make(), "a", 1));
  const std::string first = copy_all("first");
  ASSERT_TRUE(put(*make(), "a", 2));
  for (int i = 0; i < 3; ++i) ASSERT_TRUE(restored(first, {})) << i;
  EXPECT_EQ(read(*make(), "a"), 1U);
  ASSERT_TRUE(put(*make(), "a", 3));
  const std::string second = copy_all("second");
  ASSERT_TRUE(back_up());
  for (int i = 0; i < 40; ++i) ASSERT_TRUE(restore()) << i;
  EXPECT_FALSE(restored(second, {})) << "of " << kReplacedMax << " it is remembered";
  ASSERT_TRUE(put(*make(), "a", 4));
  const std::string third = copy_all("third");
  ASSERT_TRUE(restore());
  EXPECT_TRUE(restored(third, {.look_only = true}));
  ASSERT_TRUE(restored(third, {.incomplete = true}));
  EXPECT_EQ(read(*make(), "a"), 4U);
  // The other way round: an old copy was put in the place of the register, and a later one is restored over it.
  for (const char* suffix : {"", "-wal", "-shm", "-lock"}) fs::remove(path() + suffix);
  fs::copy(scratch_.file("third"), fs::path(path()).parent_path());
  ASSERT_TRUE(put(*make(), "a", 5));
  const std::string later = copy_all("later");
  for (const char* suffix : {"", "-wal", "-shm", "-lock"}) fs::remove(path() + suffix);
  fs::copy(scratch_.file("third"), fs::path(path()).parent_path());
  ASSERT_TRUE(restored(later, {}));
  EXPECT_EQ(read(*make(), "a"), 5U);
}

TEST_F(BackupTest, ARefusalNamesTheBackupAndNoDraft) {
  ASSERT_TRUE(put(*make(), "a", 1));
  ASSERT_TRUE(back_up());
  as_other_croft(backup(), "PRAGMA journal_mode=MEMORY; CREATE TABLE notes(x)");
  for (const bool look_only : {false, true}) {
    const auto refused = SqliteRestore::begin(path(), backup(), {.look_only = look_only}, clock_, soon());
    ASSERT_FALSE(refused);
    const std::string text = refused.error().message + refused.error().details;
    EXPECT_THAT(text, testing::AllOf(testing::HasSubstr(backup()), testing::HasSubstr("notes"),
                                     testing::HasSubstr("--force"), testing::Not(testing::HasSubstr("croft.db-"))));
  }
}

TEST_F(BackupTest, WhatRefusesALiveRegisterNamesItsStore) {
  const auto store = make();
  ASSERT_TRUE(put(*store, "a", 1));
  as_other_croft(path(), "CREATE TABLE notes(x)");
  EXPECT_THAT(error_of(open(path())).message,
              testing::HasSubstr("croft --store sqlite:" + path() + " store restore " + path() + " --force"));
}

/// One damaged record is set aside by whoever reads it: it must not be the end of all others.
TEST_F(BackupTest, DamagedRecordsAreTakenAlongWhenAsked) {
  {
    const auto store = make();
    for (const char* name : {"a", "b"}) ASSERT_TRUE(put(*store, name, 1));
  }
  as_other_croft(path(), "UPDATE records SET checksum=checksum+1 WHERE name='b'");
  ASSERT_TRUE(back_up());
  const auto refused = restore();
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, ErrorCode::corrupt);
  ASSERT_TRUE(restore({.incomplete = true}));
  const auto store = make();
  EXPECT_EQ(read(*store, "a"), 1U);
  const auto b = store->get(mark_key("b"), soon());
  ASSERT_TRUE(b && *b);
  EXPECT_NE(core::damage_of((*b)->value), nullptr);
}

/// Where the lock file is gone too, the log says what the database must have.
TEST_F(BackupTest, ACopyOfAnOlderDatabaseUnderANewerLogIsTakenOnlyWhenAsked) {
  {
    const auto store = make();
    const auto shorten = [&](std::uint64_t times) {
      for (std::uint64_t i = 0; store->counters().checkpoints < times; ++i) ASSERT_TRUE(put(*store, "a", i));
    };
    shorten(1);
    ASSERT_TRUE(put(*store, "b", 1));
    fs::copy_file(path(), backup());
    shorten(2);
    ASSERT_TRUE(put(*store, "c", 1));
  }
  fs::copy_file(path() + "-wal", backup() + "-wal");
  EXPECT_EQ(restore().error().code, ErrorCode::corrupt);
  ASSERT_TRUE(restore({.incomplete = true}));
}

/// As a database and a log of two times have it.
TEST_F(BackupTest, PagesThatNobodyUsesAreLeftBehindWhenAsked) {
  {
    const auto store = make();
    ASSERT_TRUE(put(*store, "a", 1));
  }
  ASSERT_TRUE(back_up());
  make_without_page_sums(backup());
  as_other_program(backup(), "PRAGMA journal_mode=DELETE");
  as_other_program(backup(),
                   "CREATE TABLE t(a); INSERT INTO t VALUES(zeroblob(20000)); PRAGMA writable_schema=ON; "
                   "DELETE FROM sqlite_schema WHERE name='t'");
  EXPECT_EQ(restore().error().code, ErrorCode::corrupt);
  const auto restored = restore({.incomplete = true});
  ASSERT_TRUE(restored) << restored.error().message << restored.error().details;
  EXPECT_EQ(read(*make(), "a"), 1U);
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
  ASSERT_TRUE(restore({.incomplete = true}));
  EXPECT_EQ(read(*make(), "a"), 1U);
}

// ---------------------------------------------------------------- what is damaged, record by record

/// A backup with damage in its bytes.
class DamagedBackupTest : public BackupTest {
 protected:
  static constexpr std::size_t kPage = 4096;
  static constexpr char kTableLeaf = 0x0d;
  static constexpr char kIndexLeaf = 0x0a;

  void make_backup(std::uint64_t records) {
    {
      const auto store = make();
      for (std::uint64_t i = 0; i < records; ++i) ASSERT_TRUE(put(*store, name(i), i));
    }
    ASSERT_TRUE(back_up());
    std::ifstream in(backup(), std::ios::binary);
    whole_ = std::string(std::istreambuf_iterator<char>(in), {});
    records_ = records;
  }
  static std::string name(std::uint64_t i) { return "name-" + std::to_string(100 + i); }
  /// Where a name is, in a page of this kind.
  [[nodiscard]] std::size_t place_of(const std::string& what, char kind) const {
    for (std::size_t at = whole_.find(what); at != std::string::npos; at = whole_.find(what, at + 1)) {
      if (whole_[at / kPage * kPage] == kind) return at;
    }
    ADD_FAILURE() << what << " is in no such page";
    return 0;
  }
  [[nodiscard]] std::size_t counters_page() const {
    return static_cast<std::size_t>(
        std::stoul(as_other_croft(path(), "SELECT rootpage FROM sqlite_schema WHERE name='counters'")) - 1);
  }
  /// What comes of a restore of these bytes, looked at: readable, set aside and missing records.
  struct Outcome {
    std::uint64_t readable = 0, wrong = 0;
    std::set<std::string> set_aside, missing;
    std::vector<std::string> told;
    std::uint64_t revision = 0;
  };
  [[nodiscard]] Outcome restore_of(const std::string& bytes) const {
    std::ofstream(backup(), std::ios::binary | std::ios::trunc) << bytes;
    Outcome outcome;
    const auto look = SqliteRestore::begin(path(), backup(), {.incomplete = true, .look_only = true}, clock_, soon());
    EXPECT_TRUE(look) << look.error().message << look.error().details;
    if (!look) return outcome;
    for (const Error& error : (*look)->damaged()) outcome.told.push_back(error.message);
    outcome.revision = (*look)->revision_of_backup();
    const auto store = make_at((*look)->draft());
    for (std::uint64_t i = 0; i < records_; ++i) {
      const auto record = store->get(mark_key(name(i)), soon());
      EXPECT_TRUE(record);
      if (!record) continue;
      if (!*record) {
        outcome.missing.insert(name(i));
      } else if (core::damage_of((*record)->value) != nullptr) {
        outcome.set_aside.insert(name(i));
      } else {
        ++outcome.readable;
        if (std::get<core::HighWaterMark>((*record)->value).sequence_number.value != i) ++outcome.wrong;
      }
    }
    EXPECT_EQ(outcome.wrong, 0U);
    return outcome;
  }

  std::string whole_;
  std::uint64_t records_ = 0;
};

/// '3' and '7' are one bit apart.
TEST_F(DamagedBackupTest, ADamagedNameTakesNothingFromTheRecordThatHasIt) {
  make_backup(10);
  std::string bytes = whole_;
  bytes[place_of(name(7), kTableLeaf) + name(7).size() - 1] ^= 4;
  const Outcome by_index = restore_of(bytes);
  EXPECT_EQ(by_index.readable, 10U) << "the index has the name";
  bytes[place_of(name(7), kIndexLeaf) + name(7).size() - 1] ^= 4;
  const Outcome lost = restore_of(bytes);
  EXPECT_EQ(lost.readable, 9U);
  EXPECT_THAT(lost.missing, testing::ElementsAre(name(7)));
  EXPECT_THAT(lost.told, testing::Contains(testing::HasSubstr("one more record")));
}

TEST_F(DamagedBackupTest, AFlippedBitInTheHeadOfARowCostsThatRowAtMost) {
  make_backup(10);
  const std::size_t at = place_of(name(5), kTableLeaf);
  for (std::size_t byte = at - 10; byte < at + 2; ++byte) {
    for (const int bit : {0, 3, 7}) {
      std::string bytes = whole_;
      bytes[byte] = static_cast<char>(bytes[byte] ^ (1 << bit));
      const Outcome outcome = restore_of(bytes);
      EXPECT_GE(outcome.readable, 9U) << "byte " << byte - at << " bit " << bit;
      EXPECT_THAT(outcome.missing, testing::IsEmpty()) << "byte " << byte - at << " bit " << bit;
    }
  }
}

TEST_F(DamagedBackupTest, APageOfZeroesCostsItsRecordsAndTheyAreSetAside) {
  make_backup(300);
  std::string bytes = whole_;
  for (const std::uint64_t i : {100U, 200U}) {
    bytes.replace(place_of(name(i), kTableLeaf) / kPage * kPage, kPage, kPage, '\0');
  }
  const Outcome outcome = restore_of(bytes);
  EXPECT_GT(outcome.readable, 150U);
  EXPECT_TRUE(outcome.set_aside.contains(name(100)) && outcome.set_aside.contains(name(200)));
  EXPECT_THAT(outcome.missing, testing::IsEmpty());
  EXPECT_EQ(outcome.told.size(), outcome.set_aside.size());
}

TEST_F(DamagedBackupTest, DamagedCountersCostNoRecord) {
  make_backup(10);
  const std::size_t page = counters_page() * kPage;
  std::string bytes = whole_;
  bytes.replace(page, kPage, kPage, '\0');
  EXPECT_EQ(restore_of(bytes).readable, 10U);
  EXPECT_EQ(restore_of(bytes).revision, 10U);
  for (std::size_t i = whole_.find_last_not_of('\0', page + kPage - 9); i > page + kPage - 60; --i) {
    bytes = whole_;
    bytes[i] ^= 16;
    const Outcome outcome = restore_of(bytes);
    EXPECT_EQ(outcome.readable, 10U) << i - page;
    EXPECT_GE(outcome.revision, 10U) << i - page;
  }
}

}  // namespace
}  // namespace croft::store
