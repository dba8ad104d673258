#include "base/pauses.h"

#include <set>

#include <gtest/gtest.h>

namespace croft {
namespace {

using namespace std::chrono_literals;

TEST(Pauses, GrowWithinBoundsAndBeginAnewAfterProgress) {
  Pauses pauses(50ms, 2s, 7);
  for (int round = 0; round < 3; ++round) {
    for (const std::chrono::nanoseconds most : {50ms, 100ms, 200ms, 400ms, 800ms, 1600ms, 2000ms, 2000ms, 2000ms}) {
      const auto pause = pauses.next();
      EXPECT_GE(pause, most / 2);
      EXPECT_LE(pause, most);
    }
    pauses.reset();
  }
}

TEST(Pauses, ThoseOfManyDriftApart) {
  std::set<std::chrono::nanoseconds> first;
  for (std::uint64_t seed = 0; seed < 1000; ++seed) first.insert(Pauses(1s, 2s, seed).next());
  EXPECT_GT(first.size(), 500U);
  EXPECT_LT(*first.begin(), 510ms);
  EXPECT_GT(*first.rbegin(), 990ms);
}

}  // namespace
}  // namespace croft
