#include <cmath>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "base/time_text.h"
#include "history/decide/forecast.h"
#include "history/decide/holding.h"
#include "register/owner.h"

namespace croft::core::history {
namespace {

using namespace std::chrono_literals;

const WallTime kStart{std::chrono::seconds(1768471200)};

Holding holding(Moment begin, std::optional<Moment> end) {
  Holding one;
  one.address = net::Address::parse("10.1.0.7").value();
  one.holder.pod = "web";
  one.begin = begin;
  one.end = end;
  return one;
}

TEST(Holding, HeldAtKnowsWhatItDoesNotKnow) {
  const Holding one = holding({kStart, kStart + 10s}, Moment{kStart + 60s, kStart + 70s});
  EXPECT_EQ(held_at(one, kStart - 1s), Held::no);
  EXPECT_EQ(held_at(one, kStart), Held::no);
  EXPECT_EQ(held_at(one, kStart + 5s), Held::maybe);
  EXPECT_EQ(held_at(one, kStart + 10s), Held::yes);
  EXPECT_EQ(held_at(one, kStart + 60s), Held::maybe);
  EXPECT_EQ(held_at(one, kStart + 70s), Held::no);
  const Holding open = holding(Moment::at(kStart), std::nullopt);
  EXPECT_EQ(held_at(open, kStart), Held::yes);
  EXPECT_EQ(held_at(open, kStart + 24h), Held::yes);
}

TEST(Holding, AnAnswerSaysHowItIsKnown) {
  const Reach reach{kStart, kStart + 1h};
  const std::vector<Holding> one{holding({kStart + 60s, kStart + 120s}, Moment::at(kStart + 600s))};
  struct Case {
    std::chrono::seconds at;
    bool is_sure;
    std::size_t holdings;
    const char* known;
  };
  const Case cases[] = {
      {300s, true, 1, "seen by watch"},
      {100s, false, 1, "taken between two looks, 2026-01-15T10:01:00Z and 2026-01-15T10:02:00Z"},
      {700s, true, 0, "seen by watch"},
      {-5s, false, 0, "not recorded: the history begins at 2026-01-15T10:00:00Z"},
      {2h, false, 0, "as of 2026-01-15T11:00:00Z, when the history was written last"},
  };
  for (const Case& c : cases) {
    const Answer answer = answer_at(one, std::nullopt, reach, kStart + c.at);
    EXPECT_EQ(answer.is_sure, c.is_sure) << c.at.count();
    EXPECT_EQ(answer.holdings.size(), c.holdings) << c.at.count();
    EXPECT_EQ(answer.known, c.known) << c.at.count();
  }
  const Answer in_gap = answer_at({}, Gap{kStart, kStart + 30s}, reach, kStart + 10s);
  EXPECT_FALSE(in_gap.is_sure);
  EXPECT_EQ(in_gap.known, "gap: nobody looked between 2026-01-15T10:00:00Z and 2026-01-15T10:00:30Z");
}

TEST(Holding, WhatContradictsItselfIsToldAndNotBelieved) {
  const Reach reach{kStart - 1h, kStart + 1h};
  const Holding open = holding(Moment::at(kStart), std::nullopt);
  const Holding ended = holding(Moment::at(kStart), Moment::at(kStart + 50s));
  for (const auto& two : {std::vector{open, ended}, std::vector{ended, open}, std::vector{open, open}}) {
    const Answer answer = answer_at(two, std::nullopt, reach, kStart + 10s);
    EXPECT_FALSE(answer.is_sure);
    EXPECT_EQ(answer.holdings.size(), 2U);
    EXPECT_EQ(answer.known, "two holders are recorded");
  }
}

TEST(Holding, AGapPutsInDoubtWhatItMayHaveHidden) {
  const Reach reach{kStart - 1h, kStart + 1h};
  const WallTime at = kStart + 10s;
  const std::vector<Holding> open{holding(Moment::at(kStart - 60s), std::nullopt)};
  const std::vector<Holding> inside{holding(Moment::at(kStart - 60s), Moment::at(kStart + 20s))};
  const std::vector<Holding> older{holding({WallTime{}, kStart - 2h}, std::nullopt)};
  struct Case {
    const char* name;
    const std::vector<Holding>& holdings;
    Gap gap;
    WallTime at;
    bool is_sure;
  };
  const Case cases[] = {
      {"the same before and after", open, {kStart, kStart + 30s}, at, true},
      {"not over", open, {kStart, kStart + 2h}, at, false},
      {"times came twice", open, {kStart, kStart + 30s, true}, at, false},
      {"of a block, the same before and after", open, {kStart, kStart + 30s, false, true}, at, true},
      {"of a block, and it ended inside", inside, {kStart, kStart + 30s, false, true}, at, false},
      {"not readable", open, {kStart, kNotOver, false, true}, at, false},
      {"older than the history", older, {kStart, kStart + 30s}, kStart - 90min, false},
      {"older, and seen since", older, {kStart, kStart + 30s}, at, true},
  };
  for (const Case& c : cases) {
    const Answer answer = answer_at(c.holdings, c.gap, reach, c.at);
    EXPECT_EQ(answer.is_sure, c.is_sure) << c.name << ": " << answer.known;
    EXPECT_EQ(answer.holdings.size(), 1U) << c.name;
  }
}

// ---------------------------------------------------------------- changes

/// A block with one holder of its first address.
Block block_of(const std::map<std::string, std::string>& attributes) {
  const net::Prefix cidr = net::Prefix::parse("10.1.0.0/30").value();
  Block block = new_block(cidr, std::nullopt, Instant{kStart, {}, {}}, std::nullopt);
  Attribute attribute;
  attribute.handle_id = "net.c1";
  attribute.secondary = attributes;
  return take_address(block, cidr.first(), attribute).value().block;
}

TEST(Changes, TheTimeThatABlockRecordsMakesALongLookShorterAndNeverExact) {
  const auto begin = [](WallTime recorded, Moment seen) {
    const Block block = block_of({{kTimestampKey, go_utc_text(recorded)}});
    return changes_of({}, block.cidr, &block, seen).begun.at(0).holding.begin;
  };
  const Moment hour{kStart, kStart + 1h}, second{kStart, kStart + 1s};
  EXPECT_EQ(begin(kStart + 10min, hour), (Moment{kStart + 9min, kStart + 11min}));
  EXPECT_EQ(begin(kStart + 30s, hour), (Moment{kStart, kStart + 90s}));
  EXPECT_EQ(begin(kStart - 10s, hour), hour) << "a clock that is wrong";
  EXPECT_EQ(begin(kStart + 2h, hour), hour) << "a clock that is wrong";
  EXPECT_EQ(begin(kStart, second), second);
  const Moment older{WallTime{}, kStart};
  EXPECT_EQ(begin(kStart - 10min, older), (Moment{WallTime{}, kStart - 9min}));
}

TEST(Changes, AnotherPodUnderTheSameHandleIsAnotherHolder) {
  const std::map<std::string, std::string> one{
      {kNodeKey, "node-a"}, {kNamespaceKey, "shop"}, {kPodKey, "web"}, {kPodUidKey, "1"}};
  const Block before = block_of(one);
  const Moment seen{kStart, kStart + 1s};
  const auto first = changes_of({}, before.cidr, &before, seen);
  const Open open{{before.cidr.first(), first.begun.at(0).print}};
  EXPECT_TRUE(changes_of(open, before.cidr, &before, seen).begun.empty());
  for (const auto& [key, value] : one) {
    auto other = one;
    other[key] = value + "x";
    const Block after = block_of(other);
    const auto changes = changes_of(open, after.cidr, &after, seen);
    EXPECT_EQ(changes.ended.size(), 1U) << key;
    EXPECT_EQ(changes.begun.size(), 1U) << key;
  }
}

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
