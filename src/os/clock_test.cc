#include "os/clock.h"

#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cstddef>
#include <set>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include "os/file_lock.h"

namespace croft::os {
namespace {

TEST(SystemClock, GoesOnWithinOneBoot) {
  const SystemClock clock;
  const Instant first = clock.now();
  const Instant second = clock.now();
  EXPECT_NE(first.boot, BootId{});
  EXPECT_EQ(first.boot, second.boot);
  EXPECT_GT(first.since_boot.count(), 0);
  EXPECT_LE(first.since_boot, second.since_boot);
  EXPECT_EQ(SystemClock().now().boot, first.boot);
}

TEST(SystemClock, WallTimeIsOfThisCentury) {
  using namespace std::chrono;
  EXPECT_GT(SystemClock().now().wall, sys_days(year{2024} / January / 1));
}

TEST(SystemRandom, DoesNotRepeat) {
  SystemRandom random;
  std::set<std::uint64_t> seen;
  for (int i = 0; i < 1000; ++i) seen.insert(random.next());
  EXPECT_EQ(seen.size(), 1000U);
}

TEST(SystemRandom, ThreadsAndInstancesDrawDifferentNumbers) {
  constexpr std::size_t kThreads = 8;
  constexpr std::size_t kDraws = 1000;
  SystemRandom shared;
  std::array<std::vector<std::uint64_t>, kThreads> drawn;
  std::vector<std::thread> threads;
  for (auto& mine : drawn) {
    threads.emplace_back([&shared, &mine] {
      SystemRandom own;
      for (std::size_t i = 0; i < kDraws; i += 2) {
        mine.push_back(shared.next());
        mine.push_back(own.next());
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  std::set<std::uint64_t> seen;
  for (const auto& mine : drawn) seen.insert(mine.begin(), mine.end());
  EXPECT_EQ(seen.size(), kThreads * kDraws);
}

TEST(SystemRandom, AForkedChildDrawsOthersThanItsParent) {
  constexpr std::size_t kDraws = 100;
  using Drawn = std::array<std::uint64_t, kDraws>;
  SystemRandom random;
  for (int draws_before = 0; draws_before < 40; draws_before += 3) {
    const std::uint64_t before = random.next();
    std::array<int, 2> ends{};
    ASSERT_EQ(::pipe(ends.data()), 0);
    const pid_t child = ::fork();
    ASSERT_GE(child, 0);
    Drawn drawn{};
    for (auto& number : drawn) number = random.next();
    if (child == 0) ::_exit(::write(ends[1], drawn.data(), sizeof drawn) == sizeof drawn ? 0 : 1);
    Drawn of_child{};
    ASSERT_EQ(::read(ends[0], of_child.data(), sizeof of_child), static_cast<ssize_t>(sizeof of_child));
    for (const int end : ends) ::close(end);
    int status = -1;
    ASSERT_EQ(::waitpid(child, &status, 0), child);
    EXPECT_EQ(status, 0);
    std::set<std::uint64_t> seen{before};
    seen.insert(drawn.begin(), drawn.end());
    seen.insert(of_child.begin(), of_child.end());
    EXPECT_EQ(seen.size(), 2 * kDraws + 1);
  }
}

TEST(BootIdText, ReadsAUuid) {
  const BootId id = parse_boot_id("01234567-89ab-cdef-0011-2233445566ff");
  EXPECT_EQ(id,
            (BootId{{{0x01, 0x23, 0x45, 0x67, 0x89, 0xab, 0xcd, 0xef, 0, 0x11, 0x22, 0x33, 0x44, 0x55, 0x66, 0xff}}}));
}

TEST(BootIdText, AnythingElseIsUnknown) {
  for (const char* text : {"", "-", "0123456789abcdef00112233445566f", "0123456789abcdef00112233445566ff0",
                           "0123456789ABCDEF00112233445566FF", "01234567-89ab-cdef-0011-2233445566f ", "unknown"}) {
    EXPECT_EQ(parse_boot_id(text), BootId{}) << text;
  }
}

constexpr std::string_view kLocks =
    "1: POSIX  ADVISORY  WRITE 41 00:19:700 0 EOF\n"
    "2: FLOCK  ADVISORY  READ  42 00:19:700 0 EOF\n"
    "3: FLOCK  ADVISORY  WRITE 43 00:19:1700 0 EOF\n"
    "4: FLOCK  ADVISORY  WRITE 4030 00:19:700 0 EOF\n"
    "4: -> FLOCK  ADVISORY  WRITE 44 00:19:9 0 EOF\n";

TEST(FlockHolder, IsWhoHasTheLockForWriting) {
  EXPECT_EQ(flock_holder(kLocks, 700), "4030");
  EXPECT_EQ(flock_holder(kLocks, 1700), "43");
}

TEST(FlockHolder, NobodyWhenTheKernelDoesNotSay) {
  for (const unsigned inode : {0U, 9U, 41U, 70U}) EXPECT_EQ(flock_holder(kLocks, inode), "") << inode;
  EXPECT_EQ(flock_holder("", 700), "");
  for (const char* line : {"1: FLOCK  ADVISORY  WRITE 00:19:700 0 EOF", "1: FLOCK  ADVISORY  WRITE 0 00:19:700 0 EOF",
                           "1: FLOCK  ADVISORY  WRITE -1 00:19:700 0 EOF", "1: FLOCK  ADVISORY  WRITE", "\n\n"}) {
    EXPECT_EQ(flock_holder(line, 700), "") << line;
  }
}

}  // namespace

}  // namespace croft::os
