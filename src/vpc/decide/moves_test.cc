#include "vpc/decide/moves.h"

#include <gtest/gtest.h>

#include "vpc/decide/promised.h"
#include "vpc/decide/test_stock.h"

namespace croft::core::warm {
namespace {

using namespace std::chrono_literals;

class WarmMoves : public testing::Test {
 protected:
  template <class Answer, class Plan>
  Answer decide(Plan plan) {
    auto answer = stock_.records.decide<Answer>(plan);
    EXPECT_TRUE(answer) << answer.error().message;
    return answer ? *std::move(answer) : Answer{};
  }
  bool begin(const std::string& id, std::uint32_t count) {
    StockIntent intent;
    intent.id = id;
    intent.count = count;
    return decide<bool>([&](const Snapshot& snapshot) { return plan_begin(snapshot, intent, stock_.clock.now()); });
  }
  std::size_t take(const std::string& id, const std::vector<Given>& given) {
    return decide<Moved>([&](const Snapshot& snapshot) { return plan_take(snapshot, id, given, stock_.clock.now()); })
        .addresses.size();
  }
  std::size_t probed(const std::vector<Probed>& probed) {
    return decide<Moved>([&](const Snapshot& snapshot) { return plan_probed(snapshot, probed, stock_.clock.now()); })
        .addresses.size();
  }
  std::vector<StockAddress> give_back(const GiveBack& what) {
    return decide<Moved>([&](const Snapshot& snapshot) { return plan_give_back(snapshot, what, stock_.clock.now()); })
        .addresses;
  }
  std::optional<StockAddress> lend(const std::string& request) {
    return decide<std::optional<StockAddress>>([&](const Snapshot& snapshot) {
      return plan_lend(snapshot, {request, kOtherMac, "subnet-1"}, stock_.clock.now());
    });
  }
  TestStock stock_;
};

TEST_F(WarmMoves, FromTheIntentToTheStock) {
  EXPECT_TRUE(begin("i1", 2));
  EXPECT_FALSE(begin("i1", 2));
  EXPECT_EQ(stock_.counts().asked, 2U);
  EXPECT_EQ(take("i1", {given("10.9.0.7"), given("10.9.0.8")}), 2U);
  EXPECT_EQ(stock_.counts().asked, 0U);
  EXPECT_EQ(take("i1", {given("10.9.0.7"), given("10.9.0.8")}), 0U) << "a second time";
  EXPECT_EQ(probed({{address_of("10.9.0.7"), {}}, {address_of("10.9.0.8"), kOtherMac}}), 2U);
  EXPECT_EQ(stock_.find("10.9.0.7")->state, StockAddressState::free);
  EXPECT_TRUE(stock_.find("10.9.0.7")->verified);
  const StockAddress* taken = stock_.find("10.9.0.8");
  EXPECT_EQ(taken->state, StockAddressState::quarantined);
  EXPECT_EQ(taken->other_mac, kOtherMac);
  EXPECT_NE(taken->why.find(kOtherMac.to_string()), std::string::npos);
  EXPECT_EQ(probed({{address_of("10.9.0.8"), {}}}), 0U) << "it is not asked about again";
}

/// What a borrower says of itself, as its certificate has it.
class WarmLoans : public WarmMoves {
 protected:
  WarmLoans() {
    for (int i = 0; i < 100; ++i) stock_.take({given("10.9.0." + std::to_string(10 + i), true)});
  }
  [[nodiscard]] Result<std::optional<StockAddress>> borrow(const std::string& node, const net::Mac& mac,
                                                           const std::string& request = "", std::size_t keeps = 0) {
    Lend lend{request.empty() ? "r" + std::to_string(++requests_) : request, mac, "subnet-1"};
    lend.node = node;
    lend.keeps = keeps;
    auto lending = stock_.records.decide<std::optional<StockAddress>>(
        [&](const Snapshot& snapshot) { return plan_lend(snapshot, lend, stock_.clock.now()); });
    if (!lending || !*lending) return lending;
    const StockAddress& one = **lending;
    const auto lent = decide<Moved>(
        [&](const Snapshot& snapshot) { return plan_lent(snapshot, one.address, one.request, stock_.clock.now()); });
    return lent.addresses.empty() ? one : lent.addresses.front();
  }
  const net::Mac mac_b_ = net::Mac::parse("52:54:00:00:00:0b").value();
  const net::Mac mac_x_ = net::Mac::parse("52:54:00:00:00:0c").value();

 private:
  int requests_ = 0;
};

TEST_F(WarmLoans, ANodeGetsSoManyAMinute) {
  for (std::size_t i = 0; i < kLoansAMinute; ++i) ASSERT_TRUE(borrow("node-b", mac_b_, "b" + std::to_string(i))) << i;
  const auto more = borrow("node-b", mac_b_);
  ASSERT_FALSE(more);
  EXPECT_EQ(more.error().code, ErrorCode::exhausted) << "the next peer is asked";
  EXPECT_TRUE(borrow("node-b", mac_b_, "b0")) << "asked again";
  EXPECT_TRUE(borrow("node-x", mac_x_)) << "another's are its own";
  stock_.clock.advance(1min);
  EXPECT_TRUE(borrow("node-b", mac_b_));
}

TEST_F(WarmLoans, WhatOwnPodsWaitForIsKept) {
  EXPECT_FALSE(borrow("node-b", mac_b_, "r1", 100).value());
  const auto one = borrow("node-b", mac_b_, "r1", 99);
  ASSERT_TRUE(one && *one);
  EXPECT_EQ(borrow("node-b", mac_b_, "r1", 1000).value()->address, (*one)->address) << "it is lent already";
}

TEST_F(WarmMoves, WhatIsHeldIsNeverTakenInAnew) {
  stock_.take({given("10.9.0.7", true)});
  ASSERT_EQ(stock_.address_for(request_of("c1")), "10.9.0.7");
  EXPECT_EQ(take("", {given("10.9.0.7", true)}), 0U);
  EXPECT_EQ(stock_.find("10.9.0.7")->owner.container_id, "c1");
}

/// A call to release it may still be done: it would be taken from under the pod that had got it meanwhile.
TEST_F(WarmMoves, WhatIsBeingReleasedIsNotTakenInAnew) {
  stock_.take({given("10.9.0.7", true)});
  ASSERT_EQ(give_back({.count = 1}).size(), 1U);
  EXPECT_EQ(take("", {given("10.9.0.7", true)}), 0U);
  EXPECT_EQ(stock_.find("10.9.0.7")->state, StockAddressState::releasing);
  EXPECT_EQ(stock_.address_for(request_of("c1")), "");
}

TEST_F(WarmMoves, WhatTheCloudSeemedToHaveTakenAwayComesBackWhenItGivesIt) {
  stock_.take({given("10.9.0.7", true)});
  const auto doubt = [&](std::vector<StockDoubt> doubts) {
    StockAddress doubted = *stock_.find("10.9.0.7");
    doubted.doubts = std::move(doubts);
    stock_.records.put(warm_address_key(doubted.address), doubted);
  };
  doubt({StockDoubt::not_in_cloud, StockDoubt::used_by_host});
  EXPECT_EQ(take("", {given("10.9.0.7")}), 0U) << "the host uses it";
  doubt({StockDoubt::not_in_cloud});
  EXPECT_EQ(take("", {given("10.9.0.7")}), 1U);
  EXPECT_EQ(stock_.find("10.9.0.7")->state, StockAddressState::probing) << "somebody may have had it meanwhile";
  EXPECT_TRUE(stock_.find("10.9.0.7")->doubts.empty());
}

TEST_F(WarmMoves, WhatWasSetAsideComesBackWhenTheCloudGivesIt) {
  stock_.take({given("10.9.0.7", true)});
  const auto set_aside = [&](const std::string& why, std::optional<net::Mac> other) {
    StockAddress after = entered(*stock_.find("10.9.0.7"), StockAddressState::quarantined, stock_.clock.now());
    after.why = why;
    after.other_mac = other;
    stock_.records.put(warm_address_key(after.address), after);
  };
  set_aside(waits_for("shop/web-0"), std::nullopt);
  EXPECT_EQ(take("", {given("10.9.0.7")}), 0U) << "a pod's to have";
  set_aside("somebody answers", net::Mac::parse("52:54:00:00:00:09").value());
  EXPECT_EQ(take("", {given("10.9.0.7")}), 0U);
  set_aside("the cloud has it, and there is no record", std::nullopt);
  EXPECT_EQ(take("", {given("10.9.0.7")}), 1U);
  EXPECT_EQ(stock_.find("10.9.0.7")->state, StockAddressState::probing);
}

TEST_F(WarmMoves, WhatIsSaidTwiceIsTakenOnce) {
  EXPECT_EQ(take("", {given("10.9.0.7", true), given("10.9.0.7", true)}), 1U);
}

TEST_F(WarmMoves, WhatIsNoPodsToHaveIsQuarantinedWithTheReason) {
  Given gateway = given("10.9.0.1", true);
  gateway.unfit = "the host uses it";
  EXPECT_EQ(take("", {gateway}), 1U);
  EXPECT_EQ(stock_.find("10.9.0.1")->state, StockAddressState::quarantined);
  EXPECT_EQ(stock_.find("10.9.0.1")->why, "the host uses it");
  EXPECT_EQ(stock_.address_for(request_of("c1")), "");
}

TEST_F(WarmMoves, ADamagedRecordsAddressIsNotTakenInAnew) {
  const auto key = warm_address_key(address_of("10.9.0.7"));
  stock_.records.damage(key);
  EXPECT_EQ(take("", {given("10.9.0.7", true), given("10.9.0.8", true)}), 1U);
}

TEST_F(WarmMoves, OnlyFreeOnesGoBackTheNewestFirst) {
  stock_.take({given("10.9.0.7", true)});
  ASSERT_EQ(stock_.address_for(request_of("c1")), "10.9.0.7");
  stock_.take({given("10.9.0.8", true)});
  ASSERT_EQ(stock_.address_for(request_of("c2")), "10.9.0.8");
  stock_.release("c2");
  stock_.clock.advance(1s);
  stock_.take({given("10.9.0.9", true)});
  stock_.clock.advance(1s);
  stock_.take({given("10.9.0.10", true)});
  const auto going = give_back({.count = 1});
  ASSERT_EQ(going.size(), 1U);
  EXPECT_EQ(going[0].address, address_of("10.9.0.10"));
  EXPECT_EQ(give_back({.count = 5}).size(), 1U) << "held and cooling ones stay";
  EXPECT_TRUE(give_back({.addresses = {address_of("10.9.0.7"), address_of("10.9.0.8")}}).empty());
  const auto keep = decide<Moved>(
      [&](const Snapshot& snapshot) { return plan_keep(snapshot, {address_of("10.9.0.10")}, {}, stock_.clock.now()); });
  EXPECT_EQ(keep.addresses.size(), 1U);
  EXPECT_EQ(stock_.find("10.9.0.10")->state, StockAddressState::free);
  const auto gone = decide<Moved>([&](const Snapshot& snapshot) {
    return plan_gone(snapshot, {address_of("10.9.0.9"), address_of("10.9.0.7")});
  });
  EXPECT_EQ(gone.addresses.size(), 1U);
  EXPECT_EQ(stock_.find("10.9.0.9"), nullptr);
  EXPECT_NE(stock_.find("10.9.0.7"), nullptr);
}

TEST_F(WarmMoves, WhatSomebodyElseAnswersForNeverGetsFree) {
  take("", {given("10.9.0.7")});
  probed({{address_of("10.9.0.7"), kOtherMac}});
  ASSERT_EQ(give_back({.addresses = {address_of("10.9.0.7")}, .unused = true}).size(), 1U);
  decide<Moved>(
      [&](const Snapshot& snapshot) { return plan_keep(snapshot, {address_of("10.9.0.7")}, {}, stock_.clock.now()); });
  EXPECT_EQ(stock_.find("10.9.0.7")->state, StockAddressState::quarantined);
}

TEST_F(WarmMoves, TheSameRequestIsLentTheSameAddress) {
  stock_.take({given("10.9.0.7", true), given("10.9.0.8", true)});
  const auto first = lend("r1");
  ASSERT_TRUE(first);
  EXPECT_EQ(lend("r1")->address, first->address);
  decide<Moved>(
      [&](const Snapshot& snapshot) { return plan_lent(snapshot, first->address, "r1", stock_.clock.now()); });
  const auto again = lend("r1");
  ASSERT_TRUE(again);
  EXPECT_EQ(again->address, first->address);
  EXPECT_EQ(again->state, StockAddressState::lent);
  EXPECT_EQ(again->mac, kOtherMac);
  EXPECT_NE(lend("r2")->address, first->address);
  EXPECT_FALSE(lend("r3")) << "nothing is left";
  EXPECT_EQ(stock_.address_for(request_of("c1")), "") << "what goes to another is nobody's here";
  decide<Moved>(
      [&](const Snapshot& snapshot) { return plan_not_lent(snapshot, first->address, "r1", stock_.clock.now()); });
  EXPECT_EQ(stock_.find(first->address.to_string())->state, StockAddressState::lent) << "it was";
  // It comes back one day.
  EXPECT_EQ(take("", {given(first->address.to_string(), true)}), 1U);
  EXPECT_EQ(stock_.find(first->address.to_string())->state, StockAddressState::free);
}

}  // namespace
}  // namespace croft::core::warm
