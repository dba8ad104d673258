#include "vpc/decide/reconcile.h"

#include <gtest/gtest.h>

#include "vpc/decide/assign.h"
#include "vpc/decide/test_stock.h"

namespace croft::core::warm {
namespace {

using namespace std::chrono_literals;

TEST(WarmMovesOf, TheFirstLooksListCountsHoweverMuchItLacks) {
  TestStock stock;
  stock.take({given("10.9.0.2", true), given("10.9.0.3", true)});
  Look look;
  look.begun = stock.clock.now();
  look.cloud.emplace();
  Memory memory;
  memory.note(stock.all(), look.begun);
  EXPECT_TRUE(reconcile(look, stock.all(), {}, memory, {}, stock.clock.now()).corrections.empty());
  look.is_first = true;
  EXPECT_EQ(reconcile(look, stock.all(), {}, memory, {}, stock.clock.now()).corrections.size(), 2U);
}

/// Its plugin asked the cloud by itself while no agent was there.
TEST(WarmMovesOf, WhatALivingPodHasIsItsFromTheFirstLookOn) {
  TestStock stock;
  Look look;
  look.begun = stock.clock.now();
  look.cloud = {given("10.9.0.2", true), given("10.9.0.3", true)};
  look.pods = std::vector{LivePod{{"web", "shop", "uid"}, {address_of("10.9.0.2")}}};
  const auto corrections = [&] { return reconcile(look, {}, {}, {}, {}, stock.clock.now()).corrections; };
  EXPECT_TRUE(corrections().empty()) << "a later look may show a pod that has just ended";
  look.is_first = true;
  ASSERT_EQ(corrections().size(), 1U);
  EXPECT_EQ(corrections().front().address, address_of("10.9.0.2"));
  EXPECT_EQ(corrections().front().after->state, StockAddressState::held);
  EXPECT_EQ(corrections().front().after->pod.name, "web");
}

/// What the look speaks of is the address: that its holder let go of it between the look and the commit is no news.
TEST(WarmMovesOf, WhatHasChangedMeanwhileKeepsItsDoubt) {
  TestStock stock;
  stock.take({given("10.9.0.2", true), given("10.9.0.3", true), given("10.9.0.4", true)});
  ASSERT_EQ(stock.address_for(request_of("a")), "10.9.0.2");
  Look look;
  look.begun = stock.clock.now();
  look.cloud.emplace();
  look.host = std::set{address_of("10.9.0.3")};
  for (const StockAddress& one : stock.all()) look.denied.insert(one.address);
  Memory memory;
  memory.note(stock.all(), look.begun);
  const Findings found = reconcile(look, stock.all(), {}, memory, {}, stock.clock.now());
  ASSERT_EQ(found.corrections.size(), 3U);
  stock.clock.advance(1s);
  stock.release("a");
  ASSERT_EQ(stock.address_for(request_of("b")), "10.9.0.3");
  ASSERT_TRUE(stock.decide(plan_return_to_cloud, ReturnToCloud{.addresses = {address_of("10.9.0.4")}}));
  const auto written = stock.decide(plan_corrections, found.corrections);
  ASSERT_TRUE(written) << written.error().message;
  EXPECT_EQ(stock.find("10.9.0.2")->state, StockAddressState::cooling);
  EXPECT_EQ(stock.find("10.9.0.2")->doubts, std::vector{StockDoubt::not_in_cloud});
  EXPECT_EQ(stock.find("10.9.0.3")->doubts, std::vector{StockDoubt::not_in_cloud}) << "the host may use it for its pod";
  EXPECT_TRUE(stock.find("10.9.0.4")->doubts.empty()) << "it goes back";
}

TEST(WarmMovesOf, WhatNamespacesSay) {
  Look look;
  std::vector<net::Address> many;
  for (int i = 0; i < 9; ++i) many.push_back(address_of("10.9.0." + std::to_string(100 + i)));
  take_host(look, {address_of("10.9.0.1")},
            {{address_of("10.9.0.1"), address_of("10.9.0.7"), address_of("127.0.0.1")}, many},
            net::Prefix::parse("10.9.0.0/24").value());
  EXPECT_EQ(*look.host, (std::set{address_of("10.9.0.1"), address_of("10.9.0.7")}));
  EXPECT_EQ(look.said_by_pods, std::set{address_of("10.9.0.7")});
}

/// Whatever the wall clock does between two passes.
TEST(WarmMemory, NobodyMakesARecordOlderOrYoungerByTheWallClock) {
  TestStock stock;
  Memory memory;
  stock.take({given("10.9.0.7", true)});
  stock.clock.jump_wall(1h);
  memory.note(stock.all(), stock.clock.now());
  const StockAddress record = *stock.find("10.9.0.7");
  EXPECT_EQ(memory.seen_for(record, stock.clock.now()), 0s);
  stock.clock.jump_wall(-100h);
  stock.clock.advance(60s);
  EXPECT_EQ(memory.seen_for(record, stock.clock.now()), 60s);
}

}  // namespace
}  // namespace croft::core::warm
