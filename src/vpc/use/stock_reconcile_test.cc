// What a StockKeeper makes of records, cloud, pods and host that differ, and of lost or damaged records.

#include <set>
#include <utility>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "vpc/use/test_stock_node.h"

namespace croft::engine {
namespace {

using namespace std::chrono_literals;
using core::StockAddressState;
namespace warm = core::warm;

TEST_F(StockKeeperTest, ACloudThatUsedUpTheTimeIsTheTroubleAndNotTheHost) {
  static_cast<void>(node_.keeper->step());
  cloud_.fate = [this] {
    clock_.advance(10min);
    return CallFate::away;
  };
  node_.settle(3);
  ASSERT_TRUE(node_.keeper->last_problem());
  EXPECT_EQ(node_.keeper->last_problem()->message, "the cloud does not answer");
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
  const net::Address other = cloud_.unowned().back();
  cloud_.set_owner(other, node_.mac());
  EXPECT_TRUE(node_.keeper->release_unused({other, other}, deadline)) << "named twice it is one";
  EXPECT_FALSE(cloud_.owner_of(other));
  node_.settle(8);
  EXPECT_EQ(node_.counts().quarantined, 1U);
  EXPECT_TRUE(node_.keeper->release_unused({stray}, deadline));
  EXPECT_FALSE(cloud_.owner_of(stray));
  EXPECT_EQ(node_.counts().quarantined, 0U);
}

TEST_F(StockKeeperTest, AListThatIsCutDoubtsNothingThatTheCloudHasByName) {
  static_cast<void>(node_.keeper->step());
  for (const net::Address& address : cloud_.of(node_.mac())) cloud_.unlisted.insert(address);
  node_.settle(10);
  EXPECT_EQ(node_.counts().free, 3U);
  EXPECT_EQ(node_.counts().doubted, 0U);
  EXPECT_TRUE(std::ranges::any_of(node_.log, [](const auto& line) { return line.find("leaves out") != line.npos; }));
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

/// The records are of another card than the node has now: its machine was made anew on its old disk, or from an image
/// of another node's. Pods of another node live by their addresses.
class OtherCardTest : public StockKeeperTest {
 protected:
  OtherCardTest() {
    static_cast<void>(node_.keeper->step());
    before_ = cloud_.of(node_.mac());
    cloud_.replaced[node_.mac()] = card_;
    for (const net::Address& address : before_) cloud_.set_owner(address, mac_of(2));
    node_.options.looks_first = true;
    node_.begin();
  }
  /// In the image an address is on its way, and the node of the image has it: what is there after the first look.
  net::Address leave_in_image(StockAddressState state) {
    const net::Address there = *before_.begin();
    core::StockAddress then = *node_.find(there);
    then.state = state;
    if (state == StockAddressState::lending) {
      then.request = "r1";
      then.peer = mac_of(3).to_string();
    }
    node_.put(core::warm_address_key(there), then);
    cloud_.set_owner(there, node_.mac());
    node_.keeper->look_before_serving();
    return there;
  }
  const net::Mac card_ = mac_of(7);
  std::set<net::Address> before_;
};

TEST_F(OtherCardTest, GivesNothingOfTheOldOneAfterTheFirstLook) {
  ASSERT_EQ(before_.size(), 3U);
  node_.keeper->look_before_serving();
  EXPECT_TRUE(node_.may_give());
  EXPECT_EQ(node_.add("c1"), "") << "the cloud has it on another node's interface";
  EXPECT_EQ(node_.counts().doubted, 3U);
  EXPECT_EQ(node_.view().node->mac, card_) << "a plugin alone goes by it";
  static_cast<void>(node_.keeper->step());
  const std::string given = node_.add("c1");
  ASSERT_NE(given, "");
  EXPECT_EQ(cloud_.owner_of(net::Address::parse(given).value()), card_);
}

TEST_F(OtherCardTest, GivesNothingOfTheOldOneWhileTheCloudHasNoList) {
  cloud_.fate = [] { return CallFate::away; };
  node_.keeper->look_before_serving();
  EXPECT_EQ(node_.add("c1"), "") << "nobody says that the card of now has it";
  EXPECT_EQ(node_.keeper->pop(std::nullopt, {}).error().code, ErrorCode::not_found);
  cloud_.fate = [] { return CallFate::done; };
  for (const net::Address& address : before_) cloud_.set_owner(address, card_);
  static_cast<void>(node_.keeper->step());
  EXPECT_EQ(node_.counts().doubted, 0U);
  EXPECT_NE(node_.add("c1"), "") << "the card has brought it along";
}

/// The metadata are away for the first look, and the rounds find the card.
TEST_F(OtherCardTest, IsFoundByTheRoundsWhileTheCloudHasNoList) {
  cloud_.is_metadata_away = true;
  node_.keeper->look_before_serving();
  cloud_.is_metadata_away = false;
  cloud_.fate = [] { return CallFate::away; };
  static_cast<void>(node_.keeper->step());
  EXPECT_EQ(node_.add("c1"), "");
  EXPECT_EQ(node_.keeper->lend({"r1", mac_of(3), "subnet-1"}, {}).error().code, ErrorCode::exhausted);
  for (const net::Address& address : before_) EXPECT_EQ(cloud_.owner_of(address), mac_of(2));
}

/// The live node's agent kept what was to go back to the cloud, and a pod has it.
TEST_F(OtherCardTest, ReleasesNothingFromUnderTheNodeOfTheImage) {
  const net::Address there = leave_in_image(StockAddressState::releasing);
  node_.settle(8);
  EXPECT_EQ(cloud_.owner_of(there), node_.mac());
  EXPECT_FALSE(node_.find(there));
}

TEST_F(OtherCardTest, TakesNothingThatTheNodeOfTheImageHasForItsOwn) {
  const net::Address there = leave_in_image(StockAddressState::lending);
  for (int i = 0; i < 8; ++i) {
    node_.settle(1);
    const auto now = node_.find(there);
    EXPECT_TRUE(!now || now->state != StockAddressState::free);
  }
}

/// Under an agent that runs on a copy is put back that knows another card.
TEST_F(StockKeeperTest, ACopyThatKnowsAnotherCardIsToldTheOneOfNow) {
  static_cast<void>(node_.keeper->step());
  core::StockNode then = *node_.view().node;
  const net::Mac now = then.mac;
  then.mac = mac_of(7);
  node_.put(core::warm_node_key(), then);
  node_.replace_files(node_.view());
  ASSERT_EQ(node_.add("c1"), "") << "nothing is given before it was looked at";
  node_.keeper->look_before_serving();
  EXPECT_EQ(node_.view().node->mac, now);
  EXPECT_NE(node_.add("c1"), "");
}

/// An older copy of the store's files was put back: what a pod has got since is free in it.
class OlderCopyTest : public StockKeeperTest {
 protected:
  OlderCopyTest() {
    static_cast<void>(node_.keeper->step());
    const auto before = node_.view();
    web_ = net::Address::parse(node_.add("web")).value();
    for (const auto& one : before.addresses) node_.put(core::warm_address_key(one.address), one);
    EXPECT_EQ(node_.find(web_)->state, StockAddressState::free);
    clock_.advance(1s);
  }
  void look_without_the_cloud() {
    const auto fate = std::exchange(cloud_.fate, [] { return CallFate::away; });
    node_.keeper->look_before_serving();
    cloud_.fate = fate;
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
  look_without_the_cloud();
  EXPECT_EQ(node_.find(web_)->doubts, std::vector{core::StockDoubt::used_by_host});
  EXPECT_EQ(node_.counts().free, 2U) << "all others are served";
  expect_never_given();
}

TEST_F(OlderCopyTest, APodsWordCountsWhereTheHostIsSilent) {
  node_.host.is_away = true;
  node_.begin();
  look_without_the_cloud();
  EXPECT_EQ(node_.find(web_)->doubts, std::vector{core::StockDoubt::used_by_pod});
  expect_never_given();
}

/// In the copy a container that has ended since has it; its DEL comes late.
TEST_F(OlderCopyTest, ALateDelOfTheHolderOfThenSparesTheHolderOfNow) {
  core::StockAddress then = *node_.find(web_);
  then.state = StockAddressState::held;
  then.owner = {"net", "old", "eth0"};
  then.pod = {"old", "shop", ""};
  node_.put(core::warm_address_key(web_), then);
  node_.begin();
  look_without_the_cloud();
  EXPECT_EQ(node_.find(web_)->doubts, std::vector{core::StockDoubt::used_by_pod});
  warm::Release late;
  late.owner = then.owner;
  late.pod = then.pod;
  late.cooldown = 0s;
  ASSERT_EQ(release_to_stock(node_.context(), late)->size(), 1U);
  expect_never_given();
  node_.settle(12);
  EXPECT_EQ(node_.find(web_)->state, StockAddressState::held);
  EXPECT_EQ(node_.find(web_)->pod.name, "web");
}

/// In the copy a pod has what another node's pod lives by since, and that pod's late DEL comes while the cloud is
/// asked.
TEST_F(StockKeeperTest, ADelDuringTheFirstLookTakesItsDoubtNotAway) {
  node_.options.marks = {.low = 0, .high = 3};
  node_.options.reconcile.cooldown = 0s;
  node_.begin();
  static_cast<void>(node_.keeper->step());
  ASSERT_TRUE(node_.keeper->push(std::nullopt, {}));
  static_cast<void>(node_.keeper->step());
  const auto went = net::Address::parse(node_.add("gone")).value();
  const auto then = node_.view();
  node_.del("gone");
  cloud_.set_owner(went, mac_of(2));
  node_.put_back(then);
  clock_.advance(1s);
  node_.options.looks_first = true;
  node_.begin();
  cloud_.after_look = [&] {
    warm::Release late;
    late.owner = {"net", "gone", "eth0"};
    late.cooldown = 0s;
    EXPECT_EQ(release_to_stock(node_.context(), late)->size(), 1U);
    cloud_.after_look = [] {};
  };
  node_.keeper->look_before_serving();
  EXPECT_TRUE(node_.may_give());
  ASSERT_EQ(node_.find(went)->state, StockAddressState::free);
  EXPECT_EQ(node_.find(went)->doubts, std::vector{core::StockDoubt::not_in_cloud});
  EXPECT_EQ(node_.add("c1"), "");
}

/// In the copy it is on its way to another node, and it stayed.
TEST_F(OlderCopyTest, WhatWasBeingLentThenIsThePodsNow) {
  core::StockAddress then = *node_.find(web_);
  then.state = StockAddressState::lending;
  then.request = "r1";
  then.peer = mac_of(2).to_string();
  node_.put(core::warm_address_key(web_), then);
  node_.begin();
  look_without_the_cloud();
  clock_.advance(120s);
  expect_never_given();
  node_.settle(12);
  EXPECT_EQ(node_.find(web_)->state, StockAddressState::held);
}

TEST_F(StockKeeperTest, NothingIsUnusedWhileASourceIsSilent) {
  static_cast<void>(node_.keeper->step());
  const net::Address of_a_pod = cloud_.unowned().back();
  cloud_.set_owner(of_a_pod, node_.mac());
  node_.pods.all.push_back({{"web", "shop", ""}, {of_a_pod}, false});
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
  static_cast<void>(node_.keeper->step());
  const net::Address claimed = cloud_.unowned().back();
  cloud_.set_owner(claimed, node_.mac());
  node_.settle(8);
  ASSERT_EQ(node_.find(claimed)->state, StockAddressState::quarantined);
  node_.claims.all = {claimed};
  EXPECT_TRUE(node_.keeper->unused({})->empty());
  EXPECT_FALSE(node_.keeper->release_unused({claimed}, {}));
  node_.claims.all.clear();
  node_.settle(20);
  EXPECT_EQ(cloud_.owner_of(claimed), node_.mac()) << "nobody told the agent to give it back";
  EXPECT_TRUE(node_.keeper->release_unused({claimed}, {}));
  EXPECT_FALSE(cloud_.owner_of(claimed));
}

TEST_F(StockKeeperTest, LostRecordsArePodsOrSetAside) {
  node_.options.marks = {.low = 6, .high = 8};
  node_.begin();
  static_cast<void>(node_.keeper->step());
  const auto web = net::Address::parse(node_.add("web")).value(), old = net::Address::parse(node_.add("old")).value();
  std::erase_if(node_.pods.all, [](const core::warm::LivePod& pod) { return pod.pod.name == "old"; });
  const std::set<net::Address> before = cloud_.of(node_.mac());
  node_.claims.all = {*before.rbegin()};
  node_.keeper.reset();
  node_.lose_records();
  node_.begin();
  static_cast<void>(node_.keeper->step());
  const std::string first = node_.add("new");
  EXPECT_NE(first, "") << "pods are served from what the cloud gives anew";
  EXPECT_FALSE(before.contains(net::Address::parse(first).value()));
  node_.settle(8);
  ASSERT_TRUE(node_.find(web));
  EXPECT_EQ(node_.find(web)->state, StockAddressState::held);
  EXPECT_EQ(node_.find(web)->pod.name, "web");
  for (const net::Address& address : before) {
    const auto found = node_.find(address);
    if (address == web) continue;
    EXPECT_EQ(found.has_value(), address != *before.rbegin()) << "what a claim names is left alone";
    EXPECT_TRUE(!found || found->state == StockAddressState::quarantined) << address.to_string();
  }
  const auto unused = node_.keeper->unused({});
  ASSERT_TRUE(unused);
  EXPECT_EQ(unused->size(), before.size() - 3) << "all but the pod's, the claim's and what the host uses";
  EXPECT_TRUE(std::ranges::none_of(*unused, [&](const auto& one) { return one.address == old; }));
  EXPECT_EQ(node_.del("web"), 1U) << "by the pod's name";
}

TEST_F(StockKeeperTest, APodThatGotItsAddressWithoutAnAgentIsKnownBeforeAnybodyIsServed) {
  static_cast<void>(node_.keeper->step());
  node_.keeper.reset();
  const net::Address taken = cloud_.unowned().at(0), claimed = cloud_.unowned().at(1);
  for (const net::Address& address : {taken, claimed}) cloud_.set_owner(address, node_.mac());
  node_.pods.all.push_back({{"web", "shop", "uid-web"}, {taken}, false});
  node_.pods.all.push_back({{"db", "shop", "uid-db"}, {claimed}, false});
  node_.claims.all = {claimed};
  node_.options.looks_first = true;
  node_.begin();
  node_.keeper->look_before_serving();
  ASSERT_TRUE(node_.find(taken));
  EXPECT_EQ(node_.find(taken)->state, StockAddressState::held);
  EXPECT_EQ(node_.del("web"), 1U);
  EXPECT_FALSE(node_.find(claimed)) << "what a claim names is left alone";
}

TEST_F(StockKeeperTest, ClaimsAreAskedForOnlyWhereTheyCouldMatter) {
  node_.settle(10);
  node_.claims.asked = 0;
  node_.settle(10);
  EXPECT_EQ(node_.claims.asked, 0);
}

TEST_F(StockKeeperTest, ADamagedRecordsAddressIsNobodysToGive) {
  node_.options.marks = {.low = 3, .high = 4};
  node_.begin();
  static_cast<void>(node_.keeper->step());
  const net::Address damaged = *node_.recorded().begin();
  node_.store.damage(core::warm_address_key(damaged));
  const net::Address stray = cloud_.unowned().back();
  cloud_.set_owner(stray, node_.mac());
  node_.settle(10);
  const auto is_told = [&](const std::string& line) { return line.find(damaged.to_string()) != line.npos; };
  EXPECT_TRUE(std::ranges::any_of(node_.log, is_told)) << "it is reported";
  EXPECT_FALSE(node_.find(damaged));
  ASSERT_TRUE(node_.find(stray)) << "the other differences are settled all the same";
  EXPECT_EQ(node_.find(stray)->state, StockAddressState::quarantined);
  const auto unused = node_.keeper->unused({});
  ASSERT_TRUE(unused);
  for (const auto& one : *unused) EXPECT_NE(one.address, damaged);
  EXPECT_TRUE(node_.view().damaged.contains(core::warm_address_key(damaged).name)) << "this list names it";
  const auto released = node_.keeper->release_unused({damaged}, {});
  ASSERT_FALSE(released);
  EXPECT_EQ(released.error().code, ErrorCode::refused_for_safety);
  for (int i = 0; i < 12; ++i) {
    EXPECT_NE(node_.add("c" + std::to_string(i)), damaged.to_string());
    static_cast<void>(node_.keeper->step());
  }
  EXPECT_EQ(cloud_.owner_of(damaged), node_.mac());
}

}  // namespace
}  // namespace croft::engine
