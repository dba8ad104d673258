#include "sim/schedule.h"

#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace croft::sim {
namespace {

using namespace std::chrono_literals;
using testing::ElementsAre;

class ScheduleTest : public testing::Test {
 protected:
  Schedule schedule;
  std::vector<std::string> seen;
  Process process{schedule};
};

TEST_F(ScheduleTest, EventsOfOneTimeHappenInTheOrderInWhichTheyWereAskedFor) {
  schedule.at(2s, [&] { seen.emplace_back("c"); });
  schedule.at(1s, [&] { seen.emplace_back("a"); });
  schedule.at(1s, [&] { seen.emplace_back("b"); });
  schedule.run_until(1500ms);
  EXPECT_THAT(seen, ElementsAre("a", "b"));
  EXPECT_EQ(schedule.now(), 1500ms);
  schedule.run_until(3s);
  EXPECT_THAT(seen, ElementsAre("a", "b", "c"));
}

TEST_F(ScheduleTest, ActorsSleepAndWaitOnSimulatedTime) {
  Signal signal;
  const auto note = [&](const std::string& what) { seen.push_back(what + std::to_string(schedule.now() / 1s)); };
  schedule.spawn(process, [&] {
    sleep(1s);
    note("slept ");
    EXPECT_FALSE(wait(signal, 3s));
    note("late ");
    EXPECT_TRUE(wait(signal));
    note("signalled ");
  });
  schedule.at(5s, [&] { signal.notify_all(); });
  schedule.run_until(10s);
  EXPECT_THAT(seen, ElementsAre("slept 1", "late 3", "signalled 5"));
}

TEST_F(ScheduleTest, AKilledProcessEndsWhereItWaits) {
  struct AtEnd {
    std::vector<std::string>& seen;
    ~AtEnd() {
      seen.emplace_back("unwound");
      sleep(1s);  // a destructor does not wait any more
    }
  };
  schedule.spawn(process, [&] {
    const AtEnd at_end{seen};
    sleep(1h);
    seen.emplace_back("went on");
  });
  schedule.spawn(process, [&] { seen.emplace_back("began"); });
  schedule.at(1s, [&] { process.kill(); });
  schedule.run_until(2h);
  EXPECT_THAT(seen, ElementsAre("began", "unwound"));
  schedule.spawn(process, [&] { seen.emplace_back("of the dead"); });
  schedule.run_until(3h);
  EXPECT_EQ(seen.size(), 2U);
}

TEST_F(ScheduleTest, AProcessThatKillsItselfEndsWhereItWaitsNext) {
  schedule.spawn(process, [&] {
    process.kill();
    seen.emplace_back("still here");
    sleep(1s);
    seen.emplace_back("went on");
  });
  schedule.run_until(5s);
  EXPECT_THAT(seen, ElementsAre("still here"));
}

TEST_F(ScheduleTest, AFrozenProcessGoesOnLater) {
  Span went_on{0};
  schedule.spawn(process, [&] {
    sleep(1s);
    went_on = schedule.now();
  });
  schedule.run_until(500ms);
  process.freeze_until(7s);
  schedule.run_until(10s);
  EXPECT_EQ(went_on, 7s);
}

}  // namespace
}  // namespace croft::sim
