#include "history/decide/forecast.h"

#include <cmath>
#include <functional>
#include <vector>

#include <gtest/gtest.h>

namespace croft::core::history {
namespace {

using namespace std::chrono_literals;

const WallTime kFirst{std::chrono::seconds(1768471200)};

/// Each five minutes, `used(hours)`.
std::vector<Use> series(double hours, double room, const std::function<double(double)>& used) {
  std::vector<Use> uses;
  for (int i = 0; i * 5 <= hours * 60; ++i) {
    const double at = i / 12.0;
    uses.push_back({kFirst + std::chrono::minutes(5 * i), used(at), room});
  }
  return uses;
}

Forecast of(const std::vector<Use>& uses) { return forecast(uses, uses.back().at); }

double in_hours(const std::optional<std::chrono::seconds>& span) {
  return span ? static_cast<double>(span->count()) / 3600 : std::numeric_limits<double>::infinity();
}

TEST(Forecast, IsUnknownWhereLittleWasCounted) {
  EXPECT_FALSE(forecast({}, kFirst).is_known);
  EXPECT_FALSE(of(series(0.5, 100, [](double h) { return h; })).is_known);
}

TEST(Forecast, WhatIsNoLongerCountedHasNone) {
  const auto uses = series(4, 1000, [](double h) { return 100 + 50 * h; });
  EXPECT_TRUE(forecast(uses, uses.back().at + 10min).is_known);
  EXPECT_FALSE(forecast(uses, uses.back().at + 30min).is_known);
}

TEST(Forecast, ASteadyGrowthGoesOn) {
  const Forecast found = of(series(4, 1000, [](double h) { return 100 + 50 * h; }));
  ASSERT_TRUE(found.is_known);
  EXPECT_NEAR(found.growth_an_hour, 50, 1);
  EXPECT_NEAR(in_hours(found.full_in), 14, 1);
  EXPECT_LE(found.earliest, found.full_in);
  EXPECT_GE(found.latest, found.full_in);
}

TEST(Forecast, AQuietPoolIsNotFullInSight) {
  const Forecast found = of(series(5, 1000, [](double h) { return 500 + 3 * std::sin(20 * h); }));
  ASSERT_TRUE(found.is_known);
  EXPECT_FALSE(found.full_in);
}

TEST(Forecast, OneBurstIsNotATrend) {
  const Forecast found = of(series(4, 1000, [](double h) { return h > 2 && h < 2.2 ? 900 : 300; }));
  ASSERT_TRUE(found.is_known);
  EXPECT_FALSE(found.full_in);
}

TEST(Forecast, DaysThatComeAndGoAreNotTakenForGrowth) {
  const auto daily = [](double h) { return 500 + 300 * std::sin(h / 24 * 2 * 3.14159265); };
  // In its steepest hour the slope alone would fill it within 6 hours.
  const Forecast found = of(series(24 * 4, 1000, daily));
  ASSERT_TRUE(found.is_known);
  EXPECT_FALSE(found.full_in) << in_hours(found.full_in);
}

TEST(Forecast, GrowthBesideTheDaysIsSeen) {
  const auto leaking = [](double h) {
    return 400 + 100 * std::sin(h / 24 * 2 * 3.14159265) + (h > 93 ? 60 * (h - 93) : 0);
  };
  const Forecast found = of(series(96, 1000, leaking));
  ASSERT_TRUE(found.is_known);
  EXPECT_LT(in_hours(found.full_in), 24 * 2);
  EXPECT_GT(in_hours(found.full_in), 3);
}

TEST(Forecast, WhatComesAndGoesAtOtherHoursEachDayIsNotTakenForGrowth) {
  // Three hours of it fill the pool in less than two more.
  const auto sawtooth = [](double h) { return 250 + 550 * std::fmod(h, 5) / 5; };
  for (double hours = 52; hours < 57; hours += 0.5) {
    const Forecast found = of(series(hours, 1000, sawtooth));
    ASSERT_TRUE(found.is_known);
    EXPECT_GT(in_hours(found.full_in), 24) << "after " << hours;
  }
}

TEST(Forecast, AGrowthThatSlowsDownComesToNoEnd) {
  const Forecast found = of(series(24 * 4, 1000, [](double h) { return 940 - 600 * std::exp(-h / 18); }));
  ASSERT_TRUE(found.is_known);
  EXPECT_GT(in_hours(found.full_in), 24);
}

TEST(Forecast, DaysThatGrowFillAPoolAtTheirPeak) {
  const auto growing = [](double h) { return 400 + 80 * std::sin(h / 24 * 2 * 3.14159265) + 3 * h; };
  // In the quiet hours; 160 h come to 960 and a wave.
  const Forecast found = of(series(24 * 6, 1000, growing));
  ASSERT_TRUE(found.is_known);
  EXPECT_NEAR(in_hours(found.full_in), 28, 5);
}

TEST(Forecast, GrowthOnTheFirstDayIsBelievedWhileItLasts) {
  const auto stops = [](double h) { return 200 + 60 * std::min(h, 8.0); };
  EXPECT_LT(in_hours(of(series(7, 1000, stops)).full_in), 10);
  EXPECT_FALSE(of(series(12, 1000, stops)).full_in);
}

TEST(Forecast, AFullPoolIsFullNow) {
  const Forecast at_once = of({{kFirst, 100, 100}});
  ASSERT_TRUE(at_once.is_known);
  EXPECT_EQ(at_once.full_in, 0s);
  EXPECT_EQ(at_once.latest, 0s);
  const Forecast found = of(series(2, 100, [](double) { return 100; }));
  ASSERT_TRUE(found.is_known);
  EXPECT_EQ(found.full_in, 0s);
}

}  // namespace
}  // namespace croft::core::history
