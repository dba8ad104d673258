#include "os/file_lock.h"

#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include "os/clock.h"
#include "os/files.h"
#include "os/scratch_directory.h"

namespace croft::os {
namespace {

using namespace std::chrono_literals;

class FileLockTest : public testing::Test {
 protected:
  [[nodiscard]] Deadline in(std::chrono::nanoseconds span) const { return Deadline::after(clock_.now(), span); }
  [[nodiscard]] std::string path() const { return scratch_.file("lock"); }

  /// A child process that takes the lock, says so and sleeps.
  [[nodiscard]] pid_t start_holder() const {
    int pipe_ends[2];
    EXPECT_EQ(::pipe(pipe_ends), 0);
    const pid_t pid = ::fork();
    if (pid == 0) {
      FileLock lock(path());
      const bool locked = lock.lock(clock_, in(5s)).has_value();
      if (::write(pipe_ends[1], locked ? "y" : "n", 1) != 1) ::_exit(1);
      for (;;) ::pause();
    }
    char answer = 'n';
    EXPECT_EQ(::read(pipe_ends[0], &answer, 1), 1);
    EXPECT_EQ(answer, 'y');
    ::close(pipe_ends[0]);
    ::close(pipe_ends[1]);
    return pid;
  }

  static void kill_and_wait(pid_t pid) {
    ::kill(pid, SIGKILL);
    ::waitpid(pid, nullptr, 0);
  }

  SystemClock clock_;
  ScratchDirectory scratch_;
};

TEST_F(FileLockTest, TakesNoNumberOfAStandardStream) {
  const pid_t pid = ::fork();
  if (pid == 0) {
    ::close(STDOUT_FILENO);
    FileLock lock(path());
    const bool is_locked = lock.lock(clock_, in(5s)).has_value();
    ::_exit(is_locked && ::write(STDOUT_FILENO, "words", 5) < 0 ? 0 : 1);
  }
  int status = -1;
  ASSERT_EQ(::waitpid(pid, &status, 0), pid);
  EXPECT_EQ(status, 0);
}

TEST_F(FileLockTest, ExcludesWithinAProcess) {
  FileLock a(path());
  FileLock b(path());
  ASSERT_TRUE(a.lock(clock_, in(1s)));
  EXPECT_EQ(b.lock(clock_, in(0s)).error().code, ErrorCode::deadline_exceeded);
  a.unlock();
  EXPECT_TRUE(b.lock(clock_, in(0s)));
  EXPECT_EQ(file_status(path()).value()->bytes, 0U);
}

TEST_F(FileLockTest, AWaiterGivesUpAtItsDeadlineAndNamesTheHolder) {
  const pid_t holder = start_holder();
  FileLock lock(path());
  const auto start = clock_.now().since_boot;
  const auto locked = lock.lock(clock_, in(100ms));
  const auto waited = clock_.now().since_boot - start;
  kill_and_wait(holder);
  ASSERT_FALSE(locked);
  EXPECT_EQ(locked.error().code, ErrorCode::deadline_exceeded);
  EXPECT_NE(locked.error().message.find("process " + std::to_string(holder)), std::string::npos)
      << locked.error().message;
  EXPECT_GE(waited, 100ms);
  EXPECT_LT(waited, 1s);
}

TEST_F(FileLockTest, AKilledHolderLetsGo) {
  const pid_t holder = start_holder();
  FileLock lock(path());
  std::thread killer([&] {
    std::this_thread::sleep_for(50ms);
    kill_and_wait(holder);
  });
  EXPECT_TRUE(lock.lock(clock_, in(10s)));
  killer.join();
}

TEST_F(FileLockTest, AChildDoesNotKeepTheLock) {
  FileLock lock(path());
  ASSERT_TRUE(lock.lock(clock_, in(1s)));
  const pid_t child = ::fork();
  if (child == 0) {
    for (;;) ::pause();
  }
  lock.unlock();
  FileLock other(path());
  EXPECT_TRUE(other.lock(clock_, in(1s)));
  kill_and_wait(child);
}

TEST_F(FileLockTest, AReplacedFileIsNoticed) {
  FileLock a(path());
  ASSERT_TRUE(a.lock(clock_, in(1s)));
  a.unlock();
  ASSERT_EQ(::unlink(path().c_str()), 0);
  FileLock b(path());
  ASSERT_TRUE(b.lock(clock_, in(1s)));
  EXPECT_EQ(a.lock(clock_, in(10ms)).error().code, ErrorCode::deadline_exceeded) << "a must not hold the old file";
}

TEST_F(FileLockTest, AFileReplacedWhileWaitingIsNoticed) {
  FileLock a(path());
  ASSERT_TRUE(a.lock(clock_, in(1s)));
  std::atomic<bool> got{false};
  std::thread waiter([&] {
    FileLock b(path());
    EXPECT_TRUE(b.lock(clock_, in(10s)));
    FileLock c(path());
    EXPECT_FALSE(c.lock(clock_, in(0s))) << "b holds the file that is at the path";
    got = true;
  });
  std::this_thread::sleep_for(30ms);
  ASSERT_EQ(::unlink(path().c_str()), 0);
  a.unlock();
  waiter.join();
  EXPECT_TRUE(got);
}

TEST_F(FileLockTest, OddFilesAreRefusedAtOnce) {
  ASSERT_EQ(::mkfifo(path().c_str(), 0600), 0);
  EXPECT_EQ(FileLock(path()).lock(clock_, in(1s)).error().code, ErrorCode::invalid_argument);
  EXPECT_EQ(FileLock(scratch_.path()).lock(clock_, in(1s)).error().code, ErrorCode::invalid_argument);
  EXPECT_EQ(FileLock(scratch_.file("no/lock")).lock(clock_, in(1s)).error().code, ErrorCode::not_found);
}

TEST_F(FileLockTest, SixtyFourWaitersBurnNoProcessorTime) {
  FileLock lock(path());
  ASSERT_TRUE(lock.lock(clock_, in(1s)));
  std::vector<pid_t> children;
  for (int i = 0; i < 64; ++i) {
    const pid_t child = ::fork();
    if (child == 0) {
      FileLock theirs(path());
      ::_exit(theirs.lock(clock_, in(60s)) ? 0 : 1);
    }
    children.push_back(child);
  }
  std::this_thread::sleep_for(500ms);
  lock.unlock();
  for (const pid_t child : children) {
    int status = 1;
    ::waitpid(child, &status, 0);
    EXPECT_EQ(status, 0);
  }
  rusage usage{};
  ASSERT_EQ(::getrusage(RUSAGE_CHILDREN, &usage), 0);
  const auto used = std::chrono::seconds{usage.ru_utime.tv_sec + usage.ru_stime.tv_sec} +
                    std::chrono::microseconds{usage.ru_utime.tv_usec + usage.ru_stime.tv_usec};
  // 64 processes polling each millisecond for half a second would use about a second; start and end of 64 processes
  // with instrumentation are within this.
  EXPECT_LT(used, 1s);
}

TEST_F(FileLockTest, ThreadsTakeTurns) {
  // Guarded by the lock alone; atomic because thread sanitizers don't know file locks.
  std::atomic<int> counter{0};
  std::vector<std::thread> threads;
  for (int t = 0; t < 8; ++t) {
    threads.emplace_back([&] {
      FileLock mine(path());
      for (int i = 0; i < 50; ++i) {
        ASSERT_TRUE(mine.lock(clock_, in(30s)));
        const int before = counter.load();
        std::this_thread::yield();
        counter.store(before + 1);
        mine.unlock();
      }
    });
  }
  for (auto& thread : threads) thread.join();
  EXPECT_EQ(counter, 400);
}

}  // namespace
}  // namespace croft::os
