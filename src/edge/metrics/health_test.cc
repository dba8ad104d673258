#include "edge/metrics/health.h"

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

}  // namespace
}  // namespace croft::edge
