#include "vpc/decide/advice.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace croft::core::warm {
namespace {

using namespace std::chrono_literals;
using testing::Contains;
using testing::HasSubstr;

/// A sample every 10 s for 30 hours, in which nothing happens.
std::vector<DemandSample> quiet_day() {
  std::vector<DemandSample> samples(10'800);
  for (std::size_t i = 0; i < samples.size(); ++i) samples[i].at = WallTime(10s * (i + 1));
  return samples;
}

TEST(Advice, NothingAskedIsNothingAhead) {
  const auto advice = advise(quiet_day(), {});
  ASSERT_TRUE(advice);
  EXPECT_EQ(advice->low, 0U);
  EXPECT_EQ(advice->high, 0U);
}

TEST(Advice, CoversWhatIsAskedDuringARefill) {
  auto samples = quiet_day();
  samples[5000].adds = 4;
  samples[5001].adds = 3;
  samples[5002].refill = 9s;
  samples[9000].adds = 2;
  const auto advice = advise(samples, {}).value();
  EXPECT_EQ(advice.low, 7U) << "a refill of 9 s may touch two intervals of 10 s";
  EXPECT_EQ(advice.high, 14U);
  EXPECT_THAT(advice.reasons, Contains(HasSubstr("7 pods asked within 9.0 s")));
}

TEST(Advice, ALongRefillTouchesMoreIntervals) {
  auto samples = quiet_day();
  for (std::size_t i = 100; i < 110; ++i) samples[i].adds = 1;
  samples[100].refill = 30s;
  EXPECT_EQ(advise(samples, {}).value().low, 4U);
  samples[100].refill = 0s;  // none recorded: 15 s are assumed
  EXPECT_EQ(advise(samples, {}).value().low, 3U);
}

TEST(Advice, OneSlowRefillInManyDoesNotCount) {
  auto samples = quiet_day();
  for (std::size_t i = 0; i < 100; ++i) samples[i].refill = 5s;
  samples[50].refill = 600s;
  for (std::size_t i = 100; i < 160; ++i) samples[i].adds = 1;
  EXPECT_EQ(advise(samples, {}).value().low, 2U);
}

TEST(Advice, ThoseWhoAskAtOnceCount) {
  auto samples = quiet_day();
  samples[10].adds = 2;
  samples[10].peak = 9;
  const auto advice = advise(samples, {}).value();
  EXPECT_EQ(advice.low, 9U);
  EXPECT_THAT(advice.reasons, Contains(HasSubstr("9 pods asked at the same time")));
}

TEST(Advice, AnEmptyStockHidesDemand) {
  auto samples = quiet_day();
  samples[10].adds = 8;
  samples[10].empty = 3s;
  const auto advice = advise(samples, {}).value();
  EXPECT_EQ(advice.low, 10U);
  EXPECT_THAT(advice.reasons, Contains(HasSubstr("the stock was empty for 3.0 s")));
}

TEST(Advice, NoMarkIsAboveTheNodesPods) {
  auto samples = quiet_day();
  samples[10].adds = 4'000'000'000;
  samples[11].adds = 4'000'000'000;
  const auto advice = advise(samples, {110, 30s}).value();
  EXPECT_EQ(advice.low, 110U);
  EXPECT_EQ(advice.high, 110U);
  EXPECT_THAT(advice.reasons, Contains(HasSubstr("takes 110 pods at most")));
}

TEST(Advice, AShortRecordIsSaid) {
  auto samples = quiet_day();
  samples.resize(360);
  samples[10].adds = 1;
  EXPECT_THAT(advise(samples, {}).value().reasons, Contains(HasSubstr("covers 1.0 hours")));
}

TEST(Advice, RefusesWhatIsNoRecord) {
  EXPECT_EQ(advise({}, {}).error().code, ErrorCode::invalid_argument);
  auto samples = quiet_day();
  samples[3].at = samples[2].at;
  EXPECT_THAT(advise(samples, {}).error().message, HasSubstr("sample 3 is not later"));
}

}  // namespace
}  // namespace croft::core::warm
