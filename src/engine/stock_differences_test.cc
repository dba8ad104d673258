// What a StockKeeper makes of records, cloud, pods and host that differ.

#include <set>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "engine/test_stock_node.h"

namespace croft::engine {
namespace {

using namespace std::chrono_literals;
using core::WarmState;
namespace warm = core::warm;

TEST_F(StockKeeperTest, AnAddressDeletedBehindOurBackLeavesTheStock) {
  static_cast<void>(node_.keeper->step());
  cloud_.set_owner(*node_.recorded().begin(), std::nullopt);
  node_.settle(8);
  EXPECT_EQ(node_.recorded(), cloud_.of(node_.mac()));
  EXPECT_EQ(node_.counts().free, 3U);
}

TEST_F(StockKeeperTest, ACloudThatUsedUpTheTimeIsTheTroubleAndNotTheHost) {
  static_cast<void>(node_.keeper->step());
  cloud_.fate = [this] {
    clock_.advance(10min);
    return CallFate::away;
  };
  node_.settle(3);
  ASSERT_TRUE(node_.keeper->trouble());
  EXPECT_EQ(node_.keeper->trouble()->message, "the cloud does not answer");
  const auto unused = node_.keeper->unused(Deadline::after(clock_.now(), 5s));
  ASSERT_FALSE(unused);
  EXPECT_EQ(unused.error().message, "the cloud does not answer");
}

TEST_F(StockKeeperTest, WhatNobodyAskedForIsShownAndReleasedByAnOperator) {
  static_cast<void>(node_.keeper->step());
  const net::Address stray = cloud_.unowned().back();
  cloud_.set_owner(stray, node_.mac());
  const Deadline deadline{};
  auto unused = node_.keeper->unused(deadline);
  ASSERT_TRUE(unused);
  ASSERT_EQ(unused->size(), 1U);
  EXPECT_EQ(unused->front().address, stray);
  const net::Address free = *node_.recorded().begin();
  const auto refused = node_.keeper->release_unused({stray, free}, deadline);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, ErrorCode::refused_for_safety);
  EXPECT_EQ(cloud_.owner_of(stray), node_.mac()) << "nothing was done";
  node_.host.used.insert(stray);
  EXPECT_TRUE(node_.keeper->unused(deadline)->empty()) << "the host uses it";
  node_.host.used.clear();
  node_.settle(8);
  EXPECT_EQ(node_.counts().quarantined, 1U);
  EXPECT_TRUE(node_.keeper->release_unused({stray}, deadline));
  EXPECT_FALSE(cloud_.owner_of(stray));
  EXPECT_EQ(node_.counts().quarantined, 0U);
}

TEST_F(StockKeeperTest, AnAddressDeletedBehindOurBackIsGivenToNobodyFromTheNextLookOn) {
  node_.options.marks = {.low = 3, .high = 3};
  node_.begin();
  static_cast<void>(node_.keeper->step());
  const net::Address gone = *node_.recorded().begin();
  const net::Mac other = mac_of(9);
  cloud_.set_owner(gone, other);
  clock_.advance(61s);
  static_cast<void>(node_.keeper->step());
  EXPECT_EQ(node_.find(gone)->doubts, std::vector{core::WarmDoubt::not_in_cloud});
  for (int i = 0; i < 5; ++i) {
    EXPECT_NE(node_.add("c" + std::to_string(i)), gone.to_string());
    static_cast<void>(node_.keeper->step());
  }
  EXPECT_EQ(node_.keeper->pop(gone, {}).error().code, ErrorCode::not_found);
  EXPECT_EQ(cloud_.owner_of(gone), other) << "nothing is released by one look";
}

TEST_F(StockKeeperTest, AListThatIsCutDoubtsNothingThatTheCloudHasByName) {
  static_cast<void>(node_.keeper->step());
  for (const net::Address& address : cloud_.of(node_.mac())) cloud_.unlisted.insert(address);
  node_.settle(10);
  EXPECT_EQ(node_.counts().free, 3U);
  EXPECT_EQ(node_.counts().doubted, 0U);
  EXPECT_TRUE(std::ranges::any_of(node_.log, [](const auto& line) { return line.find("leaves out") != line.npos; }));
}

TEST_F(StockKeeperTest, AnEmptyCloudEmptiesNoStock) {
  static_cast<void>(node_.keeper->step());
  const std::set<net::Address> before = cloud_.of(node_.mac());
  cloud_.unlisted = before;
  cloud_.denied = before;
  clock_.advance(61s);
  static_cast<void>(node_.keeper->step());
  EXPECT_EQ(node_.counts().doubted, 3U);
  EXPECT_EQ(node_.add("c1"), "");
  node_.settle(10);
  for (const net::Address& address : before) ASSERT_TRUE(node_.find(address)) << "its record stays";
  cloud_.unlisted.clear();
  cloud_.denied.clear();
  clock_.advance(61s);
  static_cast<void>(node_.keeper->step());
  EXPECT_EQ(node_.counts().doubted, 0U);
  for (const net::Address& address : before) EXPECT_EQ(node_.find(address)->state, WarmState::free);
}

TEST_F(StockKeeperTest, ADoubtIsLookedAtAgainSoon) {
  static_cast<void>(node_.keeper->step());
  const net::Address late = *node_.recorded().begin();
  cloud_.unlisted = {late};
  cloud_.denied = {late};
  clock_.advance(61s);
  const auto next = node_.keeper->step();
  EXPECT_LE(next - clock_.now().since_boot, 5s);
  cloud_.unlisted.clear();
  cloud_.denied.clear();
  clock_.advance(5s);
  static_cast<void>(node_.keeper->step());
  EXPECT_TRUE(node_.find(late)->doubts.empty());
}

TEST_F(StockKeeperTest, LooksThatAreOftenAnywayAreNotRarerForADoubt) {
  node_.options.reconcile_every = 1s;
  node_.begin();
  static_cast<void>(node_.keeper->step());
  cloud_.set_owner(*node_.recorded().begin(), mac_of(9));
  for (int i = 0; i < 4; ++i) {
    clock_.advance(2s);
    EXPECT_LE(node_.keeper->step() - clock_.now().since_boot, 1s);
  }
  EXPECT_EQ(node_.counts().doubted, 1U);
}

/// An older copy of the store's files was put back: what a pod has got since is free in it.
class OlderCopyTest : public StockKeeperTest {
 protected:
  OlderCopyTest() {
    static_cast<void>(node_.keeper->step());
    const auto before = node_.view();
    web_ = net::Address::parse(node_.add("web")).value();
    for (const auto& one : before.addresses) {
      const store::Write write{core::warm_address_key(one.address), core::Value(one), store::Condition::always()};
      EXPECT_TRUE(node_.store.commit({&write, 1}, {}, Deadline::after(clock_.now(), 30s)));
    }
    EXPECT_EQ(node_.find(web_)->state, WarmState::free);
    clock_.advance(1s);
  }
  void expect_never_given() {
    for (int i = 0; i < 6; ++i) {
      EXPECT_NE(node_.add("c" + std::to_string(i)), web_.to_string());
      static_cast<void>(node_.keeper->step());
    }
  }
  net::Address web_;
};

TEST_F(OlderCopyTest, TheHostIsLookedAtBeforeAnybodyIsServed) {
  node_.pods.is_away = true;
  cloud_.fate = [] { return CallFate::away; };
  node_.begin();
  node_.keeper->look_before_serving(Deadline::after(clock_.now(), 5s), 1s, 0s);
  EXPECT_EQ(node_.find(web_)->doubts, std::vector{core::WarmDoubt::used_by_host});
  EXPECT_EQ(node_.counts().free, 2U) << "all others are served";
  expect_never_given();
}

TEST_F(OlderCopyTest, APodsWordCountsWhereTheHostIsSilent) {
  node_.host.is_away = true;
  node_.begin();
  node_.keeper->look_before_serving(Deadline::after(clock_.now(), 5s), 1s, 0s);
  EXPECT_EQ(node_.find(web_)->doubts, std::vector{core::WarmDoubt::used_by_pod});
  expect_never_given();
}

TEST_F(OlderCopyTest, TheLivePodsAddressIsRecordedAgain) {
  clock_.advance(61s);
  static_cast<void>(node_.keeper->step());
  EXPECT_FALSE(node_.find(web_)->doubts.empty()) << "with the first look of an agent that runs on";
  expect_never_given();
  node_.settle(8);
  ASSERT_EQ(node_.find(web_)->state, WarmState::held);
  EXPECT_EQ(node_.find(web_)->pod.name, "web");
  EXPECT_EQ(node_.keeper->tally().rebuilt, 1U);
  EXPECT_TRUE(node_.find(web_)->doubts.empty());
}

/// In the copy a container that has ended since has it; its DEL comes late.
TEST_F(OlderCopyTest, ALateDelOfTheHolderOfThenSparesTheHolderOfNow) {
  core::WarmAddress then = *node_.find(web_);
  then.state = WarmState::held;
  then.owner = {"net", "old", "eth0"};
  then.pod = {"old", "shop", ""};
  const store::Write write{core::warm_address_key(web_), core::Value(then), store::Condition::always()};
  ASSERT_TRUE(node_.store.commit({&write, 1}, {}, Deadline::after(clock_.now(), 30s)));
  node_.begin();
  node_.keeper->look_before_serving(Deadline::after(clock_.now(), 5s), 1s, 0s);
  EXPECT_EQ(node_.find(web_)->doubts, std::vector{core::WarmDoubt::used_by_pod});
  warm::Release late;
  late.owner = then.owner;
  late.pod = then.pod;
  late.cooldown = 0s;
  ASSERT_EQ(release_to_stock(node_.context(), late)->size(), 1U);
  expect_never_given();
  node_.settle(12);
  EXPECT_EQ(node_.find(web_)->state, WarmState::held);
  EXPECT_EQ(node_.find(web_)->pod.name, "web");
}

/// In the copy it is on its way to another node, and it stayed.
TEST_F(OlderCopyTest, WhatWasBeingLentThenIsThePodsNow) {
  core::WarmAddress then = *node_.find(web_);
  then.state = WarmState::lending;
  then.request = "r1";
  then.peer = mac_of(2).to_string();
  const store::Write write{core::warm_address_key(web_), core::Value(then), store::Condition::always()};
  ASSERT_TRUE(node_.store.commit({&write, 1}, {}, Deadline::after(clock_.now(), 30s)));
  node_.begin();
  node_.keeper->look_before_serving(Deadline::after(clock_.now(), 5s), 1s, 0s);
  clock_.advance(120s);
  expect_never_given();
  node_.settle(12);
  EXPECT_EQ(node_.find(web_)->state, WarmState::held);
}

TEST_F(StockKeeperTest, NothingIsUnusedWhileASourceIsSilent) {
  static_cast<void>(node_.keeper->step());
  const net::Address of_a_pod = cloud_.unowned().back();
  cloud_.set_owner(of_a_pod, node_.mac());
  node_.pods.all.push_back({{"web", "shop", ""}, {of_a_pod}, false, false});
  node_.host.used.insert(of_a_pod);
  const auto expect_refused = [&](const std::string& source) {
    const auto unused = node_.keeper->unused({});
    ASSERT_FALSE(unused);
    EXPECT_THAT(unused.error().message, testing::HasSubstr(source));
    const auto released = node_.keeper->release_unused({of_a_pod}, {});
    ASSERT_FALSE(released);
    EXPECT_EQ(released.error().code, ErrorCode::refused_for_safety);
    EXPECT_THAT(released.error().message, testing::HasSubstr(source));
    EXPECT_EQ(cloud_.owner_of(of_a_pod), node_.mac()) << "a pod lives by it";
  };
  node_.host.used.erase(of_a_pod);
  node_.pods.is_away = true;
  expect_refused("the API server does not answer");
  node_.pods.all.clear();
  node_.pods.is_away = false;
  node_.host.used.insert(of_a_pod);
  node_.host.is_away = true;
  expect_refused("the host cannot be looked at");
  node_.host.is_away = false;
  EXPECT_TRUE(node_.keeper->unused({})->empty());
  node_.host.used.erase(of_a_pod);
  EXPECT_EQ(node_.keeper->unused({})->size(), 1U) << "all of them speak, and nobody has it";
}

TEST_F(StockKeeperTest, WhatAClaimNamesDoesNotGoBackThoughItIsQuarantined) {
  node_.options.release_unknown_after = 300s;
  node_.begin();
  static_cast<void>(node_.keeper->step());
  const net::Address claimed = cloud_.unowned().back();
  cloud_.set_owner(claimed, node_.mac());
  node_.settle(8);
  ASSERT_EQ(node_.find(claimed)->state, WarmState::quarantined);
  node_.claims.all = {claimed};
  EXPECT_TRUE(node_.keeper->unused({})->empty());
  EXPECT_FALSE(node_.keeper->release_unused({claimed}, {}));
  node_.settle(20);
  EXPECT_EQ(cloud_.owner_of(claimed), node_.mac());
  node_.claims.all.clear();
  node_.settle(3);
  EXPECT_FALSE(cloud_.owner_of(claimed));
}

}  // namespace
}  // namespace croft::engine
