#include <cstdlib>
#include <fstream>
#include <iterator>
#include <random>

#include "store/sqlite/store_fixture.h"

namespace croft::store {
namespace {

namespace fs = std::filesystem;

/// Damages the files of a small store and opens it again. CROFT_FULL=1 damages many more places.
class CorruptionTest : public SqliteStoreTest {
 protected:
  static constexpr std::uint32_t kBlocks = 3;

  void SetUp() override {
    const auto store = make();
    for (std::uint32_t block = 0; block < kBlocks; ++block) {
      const auto added = store->commit(sample_add(block, 29, Condition::always()), sample_token(block), soon());
      ASSERT_TRUE(added) << added.error().message;
    }
    for (std::uint32_t block = 0; block < kBlocks; ++block) expected_.push_back(sample_block(block, 30));
  }

  static bool thorough() { return std::getenv("CROFT_FULL") != nullptr; }

  /// The content in the database file itself, with an empty log.
  void fold_log() const { as_other_program(path(), "PRAGMA wal_checkpoint(TRUNCATE)"); }

  void put_damaged(const std::string& suffix, const std::string& content) const {
    fs::create_directories(scratch_.file("damaged"));
    for (const char* other : {"", "-wal", "-shm"}) fs::remove(scratch_.file("damaged/croft.db") + other);
    fs::copy_file(path(), scratch_.file("damaged/croft.db"));
    if (fs::exists(path() + "-wal")) fs::copy_file(path() + "-wal", scratch_.file("damaged/croft.db-wal"));
    std::ofstream(scratch_.file("damaged/croft.db") + suffix, std::ios::binary) << content;
  }

  /// Opens, reads all and writes: neither crashes nor hangs; every value that comes back is one that was stored; an
  /// error is one of those that damage may give. True when something was refused.
  bool is_refused() const {
    const auto start = clock_.now().since_boot;
    const bool refused = is_some_call_refused();
    EXPECT_LT(clock_.now().since_boot - start, std::chrono::seconds{2});
    return refused;
  }

 private:
  static bool may_tell_damage(ErrorCode code) {
    return code == ErrorCode::corrupt || code == ErrorCode::newer_version || code == ErrorCode::internal ||
           code == ErrorCode::unavailable;
  }

  bool is_some_call_refused() const {
    const std::string file = scratch_.file("damaged/croft.db");
    const auto store = open_sqlite_store(file, {}, clock_, in(std::chrono::milliseconds{200}));
    const auto whole = store ? check_sqlite_pages(file, clock_, soon()) : Result<void>(fail(store.error()));
    if (!whole) {
      EXPECT_TRUE(may_tell_damage(whole.error().code)) << whole.error().message;
      EXPECT_NE(whole.error().message.find("croft.db"), std::string::npos) << whole.error().message;
      return true;
    }
    for (const core::Block& block : expected_) {
      const auto record = (*store)->get(core::block_key(block.cidr), soon());
      if (!record) {
        EXPECT_TRUE(may_tell_damage(record.error().code)) << record.error().message;
        return true;
      }
      EXPECT_TRUE(!*record || !(*record)->value || *(*record)->value == Value(block))
          << "a value that was never stored";
    }
    const auto written = (*store)->commit(sample_add(9, 0, Condition::always()), sample_token(9), soon());
    return !written;
  }

  std::vector<core::Block> expected_;
};

TEST_F(CorruptionTest, FlippedBytesOfTheDatabase) {
  fold_log();
  const std::string whole = os::ScratchDirectory::content_of(path());
  std::mt19937_64 random(1);
  // The file has a reserve of empty pages behind its content; those matter less.
  const std::size_t content = std::min<std::size_t>(whole.size(), 24 * 4096);
  const std::size_t step = thorough() ? 17 : 211;
  int refused = 0;
  for (std::size_t i = 0; i < content; i += step) {
    std::string damaged = whole;
    damaged[i] = static_cast<char>(damaged[i] ^ (1 + static_cast<int>(random() % 255)));
    put_damaged("", damaged);
    refused += is_refused() ? 1 : 0;
    if (HasFailure()) FAIL() << "byte " << i;
  }
  EXPECT_GT(refused, 0);
}

TEST_F(CorruptionTest, ADatabaseCutAtAnyLength) {
  fold_log();
  const std::string whole = os::ScratchDirectory::content_of(path());
  const std::size_t step = thorough() ? 512 : 7777;
  for (std::size_t length = 0; length < 24 * std::size_t{4096}; length += step) {
    put_damaged("", whole.substr(0, length));
    static_cast<void>(is_refused());
    if (HasFailure()) FAIL() << "length " << length;
  }
}

TEST_F(CorruptionTest, SwappedPages) {
  fold_log();
  const std::string whole = os::ScratchDirectory::content_of(path());
  const std::size_t pages = std::min<std::size_t>(whole.size() / 4096, 14);
  ASSERT_GT(pages, 8U);
  for (std::size_t a = 0; a < pages; ++a) {
    for (std::size_t b = a + 1; b < pages; ++b) {
      std::string damaged = whole;
      damaged.replace(a * 4096, 4096, whole, b * 4096, 4096);
      damaged.replace(b * 4096, 4096, whole, a * 4096, 4096);
      put_damaged("", damaged);
      static_cast<void>(is_refused());
      if (HasFailure()) FAIL() << "pages " << a << " and " << b;
    }
  }
}

// A damaged log ends earlier: SQLite takes it for one that was cut by a crash. What is lost then is lost; it must not
// crash, hang, or give values that were never stored.
TEST_F(CorruptionTest, FlippedBytesOfTheLog) {
  const std::string whole = os::ScratchDirectory::content_of(path() + "-wal");
  const std::size_t content = std::min<std::size_t>(whole.size(), 30 * 4120);
  const std::size_t step = thorough() ? 37 : 501;
  for (std::size_t i = 0; i < content; i += step) {
    std::string damaged = whole;
    damaged[i] = static_cast<char>(damaged[i] ^ 0x55);
    put_damaged("-wal", damaged);
    static_cast<void>(is_refused());
    if (HasFailure()) FAIL() << "byte " << i;
  }
}

TEST_F(CorruptionTest, ADamagedRecordIsNamedAndTheOthersAreRead) {
  as_other_program(
      path(),
      "UPDATE records SET value=CAST(replace(CAST(value AS TEXT),'pod','dop') AS BLOB) WHERE name='ipv4/10.0.0.64/26'");
  const auto store = make();
  const auto damaged = store->get(core::block_key(sample_cidr(1)), soon());
  ASSERT_TRUE(damaged && *damaged);
  ASSERT_FALSE((*damaged)->value);
  const Error& why = (*damaged)->value.error();
  EXPECT_EQ(why.code, ErrorCode::corrupt);
  EXPECT_NE(why.message.find("ipv4/10.0.0.64/26"), std::string::npos);
  EXPECT_NE(why.message.find("croft.db"), std::string::npos);
  EXPECT_TRUE(store->get(core::block_key(sample_cidr(2)), soon()).value().has_value());
}

TEST_F(CorruptionTest, MissingTablesAreDamage) {
  const auto store = open(path());
  ASSERT_TRUE(store);
  as_other_program(path(), "DROP TABLE records");
  EXPECT_FALSE((*store)->get(core::block_key(sample_cidr(1)), soon()));
  EXPECT_FALSE((*store)->commit(sample_add(1, 1, Condition::always()), sample_token(1), soon()));
}

}  // namespace
}  // namespace croft::store
