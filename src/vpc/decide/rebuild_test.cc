#include "vpc/decide/rebuild.h"

#include <algorithm>

#include <gtest/gtest.h>

#include "vpc/decide/test_stock.h"

namespace croft::core::warm {
namespace {

using namespace std::chrono_literals;

class WarmRebuild : public testing::Test {
 protected:
  WarmRebuild() {
    look_.cloud.emplace();
    look_.host.emplace();
    look_.pods.emplace();
  }
  RebuildStep step() { return step_rebuild(memory_, stock_.all(), look_, 60s, stock_.clock.now()); }
  void cloud(const std::vector<std::string>& addresses) {
    look_.cloud->clear();
    for (const auto& text : addresses) look_.cloud->push_back(given(text));
  }
  TestStock stock_;
  Look look_;
  RebuildMemory memory_;
};

TEST_F(WarmRebuild, TheIntentIsNoProcesss) {
  const WarmIntent intent = rebuild_intent(stock_.clock.now());
  EXPECT_TRUE(is_rebuild(intent));
  EXPECT_EQ(intent.id.size(), 32U);
  EXPECT_EQ(intent.id, rebuild_intent(stock_.clock.now()).id);
}

TEST_F(WarmRebuild, WhatNothingUsesIsTakenInAfterARest) {
  cloud({"10.9.0.7", "10.9.0.8"});
  EXPECT_EQ(step().resting, 2U);
  stock_.clock.advance(59s);
  RebuildStep now = step();
  EXPECT_TRUE(now.take.empty());
  EXPECT_FALSE(now.is_done);
  stock_.clock.advance(1s);
  now = step();
  ASSERT_EQ(now.take.size(), 2U);
  EXPECT_TRUE(now.is_done);
}

TEST_F(WarmRebuild, AUseBeginsTheRestAnew) {
  cloud({"10.9.0.7"});
  static_cast<void>(step());
  stock_.clock.advance(30s);
  look_.host->insert(address_of("10.9.0.7"));  // a pod that was being set up
  EXPECT_EQ(step().of_host, 1U);
  look_.host->clear();
  stock_.clock.advance(30s);
  EXPECT_EQ(step().resting, 1U);
  stock_.clock.advance(59s);
  EXPECT_EQ(step().resting, 1U) << "it has its cooldown like any other";
  stock_.clock.advance(1s);
  EXPECT_EQ(step().take.size(), 1U);
}

TEST_F(WarmRebuild, PodsAreWaitedForAndTheHostIsNot) {
  cloud({"10.9.0.7", "10.9.0.8"});
  look_.pods->push_back({{"web", "shop", ""}, {address_of("10.9.0.7")}, false});
  *look_.host = {address_of("10.9.0.7"), address_of("10.9.0.8")};
  static_cast<void>(step());
  stock_.clock.advance(100s);
  RebuildStep now = step();
  EXPECT_EQ(now.of_pods, 1U);
  EXPECT_EQ(now.of_host, 1U);
  EXPECT_TRUE(now.take.empty());
  EXPECT_FALSE(now.is_done);
  stock_.take({given("10.9.0.7", true)});
  now = step();
  EXPECT_TRUE(now.is_done);
  EXPECT_EQ(now.of_host, 1U) << "it is left to be quarantined";
}

TEST_F(WarmRebuild, AnEndedPodUsesNothing) {
  cloud({"10.9.0.7"});
  look_.pods->push_back({{"job", "shop", ""}, {address_of("10.9.0.7")}, true});
  EXPECT_EQ(step().resting, 1U);
}

TEST_F(WarmRebuild, WhatIsSetApartIsLeftAlone) {
  cloud({"10.9.0.7"});
  look_.apart.insert(address_of("10.9.0.7"));
  static_cast<void>(step());
  stock_.clock.advance(100s);
  const RebuildStep now = step();
  EXPECT_TRUE(now.take.empty());
  EXPECT_TRUE(now.is_done);
}

TEST_F(WarmRebuild, NothingIsConcludedWithoutTheHostOrTheCloud) {
  cloud({"10.9.0.7"});
  static_cast<void>(step());
  stock_.clock.advance(100s);
  Look half = look_;
  half.host.reset();
  RebuildStep now = step_rebuild(memory_, {}, half, 60s, stock_.clock.now());
  EXPECT_TRUE(now.take.empty());
  EXPECT_FALSE(now.is_done);
  half = look_;
  half.cloud.reset();
  now = step_rebuild(memory_, {}, half, 60s, stock_.clock.now());
  EXPECT_FALSE(now.is_done);
}

}  // namespace
}  // namespace croft::core::warm
