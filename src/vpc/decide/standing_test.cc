#include "vpc/decide/standing.h"

#include <gtest/gtest.h>

#include "vpc/decide/test_stock.h"

namespace croft::core::warm {
namespace {

using namespace std::chrono_literals;

class WarmStanding : public testing::Test {
 protected:
  void note() { standing_.note(stock_.all(), stock_.clock.now()); }
  [[nodiscard]] std::chrono::nanoseconds age() { return standing_.age(*stock_.find(address_), stock_.clock.now()); }
  [[nodiscard]] std::chrono::nanoseconds seen_for() {
    return standing_.seen_for(*stock_.find(address_), stock_.clock.now());
  }
  std::string address_ = "10.9.0.7";
  TestStock stock_;
  Standing standing_;
};

TEST_F(WarmStanding, NobodyMakesARecordOlderOrYoungerByTheWallClock) {
  address_ = "10.9.0.4";
  for (const auto jump : {1h, -1h, -100h, 200h}) {
    note();
    stock_.take({given(address_, true)});
    stock_.clock.advance(5s);
    stock_.clock.jump_wall(jump);
    note();
    EXPECT_LE(age(), 5s) << "it was not there the last time";
    EXPECT_EQ(seen_for(), 0s);
    stock_.clock.jump_wall(jump);
    stock_.clock.advance(60s);
    EXPECT_GE(age(), 60s);
    EXPECT_LE(age(), 65s);
    EXPECT_EQ(seen_for(), 60s);
    note();
    EXPECT_EQ(seen_for(), 60s) << "it is the same";
    ASSERT_EQ(stock_.address_for(request_of(address_)), address_);
    EXPECT_EQ(age(), 0s) << "another state";
    address_.back() += 1;
  }
}

TEST_F(WarmStanding, AtABeginningTheRecordsOwnTimeIsAllThatIsKnown) {
  stock_.take({given("10.9.0.7", true)});
  stock_.clock.advance(600s);
  note();
  EXPECT_EQ(age(), 600s);
  EXPECT_EQ(seen_for(), 0s);
  standing_ = {};
  stock_.clock.jump_wall(-24h);
  note();
  EXPECT_EQ(age(), 0s) << "a record of the future";
  stock_.clock.advance(60s);
  EXPECT_EQ(age(), 60s);
}

TEST_F(WarmStanding, WhatWasNotThereThenDidNotStandThen) {
  const Instant before = stock_.clock.now();
  note();
  stock_.take({given("10.9.0.7", true)});
  EXPECT_FALSE(standing_.stood_at(*stock_.find("10.9.0.7"), stock_.clock.now()));
  stock_.clock.advance(1s);
  note();
  EXPECT_TRUE(standing_.stood_at(*stock_.find("10.9.0.7"), stock_.clock.now()));
  EXPECT_FALSE(standing_.stood_at(*stock_.find("10.9.0.7"), before));
}

}  // namespace
}  // namespace croft::core::warm
