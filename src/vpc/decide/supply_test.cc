#include "vpc/decide/supply.h"

#include <rapidcheck.h>

#include <gtest/gtest.h>

#include "vpc/decide/assign.h"
#include "vpc/decide/test_stock.h"

namespace croft::core::warm {
namespace {

using namespace std::chrono_literals;

class WarmSupply : public testing::Test {
 protected:
  template <class P, class... Arguments>
  auto decide(const P& plan, const Arguments&... arguments) {
    return stock_.decide(plan, arguments...).value();
  }
  bool begin(const std::string& id, std::uint32_t count) {
    StockIntent intent;
    intent.id = id;
    intent.count = count;
    return decide(plan_begin, intent);
  }
  std::size_t take(const std::string& id, const std::vector<Given>& given) {
    return decide(plan_take, id, given).size();
  }
  std::size_t probed(const std::vector<Probed>& probed) { return decide(plan_probed, probed).size(); }
  Changed give_back(const ReturnToCloud& what) { return decide(plan_return_to_cloud, what); }
  std::optional<StockAddress> lend(const std::string& request) {
    return decide(plan_lend, Lend{request, kOtherMac, "subnet-1"});
  }
  TestStock stock_;
};

TEST_F(WarmSupply, FromTheIntentToTheStock) {
  EXPECT_TRUE(begin("i1", 2));
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
class WarmLoans : public WarmSupply {
 protected:
  WarmLoans() {
    for (int i = 0; i < 100; ++i) stock_.take({given("10.9.0." + std::to_string(10 + i), true)});
  }
  [[nodiscard]] Result<std::optional<StockAddress>> borrow(const std::string& node, const net::Mac& mac,
                                                           const std::string& request = "", std::size_t keeps = 0) {
    Lend lend{request.empty() ? "r" + std::to_string(++requests_) : request, mac, "subnet-1"};
    lend.node = node;
    lend.keeps = keeps;
    auto lending = stock_.decide(plan_lend, lend);
    if (!lending || !*lending) return lending;
    const Changed lent = decide(plan_lent, (*lending)->address, (*lending)->request);
    return lent.empty() ? **lending : lent.front();
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

TEST_F(WarmSupply, WhatIsHeldIsNeverTakenInAnew) {
  stock_.take({given("10.9.0.7", true)});
  ASSERT_EQ(stock_.address_for(request_of("c1")), "10.9.0.7");
  EXPECT_EQ(take("", {given("10.9.0.7", true)}), 0U);
  EXPECT_EQ(stock_.find("10.9.0.7")->owner.container_id, "c1");
}

/// A call to release it may still be done: it would be taken from under the pod that had got it meanwhile.
TEST_F(WarmSupply, WhatIsBeingReleasedIsNotTakenInAnew) {
  stock_.take({given("10.9.0.7", true)});
  ASSERT_EQ(give_back({.count = 1}).size(), 1U);
  EXPECT_EQ(take("", {given("10.9.0.7", true)}), 0U);
  EXPECT_EQ(stock_.find("10.9.0.7")->state, StockAddressState::releasing);
  EXPECT_EQ(stock_.address_for(request_of("c1")), "");
}

TEST_F(WarmSupply, WhatTheCloudSeemedToHaveTakenAwayComesBackWhenItGivesIt) {
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

TEST_F(WarmSupply, WhatWasSetAsideComesBackWhenTheCloudGivesIt) {
  stock_.take({given("10.9.0.7", true)});
  const auto set_aside = [&](const std::string& why, std::optional<net::Mac> other) {
    StockAddress after = with_state(*stock_.find("10.9.0.7"), StockAddressState::quarantined, stock_.clock.now());
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

TEST_F(WarmSupply, WhatIsSaidTwiceIsTakenOnce) {
  EXPECT_EQ(take("", {given("10.9.0.7", true), given("10.9.0.7", true)}), 1U);
}

TEST_F(WarmSupply, WhatIsNoPodsToHaveIsQuarantinedWithTheReason) {
  Given gateway = given("10.9.0.1", true);
  gateway.unfit = "the host uses it";
  EXPECT_EQ(take("", {gateway}), 1U);
  EXPECT_EQ(stock_.find("10.9.0.1")->state, StockAddressState::quarantined);
  EXPECT_EQ(stock_.find("10.9.0.1")->why, "the host uses it");
  EXPECT_EQ(stock_.address_for(request_of("c1")), "");
}

TEST_F(WarmSupply, ADamagedRecordsAddressIsNotTakenInAnew) {
  const auto key = warm_address_key(address_of("10.9.0.7"));
  stock_.records.damage(key);
  EXPECT_EQ(take("", {given("10.9.0.7", true), given("10.9.0.8", true)}), 1U);
}

TEST_F(WarmSupply, OnlyFreeOnesGoBackTheNewestFirst) {
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
  const std::vector<StockDoubt> no_doubts;
  EXPECT_EQ(decide(plan_not_returned, std::vector{address_of("10.9.0.10")}, no_doubts).size(), 1U);
  EXPECT_EQ(stock_.find("10.9.0.10")->state, StockAddressState::free);
  EXPECT_EQ(decide(plan_returned, std::vector{address_of("10.9.0.9"), address_of("10.9.0.7")}).size(), 1U);
  EXPECT_EQ(stock_.find("10.9.0.9"), nullptr);
  EXPECT_NE(stock_.find("10.9.0.7"), nullptr);
}

TEST_F(WarmSupply, WhatSomebodyElseAnswersForNeverGetsFree) {
  take("", {given("10.9.0.7")});
  probed({{address_of("10.9.0.7"), kOtherMac}});
  ASSERT_EQ(give_back({.addresses = {address_of("10.9.0.7")}, .unused = true}).size(), 1U);
  decide(plan_not_returned, std::vector{address_of("10.9.0.7")}, std::vector<StockDoubt>());
  EXPECT_EQ(stock_.find("10.9.0.7")->state, StockAddressState::quarantined);
}

TEST_F(WarmSupply, TheSameRequestIsLentTheSameAddress) {
  stock_.take({given("10.9.0.7", true), given("10.9.0.8", true)});
  const auto first = lend("r1");
  ASSERT_TRUE(first);
  EXPECT_EQ(lend("r1")->address, first->address);
  decide(plan_lent, first->address, std::string("r1"));
  const auto again = lend("r1");
  ASSERT_TRUE(again);
  EXPECT_EQ(again->address, first->address);
  EXPECT_EQ(again->state, StockAddressState::lent);
  EXPECT_EQ(again->mac, kOtherMac);
  EXPECT_NE(lend("r2")->address, first->address);
  EXPECT_FALSE(lend("r3")) << "nothing is left";
  EXPECT_EQ(stock_.address_for(request_of("c1")), "") << "what goes to another is nobody's here";
  decide(plan_not_lent, first->address, std::string("r1"));
  EXPECT_EQ(stock_.find(first->address.to_string())->state, StockAddressState::lent) << "it was";
  // It comes back one day.
  EXPECT_EQ(take("", {given(first->address.to_string(), true)}), 1U);
  EXPECT_EQ(stock_.find(first->address.to_string())->state, StockAddressState::free);
}

// ---------------------------------------------------------------- how many (supply.h)

class WarmPlanner : public testing::Test {
 protected:
  Wish wish(const Counts& counts, std::uint32_t waiting = 0) {
    return plan_stock(counts, marks_, waiting, memory_, clock_.now());
  }
  void grew(Outcome outcome, double jitter = 0) { memory_ = after_growing(memory_, outcome, jitter, clock_.now()); }
  Marks marks_;
  PlannerMemory memory_;
  ManualClock clock_;
};

TEST_F(WarmPlanner, TheMarksAreChecked) {
  EXPECT_TRUE(check_marks({.low = 0, .high = 0}));
  EXPECT_FALSE(check_marks({.low = 0, .high = kMarkMax + 1}));
}

/// The rests after conflicts are told in scenarios/trouble.txt.
TEST_F(WarmPlanner, WhatIsSomebodyElsesIsNotAskedForOnAndOn) {
  grew(Outcome::conflict);
  EXPECT_TRUE(may_borrow({}, marks_, memory_));
  EXPECT_EQ(wish({}).grow, 0U);
  clock_.advance(1s);
  EXPECT_EQ(wish({}).grow, 1U);
  grew(Outcome::done);
  EXPECT_EQ(wish({}).grow, 3U);
  // And never more than the marks allow, however long it takes.
  Counts counts;
  counts.quarantined = counts.conflicting = marks_.high + kConflictsMax - 1;
  EXPECT_EQ(wish(counts).grow, 1U);
  ++counts.conflicting;
  ++counts.quarantined;
  EXPECT_EQ(wish(counts, 1).grow, 0U);
  EXPECT_TRUE(wish(counts, 1).is_at_limit);
  EXPECT_TRUE(may_borrow(counts, marks_, {}));
  EXPECT_NE(wish(counts).why.find("croft vpc release"), std::string::npos);
  counts.conflicting = 0;
  counts.doubted = counts.used_by_host = marks_.high + kConflictsMax;
  EXPECT_EQ(wish(counts, 1).grow, 0U);
  EXPECT_TRUE(wish(counts, 1).is_at_limit);
  EXPECT_NE(wish(counts).why.find("network namespaces"), std::string::npos);
  counts.used_by_host = 0;
  EXPECT_EQ(wish(counts).grow, 3U) << "what waits for its pod, or is unknown, keeps nobody from starting";
}

// Whatever the stock does, one step never both grows and shrinks, never passes a mark, and a stock between its marks is
// left alone: no address is bought and sold in turns.
TEST_F(WarmPlanner, ItComesToRestBetweenTheMarks) {
  EXPECT_TRUE(rc::check([] {
    Marks marks;
    marks.low = *rc::gen::inRange<std::uint32_t>(0, 120);
    marks.high = marks.low + *rc::gen::inRange<std::uint32_t>(0, 60);
    marks.node_max = *rc::gen::element<std::uint32_t>(0, 110, 200);
    Counts counts;
    counts.free = *rc::gen::inRange<std::uint32_t>(0, 200);
    counts.held = *rc::gen::inRange<std::uint32_t>(0, 110);
    counts.cooling = *rc::gen::inRange<std::uint32_t>(0, 20);
    ManualClock clock;
    PlannerMemory memory;
    bool has_grown = false, has_shrunk = false;
    for (int round = 0; round < 400; ++round) {
      const Wish wish = plan_stock(counts, marks, 0, memory, clock.now());
      RC_ASSERT(wish.grow == 0 || wish.shrink == 0);
      has_grown |= wish.grow > 0;
      has_shrunk |= wish.shrink > 0;
      counts.free += wish.grow;
      counts.free -= wish.shrink;
      if (wish.grow > 0) {
        RC_ASSERT(counts.free <= marks.low);
        RC_ASSERT(marks.node_max == 0 || counts.on_node() <= marks.node_max);
        memory = after_growing(memory, Outcome::done, 0.5, clock.now());
      }
      if (wish.shrink > 0) {
        RC_ASSERT(counts.free >= marks.high);
        memory = after_shrinking(memory, Outcome::done, 0.5, clock.now());
      }
      clock.advance(std::chrono::seconds{10});
    }
    RC_ASSERT(!(has_grown && has_shrunk));
    RC_ASSERT(counts.free <= marks.high);
    const bool is_at_limit = marks.node_max > 0 && counts.on_node() >= marks.node_max;
    RC_ASSERT(counts.free >= marks.low || is_at_limit);
  }));
}

}  // namespace
}  // namespace croft::core::warm
