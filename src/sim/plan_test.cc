// Small clusters, planned.

#include "sim/plan.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/net/prefix.h"
#include "ipam/use/test_world.h"

namespace croft::sim {
namespace {

using namespace std::chrono_literals;
using namespace net::literals;

Plan small() {
  Plan plan;
  plan.nodes = 12;
  plan.pods = 20;
  plan.failures = 0;
  plan.life = 10min;
  return plan;
}

TEST(Plan, ComesToTheSameEachTime) {
  const Measured one = run(small()).value(), other = run(small()).value();
  EXPECT_EQ(one.space.held, other.space.held);
  EXPECT_EQ(one.space.spare, other.space.spare);
  EXPECT_EQ(one.requests_an_add, other.requests_an_add);
  EXPECT_EQ(one.adds_a_second, other.adds_a_second);
  EXPECT_EQ(one.start.p99, other.start.p99);
  EXPECT_EQ(one.steady.p50, other.steady.p50);
  Plan plan = small();
  plan.seed = 2;
  EXPECT_NE(run(plan)->start.p99, one.start.p99);
}

TEST(Plan, GivesEachPodAnAddress) {
  for (const char* datastore : {"kubernetes", "etcd"}) {
    for (const Plan::Way way : {Plan::Way::agents, Plan::Way::alone}) {
      Plan plan = small();
      plan.datastore = datastore;
      plan.way = way;
      const Measured measured = run(plan).value();
      EXPECT_EQ(measured.pods, 240U) << datastore;
      EXPECT_EQ(measured.refused + measured.failed, 0U) << datastore;
      EXPECT_GE(measured.space.held, 240U) << datastore;  // of a DEL that is under way the address is held still
    }
  }
}

TEST(Plan, AnAgentTakesFewerRequestsThanAPluginAlone) {
  Plan plan = small();
  const Measured agents = run(plan).value();
  plan.way = Plan::Way::alone;
  const Measured alone = run(plan).value();
  EXPECT_LT(agents.requests_an_add, 3);
  EXPECT_GT(alone.requests_an_add, agents.requests_an_add);
  EXPECT_GT(agents.adds_a_second, alone.adds_a_second);
}

TEST(Plan, SmallBlocksStrandLess) {
  Plan plan = small();
  plan.block_length = 24;
  const Measured large = run(plan).value();
  plan.block_length = 28;
  const Measured few = run(plan).value();
  EXPECT_LT(few.space.spare, large.space.spare);
  EXPECT_GT(few.blocks_a_node, large.blocks_a_node);
  EXPECT_GT(few.requests_an_add, large.requests_an_add);
}

TEST(Plan, AStrictPoolRefusesWhereAnotherLends) {
  Plan plan = small();
  plan.pool = "10.0.0.0/24"_prefix;  // 240 pods in 256 addresses
  const Measured lends = run(plan).value();
  EXPECT_EQ(lends.pods, 240U);
  EXPECT_GT(lends.space.borrowed, 0U);
  plan.strict = true;
  const Measured strict = run(plan).value();
  EXPECT_GT(strict.refused, 0U);
  EXPECT_EQ(strict.space.borrowed, 0U);
}

TEST(Plan, ALostNodesAddressesComeBack) {
  Plan plan = small();
  plan.nodes = 60;
  plan.pods = 5;
  plan.failures = 1;
  plan.life = 1h;
  const Measured measured = run(plan).value();
  ASSERT_TRUE(measured.recovered_minutes);
  EXPECT_GT(*measured.recovered_minutes, 15);  // a grace
  EXPECT_LT(*measured.recovered_minutes, 40);
}

TEST(Plan, GrowthFillsThePool) {
  Plan plan = small();
  plan.growth = 10;
  plan.strict = true;
  const Measured measured = run(plan).value();
  ASSERT_TRUE(measured.full_share);
  EXPECT_GT(*measured.full_share, 0.4);
  EXPECT_LE(*measured.full_share, 1);
  EXPECT_GT(*measured.days_to_full, 1);
}

TEST(Plan, APoolThatIsTooSmallIsFilledAndHasNoCheerfulFigures) {
  Plan plan = small();
  plan.pool = "10.0.0.0/25"_prefix;
  plan.growth = 10;
  const Measured measured = run(plan).value();
  EXPECT_GT(measured.pods, 100U);
  EXPECT_LE(measured.pods, 128U);
  EXPECT_GT(measured.refused, 0U);
  EXPECT_LE(measured.refused, 3 * (240U + 100U)) << "each pod is given up after three tries";
  EXPECT_FALSE(measured.start_seconds) << "not all have started";
  EXPECT_EQ(measured.pods + measured.without, 240U);
  EXPECT_EQ(*measured.days_to_full, 0);
  EXPECT_LT(measured.requests_an_add, 100) << "of a try, not of one that was given something";
}

TEST(Plan, GrowthWithFewLargeBlocksEnds) {
  Plan plan = small();
  plan.growth = 10;
  plan.strict = true;
  plan.block_length = 22;
  plan.pool = "10.0.0.0/16"_prefix;
  EXPECT_TRUE(run(plan)->days_to_full);
}

TEST(Plan, WhatAReplacedPodCostsDoesNotDependOnTheHours) {
  Plan plan = small();
  plan.pool = "10.0.0.0/18"_prefix;
  plan.life = 30min;
  const double half_an_hour = run(plan)->requests_a_pod;
  plan.life = 4h;
  EXPECT_NEAR(run(plan)->requests_a_pod, half_an_hour, half_an_hour / 5);
}

TEST(Plan, GrowthInAPoolThatIsLargeForItsNodesEnds) {
  Plan plan = small();
  plan.nodes = 1;
  plan.growth = 10;
  for (const char* pool : {"10.0.0.0/16", "10.0.0.0/8"}) {
    plan.pool = net::Prefix::parse(pool).value();
    const Measured measured = run(plan).value();
    ASSERT_TRUE(measured.full_share) << pool;
    EXPECT_GT(*measured.full_share, 0.5) << pool;
  }
}

TEST(Plan, APoolOfItsOwnHasRoomForWhatRests) {
  Plan plan = small();
  const net::Prefix few = pool_for(plan, net::Family::v4);
  plan.churn = 120;
  plan.cooldown = 20min;
  EXPECT_LT(pool_for(plan, net::Family::v4).length(), few.length());
  EXPECT_EQ(run(plan).value().refused, 0U);
}

TEST(Plan, AdviceIsOfThePoolsFamily) {
  Plan plan = small();
  plan.pool = "fd00:1::/112"_prefix;
  const Measured measured = run(plan).value();
  EXPECT_EQ(measured.block_length, 122);
  const Advice advice = advise(plan, measured).value();
  EXPECT_EQ(advice.pool.family(), net::Family::v6);
  EXPECT_GE(advice.block_length, 120);
}

TEST(Plan, AdviceHasRoomForThePods) {
  Plan plan = small();
  const Measured measured = run(plan).value();
  const Advice advice = advise(plan, measured).value();
  EXPECT_GE(advice.block_length, 24);
  EXPECT_LE(advice.block_length, 29);
  EXPECT_FALSE(advice.reasons.empty());
  plan.block_length = advice.block_length;
  plan.pool = advice.pool;
  const Measured again = run(plan).value();
  EXPECT_EQ(again.refused, 0U);
  EXPECT_EQ(again.pods, 240U);
  EXPECT_LE(again.requests_an_add, measured.requests_an_add * 1.3);
}

class PlanOfToday : public testing::Test, protected engine::World {
 protected:
  void pod_of_today(int number, const std::string& node, const net::PerFamily<std::uint32_t>& count = {1, 0}) {
    core::AssignRequest wanted = request("old-" + std::to_string(number), node);
    wanted.pod = {"pod-of-today-" + std::to_string(number), "default", ""};
    wanted.count = count;
    ASSERT_TRUE(engine::assign(context, wanted));
  }
};

TEST_F(PlanOfToday, IsTheBeginning) {
  pool("a", "10.9.0.0/22", 27, 0);
  for (int i = 0; i < 30; ++i) pod_of_today(i, i % 3 == 0 ? "a" : "b");
  Plan plan;
  plan.life = 10min;
  plan.failures = 0;
  ASSERT_TRUE(start_from_register(plan, store, clock));
  EXPECT_EQ(plan.nodes, 2U);
  EXPECT_EQ(plan.pods, 15U);
  EXPECT_EQ(plan.block_length, 27);
  EXPECT_EQ(plan.cooldown.count(), 0);
  const Measured measured = run(plan).value();
  EXPECT_EQ(measured.pool.to_string(), "10.9.0.0/22");
  EXPECT_EQ(measured.block_length, 27);
  // Node a has ten pods today and gets five more; node b has twenty.
  EXPECT_EQ(measured.pods, 35U);
  EXPECT_GE(measured.space.held, 35U);
}

TEST_F(PlanOfToday, OfTwoFamiliesIsPlannedByOne) {
  pool("a", "10.9.0.0/24", 28);
  pool("b", "fd00:9::/112", 122);
  for (int i = 0; i < 6; ++i) pod_of_today(i, "a", {1, 1});
  del("old-0");
  Plan plan;
  ASSERT_TRUE(start_from_register(plan, store, clock));
  EXPECT_EQ(plan.pods, 5U);
  plan.churn = plan.failures = 0;
  const Measured measured = run(plan).value();
  EXPECT_EQ(measured.space.held, 5U);
  EXPECT_EQ(measured.space.cooling, 0U) << "it rested by the clock of the register, which goes on";
  EXPECT_EQ(measured.space.size, 256);
  plan.nodes = 0;
  EXPECT_EQ(run(plan).error().code, ErrorCode::invalid_argument);
}

TEST(Plan, RefusesWhatCannotBeRun) {
  Plan unknown = small(), of_many_nodes = small(), too_small = small();
  unknown.datastore = "zookeeper";
  of_many_nodes.datastore = "sqlite";
  too_small.pool = "10.0.0.0/27"_prefix;
  for (const Plan& plan : {unknown, of_many_nodes, too_small}) {
    EXPECT_EQ(run(plan).error().code, ErrorCode::invalid_argument) << plan.datastore;
  }
}

Chart rates() {
  return {"ADDs a second",
          "nodes",
          {{"plan", {{10, 1000}, {100, 900}, {1000, 500}}}, {"way=alone ", {{10, 250}, {100, 100}, {1000, 7.5}}}}};
}

TEST(Chart, HasABarForEachPointInATerminal) {
  EXPECT_EQ(to_terminal(rates(), 60),
            "ADDs a second\n"
            "nodes\n"
            "   10  plan        █████████████████████████████ 1,000\n"
            "       way=alone   ███████▎ 250\n"
            "  100  plan        ██████████████████████████▏ 900\n"
            "       way=alone   ██▉ 100\n"
            "1,000  plan        ██████████████▌ 500\n"
            "       way=alone   ▎ 7.5\n");
}

TEST(Chart, OfNothingIsEmpty) { EXPECT_EQ(to_terminal({"t", "x", {}}, 60), "t\nx\n"); }

TEST(Bar, ShowsPartsOfAWhole) {
  EXPECT_EQ(to_bar({{"held", 50, "#"}, {"free", 30, "."}, {"other", 20, "o"}}, 10),
            "#####...oo\n# held 50   . free 30   o other 20\n");
}

TEST(Numbers, AreForPeople) {
  EXPECT_EQ(to_text(0), "0");
  EXPECT_EQ(to_text(0.125), "0.12");
  EXPECT_EQ(to_text(9.5), "9.5");
  EXPECT_EQ(to_text(12.34), "12.3");
  EXPECT_EQ(to_text(12), "12");
  EXPECT_EQ(to_text(1234567), "1,234,567");
}

}  // namespace
}  // namespace croft::sim
