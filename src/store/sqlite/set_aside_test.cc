#include "store/sqlite/set_aside.h"

#include <algorithm>
#include <fstream>
#include <string>
#include <vector>

#include "base/manual_clock.h"
#include "os/file_lock.h"
#include "store/sqlite/store_fixture.h"

namespace croft::store {
namespace {

namespace fs = std::filesystem;

class SetAsideTest : public SqliteStoreTest {
 protected:
  [[nodiscard]] Result<std::optional<SetAside>> set_aside() const {
    return set_damaged_store_aside(path(), clock_, soon());
  }
  void write(const std::string& file, const std::string& content) const {
    std::ofstream(file, std::ios::binary | std::ios::trunc) << content;
  }
  void flip(const std::string& file, std::streamoff at, int bits = 1) const {
    std::fstream bytes(file, std::ios::binary | std::ios::in | std::ios::out);
    bytes.seekg(at);
    const int byte = bytes.get();
    bytes.seekp(at);
    bytes.put(static_cast<char>(byte ^ bits));
  }
  [[nodiscard]] std::vector<std::string> names() const {
    std::vector<std::string> names;
    for (const auto& entry : fs::directory_iterator(fs::path(path()).parent_path())) {
      names.push_back(entry.path().filename().string());
    }
    std::ranges::sort(names);
    return names;
  }
};

TEST_F(SetAsideTest, ASoundStoreStays) {
  ASSERT_TRUE(put(*make(), "a", 1));
  const auto aside = set_aside();
  ASSERT_TRUE(aside) << aside.error().message;
  EXPECT_FALSE(*aside);
  EXPECT_EQ(read(*make(), "a"), 1U);
  const auto ever = has_store_set_aside(path());
  ASSERT_TRUE(ever);
  EXPECT_FALSE(*ever);
}

TEST_F(SetAsideTest, AllFilesOfADamagedOneGetOneName) {
  ASSERT_TRUE(put(*make(), "a", 1));
  as_other_program(path(), "PRAGMA wal_checkpoint(TRUNCATE)");
  ASSERT_TRUE(put(*make(), "a", 2));
  for (std::streamoff at = 4096; at < static_cast<std::streamoff>(fs::file_size(path())); at += 64) flip(path(), at);
  const auto aside = set_aside();
  ASSERT_TRUE(aside) << aside.error().message;
  ASSERT_TRUE(*aside);
  EXPECT_TRUE((*aside)->path.starts_with(path() + ".damaged-2")) << (*aside)->path;
  EXPECT_NE((*aside)->why.find("croft.db"), std::string::npos) << (*aside)->why;
  for (const char* suffix : {"", "-wal", "-lock"}) {
    EXPECT_TRUE(fs::exists((*aside)->path + suffix)) << suffix;
    EXPECT_FALSE(fs::exists(path() + suffix)) << suffix;
  }
  EXPECT_EQ(read(*make(), "a"), std::nullopt) << "a new one is made in its place";
  const auto ever = has_store_set_aside(path());
  ASSERT_TRUE(ever);
  EXPECT_TRUE(*ever);
}

TEST_F(SetAsideTest, WhatIsCutEmptyOrGoneIsDamagedToo) {
  for (int how = 0; how < 4; ++how) {
    ASSERT_TRUE(put(*make(), "a", 1));
    switch (how) {
      case 0:
        write(path(), "");
        break;
      case 1:
        as_other_program(path(), "PRAGMA wal_checkpoint(TRUNCATE)");  // the log alone would do else
        fs::resize_file(path(), 5000);
        break;
      case 2:
        fs::remove(path());
        break;
      default:
        write(path(), std::string(9000, 'x'));
    }
    const auto aside = set_aside();
    ASSERT_TRUE(aside) << how << ": " << aside.error().message;
    ASSERT_TRUE(*aside) << how;
    EXPECT_EQ(read(*make(), "a"), std::nullopt) << how;
    const auto again = set_aside();
    ASSERT_TRUE(again);
    EXPECT_FALSE(*again) << "the new one is sound";
  }
}

TEST_F(SetAsideTest, ACrashBetweenTwoNamesIsNoEmptyStore) {
  ASSERT_TRUE(put(*make(), "a", 1));
  write(path(), "");
  // As it is when the first one has been renamed, and the first two.
  fs::rename(path(), path() + ".damaged-20260101T000000Z");
  EXPECT_EQ(error_of(open(path(), {.create = true})).code, ErrorCode::corrupt);
  fs::rename(path() + "-wal", path() + ".damaged-20260101T000000Z-wal");
  EXPECT_EQ(error_of(open(path(), {.create = true})).code, ErrorCode::corrupt);
  const auto aside = set_aside();
  ASSERT_TRUE(aside) << aside.error().message;
  ASSERT_TRUE(*aside);
  EXPECT_EQ(read(*make(), "a"), std::nullopt);
}

TEST_F(SetAsideTest, OnlyTheNewestAreKept) {
  ManualClock clock;
  for (int i = 0; i < 6; ++i) {
    ASSERT_TRUE(put(*make(), "a", 1));
    write(path(), "");
    // Two within one second have two names.
    if (i != 3) clock.advance(std::chrono::seconds{10});
    ASSERT_TRUE(set_damaged_store_aside(path(), clock, Deadline::after(clock.now(), std::chrono::seconds{30})));
  }
  std::vector<std::string> kept;
  for (const std::string& name : names()) {
    if (name.ends_with("Z") || name.ends_with(".2")) kept.push_back(name);
  }
  EXPECT_EQ(kept, (std::vector<std::string>{"croft.db.damaged-20260115T100030Z.2", "croft.db.damaged-20260115T100040Z",
                                            "croft.db.damaged-20260115T100050Z"}));
  for (const std::string& name : names()) EXPECT_EQ(name.find("100010Z"), std::string::npos) << name;
}

TEST_F(SetAsideTest, WhatIsNotDamagedButAnothersIsLeftAlone) {
  as_other_program(path(), "CREATE TABLE theirs(x); INSERT INTO theirs VALUES(1)");
  auto aside = set_aside();
  ASSERT_FALSE(aside);
  EXPECT_EQ(aside.error().code, ErrorCode::refused_by_configuration);
  EXPECT_NE(aside.error().message.find("another program"), std::string::npos) << aside.error().message;
  EXPECT_EQ(as_other_program(path(), "SELECT x FROM theirs"), "1");
  fs::remove(path());
  fs::remove(path() + "-lock");

  ASSERT_TRUE(put(*make(), "a", 1));
  fs::create_hard_link(path(), scratch_.file("second"));
  aside = set_aside();
  ASSERT_FALSE(aside);
  EXPECT_EQ(aside.error().code, ErrorCode::refused_by_configuration);
  fs::remove(scratch_.file("second"));

  as_other_croft(path(), "PRAGMA user_version=99");
  aside = set_aside();
  ASSERT_FALSE(aside);
  EXPECT_EQ(aside.error().code, ErrorCode::newer_version) << aside.error().message;
}

TEST_F(SetAsideTest, AFlippedBitInTheApplicationIdIsDamage) {
  ASSERT_TRUE(put(*make(), "a", 1));
  as_other_program(path(), "PRAGMA wal_checkpoint(TRUNCATE)");
  fs::remove(path() + "-wal");
  fs::remove(path() + "-shm");
  flip(path(), 70);
  const auto aside = set_aside();
  ASSERT_TRUE(aside) << aside.error().message;
  EXPECT_TRUE(*aside);
}

TEST_F(SetAsideTest, WhoeverHasTheLockIsWaitedFor) {
  ASSERT_TRUE(put(*make(), "a", 1));
  write(path(), "");
  os::FileLock lock(path() + "-lock");
  ASSERT_TRUE(lock.lock(clock_, soon()));
  const auto aside = set_damaged_store_aside(path(), clock_, in(std::chrono::milliseconds{50}));
  ASSERT_FALSE(aside);
  EXPECT_EQ(aside.error().code, ErrorCode::deadline_exceeded);
  EXPECT_TRUE(fs::exists(path()));
}

}  // namespace
}  // namespace croft::store
