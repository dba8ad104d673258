#include "vpc/decide/promised.h"

#include <gtest/gtest.h>

#include "vpc/decide/test_stock.h"

namespace croft::core::warm {
namespace {

using namespace std::chrono_literals;

/// An ADD of a pod that keeps its address.
Result<Assigned> give(TestStock& stock, const Given& address, const Request& request) {
  return stock.records.decide<Assigned>(
      [&](const Snapshot& snapshot) { return plan_give_promised(snapshot, "", address, request, stock.clock.now()); });
}

TEST(WarmPromised, OnlyNamesOfStatefulSetsAreStable) {
  EXPECT_EQ(stateful_set_of({"web-0", "shop", ""}), "web");
  EXPECT_EQ(stateful_set_of({"my-db-12", "shop", ""}), "my-db");
  for (const char* name : {"web", "web-", "-", "", "web-0a", "web-x1", "web-1 "}) {
    EXPECT_FALSE(has_stable_name({name, "shop", ""})) << name;
  }
}

TEST(WarmPromised, WhatItsHolderLetsGoWaitsForItsPodAlone) {
  TestStock stock;
  ASSERT_TRUE(give(stock, given("10.9.0.7", true), request_of("c1", "web-0", "u1")));
  EXPECT_EQ(stock.release("c1"), 1U);
  stock.clock.advance(std::chrono::hours{1});
  ASSERT_NE(stock.find("10.9.0.7"), nullptr);
  EXPECT_TRUE(is_waiting_for(*stock.find("10.9.0.7"), {"web-0", "shop", "u2"}));
  EXPECT_FALSE(is_waiting_for(*stock.find("10.9.0.7"), {"web-1", "shop", ""}));
  EXPECT_FALSE(is_waiting_for(*stock.find("10.9.0.7"), {"web-0", "store", ""}));
  EXPECT_EQ(stock.address_for(request_of("c2")), "") << "it is nobody else's";
  const auto again = give(stock, given("10.9.0.7", true), request_of("c3", "web-0", "u2"));
  ASSERT_TRUE(again) << again.error().message;
  EXPECT_EQ(again->address.owner.container_id, "c3");
  EXPECT_TRUE(again->address.recycled);
  EXPECT_EQ(stock.find("10.9.0.7")->state, StockAddressState::held);
}

TEST(WarmPromised, AskedAgainItIsTheSameAndNothingIsWritten) {
  TestStock stock;
  ASSERT_TRUE(give(stock, given("10.9.0.7", true), request_of("c1", "web-0", "u1")));
  const auto before = stock.records.records();
  const auto again = give(stock, given("10.9.0.7", true), request_of("c1", "web-0", "u1"));
  ASSERT_TRUE(again);
  EXPECT_TRUE(again->was_held);
  EXPECT_EQ(stock.records.records(), before);
}

TEST(WarmPromised, TheNextSandboxOfThePodHasItAtOnceAndAnotherPodOfTheNameWaitsForTheDel) {
  TestStock stock;
  ASSERT_TRUE(give(stock, given("10.9.0.7", true), request_of("c1", "web-0", "u1")));
  const auto newer = give(stock, given("10.9.0.7", true), request_of("c2", "web-0", "u2"));
  ASSERT_FALSE(newer);
  EXPECT_EQ(newer.error().code, ErrorCode::conflict);
  EXPECT_NE(newer.error().message.find("container c1"), std::string::npos) << newer.error().message;
  const auto next = give(stock, given("10.9.0.7", true), request_of("c3", "web-0", "u1"));
  ASSERT_TRUE(next) << next.error().message;
  EXPECT_EQ(stock.release("c1"), 0U) << "the late DEL of the old sandbox touches nothing";
  EXPECT_EQ(stock.find("10.9.0.7")->owner.container_id, "c3");
}

TEST(WarmPromised, NeverFromUnderAnotherHolder) {
  TestStock stock;
  stock.take({given("10.9.0.7", true)});
  ASSERT_EQ(stock.address_for(request_of("c1", "other", "u9")), "10.9.0.7");
  const auto refused = give(stock, given("10.9.0.7", true), request_of("c2", "web-0", "u1"));
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, ErrorCode::conflict);
  EXPECT_EQ(stock.find("10.9.0.7")->owner.container_id, "c1");
}

TEST(WarmPromised, WhatSomebodyAnswersForIsRefused) {
  TestStock stock;
  stock.take({given("10.9.0.7")});
  const auto probed = stock.records.decide<Moved>([&](const Snapshot& snapshot) {
    return plan_probed(snapshot, {{address_of("10.9.0.7"), kOtherMac}}, stock.clock.now());
  });
  ASSERT_TRUE(probed);
  const auto refused = give(stock, given("10.9.0.7", true), request_of("c2", "web-0", "u1"));
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, ErrorCode::refused_for_safety);
}

}  // namespace
}  // namespace croft::core::warm
