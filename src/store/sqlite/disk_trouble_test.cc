#include <sys/mount.h>
#include <unistd.h>

#include <cstdlib>
#include <fstream>
#include <functional>
#include <thread>

#include "os/files.h"
#include "store/sqlite/store_fixture.h"

namespace croft::store {
namespace {

namespace fs = std::filesystem;

/// A small file system of its own, which can be filled and emptied. Unmounted at the end, whatever happened.
class SmallDisk {
 public:
  enum class Kind : std::uint8_t { tmpfs, ext4 };

  SmallDisk(Kind kind, const os::ScratchDirectory& scratch) : point_(scratch.file("disk")) {
    fs::create_directory(point_);
    const std::string image = scratch.file("image");
    const std::string make = kind == Kind::tmpfs ? "mount -t tmpfs -o size=6m croft-test " + point_
                                                 : "truncate -s 12M " + image + " && mkfs.ext4 -q -m 0 " + image +
                                                       " && mount -o loop " + image + " " + point_;
    mounted_ = std::system((make + " 2>/dev/null").c_str()) == 0;
  }
  ~SmallDisk() {
    if (mounted_) ::umount2(point_.c_str(), MNT_DETACH);
  }
  SmallDisk(const SmallDisk&) = delete;
  SmallDisk& operator=(const SmallDisk&) = delete;

  [[nodiscard]] bool is_mounted() const { return mounted_; }
  [[nodiscard]] std::string file(const std::string& name) const { return point_ + "/" + name; }

  /// Leaves not one free block: large writes first, then small ones.
  void fill() const {
    const std::string fill = "dd if=/dev/zero of=" + file("ballast") + " bs=64k 2>/dev/null; " +
                             "dd if=/dev/zero bs=512 2>/dev/null >>" + file("ballast") + "; sync -f " + point_ + "; " +
                             "dd if=/dev/zero bs=512 2>/dev/null >>" + file("ballast2");
    EXPECT_NE(std::system(fill.c_str()), 0) << "the last dd must find no space";
  }
  void empty() const {
    fs::remove(file("ballast"));
    fs::remove(file("ballast2"));
  }
  [[nodiscard]] bool remount(const std::string& option) const {
    return std::system(("mount -o remount," + option + " " + point_).c_str()) == 0;
  }

 private:
  std::string point_;
  bool mounted_ = false;
};

class DiskTroubleTest : public SqliteStoreTest, public testing::WithParamInterface<SmallDisk::Kind> {
 protected:
  void SetUp() override {
    if (::geteuid() != 0) GTEST_SKIP() << "needs root to mount a small file system";
    disk_ = std::make_unique<SmallDisk>(GetParam(), scratch_);
    if (!disk_->is_mounted()) GTEST_SKIP() << "cannot mount a small file system here";
  }

  [[nodiscard]] std::string at() const { return disk_->file("store/croft.db"); }

  [[nodiscard]] Result<Revision> add(Store& store, std::uint32_t block, std::uint32_t held) const {
    return store.commit(sample_add(block, held, Condition::always()), sample_token(held), soon());
  }
  /// What a DEL commits: the address to cooling, the handle gone, and a vacancy.
  [[nodiscard]] Result<Revision> release(Store& store, std::uint32_t block, std::uint32_t held) const {
    const core::Attribute holder = sample_attribute(block * 64 + held - 1);
    core::Block after = sample_block(block, held);
    core::Cooling cooling;
    cooling.released_at = clock_.now();
    cooling.previous_handle = *holder.handle_id;
    cooling.previous_secondary = holder.secondary;
    after.attributes.back() = core::Attribute();
    after.attributes.back().cooling = cooling;
    const Key key = core::block_key(after.cidr);
    const Write writes[] = {{key, after, Condition::always()},
                            {core::handle_key(*holder.handle_id), std::nullopt, Condition::always()},
                            {core::vacancy_key(kSampleNode, after.cidr), core::Vacancy{}, Condition::always()}};
    return store.commit(writes, sample_token(held), soon());
  }
  [[nodiscard]] bool handle_exists(Store& store, std::uint32_t block, std::uint32_t held) const {
    const auto handle = store.get(core::handle_key(sample_handle_id(block * 64 + held)), soon());
    EXPECT_TRUE(handle) << handle.error().message;
    return handle && handle->has_value();
  }

  /// How many descriptors of this process are of a file.
  [[nodiscard]] static int times_open(const std::string& path) {
    int count = 0;
    std::error_code none;
    for (const auto& entry : fs::directory_iterator("/proc/self/fd")) count += fs::read_symlink(entry, none) == path;
    return count;
  }

  /// Adds blocks from number `first` on until the store says that it is full; the number of the one refused.
  [[nodiscard]] std::uint32_t add_until_full(std::uint32_t first,
                                             const std::function<std::unique_ptr<SqliteStore>()>& client) const {
    for (std::uint32_t block = first; block < 2000; ++block) {
      const auto added = add(*client(), block, 63);
      if (added) continue;
      EXPECT_EQ(added.error().code, ErrorCode::storage_full) << added.error().message;
      EXPECT_NE(added.error().message.find("croft.db"), std::string::npos);
      EXPECT_FALSE(handle_exists(*client(), block, 63)) << "nothing half-written";
      return block;
    }
    ADD_FAILURE() << "the disk never got full";
    return 0;
  }

  std::unique_ptr<SmallDisk> disk_;
};

TEST_P(DiskTroubleTest, LoneProcessesReleaseOnAFullDisk) {
  const auto client = [&] { return make_at(at()); };
  for (std::uint32_t block = 0; block < 20; ++block) ASSERT_TRUE(add(*client(), block, 63));
  disk_->fill();
  const std::uint32_t full_blocks = add_until_full(20, client);
  ASSERT_GE(full_blocks, 20U);
  for (std::uint32_t block = 0; block < full_blocks; ++block) {
    const auto released = release(*client(), block, 64);
    ASSERT_TRUE(released) << "block " << block << ": " << released.error().message;
    EXPECT_FALSE(handle_exists(*client(), block, 63));
  }
  EXPECT_EQ(add(*client(), 1999, 63).error().code, ErrorCode::storage_full);
  disk_->empty();
  for (std::uint32_t block = 0; block < 20; ++block) EXPECT_TRUE(add(*client(), 1000 + block, 63));
  EXPECT_TRUE(check(at()));
}

TEST_P(DiskTroubleTest, ADaemonReleasesOnAFullDiskAndRecoversWithoutRestart) {
  const std::shared_ptr<SqliteStore> store = make_at(at());
  for (std::uint32_t block = 0; block < 20; ++block) ASSERT_TRUE(add(*store, block, 63));
  disk_->fill();
  std::uint32_t block = 20;
  while (add(*store, block, 63)) ++block;
  EXPECT_EQ(add(*store, block, 63).error().code, ErrorCode::storage_full);
  for (std::uint32_t i = 0; i < block; ++i) {
    const auto released = release(*store, i, 64);
    ASSERT_TRUE(released) << "block " << i << ": " << released.error().message;
  }
  disk_->empty();
  EXPECT_TRUE(add(*store, block, 63));
  EXPECT_TRUE(check(at()));
}

TEST_P(DiskTroubleTest, TheSparePagesAreForCommitsThatAddLittle) {
  const auto store = make_at(at());
  disk_->fill();
  std::uint32_t block = 0;
  while (add(*store, block, 63)) ++block;
  // About 250 of the 384 pages.
  for (std::uint64_t i = 0; i < 1500; ++i) {
    const std::string number = std::to_string(i);
    const auto done = put(*store, std::string(200 - number.size(), '0') + number, i);
    ASSERT_TRUE(done) << i << ": " << done.error().message;
  }
  EXPECT_TRUE(check(at()));
}

// What watches follow grows with each commit; it must not take the room from the register.
TEST_P(DiskTroubleTest, ChangesAreForgottenBeforeAFullDiskRefusesWhatAddsNothing) {
  const std::shared_ptr<SqliteStore> store = make_at(at());
  const std::string name(900, 'x');
  ASSERT_TRUE(put(*store, name, 1));
  disk_->fill();
  std::uint32_t block = 0;
  while (add(*store, block, 63)) ++block;
  const auto watch = store->watch({}, store->position(soon()).value(), soon());
  ASSERT_TRUE(watch);
  for (std::uint64_t i = 0; i < 3000; ++i) {
    const auto done = put(*store, name, i);
    ASSERT_TRUE(done) << i << ": " << done.error().message;
  }
  EXPECT_EQ((*watch)->next(soon()).error().code, ErrorCode::too_old);
  EXPECT_TRUE(check(at()));
}

TEST_P(DiskTroubleTest, ReadersAndWritersShareAFullDisk) {
  for (std::uint32_t block = 0; block < 4; ++block) ASSERT_TRUE(add(*make_at(at()), block, 63));
  disk_->fill();
  // Both are lone when they start: neither has made the shared index before the disk was full.
  const auto first = make_at(at());
  const auto second = make_at(at());
  for (std::uint32_t block = 0; block < 4; ++block) {
    EXPECT_TRUE(handle_exists(*first, block, 63));
    const auto turn = second->take_turn(soon());
    ASSERT_TRUE(turn);
    EXPECT_TRUE(handle_exists(*second, block, 63));
    EXPECT_TRUE(release(*second, block, 64));
    EXPECT_FALSE(handle_exists(*second, block, 63));
  }
}

TEST_P(DiskTroubleTest, CreationOnAFullDiskIsRefusedAndSucceedsLater) {
  disk_->fill();
  EXPECT_EQ(error_of(open(at(), {.create = true})).code, ErrorCode::storage_full);
  disk_->empty();
  EXPECT_TRUE(add(*make_at(at()), 0, 1));
}

TEST_P(DiskTroubleTest, AReadOnlyDiskIsReadAndSaysWhyItIsNotWritten) {
  ASSERT_TRUE(add(*make_at(at()), 0, 1));
  const auto note = os::read_file(at() + "-lock", 4096);
  ASSERT_TRUE(note);
  ASSERT_TRUE(disk_->remount("ro"));
  const auto store = open(at());
  ASSERT_TRUE(store) << store.error().message;
  EXPECT_TRUE(handle_exists(**store, 0, 1));
  // Readers that meet open a second connection.
  const std::jthread reader([&](const std::stop_token& stop) {
    while (!stop.stop_requested()) EXPECT_TRUE(handle_exists(**store, 0, 1));
  });
  while (times_open(at()) < 2) ASSERT_TRUE(handle_exists(**store, 0, 1));
  const auto added = add(**store, 0, 2);
  ASSERT_FALSE(added);
  EXPECT_EQ(added.error().code, ErrorCode::read_only) << added.error().message;
  EXPECT_EQ(error_of(open(disk_->file("other/croft.db"), {.create = true})).code, ErrorCode::read_only);
  ASSERT_TRUE(disk_->remount("rw"));
  EXPECT_TRUE(handle_exists(**store, 0, 1)) << "without a restart";
  const auto written = add(**store, 0, 2);
  EXPECT_TRUE(written) << written.error().message;
  EXPECT_NE(os::read_file(at() + "-lock", 4096).value(), *note) << "what was committed is noted";
}

INSTANTIATE_TEST_SUITE_P(SmallDisks, DiskTroubleTest, testing::Values(SmallDisk::Kind::tmpfs, SmallDisk::Kind::ext4),
                         [](const auto& test) { return test.param == SmallDisk::Kind::tmpfs ? "tmpfs" : "ext4"; });

}  // namespace
}  // namespace croft::store
