#include "os/clock.h"

#include <set>

#include <gtest/gtest.h>

#include "os/random.h"

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

}  // namespace
}  // namespace croft::os
