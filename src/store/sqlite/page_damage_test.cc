// Damage that no checksum of a record shows: every bit of every page of a small register, in the database and in a log
// that is open.

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <set>
#include <thread>

#include "store/sqlite/backup.h"
#include "store/sqlite/page_checksum.h"
#include "store/sqlite/store_fixture.h"

namespace croft::store {
namespace {

namespace fs = std::filesystem;
using Content = std::vector<std::uint8_t>;

class PageDamageTest : public SqliteStoreTest {
 protected:
  static constexpr std::uint64_t kNames = 60;
  static bool thorough() { return std::getenv("CROFT_FULL") != nullptr; }

  static std::string name_of(std::uint64_t n) { return std::string(100, 'x') + std::to_string(n); }

  /// Enough names for an index of several pages with one above them, and everything in the database file.
  void make_register() const {
    const auto store = make();
    for (std::uint64_t n = 0; n < kNames; ++n) ASSERT_TRUE(put(*store, name_of(n), n));
    fold();
  }
  void fold() const { as_other_croft(path(), "PRAGMA wal_checkpoint(TRUNCATE)"); }
  [[nodiscard]] std::uint32_t pages() const {
    return static_cast<std::uint32_t>(std::stoul(as_other_program(path(), "PRAGMA page_count")));
  }

  /// Counted from 0.
  [[nodiscard]] std::vector<std::size_t> pages_without_sum() const {
    const Content whole = content_of(path());
    std::vector<std::size_t> found;
    for (std::size_t page = 0; (page + 1) * std::size_t{kPageBytes} <= whole.size(); ++page) {
      const std::uint8_t* const bytes = whole.data() + page * std::size_t{kPageBytes};
      if (page_sum_of(static_cast<std::uint32_t>(page) + 1, bytes) == PageSum::none) found.push_back(page);
    }
    return found;
  }

  static Content content_of(const std::string& at) {
    std::ifstream in(at, std::ios::binary);
    return {std::istreambuf_iterator<char>(in), {}};
  }
  static void flip(const std::string& at, std::size_t byte, unsigned bit) {
    std::fstream file(at, std::ios::in | std::ios::out | std::ios::binary);
    file.seekg(static_cast<std::streamoff>(byte));
    const int old = file.get();
    file.seekp(static_cast<std::streamoff>(byte));
    file.put(static_cast<char>(old ^ (1 << bit)));
  }

  /// Those behind the last start of the log.
  static std::size_t frames_in(const std::string& log) {
    const Content whole = content_of(log);
    const auto salt_of = [&](std::int64_t at) { return std::string(whole.begin() + at, whole.begin() + at + 8); };
    std::int64_t frames = 0;
    for (; kLogHeaderBytes + (frames + 1) * kFrameBytes <= std::ssize(whole); ++frames) {
      if (salt_of(16) != salt_of(kLogHeaderBytes + frames * kFrameBytes + 8)) break;
    }
    return static_cast<std::size_t>(frames);
  }

  /// Every record is read right, or the read is refused; what was said of the others.
  [[nodiscard]] bool is_all_right_or_refused(Store& store) const {
    bool refused = false;
    for (std::uint64_t n = 0; n < kNames; ++n) {
      const auto record = store.get(mark_key(name_of(n)), soon());
      if (!record) {
        EXPECT_EQ(record.error().code, ErrorCode::corrupt) << record.error().message;
        refused = true;
        continue;
      }
      EXPECT_TRUE(*record) << name_of(n) << " is absent";
      if (!*record) continue;
      if (core::damage_of((*record)->value) != nullptr) {  // named, and set aside
        refused = true;
        continue;
      }
      const auto* mark = std::get_if<core::HighWaterMark>(&(*record)->value);
      EXPECT_TRUE(mark != nullptr && mark->sequence_number.value == n) << name_of(n);
    }
    const auto listed = store.list_keys({Kind::high_water_mark, "", "", kListLimitMax}, soon());
    if (listed) {
      EXPECT_EQ(listed->keys.size(), kNames);
    }
    return refused || !listed;
  }
};

TEST_F(PageDamageTest, NoBitOfThePagesInUseIsReadWrong) {
  make_register();
  const Content whole = content_of(path());
  const std::uint32_t count = pages();
  ASSERT_GT(count, 6U);
  std::size_t refused = 0, tried = 0;
  // Each page at places all over it, the last byte too.
  const std::size_t step = thorough() ? 13 : 409;
  for (std::size_t page = 0; page < count; ++page) {
    for (std::size_t at = page % step; at < std::size_t{kPageBytes}; at += step) {
      const unsigned bit = static_cast<unsigned>((at + page) % 8);
      const std::size_t byte = page * std::size_t{kPageBytes} + at;
      flip(path(), byte, bit);
      const auto store = open(path());
      ++tried;
      if (!store) {
        EXPECT_TRUE(store.error().code == ErrorCode::corrupt) << store.error().message;
        ++refused;
      } else if (is_all_right_or_refused(**store)) {
        ++refused;
      } else {
        // Nothing that was asked lies there; the whole of it is not called sound.
        EXPECT_EQ(error_of(open(path(), {.verify = true})).code, ErrorCode::corrupt) << page << " " << at;
      }
      flip(path(), byte, bit);
      if (HasFailure()) FAIL() << "page " << page + 1 << " byte " << at;
    }
  }
  EXPECT_GT(refused, tried / 2);
  EXPECT_TRUE(open(path(), {.verify = true}));
}

TEST_F(PageDamageTest, TheRefusalNamesPageAndRemedyAndCopiesAreRefusedToo) {
  make_register();
  const auto index = std::stoul(
      as_other_program(path(), "SELECT rootpage FROM sqlite_schema WHERE name='sqlite_autoindex_records_1'"));
  flip(path(), index * std::size_t{kPageBytes} - 100, 1);
  const auto store = open(path());
  ASSERT_TRUE(store);
  const Error error = (*store)->get(mark_key(name_of(1)), soon()).error();
  EXPECT_EQ(error.code, ErrorCode::corrupt);
  EXPECT_NE(error.message.find("page " + std::to_string(index) + " of " + path()), std::string::npos) << error.message;
  EXPECT_NE(error.message.find("store restore"), std::string::npos) << error.message;
  EXPECT_EQ(put(**store, name_of(1), 7).error().code, ErrorCode::corrupt);
  EXPECT_EQ(backup_sqlite_store(path(), scratch_.file("backup"), clock_, soon()).error().code, ErrorCode::corrupt);
  EXPECT_FALSE(fs::exists(scratch_.file("backup")));
  const auto restored = SqliteRestore::begin(scratch_.file("new.db"), path(), {}, clock_, soon());
  ASSERT_FALSE(restored);
  EXPECT_EQ(restored.error().code, ErrorCode::corrupt) << restored.error().message;
}

/// Every record is whole; only the way to them is not.
TEST_F(PageDamageTest, AnIndexThatCannotBeReadIsMadeAnewFromTheRecordsWhenAsked) {
  make_register();
  const std::size_t root =
      std::stoul(as_other_croft(path(), "SELECT rootpage FROM sqlite_schema WHERE name='sqlite_autoindex_records_1'"));
  const std::size_t page = (root - 1) * std::size_t{kPageBytes};
  const Content whole = content_of(path());
  ASSERT_EQ(whole.at(page), 2) << "a page above others";
  const std::size_t first_cell = whole.at(page + 12) * std::size_t{256} + whole.at(page + 13);
  // The number of a page below.
  flip(path(), page + first_cell + 3, 6);
  EXPECT_EQ(SqliteRestore::begin(path(), path(), {}, clock_, soon()).error().code, ErrorCode::corrupt);
  {
    const auto restore = SqliteRestore::begin(path(), path(), {.incomplete = true}, clock_, soon());
    ASSERT_TRUE(restore) << restore.error().message << restore.error().details;
    EXPECT_TRUE((*restore)->damaged().empty());
    EXPECT_FALSE((*restore)->is_whole());
    ASSERT_TRUE((*restore)->finish(soon()));
  }
  {
    const auto store = open(path());
    ASSERT_TRUE(store) << store.error().message;
    for (std::uint64_t n = 0; n < kNames; ++n) EXPECT_EQ(read(**store, name_of(n)), n);
    ASSERT_TRUE(put(**store, name_of(1), 1));
  }
  EXPECT_TRUE(check_sqlite_pages(path(), clock_, soon()));
  for (const auto& entry : fs::directory_iterator(fs::path(path()).parent_path())) {
    EXPECT_EQ(entry.path().string().find("-restore"), std::string::npos) << entry.path();
  }
}

TEST_F(PageDamageTest, PagesThatChangedPlacesAreRefused) {
  make_register();
  const Content whole = content_of(path());
  const auto index = std::stoul(
      as_other_program(path(), "SELECT rootpage FROM sqlite_schema WHERE name='sqlite_autoindex_records_1'"));
  Content damaged = whole;
  const auto at = [](Content& c, std::size_t page) {
    return c.begin() + static_cast<std::ptrdiff_t>(page * kPageBytes);
  };
  std::swap_ranges(at(damaged, index - 1), at(damaged, index), at(damaged, pages() - 1));
  std::ofstream(path(), std::ios::binary).write(reinterpret_cast<const char*>(damaged.data()), std::ssize(damaged));
  const auto store = open(path());
  if (store) {
    EXPECT_EQ((*store)->get(mark_key(name_of(1)), soon()).error().code, ErrorCode::corrupt);
  }
}

// Whoever has the index of the log open believes it; the checksums of frames are SQLite's own.
TEST_F(PageDamageTest, NoBitOfALogThatIsOpenIsReadWrong) {
  const auto store = make();
  for (std::uint64_t n = 0; n < kNames; ++n) ASSERT_TRUE(put(*store, name_of(n), n));
  const std::string log = path() + "-wal";
  constexpr std::size_t frame = kFrameBytes;
  constexpr std::size_t first = kLogHeaderBytes;
  const std::size_t frames = frames_in(log);
  ASSERT_GT(frames, 5U);
  std::size_t refused = 0;
  for (std::size_t i = frames > 12 ? frames - 12 : 0; i < frames; ++i) {
    for (std::size_t at = i % 97; at < frame; at += thorough() ? 29 : 587) {
      if (at >= 8 && at < 16) continue;  // the salt, which only rebuilding the index looks at
      flip(log, first + i * frame + at, static_cast<unsigned>(at % 8));
      // Another connection, so that no page is in memory already.
      const auto reader = open(path());
      refused += !reader || is_all_right_or_refused(**reader) ? 1U : 0U;
      flip(log, first + i * frame + at, static_cast<unsigned>(at % 8));
      if (HasFailure()) FAIL() << "frame " << i + 1 << " byte " << at;
    }
  }
  EXPECT_GT(refused, 0U);
  EXPECT_FALSE(is_all_right_or_refused(*store)) << "what is whole again is read";
  ASSERT_TRUE(put(*store, name_of(0), 0));
}

TEST_F(PageDamageTest, ADamagedLogIsNotCopiedIntoTheDatabase) {
  const auto store = make();
  for (std::uint64_t n = 0; n < 3; ++n) ASSERT_TRUE(put(*store, name_of(n), n));
  sqlite3* db = nullptr;
  ASSERT_EQ(sqlite3_open_v2(path().c_str(), &db, SQLITE_OPEN_READWRITE | SQLITE_OPEN_EXRESCODE, croft_vfs()),
            SQLITE_OK);
  EXPECT_EQ(sqlite3_exec(db, "SELECT count(*) FROM counters", nullptr, nullptr, nullptr), SQLITE_OK);
  const std::size_t frames = frames_in(path() + "-wal");
  for (std::size_t frame = 0; frame < frames; ++frame) {
    flip(path() + "-wal", 32 + frame * static_cast<std::size_t>(kFrameBytes) + 24 + 300, 3);
  }
  EXPECT_EQ(sqlite3_wal_checkpoint_v2(db, "main", SQLITE_CHECKPOINT_PASSIVE, nullptr, nullptr), kRefused);
  sqlite3_close(db);
  // Who has the right pages in memory writes them again; what comes out is right.
  for (std::uint64_t n = 3; n < 200; ++n) static_cast<void>(put(*store, name_of(n), n));
  const auto reader = open(path());
  if (!reader) return;
  for (std::uint64_t n = 0; n < 3; ++n) {
    const auto record = (*reader)->get(mark_key(name_of(n)), soon());
    EXPECT_TRUE(!record || *record) << name_of(n) << " is absent";
  }
}

TEST_F(PageDamageTest, ALookByAPlainSqliteHarmsNothing) {
  make_register();
  ASSERT_TRUE(put(*make(), name_of(1), 1));
  as_other_program(path(), "SELECT count(*) FROM records");  // and copies the log as it closes
  const auto store = open(path(), {.verify = true});
  ASSERT_TRUE(store) << store.error().message;
  EXPECT_FALSE(is_all_right_or_refused(**store));
  ASSERT_TRUE(put(**store, name_of(2), 2));
}

/// The pages that it copies from the log have no checksum, so that damage would not show: all is compared before any of
/// it is believed.
TEST_F(PageDamageTest, NoBitOfThePagesThatAPlainSqliteCopiedIsReadWrong) {
  {
    const auto store = make();
    for (std::uint64_t n = 0; n < kNames; ++n) ASSERT_TRUE(put(*store, name_of(n), n));
  }
  as_other_program(path(), "SELECT count(*) FROM records");
  const std::vector<std::size_t> copied = pages_without_sum();
  ASSERT_GT(copied.size(), 4U);
  const std::string aside = scratch_.file("aside");
  fs::create_directory(aside);
  for (const char* suffix : {"", "-lock"}) fs::copy_file(path() + suffix, aside + "/croft.db" + suffix);
  std::size_t refused = 0;
  const std::size_t step = thorough() ? 41 : 509;
  for (const std::size_t page : copied) {
    for (std::size_t at = page % step; at < std::size_t{kPageBytes} - std::size_t{kPageSumBytes}; at += step) {
      for (const char* suffix : {"-wal", "-shm"}) fs::remove(path() + suffix);
      for (const char* suffix : {"", "-lock"}) {
        fs::copy_file(aside + "/croft.db" + suffix, path() + suffix, fs::copy_options::overwrite_existing);
      }
      flip(path(), page * std::size_t{kPageBytes} + at, static_cast<unsigned>((at + page) % 8));
      const auto store = open(path());
      if (!store) {
        EXPECT_EQ(store.error().code, ErrorCode::corrupt) << store.error().message;
      }
      refused += !store || is_all_right_or_refused(**store) ? 1U : 0U;
      if (HasFailure()) FAIL() << "page " << page + 1 << " byte " << at;
    }
  }
  EXPECT_GT(refused, 0U);
}

TEST_F(PageDamageTest, PagesThatAPlainSqliteCopiedGetTheirChecksums) {
  {
    const auto store = make();
    for (std::uint64_t n = 0; n < kNames; ++n) ASSERT_TRUE(put(*store, name_of(n), n));
  }
  as_other_program(path(), "SELECT count(*) FROM records");
  ASSERT_FALSE(pages_without_sum().empty());
  EXPECT_TRUE(check_sqlite_pages(path(), clock_, soon()));
  ASSERT_TRUE(backup_sqlite_store(path(), scratch_.file("backup"), clock_, soon()));
  {
    // Whoever is inside already, too.
    const auto store = open(path());
    ASSERT_TRUE(store) << store.error().message;
    const auto turn = (*store)->take_turn(soon());
    EXPECT_EQ(read(**store, name_of(7)), 7U);
    ASSERT_TRUE(put(**store, name_of(7), 8));
  }
  EXPECT_TRUE(pages_without_sum().empty());
  const auto index =
      std::stoul(as_other_croft(path(), "SELECT rootpage FROM sqlite_schema WHERE name='sqlite_autoindex_records_1'"));
  flip(path(), index * std::size_t{kPageBytes} - 100, 1);
  const auto store = open(path());
  if (store) {
    EXPECT_EQ((*store)->get(mark_key(name_of(7)), soon()).error().code, ErrorCode::corrupt);
  }
}

TEST_F(PageDamageTest, ALogThatAPlainSqliteCopiesUnderAnOpenStoreStopsNothing) {
  const auto store = make();
  for (std::uint64_t n = 0; n < kNames; ++n) {
    ASSERT_TRUE(put(*store, name_of(n), n));
    if (n % 20 != 7) continue;
    as_other_program(path(), "PRAGMA wal_checkpoint(PASSIVE)");
    ASSERT_FALSE(pages_without_sum().empty());
    // One that finds nothing in memory.
    const auto other = open(path());
    ASSERT_TRUE(other) << other.error().message;
    for (std::uint64_t i = 0; i <= n; ++i) EXPECT_EQ(read(**other, name_of(i)), i);
    ASSERT_TRUE(put(**other, name_of(n), n));
    for (std::uint64_t i = 0; i <= n; ++i) EXPECT_EQ(read(*store, name_of(i)), i);
  }
  EXPECT_FALSE(is_all_right_or_refused(*store));
  EXPECT_TRUE(open(path(), {.verify = true}));
}

TEST_F(PageDamageTest, WhoCopiesTheLogJustNowIsWaitedFor) {
  const auto store = make();
  for (std::uint64_t n = 0; n < kNames; ++n) ASSERT_TRUE(put(*store, name_of(n), n));
  as_other_program(path(), "PRAGMA wal_checkpoint(PASSIVE)");
  ASSERT_FALSE(pages_without_sum().empty());
  sqlite3* other = nullptr;
  ASSERT_EQ(sqlite3_open(path().c_str(), &other), SQLITE_OK);
  ASSERT_EQ(sqlite3_exec(other, "SELECT count(*) FROM records", nullptr, nullptr, nullptr), SQLITE_OK);
  sqlite3_file* file = nullptr;
  ASSERT_EQ(sqlite3_file_control(other, "main", SQLITE_FCNTL_FILE_POINTER, &file), SQLITE_OK);
  constexpr int kCopyLock = 1;
  ASSERT_EQ(file->pMethods->xShmLock(file, kCopyLock, 1, SQLITE_SHM_LOCK | SQLITE_SHM_EXCLUSIVE), SQLITE_OK);
  std::thread copier([&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(100));
    file->pMethods->xShmLock(file, kCopyLock, 1, SQLITE_SHM_UNLOCK | SQLITE_SHM_EXCLUSIVE);
  });
  const auto late = open(path());
  const auto read_late = late ? (*late)->get(mark_key(name_of(7)), soon()) : fail(late.error());
  copier.join();
  EXPECT_TRUE(read_late) << read_late.error().message;
  EXPECT_TRUE(pages_without_sum().empty());
  sqlite3_close(other);
}

/// Not only by who happens to read the damaged page: a node that cannot serve must be seen to be one.
TEST_F(PageDamageTest, WhereOneHasMetDamageNobodyBelievesAnythingUntilItIsWhole) {
  make_register();
  const auto index =
      std::stoul(as_other_croft(path(), "SELECT rootpage FROM sqlite_schema WHERE name='sqlite_autoindex_records_1'"));
  const std::size_t at = index * std::size_t{kPageBytes} - 100;
  flip(path(), at, 1);
  {
    const auto store = open(path());
    ASSERT_TRUE(store) << "nothing of that page is needed to open it";
    EXPECT_TRUE((*store)->position(soon()));
    EXPECT_EQ((*store)->get(mark_key(name_of(1)), soon()).error().code, ErrorCode::corrupt);
  }
  EXPECT_EQ(error_of(open(path())).code, ErrorCode::corrupt);
  flip(path(), at, 1);
  {
    const auto store = open(path());
    ASSERT_TRUE(store) << store.error().message;
    EXPECT_FALSE(is_all_right_or_refused(**store));
  }
  // It is forgotten then, and costs nothing any more.
  flip(path(), at, 1);
  EXPECT_TRUE(open(path()));
  flip(path(), at, 1);
}

TEST_F(PageDamageTest, AnOpenStoreCommitsNothingWhereAnotherHasMetDamage) {
  make_register();
  const auto store = make();
  ASSERT_TRUE(store->position(soon()));
  const std::size_t at = 5 * std::size_t{kPageBytes} + 2000;
  flip(path(), at, 1);
  EXPECT_EQ(error_of(open(path(), {.verify = true})).code, ErrorCode::corrupt);
  const Write never{core::pool_set_key(), std::nullopt, Condition::if_revision(Revision(1)), true};
  EXPECT_EQ(store->commit({&never, 1}, {}, soon()).error().code, ErrorCode::corrupt);
  flip(path(), at, 1);
  EXPECT_EQ(store->commit({&never, 1}, {}, soon()).error().code, ErrorCode::conflict);
}

TEST_F(PageDamageTest, WhatAnotherProgramWroteIsTakenWhenAskedAndWhole) {
  make_register();
  as_other_program(path(), "UPDATE counters SET value=value+1 WHERE id=2");
  EXPECT_EQ(error_of(open(path(), {.verify = true})).code, ErrorCode::corrupt);
  const auto unasked = SqliteRestore::begin(path(), path(), {}, clock_, soon());
  ASSERT_FALSE(unasked);
  EXPECT_EQ(unasked.error().code, ErrorCode::corrupt);
  auto restore = SqliteRestore::begin(path(), path(), {.incomplete = true}, clock_, soon());
  ASSERT_TRUE(restore) << restore.error().message;
  ASSERT_TRUE((*restore)->finish(soon()));
  restore->reset();
  const auto store = open(path(), {.verify = true});
  ASSERT_TRUE(store) << store.error().message;
  EXPECT_FALSE(is_all_right_or_refused(**store));
}

TEST_F(PageDamageTest, AnOlderDatabaseIsUsedAsItIsAndMadeAnewByARestore) {
  make_register();
  make_without_page_sums(path());
  {
    const auto store = open(path(), {.verify = true});
    ASSERT_TRUE(store) << store.error().message;
    EXPECT_FALSE(is_all_right_or_refused(**store));
    ASSERT_TRUE(put(**store, name_of(5), 5));
  }
  EXPECT_EQ(as_other_program(path(), "PRAGMA user_version"), "2") << "older programs go on with it";
  const auto copied = backup_sqlite_store(path(), scratch_.file("backup"), clock_, soon());
  ASSERT_TRUE(copied) << copied.error().message;
  {
    const auto restore = SqliteRestore::begin(path(), scratch_.file("backup"), {}, clock_, soon());
    ASSERT_TRUE(restore) << restore.error().message;
    const auto done = (*restore)->finish(soon());
    ASSERT_TRUE(done) << done.error().message;
  }
  EXPECT_EQ(as_other_program(path(), "PRAGMA user_version"), "3") << "older programs refuse it";
  const auto store = open(path(), {.verify = true});
  ASSERT_TRUE(store) << store.error().message;
  EXPECT_FALSE(is_all_right_or_refused(**store));
  fold();
  flip(path(), 2 * std::size_t{kPageBytes} + 100, 0);
  EXPECT_EQ(error_of(open(path(), {.verify = true})).code, ErrorCode::corrupt);
}

TEST_F(PageDamageTest, CountersThatNoRegisterReachesAreRefusedBeforeAnythingIsHandedOut) {
  for (const char* value :
       {"9223372036854775807", "281474976710654", "281474976710656", "-1", "-9223372036854775808"}) {
    SCOPED_TRACE(value);
    const std::string at = scratch_.file("counters" + std::string(value) + ".db");
    const auto store = make_at(at);
    ASSERT_TRUE(put(*store, "a", 1));
    const auto copied = backup_sqlite_store(at, at + "-backup", clock_, soon());
    ASSERT_TRUE(copied);
    as_other_croft(at, std::string("UPDATE counters SET value=") + value + " WHERE id=1");
    EXPECT_EQ(put(*store, "b", 2).error().code, ErrorCode::corrupt);
    EXPECT_EQ(error_of(open(at)).code, ErrorCode::corrupt);
    EXPECT_EQ(backup_sqlite_store(at, at + "-other", clock_, soon()).error().code, ErrorCode::corrupt);
    as_other_program(at + "-backup", std::string("UPDATE counters SET value=") + value + " WHERE id=1");
    const auto refused = SqliteRestore::begin(at, at + "-backup", {}, clock_, soon());
    ASSERT_FALSE(refused);
    EXPECT_EQ(refused.error().code, ErrorCode::corrupt) << refused.error().message;
    const auto forced = SqliteRestore::begin(at, at + "-backup", {.incomplete = true}, clock_, soon());
    ASSERT_TRUE(forced) << forced.error().message;
    EXPECT_EQ((*forced)->revision_of_backup(), 1U) << "as the records have it";
  }
}

TEST_F(PageDamageTest, ACounterOfLogRestartsAtItsEndStopsNothing) {
  const auto store = make();
  ASSERT_TRUE(put(*store, "a", 1));
  as_other_croft(path(), "UPDATE counters SET value=9223372036854775807 WHERE id=2");
  for (std::uint64_t n = 0; n < 300; ++n) ASSERT_TRUE(put(*store, "a", n));
  EXPECT_GT(store->counters().checkpoints, 0U);
  EXPECT_LT(fs::file_size(path() + "-wal"), std::uintmax_t{3} << 20);
}

}  // namespace
}  // namespace croft::store
