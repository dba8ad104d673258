#include "vpc/use/stock_keeper.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "vpc/use/test_stock_node.h"

namespace croft::engine {
namespace {

using namespace std::chrono_literals;
using core::StockAddressState;
namespace warm = core::warm;

TEST_F(StockKeeperTest, OneThatAnswersForTheWholeSubnetDoesNotGetItIntoQuarantine) {
  for (const net::Address& address : cloud_.unowned()) node_.wire->others[address] = mac_of(9);
  node_.wait(1);
  static_cast<void>(node_.keeper->step());
  EXPECT_TRUE(std::ranges::any_of(node_.log, [](const std::string& line) {
    return line.find("trouble: of 4 addresses that the cloud gave 0 may be given to pods") != std::string::npos;
  }));
  ASSERT_TRUE(node_.keeper->last_problem());
  EXPECT_THAT(node_.keeper->last_problem()->message, testing::HasSubstr("no other node has one to lend"))
      << "for who waited";
  node_.wait(0);
  for (int i = 0; i < 20; ++i) {
    clock_.advance(std::chrono::seconds{5});
    static_cast<void>(node_.keeper->step());
  }
  EXPECT_LE(node_.counts().quarantined, 10U) << "a fill of the low mark and who waited, and one after each rest";
  // Whoever did it is gone.
  node_.wire->others.clear();
  clock_.advance(std::chrono::minutes{3});
  node_.wait(1);
  static_cast<void>(node_.keeper->step());
  static_cast<void>(node_.keeper->step());
  EXPECT_EQ(node_.counts().free, 4U);
  EXPECT_FALSE(node_.keeper->last_problem());
}

/// A few addresses that somebody has by hand, at the low end of the subnet.
TEST_F(StockKeeperTest, WhoWaitsDoesNotWaitForTheRestThatConflictsCost) {
  const std::vector<net::Address> all = cloud_.unowned();
  for (std::size_t i = 0; i < 9; ++i) node_.wire->others[all[i]] = mac_of(9);
  node_.wait(1);
  const auto begun = clock_.now().since_boot;
  const auto until_free = [&] {
    for (int i = 0; i < 40 && node_.counts().free == 0; ++i) {
      const auto next = node_.keeper->step();
      clock_.advance(std::max<std::chrono::nanoseconds>(next - clock_.now().since_boot, 0s));
    }
    return node_.counts().free;
  };
  EXPECT_GE(until_free(), 1U);
  EXPECT_LE(clock_.now().since_boot - begun, 60s) << "one after the other, with a short pause";
  EXPECT_EQ(node_.counts().conflicting, 9U);
  EXPECT_EQ(cloud_.of(node_.mac()).size(), 10U) << "a fill, and then one at a time";
}

TEST_F(StockKeeperTest, WhoReleasesTheConflictsEndsTheRest) {
  node_.begin();
  for (const net::Address& address : cloud_.unowned()) node_.wire->others[address] = mac_of(9);
  for (int i = 0; i < 3; ++i) static_cast<void>(node_.keeper->step());
  ASSERT_EQ(node_.counts().conflicting, 3U);
  node_.wire->others.clear();
  static_cast<void>(node_.keeper->step());
  ASSERT_EQ(node_.counts().free, 0U) << "it rests";
  const auto soon = Deadline::after(clock_.now(), 30s);
  const auto unused = node_.keeper->unused(soon);
  ASSERT_TRUE(unused);
  std::vector<net::Address> addresses;
  for (const core::StockAddress& one : *unused) addresses.push_back(one.address);
  ASSERT_EQ(addresses.size(), 3U);
  ASSERT_TRUE(node_.keeper->release_unused(addresses, soon));
  static_cast<void>(node_.keeper->step());
  EXPECT_EQ(node_.counts().free, 3U);
}

TEST_F(StockKeeperTest, APodThatSaysItHasTheSubnetDoesNotStopItsNode) {
  static_cast<void>(node_.keeper->step());
  std::vector<net::Address> all = cloud_.unowned();
  for (const net::Address& address : node_.recorded()) all.push_back(address);
  node_.host.namespaces = {all};
  for (int i = 0; i < 12; ++i) {
    EXPECT_NE(node_.add("c" + std::to_string(i)), "") << i;
    node_.host.used.clear();
    node_.settle(1);
  }
  EXPECT_EQ(node_.counts().quarantined, 0U);
  EXPECT_EQ(node_.counts().doubted, 0U);
}

/// Several that each say no more than a pod may: neither do they get the subnet for their node.
TEST_F(StockKeeperTest, PodsThatSayTheyHaveTheSubnetDoNotGetItForTheirNode) {
  TestCloud cloud(100);
  Node node(cloud, clock_, 1);
  node.begin();
  const std::vector<net::Address> all = cloud.unowned();
  for (std::size_t i = 0; i + 8 <= 96; i += 8) {
    node.host.namespaces.emplace_back(all.begin() + static_cast<std::ptrdiff_t>(i),
                                      all.begin() + static_cast<std::ptrdiff_t>(i + 8));
  }
  for (int i = 0; i < 81; ++i) {
    static_cast<void>(node.keeper->step());
    clock_.advance(1s);
  }
  EXPECT_LE(cloud.of(node.mac()).size(), 10U) << "a fill, and one after each rest";
  ASSERT_TRUE(node.keeper->last_problem());
  EXPECT_THAT(node.keeper->last_problem()->message, testing::HasSubstr("that the cloud gave 0 may be given to pods"));
  node.host.namespaces.clear();
  node.settle(3);
  EXPECT_GE(node.counts().free, 3U);
}

TEST_F(StockKeeperTest, WhatAPodsNamespaceSaysKeepsItFromOthersAsLongAsItDoes) {
  static_cast<void>(node_.keeper->step());
  const net::Address old = *node_.recorded().begin();
  const net::Address next = cloud_.unowned().front();
  node_.host.namespaces = {{old, next}};
  node_.settle(10);
  ASSERT_TRUE(node_.find(next));
  for (const net::Address& address : {old, next}) {
    EXPECT_EQ(node_.find(address)->state, core::StockAddressState::free) << address.to_string();
    EXPECT_EQ(node_.find(address)->doubts, std::vector{core::StockDoubt::used_by_host}) << address.to_string();
  }
  EXPECT_EQ(node_.counts().free, 3U);
  for (int i = 0; i < 3; ++i) {
    const std::string given = node_.add("c" + std::to_string(i));
    EXPECT_TRUE(given != old.to_string() && given != next.to_string()) << given;
  }
  node_.host.namespaces.clear();
  node_.settle(3);
  EXPECT_TRUE(node_.find(old)->doubts.empty() && node_.find(next)->doubts.empty());
}

TEST_F(StockKeeperTest, WhatALostReplyBroughtWaitsForTheClaims) {
  int calls = 0;
  cloud_.fate = [&] { return ++calls == 1 ? CallFate::reply_lost : CallFate::done; };
  node_.claims.is_away = true;
  static_cast<void>(node_.keeper->step());
  ASSERT_EQ(node_.view().intents.size(), 1U);
  const std::set<net::Address> brought = cloud_.of(node_.mac());
  ASSERT_EQ(brought.size(), 3U);
  node_.settle(5);
  EXPECT_EQ(node_.view().intents.size(), 1U) << "one of them may be promised";
  node_.claims.is_away = false;
  node_.settle(3);
  EXPECT_TRUE(node_.view().intents.empty());
  for (const net::Address& address : brought) {
    ASSERT_TRUE(node_.find(address));
    EXPECT_EQ(node_.find(address)->state, core::StockAddressState::free) << address.to_string();
  }
}

/// Left by an agent that was killed while it probed.
TEST_F(StockKeeperTest, WhatTheProbeSetsFreeIsNotAskedForOnceMore) {
  node_.wire->is_away = true;
  static_cast<void>(node_.keeper->step());
  ASSERT_EQ(node_.counts().probing, 3U);
  node_.begin();
  cloud_.allocations = 0;
  for (const net::Address& address : cloud_.unowned()) cloud_.set_owner(address, mac_of(9));
  const auto soon = Deadline::after(clock_.now(), 30s);
  const auto fetched = node_.keeper->fetch(soon);
  EXPECT_TRUE(fetched) << fetched.error().message;  // though the subnet has none
  EXPECT_EQ(cloud_.allocations, 0);
  EXPECT_EQ(node_.wire->windows, 1);
  EXPECT_EQ(node_.counts().free, 3U);
  // Nothing is left half done: what is asked for is asked for, and what is missing is.
  EXPECT_FALSE(node_.keeper->fetch(soon)) << "the subnet has none";
  EXPECT_EQ(cloud_.allocations, 1);
}

/// A plugin that works alone, asked again and again by the kubelet.
TEST_F(StockKeeperTest, WhatCannotBeProbedIsNotAskedForAgain) {
  node_.wire->is_away = true;
  for (int i = 0; i < 5; ++i) {
    const auto fetched = node_.keeper->fetch(Deadline::after(clock_.now(), std::chrono::seconds{30}));
    ASSERT_FALSE(fetched);
    EXPECT_NE(fetched.error().message.find("eth9"), std::string::npos) << fetched.error().message;
    EXPECT_EQ(cloud_.of(node_.mac()).size(), 1U);
  }
  node_.wire->is_away = false;
  ASSERT_TRUE(node_.keeper->fetch(Deadline::after(clock_.now(), std::chrono::seconds{30})));
  EXPECT_NE(node_.add("c1"), "");
}

/// The same where somebody answers on the wire for the whole subnet.
TEST_F(StockKeeperTest, APluginAloneHasABoundOnConflicts) {
  TestCloud cloud(100);
  Node node(cloud, clock_, 1);
  node.options.marks = {.low = 0, .high = 4};
  node.begin();
  for (const net::Address& address : cloud.unowned()) node.wire->others[address] = mac_of(9);
  const auto fetch = [&] { return node.keeper->fetch(Deadline::after(clock_.now(), 30s)); };
  for (int i = 0; i < 60; ++i) EXPECT_FALSE(fetch());
  EXPECT_EQ(cloud.of(node.mac()).size(), 36U) << "32 more than the high mark";
  EXPECT_NE(fetch().error().message.find("croft vpc release"), std::string::npos) << fetch().error().message;
}

/// What a call without an answer may have brought counts towards the limit, and not as what is coming.
TEST_F(StockKeeperTest, WhereALostReplyCountsForTheLimitTheRestIsAskedForAllTheSame) {
  node_.options.marks = {.low = 3, .high = 9, .node_max = 5};
  node_.begin();
  cloud_.fate = [] { return CallFate::request_lost; };
  static_cast<void>(node_.keeper->step());
  ASSERT_EQ(node_.view().intents.size(), 1U);
  cloud_.fate = [] { return CallFate::done; };
  clock_.advance(2s);
  static_cast<void>(node_.keeper->step());
  EXPECT_EQ(node_.counts().free, 2U) << "3 of 5 may have come";
  node_.settle(4);
  EXPECT_EQ(node_.counts().free, 3U);
}

TEST_F(StockKeeperTest, AtItsLimitItSaysSoToWhoWaits) {
  node_.options.marks = {.low = 0, .high = 4, .node_max = 2};
  node_.begin();
  node_.wait(2);
  static_cast<void>(node_.keeper->step());
  for (const char* pod : {"c1", "c2"}) ASSERT_NE(node_.add(pod), "");
  static_cast<void>(node_.keeper->step());
  ASSERT_TRUE(node_.keeper->last_problem());
  EXPECT_NE(node_.keeper->last_problem()->message.find("--max-addresses"), std::string::npos);
  const auto pushed = node_.keeper->push(std::nullopt, Deadline::after(clock_.now(), std::chrono::seconds{30}));
  ASSERT_FALSE(pushed) << "an operator neither";
  EXPECT_NE(pushed.error().message.find("--max-addresses"), std::string::npos) << pushed.error().message;
  EXPECT_EQ(cloud_.of(node_.mac()).size(), 2U);
  EXPECT_TRUE(node_.view().intents.empty());
}

TEST_F(StockKeeperTest, FillsToTheLowMarkInOneCallAndOneWindow) {
  static_cast<void>(node_.keeper->step());
  EXPECT_EQ(node_.counts().free, 3U);
  EXPECT_EQ(node_.wire->windows, 1);
  EXPECT_EQ(node_.recorded(), cloud_.of(node_.mac()));
  EXPECT_EQ(node_.keeper->tally().allocated, 3U);
  static_cast<void>(node_.keeper->step());
  EXPECT_EQ(node_.counts().free, 3U);
}

TEST_F(StockKeeperTest, APodIsServedWhileTheCloudIsAway) {
  static_cast<void>(node_.keeper->step());
  cloud_.fate = [] { return CallFate::away; };
  EXPECT_NE(node_.add("c1"), "");
  EXPECT_NE(node_.add("c2"), "");
  EXPECT_EQ(node_.del("c1"), 1U);
  node_.settle(3);
  EXPECT_EQ(node_.counts().held, 1U);
  EXPECT_TRUE(node_.keeper->last_problem());
  cloud_.fate = [] { return CallFate::done; };
  node_.settle(3);
  EXPECT_GE(node_.counts().free, 3U);
}

TEST_F(StockKeeperTest, WhatAnotherHasIsQuarantinedWithItsMac) {
  const net::Address first = cloud_.unowned().front();
  node_.wire->others[first] = mac_of(9);
  node_.settle(2);
  const auto view = node_.view();
  const auto found = std::ranges::find(view.addresses, first, &core::StockAddress::address);
  ASSERT_NE(found, view.addresses.end());
  EXPECT_EQ(found->state, StockAddressState::quarantined);
  EXPECT_EQ(found->other_mac, mac_of(9));
  EXPECT_EQ(node_.counts().free, 3U) << "another one is asked for";
  EXPECT_EQ(node_.keeper->tally().conflicts, 1U);
  ASSERT_EQ(node_.conflicts.size(), 1U) << "who tells the node is told once";
  EXPECT_EQ(node_.conflicts.front(), *found);
}

TEST_F(StockKeeperTest, TheSurplusWaitsForTheFirstLookAndThatIsNoTrouble) {
  node_.options.marks = {.low = 5, .high = 5};
  node_.begin();
  static_cast<void>(node_.keeper->step());
  ASSERT_EQ(node_.counts().free, 5U);
  node_.options.marks = {.low = 0, .high = 2};
  node_.options.looks_first = true;
  node_.begin();
  const auto next = node_.keeper->step();
  EXPECT_EQ(node_.counts().free, 5U);
  EXPECT_FALSE(node_.keeper->last_problem());
  EXPECT_LE(next - clock_.now().since_boot, 1s);
  node_.keeper->look_before_serving();
  static_cast<void>(node_.keeper->step());
  EXPECT_EQ(node_.counts().free, 2U);
}

TEST_F(StockKeeperTest, APluginThatGoesAloneTakesTheNextTerm) {
  node_.options.looks_first = true;
  node_.begin();
  static_cast<void>(node_.keeper->step());
  node_.keeper->look_before_serving();
  const std::string one = node_.add("c1");
  core::warm::Request request;
  request.owner = {"net", "c2", "eth0"};
  const auto alone = assign_from_stock(node_.context(), request);
  ASSERT_TRUE(alone);
  EXPECT_NE(std::get<core::warm::Assigned>(*alone).address.address.to_string(), one);
  request.owner.container_id = "c3";
  const auto late = assign_from_stock(node_.context(), request, node_.writer());
  ASSERT_FALSE(late);
  EXPECT_TRUE(core::warm::is_term_over(late.error())) << late.error().message;
  EXPECT_FALSE(node_.keeper->pop({}, {})) << "nor does anything else of the agent's commit";
  EXPECT_NE(node_.add("c3"), "") << "it has taken the next one";
  EXPECT_TRUE(std::ranges::any_of(node_.log, [](const auto& line) { return line.find("anew") != line.npos; }));
}

TEST_F(StockKeeperTest, WhatAKilledProcessAskedForIsNotAskedForAgain) {
  cloud_.fate = [] { return CallFate::reply_lost; };
  static_cast<void>(node_.keeper->step());
  cloud_.fate = [] { return CallFate::done; };
  node_.begin();
  static_cast<void>(node_.keeper->step());
  EXPECT_EQ(cloud_.of(node_.mac()).size(), 3U);
  EXPECT_EQ(node_.counts().free, 3U);
}

TEST_F(StockKeeperTest, PushAndPop) {
  static_cast<void>(node_.keeper->step());
  const net::Address wanted = cloud_.unowned().back();
  const auto pushed = node_.keeper->push(wanted, {});
  ASSERT_TRUE(pushed) << pushed.error().message;
  EXPECT_EQ(pushed->address, wanted);
  EXPECT_EQ(node_.keeper->push(wanted, {})->address, wanted) << "again";
  static_cast<void>(node_.keeper->step());
  EXPECT_EQ(node_.counts().free, 4U) << "probed";
  cloud_.fate = [] { return CallFate::away; };
  EXPECT_FALSE(node_.keeper->pop(wanted, {}));
  EXPECT_EQ(node_.counts().free, 4U) << "put back";
  cloud_.fate = [] { return CallFate::done; };
  EXPECT_TRUE(node_.keeper->pop(wanted, {}));
  EXPECT_FALSE(cloud_.owner_of(wanted));
  const auto again = node_.keeper->pop(wanted, {});
  ASSERT_FALSE(again);
  EXPECT_EQ(again.error().code, ErrorCode::not_found);
}

TEST_F(StockKeeperTest, APushOfWhatSomebodyUsesIsRefusedNamingWho) {
  static_cast<void>(node_.keeper->step());
  const net::Address used = cloud_.unowned().back();
  cloud_.set_owner(used, node_.mac());
  const auto expect_refused = [&](const std::string& who) {
    const auto pushed = node_.keeper->push(used, {});
    ASSERT_FALSE(pushed);
    EXPECT_EQ(pushed.error().code, ErrorCode::refused_for_safety);
    EXPECT_THAT(pushed.error().message, testing::HasSubstr(who));
    EXPECT_FALSE(node_.find(used));
    EXPECT_TRUE(node_.view().intents.empty());
  };
  node_.pods.all.push_back({{"web", "shop", ""}, {used}, false});
  expect_refused("pod shop/web has it");
  node_.pods.all.clear();
  node_.host.used = {used};
  expect_refused("an interface or a route of this node has it");
  node_.host.used.clear();
  node_.pods.is_away = true;
  expect_refused("the API server does not answer");
  node_.pods.is_away = false;
  node_.host.is_away = true;
  expect_refused("the host cannot be looked at");
  node_.host.is_away = false;
  node_.claims.all = {used};
  expect_refused("VpcIpClaim");
  node_.claims.is_away = true;
  expect_refused("VpcIpClaim");
  node_.claims.is_away = false;
  node_.claims.all.clear();
  EXPECT_TRUE(node_.keeper->push(used, {})) << "nobody does";
}

TEST_F(StockKeeperTest, WhatTheCloudGivesAndTheHostUsesIsQuarantined) {
  const net::Address used = cloud_.unowned()[1];
  node_.host.used = {used};
  static_cast<void>(node_.keeper->step());
  EXPECT_EQ(node_.counts().free, 2U);
  EXPECT_THAT(node_.find(used)->why, testing::HasSubstr("the host uses it"));
}

class ReleasedUnheardTest : public StockKeeperTest {
 protected:
  /// One is to be released, and nobody hears of it.
  ReleasedUnheardTest() {
    node_.options.marks = {.low = 2, .high = 20};
    node_.begin();
    static_cast<void>(node_.keeper->step());
    address_ = *node_.recorded().begin();
    cloud_.fate = [] { return CallFate::reply_lost; };
    EXPECT_FALSE(node_.keeper->pop(address_, {}));
    cloud_.fate = [] { return CallFate::done; };
    EXPECT_FALSE(cloud_.owner_of(address_));
    EXPECT_EQ(node_.find(address_)->state, StockAddressState::releasing);
  }
  net::Address address_;
};

TEST_F(ReleasedUnheardTest, WhatAnotherNodeHasByThenIsItsOwn) {
  cloud_.set_owner(address_, mac_of(2));
  const int before = cloud_.releases;
  node_.settle(4);
  EXPECT_EQ(cloud_.releases, before) << "a cloud may go by the address alone";
  EXPECT_EQ(cloud_.owner_of(address_), mac_of(2));
  EXPECT_FALSE(node_.find(address_));
}

TEST_F(ReleasedUnheardTest, ACloudThatHangsKeepsARoundForOneCall) {
  cloud_.fate = [] { return CallFate::reply_lost; };
  EXPECT_FALSE(node_.keeper->pop(std::nullopt, {}));
  cloud_.fate = [] { return CallFate::away; };
  EXPECT_EQ(node_.counts().leaving, 2U);
  cloud_.names = 0;
  static_cast<void>(node_.keeper->step());
  EXPECT_EQ(cloud_.names, 1) << "and not one for each";
}

TEST_F(ReleasedUnheardTest, WhatCameBackAndIsUsedStays) {
  cloud_.set_owner(address_, node_.mac());
  node_.host.used.insert(address_);
  node_.pods.all.push_back({{"web", "shop", ""}, {address_}, false});
  node_.host.is_away = true;
  node_.settle(4);
  EXPECT_EQ(cloud_.owner_of(address_), node_.mac()) << "whether it is used is not known";
  node_.host.is_away = false;
  node_.settle(12);
  EXPECT_EQ(cloud_.owner_of(address_), node_.mac());
  EXPECT_EQ(node_.find(address_)->state, StockAddressState::held);
}

TEST_F(ReleasedUnheardTest, WhatTheCloudStillHasHereIsFreeAgain) {
  cloud_.set_owner(address_, node_.mac());
  const int before = cloud_.releases;
  node_.settle(4);
  EXPECT_EQ(cloud_.releases, before) << "fewer are free than the high mark";
  EXPECT_EQ(node_.find(address_)->state, StockAddressState::free);
}

/// The cloud does not tell its subnet's range, and hangs: host and pods have their own time.
TEST_F(ReleasedUnheardTest, ACloudThatHangsIsNotTheHostsTrouble) {
  cloud_.set_owner(address_, node_.mac());
  node_.options.marks.low = 0;
  node_.begin();
  static_cast<void>(node_.keeper->step());
  clock_.advance(61s);
  int calls = 0;
  cloud_.fate = [&] {
    if (++calls != 2) return CallFate::done;
    clock_.advance(10min);
    return CallFate::away;
  };
  static_cast<void>(node_.keeper->step());
  EXPECT_EQ(node_.find(address_)->state, StockAddressState::free);
  EXPECT_FALSE(node_.keeper->last_problem());
}

/// A release whose answer is lost: the cloud is asked by name at once.
TEST_F(StockKeeperTest, WhatWasReleasedUnheardIsForgottenAtOnce) {
  static_cast<void>(node_.keeper->step());
  const net::Address address = *node_.recorded().begin();
  cloud_.fate = [] { return CallFate::reply_lost; };
  ASSERT_FALSE(node_.keeper->pop(address, {}));
  cloud_.fate = [] { return CallFate::done; };
  static_cast<void>(node_.keeper->step());
  EXPECT_NE(node_.find(address)->state, core::StockAddressState::releasing);
  EXPECT_EQ(node_.counts().free, 3U) << "the cloud gave it anew";
}

TEST_F(StockKeeperTest, WhatWasToBeReleasedServesWhoWaits) {
  TestCloud small(1);
  Node node(small, clock_, 2);
  node.options.marks = {.low = 1, .high = 1};
  node.begin();
  static_cast<void>(node.keeper->step());
  const net::Address address = *node.recorded().begin();
  small.fate = [] { return CallFate::request_lost; };
  ASSERT_FALSE(node.keeper->pop(address, {}));
  small.fate = [] { return CallFate::done; };
  static_cast<void>(node.keeper->step());
  EXPECT_EQ(node.find(address)->state, core::StockAddressState::releasing) << "the call may still come";
  node.wait(1);
  clock_.advance(61s);
  static_cast<void>(node.keeper->step());
  EXPECT_EQ(node.add("c1"), address.to_string());
}

TEST_F(StockKeeperTest, WhatTheHostUsesIsNotGivenBack) {
  static_cast<void>(node_.keeper->step());
  const net::Address used = *node_.recorded().begin();
  node_.host.used.insert(used);
  const auto popped = node_.keeper->pop(used, {});
  ASSERT_FALSE(popped);
  EXPECT_EQ(popped.error().code, ErrorCode::refused_for_safety);
  EXPECT_EQ(cloud_.owner_of(used), node_.mac());
  EXPECT_EQ(node_.find(used)->doubts, std::vector{core::StockDoubt::used_by_host}) << "nor is it given to a pod";
  node_.host.is_away = true;
  EXPECT_FALSE(node_.keeper->pop(std::nullopt, {})) << "nobody knows what the host uses";
  EXPECT_EQ(cloud_.of(node_.mac()).size(), 3U);
}

// The process dies before each of its calls, one after the other, in all that fills, trims and gives back; the one that
// follows finds everything, whatever had been done by then.
TEST_F(StockKeeperTest, DeathBeforeAnyCall) {
  for (std::int64_t calls = 0; calls < 40; ++calls) {
    TestCloud cloud(20);
    ManualClock clock;
    Node node(cloud, clock, 1);
    node.options.marks = {.low = 3, .high = 3};
    node.begin(calls);
    const net::Address stray = cloud.unowned().back();
    static_cast<void>(node.keeper->step());
    static_cast<void>(node.keeper->push(stray, {}));
    static_cast<void>(node.keeper->step());
    static_cast<void>(node.keeper->pop(std::nullopt, {}));
    clock.advance(70s);
    static_cast<void>(node.keeper->step());
    const bool died = node.life->is_over;
    const std::string held = node.add("c1");
    node.begin();
    node.settle();
    const auto view = node.view();
    EXPECT_TRUE(view.intents.empty()) << calls;
    EXPECT_EQ(node.recorded(), cloud.of(node.mac())) << "dead before call " << calls;
    EXPECT_GE(node.counts().free, 3U) << calls;
    if (!held.empty()) {
      EXPECT_EQ(node.counts().held, 1U) << calls;
    }
    if (!died) return;
  }
  FAIL() << "it never lived to the end";
}

/// The machine's card is another one at a start: what the cloud moved to it stays in stock, and is the new one's.
TEST_F(StockKeeperTest, AReplacedInterfaceIsFollowedAndItsAddressesComeAlong) {
  static_cast<void>(node_.keeper->step());
  const std::string held = node_.add("c1");
  node_.settle(2);
  const net::Mac other = mac_of(7);
  const std::set<net::Address> before = cloud_.of(node_.mac());
  ASSERT_EQ(before.size(), 4U);
  for (const net::Address& address : before) cloud_.set_owner(address, other);
  cloud_.replaced[node_.mac()] = other;
  node_.begin();
  node_.settle(3);
  EXPECT_EQ(node_.keeper->interface()->mac, other);
  EXPECT_EQ(node_.view().node->mac, other) << "a plugin alone goes by it";
  EXPECT_EQ(node_.recorded(), cloud_.of(other));
  for (const auto& one : node_.view().addresses) {
    EXPECT_EQ(one.mac, other) << one.address.to_string();
    EXPECT_TRUE(one.doubts.empty()) << one.address.to_string();
  }
  EXPECT_EQ(node_.add("c1"), held) << "its pod has it";
  EXPECT_NE(node_.add("c2"), "");
  EXPECT_TRUE(node_.keeper->pop(std::nullopt, Deadline::after(clock_.now(), 5s)));
  EXPECT_EQ(node_.recorded(), cloud_.of(other)) << "it went back from the new one";
}

/// Somebody sets the wall clock by an hour while everything is under way: nothing waits for that hour, and nothing that
/// nobody heard of is taken for done.
TEST_F(StockKeeperTest, AClockThatIsSetByAnHourLeavesNothingWaiting) {
  for (const std::chrono::minutes jump : {60min, -60min}) {
    TestCloud cloud(20);
    ManualClock clock;
    Node node(cloud, clock, 1);
    node.options.marks = {.low = 3, .high = 3};
    node.begin();
    static_cast<void>(node.keeper->step());
    clock.advance(70s);
    // A release and a loan that nobody heard of, which are done late; one that cools; one that nobody knows; one that
    // the cloud has taken away.
    cloud.fate = [] { return CallFate::late; };
    const auto gone = node.view().addresses.front().address;
    EXPECT_FALSE(node.keeper->pop(gone, Deadline::after(clock.now(), 5s)));
    EXPECT_FALSE(node.keeper->lend({"r1", mac_of(2), "subnet-1"}, Deadline::after(clock.now(), 5s)));
    const std::string cooling = node.add("c1");
    node.del("c1");
    const net::Address unknown = cloud.unowned().back();
    cloud.set_owner(unknown, node.mac());
    cloud.fate = [] { return CallFate::done; };
    const int releases = cloud.releases;
    static_cast<void>(node.keeper->step());
    clock.jump_wall(jump);
    static_cast<void>(node.keeper->step());
    clock.advance(20s);
    static_cast<void>(node.keeper->step());
    EXPECT_EQ(cloud.releases, releases) << "the release may still come";
    for (const auto& one : node.view().addresses) {
      EXPECT_TRUE(one.address.to_string() != cooling || one.state == StockAddressState::cooling);
    }
    EXPECT_FALSE(node.view().addresses.empty());
    EXPECT_TRUE(std::ranges::any_of(node.view().addresses, [](const auto& one) {
      return one.state == StockAddressState::lending;
    })) << "the loan may still come";
    cloud.catch_up();
    for (int i = 0; i < 30; ++i) {
      static_cast<void>(node.keeper->step());
      clock.advance(31s);
    }
    EXPECT_EQ(node.recorded(), cloud.of(node.mac())) << jump.count();
    EXPECT_EQ(node.counts().free, 3U);
    EXPECT_EQ(node.counts().leaving + node.counts().probing + node.counts().cooling, 0U);
    EXPECT_EQ(node.find(unknown)->state, StockAddressState::quarantined);
    EXPECT_TRUE(node.view().intents.empty());
  }
}

}  // namespace
}  // namespace croft::engine
