// A restore that dies, or meets a disk that fails, at each call that gives or takes a name or makes something durable:
// the register that was there, or the new one, is whole, or what is there is refused and a fresh restore has it whole.

#include <dlfcn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>

#include <gmock/gmock.h>

#include "store/sqlite/backup.h"
#include "store/sqlite/store_fixture.h"

namespace {

/// Which call from now on goes wrong, and how. For the calls of this whole program.
struct Trouble {
  int calls_left = -1;
  bool dies = false;
};
Trouble trouble;

constexpr int kDied = 99;

/// True: this call fails.
bool meets_trouble() {
  if (trouble.calls_left < 0 || trouble.calls_left-- > 0) return false;
  if (trouble.dies) ::_exit(kDied);
  errno = EIO;
  return true;
}

template <class Call>
Call next_of(const char* name) {
  return reinterpret_cast<Call>(::dlsym(RTLD_NEXT, name));
}

}  // namespace

extern "C" {

// NOLINTBEGIN: names of the C library
int rename(const char* from, const char* to) noexcept {
  static const auto call = next_of<int (*)(const char*, const char*)>("rename");
  return meets_trouble() ? -1 : call(from, to);
}
int unlink(const char* path) noexcept {
  static const auto call = next_of<int (*)(const char*)>("unlink");
  return meets_trouble() ? -1 : call(path);
}
int fsync(int file) {
  static const auto call = next_of<int (*)(int)>("fsync");
  return meets_trouble() ? -1 : call(file);
}
int fdatasync(int file) {
  static const auto call = next_of<int (*)(int)>("fdatasync");
  return meets_trouble() ? -1 : call(file);
}
// NOLINTEND
}

namespace croft::store {
namespace {

namespace fs = std::filesystem;

constexpr std::uint64_t kRecords = 40;

class RestoreCrashTest : public SqliteStoreTest {
 protected:
  [[nodiscard]] std::string folder() const { return scratch_.file("store"); }
  [[nodiscard]] std::string store() const { return folder() + "/croft.db"; }
  [[nodiscard]] std::string backup() const { return scratch_.file("backup"); }

  /// A register with most of its records in the log alone.
  void make_register() const {
    const auto made = make_at(store());
    for (std::uint64_t i = 0; i < kRecords; ++i) ASSERT_TRUE(put(*made, "a" + std::to_string(i), i));
  }
  [[nodiscard]] Result<void> restore(const std::string& from) const {
    TRY(const auto restore, SqliteRestore::begin(store(), from, true, clock_, soon()));
    return restore->finish(soon());
  }
  /// In a process of its own; how it ended.
  template <class Run>
  static int in_child(Run run) {
    const pid_t child = ::fork();
    if (child == 0) ::_exit(run());
    int status = 0;
    EXPECT_EQ(::waitpid(child, &status, 0), child);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
  }
  void expect_whole(Store& opened, const std::string& what) const {
    std::uint64_t there = 0;
    for (std::uint64_t i = 0; i < kRecords; ++i) {
      const auto record = opened.get(mark_key("a" + std::to_string(i)), soon());
      if (record && *record) ++there;
    }
    EXPECT_EQ(there, kRecords) << what;
  }
  /// Whatever it met, nothing acknowledged is forgotten. How many calls were looked at.
  void restore_in_trouble(const std::string& from, bool dies) {
    const std::string aside = scratch_.file("aside");
    fs::copy(folder(), aside, fs::copy_options::recursive);
    int call = 0;
    for (int ended = -1; ended != 0 && call < 200; ++call) {
      const std::string what = (dies ? "dies at call " : "EIO at call ") + std::to_string(call);
      fs::remove_all(folder());
      fs::copy(aside, folder(), fs::copy_options::recursive);
      ended = in_child([&] {
        trouble = {call, dies};
        const auto restored = restore(from);
        const bool over = trouble.calls_left >= 0;  // it met nothing any more
        return restored && over ? 0 : 1;
      });
      ASSERT_NE(ended, -1) << what;
      if (const auto opened = open(store()); opened) {
        expect_whole(**opened, what + ", opened");
      } else {
        EXPECT_EQ(opened.error().code, ErrorCode::corrupt) << what << opened.error().message;
      }
      const auto restored = restore(from);
      ASSERT_TRUE(restored) << what << restored.error().message << restored.error().details;
      expect_whole(*make_at(store()), what + ", restored again");
      for (const auto& entry : fs::directory_iterator(folder())) {
        const std::string name = entry.path().filename();
        EXPECT_THAT(name, testing::AnyOf("croft.db", "croft.db-wal", "croft.db-shm", "croft.db-lock")) << what;
      }
    }
    EXPECT_GT(call, 10);
    EXPECT_LT(call, 200);
    fs::remove_all(aside);
  }
};

TEST_F(RestoreCrashTest, OfABackup) {
  make_register();
  ASSERT_TRUE(backup_sqlite_store(store(), backup(), clock_, soon()));
  for (const bool dies : {true, false}) restore_in_trouble(backup(), dies);
}

}  // namespace
}  // namespace croft::store
