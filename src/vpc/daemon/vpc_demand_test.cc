#include "vpc/daemon/vpc_demand.h"

#include <filesystem>
#include <fstream>
#include <sstream>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/manual_clock.h"
#include "os/scratch_directory.h"
#include "vpc/format/demand.h"

namespace croft::app {
namespace {

using namespace std::chrono_literals;
using core::warm::DemandSample;

class DemandRecordTest : public testing::Test {
 protected:
  DemandRecord record() {
    return {path.string(), clock, [this](const std::string& line) { told.push_back(line); }};
  }
  /// Time passes in steps of a second, in which nothing changes.
  void pass(DemandRecord& demand, std::chrono::seconds span) {
    for (auto gone = 0s; gone < span; gone += 1s) {
      clock.advance(1s);
      demand.look(now);
    }
  }
  std::string file() const {
    std::ostringstream text;
    text << std::ifstream(path).rdbuf();
    return text.str();
  }

  ManualClock clock;
  DemandRecord::Look now{.free = 3};
  os::ScratchDirectory scratch;
  const std::filesystem::path directory = scratch.path(), path = scratch.file("vpc-demand.json");
  std::vector<std::string> told;
};

TEST_F(DemandRecordTest, TheLastSecondsOfAnAgentCountToo) {
  auto demand = record();
  demand.look(now);
  now.adds += 5;
  pass(demand, 2s);
  demand.end();
  clock.advance(1s);
  auto next = record();
  next.load();
  ASSERT_GE(next.samples().size(), 1U);
  EXPECT_EQ(next.samples().front().adds, 5U);
  auto idle = record();
  idle.end();  // nothing was looked at: nothing is made up
  EXPECT_TRUE(idle.samples().empty());
}

TEST_F(DemandRecordTest, TellsWhatHappenedInTenSeconds) {
  auto demand = record();
  demand.look(now);
  pass(demand, 4s);
  now.adds += 3;
  now.waiting = 2;
  now.free = 0;
  pass(demand, 2s);
  now.adds += 2;
  now.waiting = 0;
  now.free = 1;
  now.brought = 3;
  now.last_fill = 4321ms;
  pass(demand, 4s);
  const auto samples = demand.samples();
  ASSERT_EQ(samples.size(), 1U);
  EXPECT_EQ(samples[0].at, clock.now().wall);
  EXPECT_EQ(samples[0].adds, 5U);
  EXPECT_EQ(samples[0].peak, 5U) << "three got one while two waited";
  EXPECT_EQ(samples[0].refill, 4321ms);
  EXPECT_EQ(samples[0].empty, 2s);
}

TEST_F(DemandRecordTest, IsWrittenEveryMinuteAndReadAgain) {
  auto demand = record();
  demand.look(now);
  pass(demand, 30s);
  now.adds = 4;
  pass(demand, 29s);
  EXPECT_FALSE(std::filesystem::exists(path));
  pass(demand, 1s);
  EXPECT_EQ(wire::decode_demand(file()).value().size(), demand.samples().size());
  clock.advance(1h);
  auto next = record();
  next.load();
  now.adds = 0;
  next.look(now);
  now.adds = 4;
  pass(next, 10s);
  const auto advice = core::warm::advise(next.samples(), {}).value();
  EXPECT_EQ(advice.low, 4U) << "the hour without an agent lies between";
  EXPECT_TRUE(told.empty());
}

TEST_F(DemandRecordTest, HoursOfNothingAreOneSampleAndADayIsKept) {
  auto demand = record();
  demand.look(now);
  pass(demand, 20s);
  now.adds = 9;
  pass(demand, 10s);
  pass(demand, 3600s);
  EXPECT_EQ(demand.samples().size(), 4U) << "two of nothing before, what happened, and nothing since";
  for (int hour = 0; hour < 24; ++hour) {
    clock.advance(3590s);
    pass(demand, 10s);
  }
  const auto samples = demand.samples();
  ASSERT_EQ(samples.size(), 2U);
  EXPECT_EQ(samples.front().adds, 0U) << "what happened is older than a day";
  EXPECT_GE(samples.back().at - samples.front().at, 24h);
}

TEST_F(DemandRecordTest, AClockThatIsSetBackLeavesNoFuture) {
  auto demand = record();
  demand.look(now);
  for (int i = 0; i < 5; ++i) {
    ++now.adds;
    pass(demand, 10s);
  }
  clock.jump_wall(-25s);
  ++now.adds;
  pass(demand, 10s);
  const auto samples = demand.samples();
  EXPECT_TRUE(core::warm::advise(samples, {})) << "they are in the order of time";
  EXPECT_EQ(samples.back().at, clock.now().wall);
}

TEST_F(DemandRecordTest, WhatCannotBeReadBeginsAnewAndIsTold) {
  std::ofstream(path) << "{\"version\": 1, \"samples\": [{\"at\": 7}]}";
  auto demand = record();
  demand.load();
  ASSERT_EQ(told.size(), 1U);
  EXPECT_THAT(told[0], testing::HasSubstr("samples[0].at"));
  EXPECT_TRUE(demand.samples().empty());
}

TEST_F(DemandRecordTest, ADirectoryThatIsGoneIsToldOnce) {
  auto demand = record();
  demand.look(now);
  std::filesystem::remove_all(directory);
  pass(demand, 180s);
  EXPECT_EQ(told.size(), 1U);
  std::filesystem::create_directory(directory);
  pass(demand, 60s);
  EXPECT_TRUE(std::filesystem::exists(path));
}

TEST_F(DemandRecordTest, WithoutAFileNothingIsWritten) {
  DemandRecord demand("", clock, [this](const std::string& line) { told.push_back(line); });
  demand.load();
  demand.look(now);
  pass(demand, 70s);
  demand.save();
  EXPECT_TRUE(std::filesystem::is_empty(directory));
  EXPECT_TRUE(told.empty());
}

}  // namespace
}  // namespace croft::app
