#include "agent/metrics/health.h"

#include <atomic>
#include <future>
#include <thread>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/manual_clock.h"

namespace croft::edge {
namespace {

using testing::HasSubstr;
using namespace std::chrono_literals;

TEST(Health, WorkThatDoesNotEndIsStuck) {
  ManualClock clock;
  Health health(clock, 60s);
  EXPECT_TRUE(health.alive().good);
  EXPECT_EQ(health.alive().text, "ok\n");
  health.begin_work();
  clock.advance(60s);
  EXPECT_TRUE(health.alive().good);
  clock.advance(1s);
  EXPECT_FALSE(health.alive().good);
  EXPECT_THAT(health.alive().text, HasSubstr("61 s"));
  health.set("collector", "");
  EXPECT_FALSE(health.ready().good) << "who is stuck is not ready";
  health.end_work();
  EXPECT_TRUE(health.alive().good);
  clock.advance(24h);
  EXPECT_TRUE(health.alive().good) << "waiting has no limit";
}

TEST(Health, ReadyIsWhoCouldDoAllOfIt) {
  ManualClock clock;
  Health health(clock);
  EXPECT_FALSE(health.ready().good);
  EXPECT_EQ(health.ready().text, "[-]work failed: nothing was done yet\nreadyz check failed\n");
  health.set("collector", "");
  EXPECT_TRUE(health.ready().good);
  health.set("node ranges", "the store\nis \x1b[31maway");
  EXPECT_FALSE(health.ready().good);
  EXPECT_THAT(health.ready().text, HasSubstr("[+]collector ok\n[-]node ranges failed: the store"));
  EXPECT_THAT(health.ready().text, testing::Not(HasSubstr("\x1b")));
  health.set("node ranges", "");
  EXPECT_EQ(health.ready().text, "[+]collector ok\n[+]node ranges ok\nreadyz check passed\n");
  health.forget();
  EXPECT_FALSE(health.ready().good);
}

TEST(Watchdog, TellsOnceOfWorkThatIsStuckAndNothingOfWorkThatEnds) {
  ManualClock clock;
  Health health(clock, 60s);
  std::promise<std::string> told;
  std::atomic<int> count{0};
  const Watchdog watchdog(health, 1ms, [&](const std::string& text) {
    if (count++ == 0) told.set_value(text);
  });
  health.begin_work();
  health.end_work();
  clock.advance(1h);
  EXPECT_EQ(count, 0);
  health.begin_work();
  clock.advance(61s);
  EXPECT_THAT(told.get_future().get(), HasSubstr("61 s"));
  std::this_thread::sleep_for(20ms);
  EXPECT_EQ(count, 1);
}

TEST(Watchdog, EndsThoughNothingWasStuck) {
  const ManualClock clock;
  const Health health(clock);
  const Watchdog watchdog(health, 1h, [](const std::string&) { FAIL(); });
}

}  // namespace
}  // namespace croft::edge
