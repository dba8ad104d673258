#include "vpc/decide/reconcile.h"

#include <gtest/gtest.h>

#include "vpc/decide/promised.h"
#include "vpc/decide/test_stock.h"

namespace croft::core::warm {
namespace {

using namespace std::chrono_literals;

class WarmReconcile : public testing::Test {
 protected:
  WarmReconcile() { look_.emplace(); }
  /// A look at the world as it is set up, judged.
  Judgement judge_now() {
    Look look = *look_;
    look.begun = stock_.clock.now();
    std::vector<WarmIntent> intents;
    for (const auto& [key, value] : stock_.records.records()) {
      if (const auto* intent = std::get_if<WarmIntent>(&value)) intents.push_back(*intent);
    }
    standing_.note(stock_.all(), look.begun);
    Judgement judged = judge(stock_.all(), intents, look, standing_, seen_, policy_, stock_.clock.now());
    seen_ = judged.seen;
    const auto written =
        stock_.records.decide<Moved>([&](const Snapshot& snapshot) { return plan_doubts(snapshot, judged.doubts); });
    EXPECT_TRUE(written) << written.error().message;
    return judged;
  }
  /// Looks twice, the grace apart, and does what is due.
  Judgement settle() {
    stock_.clock.advance(policy_.young + 1s);
    judge_now();
    stock_.clock.advance(policy_.grace);
    Judgement judged = judge_now();
    for (const Finding& finding : judged.findings) {
      const auto acted = stock_.records.decide<bool>(
          [&](const Snapshot& snapshot) { return plan_act(snapshot, finding, kCooldown, stock_.clock.now()); });
      EXPECT_TRUE(acted) << acted.error().message;
    }
    return judged;
  }
  void cloud(const std::vector<std::string>& addresses) {
    look_->cloud.emplace();
    for (const auto& text : addresses) look_->cloud->push_back(given(text));
  }
  /// The cloud was asked for each that is recorded and not in its list, and said no again.
  void deny_the_rest() {
    for (const WarmAddress& one : stock_.all()) {
      if (std::ranges::find(*look_->cloud, one.address, &Given::address) == look_->cloud->end()) {
        look_->denied.insert(one.address);
      }
    }
  }
  void pod(const std::string& name, std::vector<net::Address> addresses = {}, bool ended = false) {
    if (!look_->pods) look_->pods.emplace();
    look_->pods->push_back({{name, "shop", ""}, std::move(addresses), ended});
  }
  void host(const std::vector<std::string>& addresses) {
    look_->host.emplace();
    for (const auto& text : addresses) look_->host->insert(address_of(text));
  }
  TestStock stock_;
  std::optional<Look> look_;
  Standing standing_;
  Seen seen_;
  ReconcilePolicy policy_;
};

TEST_F(WarmReconcile, WhatNoNodeHasIsNotRecorded) {
  std::vector<std::string> listed = {"10.9.0.7"};
  for (int i = 0; i < 900; ++i) listed.push_back("10.10." + std::to_string(i / 200) + "." + std::to_string(i % 200));
  cloud(listed);
  host({});
  pod("web-0", {address_of("10.10.0.5")});
  look_->range = net::Prefix::parse("10.9.0.0/24").value();
  const Judgement judged = settle();
  EXPECT_EQ(stock_.find("10.9.0.7")->state, WarmState::quarantined) << "what it is, people find out";
  EXPECT_EQ(stock_.find("10.10.0.5")->state, WarmState::held) << "whatever it is, somebody lives by it";
  EXPECT_EQ(stock_.all().size(), 2U);
  ASSERT_TRUE(judged.left_out);
  EXPECT_NE(judged.left_out->find("899 addresses that are not of its subnet"), std::string::npos) << *judged.left_out;
  // Of the subnet, and more than a node has.
  look_->range = net::Prefix::parse("10.0.0.0/8").value();
  for (int i = 0; i < 900; ++i) listed.push_back("10.11." + std::to_string(i / 200) + "." + std::to_string(i % 200));
  cloud(listed);
  settle();
  settle();
  EXPECT_LE(stock_.all().size(), kStraysMax + 2U);
}

/// What the look speaks of is the address: that its holder let go of it between the look and the commit is no news.
TEST_F(WarmReconcile, DoubtsStayWithWhatHasChangedMeanwhile) {
  stock_.take({given("10.9.0.2", true), given("10.9.0.3", true), given("10.9.0.4", true), given("10.9.0.5", true)});
  ASSERT_EQ(stock_.address_for(request_of("a")), "10.9.0.2");
  stock_.clock.advance(1s);
  Look look;
  look.begun = stock_.clock.now();
  look.cloud.emplace();
  look.host.emplace();
  look.host->insert(address_of("10.9.0.3"));
  standing_.note(stock_.all(), look.begun);
  const Judgement judged = judge(stock_.all(), {}, look, standing_, seen_, policy_, stock_.clock.now());
  ASSERT_EQ(judged.doubts.size(), 4U);
  stock_.clock.advance(1s);
  stock_.release("a");
  ASSERT_EQ(stock_.address_for(request_of("b")), "10.9.0.3");
  ASSERT_TRUE(stock_.records.decide<Moved>([&](const Snapshot& snapshot) {
    return plan_give_back(snapshot, {.addresses = {address_of("10.9.0.4")}}, stock_.clock.now());
  }));
  const auto write = [&] {
    const auto written =
        stock_.records.decide<Moved>([&](const Snapshot& snapshot) { return plan_doubts(snapshot, judged.doubts); });
    ASSERT_TRUE(written) << written.error().message;
  };
  write();
  EXPECT_EQ(stock_.find("10.9.0.2")->state, WarmState::cooling);
  EXPECT_EQ(stock_.find("10.9.0.2")->doubts, std::vector{WarmDoubt::not_in_cloud});
  EXPECT_EQ(stock_.find("10.9.0.3")->doubts, std::vector{WarmDoubt::not_in_cloud}) << "the host may use it for its pod";
  EXPECT_TRUE(stock_.find("10.9.0.4")->doubts.empty()) << "it goes back";
  EXPECT_EQ(stock_.find("10.9.0.5")->doubts, std::vector{WarmDoubt::not_in_cloud});
  // What has come anew since is not what the look speaks of.
  ASSERT_TRUE(stock_.records.decide<Moved>(
      [&](const Snapshot& snapshot) { return plan_gone(snapshot, {address_of("10.9.0.4")}); }));
  stock_.clock.advance(1s);
  stock_.take({given("10.9.0.4", true)});
  write();
  EXPECT_TRUE(stock_.find("10.9.0.4")->doubts.empty());
}

TEST_F(WarmReconcile, WhatNamespacesSay) {
  Look look;
  std::vector<net::Address> many;
  for (int i = 0; i < 9; ++i) many.push_back(address_of("10.9.0." + std::to_string(100 + i)));
  const auto of = [](const std::vector<std::string>& texts) {
    std::vector<net::Address> all;
    for (const auto& text : texts) all.push_back(address_of(text));
    return all;
  };
  take_host(look, {address_of("10.9.0.1")}, {of({"10.9.0.1", "10.9.0.7", "127.0.0.1", "10.200.0.1"}), many},
            net::Prefix::parse("10.9.0.0/24").value());
  EXPECT_EQ(*look.host, (std::set{address_of("10.9.0.1"), address_of("10.9.0.7")}));
  EXPECT_EQ(look.said_by_pods, std::set{address_of("10.9.0.7")});
  EXPECT_EQ(look.namespaces_unheard, 1U);
  many.pop_back();
  take_host(look, {}, {many, of({"127.0.0.1", "::1", "fe80::1", "10.200.0.1"})}, std::nullopt);
  EXPECT_EQ(look.host->size(), 9U) << "as many as it may say, and of any subnet where this node's is not known";
  EXPECT_EQ(look.namespaces_unheard, 0U);
}

TEST_F(WarmReconcile, AddressesThatOnlyAPodsNamespaceUsesAreDoubtedAndNotPutAside) {
  stock_.take({given("10.9.0.7", true)});
  cloud({"10.9.0.7"});
  host({"10.9.0.7"});
  look_->said_by_pods = {address_of("10.9.0.7")};
  pod("web-0");
  settle();
  settle();
  EXPECT_EQ(stock_.find("10.9.0.7")->state, WarmState::free);
  EXPECT_EQ(stock_.find("10.9.0.7")->doubts, std::vector{WarmDoubt::used_by_host});
}

TEST_F(WarmReconcile, ThePodIsGoneAndTheHostAgrees) {
  stock_.take({given("10.9.0.7", true), given("10.9.0.8", true)});
  ASSERT_EQ(stock_.address_for(request_of("c1")), "10.9.0.7");
  ASSERT_EQ(stock_.address_for(request_of("c2")), "10.9.0.8");
  cloud({"10.9.0.7", "10.9.0.8"});
  pod("c1");
  host({"10.9.0.7"});
  settle();
  EXPECT_EQ(stock_.find("10.9.0.7")->state, WarmState::held);
  EXPECT_EQ(stock_.find("10.9.0.8")->state, WarmState::cooling)
      << "it goes through its cooldown, and stays in the stock";
}

TEST_F(WarmReconcile, OneSourceIsNotEnough) {
  stock_.take({given("10.9.0.7", true)});
  ASSERT_EQ(stock_.address_for(request_of("c1")), "10.9.0.7");
  pod("another");
  settle();
  EXPECT_EQ(stock_.find("10.9.0.7")->state, WarmState::held) << "the host was not looked at";
  look_.emplace();
  host({});
  settle();
  EXPECT_EQ(stock_.find("10.9.0.7")->state, WarmState::held) << "the pods are not known";
  look_->pods.emplace();
  settle();
  EXPECT_EQ(stock_.find("10.9.0.7")->state, WarmState::held) << "no pod at all is no list";
  pod("another", {address_of("10.9.0.7")});
  settle();
  EXPECT_EQ(stock_.find("10.9.0.7")->state, WarmState::held) << "a pod says that it has it";
}

TEST_F(WarmReconcile, OneLookIsNotEnough) {
  stock_.take({given("10.9.0.7", true)});
  ASSERT_EQ(stock_.address_for(request_of("c1")), "10.9.0.7");
  pod("another");
  host({});
  stock_.clock.advance(policy_.young + 1s);
  Judgement judged = judge_now();
  ASSERT_EQ(judged.findings.size(), 1U);
  EXPECT_FALSE(judged.findings[0].is_due);
  stock_.clock.advance(policy_.grace - 1s);
  EXPECT_FALSE(judge_now().findings[0].is_due);
  look_->pods->clear();
  pod("c1");
  EXPECT_TRUE(judge_now().findings.empty()) << "it was there all the time";
  look_->pods->clear();
  pod("another");
  stock_.clock.advance(2s);
  EXPECT_FALSE(judge_now().findings[0].is_due) << "it begins anew";
}

TEST_F(WarmReconcile, ASuccessorIsNotTouched) {
  stock_.take({given("10.9.0.7", true)});
  ASSERT_EQ(stock_.address_for(request_of("c1")), "10.9.0.7");
  pod("another");
  host({});
  stock_.clock.advance(policy_.young + 1s);
  judge_now();
  stock_.clock.advance(policy_.grace);
  const Judgement judged = judge_now();
  ASSERT_TRUE(judged.findings.at(0).is_due);
  stock_.release({{"net", "c1", "eth0"}, {}, {}, 0s});
  ASSERT_EQ(stock_.address_for(request_of("c2")), "10.9.0.7");
  const auto acted = stock_.records.decide<bool>(
      [&](const Snapshot& snapshot) { return plan_act(snapshot, judged.findings[0], kCooldown, stock_.clock.now()); });
  ASSERT_TRUE(acted);
  EXPECT_FALSE(*acted);
  EXPECT_EQ(stock_.find("10.9.0.7")->state, WarmState::held);
}

TEST_F(WarmReconcile, TheBrake) {
  std::vector<Given> all;
  for (int i = 10; i < 20; ++i) all.push_back(given("10.9.0." + std::to_string(i), true));
  stock_.take(all);
  for (int i = 0; i < 10; ++i) EXPECT_NE(stock_.address_for(request_of("c" + std::to_string(i))), "");
  pod("another");
  host({});
  const Judgement judged = settle();
  ASSERT_TRUE(judged.brake);
  EXPECT_EQ(stock_.counts().held, 10U);
}

TEST_F(WarmReconcile, TheBrakeLetsGoOfWhatWasGoneInEachLookForAnHour) {
  std::vector<Given> all;
  for (int i = 10; i < 20; ++i) all.push_back(given("10.9.0." + std::to_string(i), true));
  stock_.take(all);
  for (int i = 0; i < 10; ++i) EXPECT_NE(stock_.address_for(request_of("c" + std::to_string(i))), "");
  pod("another");
  pod("c0");
  host({});
  settle();
  stock_.clock.advance(50min);
  settle();
  EXPECT_EQ(stock_.counts().held, 10U);
  // One look in which a source is silent, or one of them is seen, and its hour begins anew.
  host({"10.9.0.19"});
  judge_now();
  host({});
  settle();
  stock_.clock.advance(10min);
  const Judgement judged = settle();
  EXPECT_EQ(stock_.counts().held, 2U);
  EXPECT_EQ(stock_.find("10.9.0.10")->state, WarmState::held) << "its pod is there";
  EXPECT_EQ(stock_.find("10.9.0.19")->state, WarmState::held) << "the host had it";
  ASSERT_TRUE(judged.brake) << "of the one";
  const Judgement after = settle();
  EXPECT_FALSE(after.brake) << "one of two is not too many";
  EXPECT_EQ(stock_.counts().held, 1U);
}

TEST_F(WarmReconcile, WhatTheCloudDoesNotHaveLeavesTheStock) {
  stock_.take({given("10.9.0.7", true), given("10.9.0.8", true), given("10.9.0.9", true), given("10.9.0.10", true)});
  ASSERT_EQ(stock_.address_for(request_of("c1")), "10.9.0.7");
  cloud({"10.9.0.9", "10.9.0.10"});
  settle();
  EXPECT_NE(stock_.find("10.9.0.8"), nullptr) << "one list alone said so";
  deny_the_rest();
  const Judgement judged = settle();
  EXPECT_EQ(stock_.find("10.9.0.8"), nullptr);
  EXPECT_EQ(stock_.find("10.9.0.7")->state, WarmState::held) << "a pod lives by it: told, no more";
  EXPECT_EQ(judged.findings.size(), 2U);
}

TEST_F(WarmReconcile, WhatTheFirstLookSpeaksAgainstIsGivenToNobody) {
  stock_.take({given("10.9.0.7", true), given("10.9.0.8", true)});
  cloud({"10.9.0.8"});
  judge_now();
  EXPECT_EQ(stock_.find("10.9.0.7")->doubts, std::vector{WarmDoubt::not_in_cloud});
  EXPECT_EQ(stock_.counts().free, 1U);
  EXPECT_EQ(stock_.counts().doubted, 1U);
  EXPECT_EQ(stock_.counts().on_node(), 2U);
  EXPECT_EQ(stock_.address_for(request_of("c1")), "10.9.0.8");
  EXPECT_EQ(stock_.address_for(request_of("c2")), "");
  const auto lent = stock_.records.decide<std::optional<WarmAddress>>([&](const Snapshot& snapshot) {
    return plan_lend(snapshot, {"r1", kOtherMac, "subnet-1"}, stock_.clock.now());
  });
  ASSERT_TRUE(lent);
  EXPECT_FALSE(*lent) << "nor lent";
  const auto given_back = stock_.records.decide<Moved>(
      [&](const Snapshot& snapshot) { return plan_give_back(snapshot, {.count = 1}, stock_.clock.now()); });
  ASSERT_TRUE(given_back);
  EXPECT_TRUE(given_back->addresses.empty()) << "nor released by one look";
  look_->cloud.reset();
  EXPECT_TRUE(judge_now().doubts.empty()) << "a cloud that is silent takes nothing back";
  cloud({"10.9.0.7", "10.9.0.8"});
  EXPECT_EQ(judge_now().doubts.size(), 1U);
  EXPECT_EQ(stock_.address_for(request_of("c2")), "10.9.0.7") << "simply free again";
}

TEST_F(WarmReconcile, WhatCameAfterTheLookBeganIsNotDoubted) {
  Look look;
  look.cloud.emplace();
  const auto doubts = [&] {
    return judge(stock_.all(), {}, look, standing_, {}, policy_, stock_.clock.now()).doubts.size();
  };
  standing_.note(stock_.all(), stock_.clock.now());
  look.begun = stock_.clock.now();
  stock_.clock.jump_wall(-2h);  // somebody sets it meanwhile
  stock_.clock.advance(1s);
  stock_.take({given("10.9.0.7", true)});
  EXPECT_EQ(doubts(), 0U);
  stock_.clock.jump_wall(-2h);
  standing_.note(stock_.all(), stock_.clock.now());
  look.begun = stock_.clock.now();
  EXPECT_EQ(doubts(), 1U) << "a record of the future is of before the clock was set";
}

TEST_F(WarmReconcile, AClockThatIsSetMakesNoRecordYoungOrOld) {
  stock_.take({given("10.9.0.7", true)});
  ASSERT_EQ(stock_.address_for(request_of("c1")), "10.9.0.7");
  cloud({"10.9.0.7"});
  pod("another");
  host({});
  judge_now();
  stock_.clock.jump_wall(1h);
  judge_now();
  stock_.clock.advance(policy_.grace);
  EXPECT_TRUE(judge_now().findings.empty()) << "it is younger than two minutes";
  stock_.clock.jump_wall(-2h);
  settle();
  EXPECT_EQ(stock_.find("10.9.0.7")->state, WarmState::cooling) << "it is not young for two hours";
}

TEST_F(WarmReconcile, ADoubtOutlivesThePod) {
  stock_.take({given("10.9.0.7", true), given("10.9.0.8", true)});
  ASSERT_EQ(stock_.address_for(request_of("c1")), "10.9.0.7");
  cloud({"10.9.0.8"});
  judge_now();
  EXPECT_EQ(stock_.assign(request_of("c1")).value().index(), 0U) << "who has it keeps it";
  EXPECT_EQ(stock_.release("c1"), 1U);
  stock_.clock.advance(kCooldown);
  EXPECT_EQ(stock_.address_for(request_of("c2")), "10.9.0.8");
  EXPECT_EQ(stock_.address_for(request_of("c3")), "");
}

TEST_F(WarmReconcile, AnEmptyListEmptiesNoStock) {
  stock_.take({given("10.9.0.7", true), given("10.9.0.8", true), given("10.9.0.9", true)});
  cloud({});
  deny_the_rest();
  const Judgement judged = settle();
  EXPECT_TRUE(judged.cloud_brake);
  EXPECT_EQ(stock_.counts().doubted, 3U) << "given to nobody, and kept";
  cloud({"10.9.0.7", "10.9.0.8", "10.9.0.9"});
  look_->denied.clear();
  judge_now();
  EXPECT_EQ(stock_.counts().free, 3U) << "simply free again";
  cloud({});
  deny_the_rest();
  settle();
  EXPECT_EQ(stock_.all().size(), 3U);
  stock_.clock.advance(policy_.missing_grace);
  settle();
  EXPECT_TRUE(stock_.all().empty()) << "what stays so for so long is so";
}

/// An older copy of the store was put back: what pods have got since is nobody's in it.
TEST_F(WarmReconcile, WhatALivePodUsesIsNobodysInTheStock) {
  stock_.take({given("10.9.0.7", true), given("10.9.0.8", true), given("10.9.0.9", true)});
  cloud({"10.9.0.7", "10.9.0.8", "10.9.0.9"});
  pod("web", {address_of("10.9.0.7")});
  host({"10.9.0.7", "10.9.0.8"});
  judge_now();
  EXPECT_EQ(stock_.find("10.9.0.7")->doubts, (std::vector{WarmDoubt::used_by_host, WarmDoubt::used_by_pod}));
  EXPECT_EQ(stock_.find("10.9.0.8")->doubts, std::vector{WarmDoubt::used_by_host});
  EXPECT_EQ(stock_.address_for(request_of("c1")), "10.9.0.9");
  EXPECT_EQ(stock_.address_for(request_of("c2")), "");
  settle();
  ASSERT_EQ(stock_.find("10.9.0.7")->state, WarmState::held);
  EXPECT_EQ(stock_.find("10.9.0.7")->pod.name, "web");
  ASSERT_EQ(stock_.find("10.9.0.8")->state, WarmState::quarantined);
  EXPECT_NE(stock_.find("10.9.0.8")->why.find("the host uses it"), std::string::npos);
  pod("db", {address_of("10.9.0.8")});
  settle();
  EXPECT_EQ(stock_.find("10.9.0.8")->state, WarmState::held) << "its pod was late";
}

TEST_F(WarmReconcile, OnlyTheHostIsHeardAndNothingIsConcluded) {
  stock_.take({given("10.9.0.7", true)});
  host({"10.9.0.7"});
  settle();
  EXPECT_EQ(stock_.find("10.9.0.7")->state, WarmState::free);
  EXPECT_EQ(stock_.address_for(request_of("c1")), "");
  look_->host.reset();
  judge_now();
  EXPECT_EQ(stock_.address_for(request_of("c1")), "") << "a silent host takes nothing back";
  host({});
  judge_now();
  EXPECT_EQ(stock_.address_for(request_of("c1")), "10.9.0.7");
}

TEST_F(WarmReconcile, ALateStatusOfWhoLetGoIsNoWitness) {
  stock_.take({given("10.9.0.7", true)});
  ASSERT_EQ(stock_.address_for(request_of("c1")), "10.9.0.7");
  ASSERT_EQ(stock_.release("c1"), 1U);
  pod("c1", {address_of("10.9.0.7")});
  host({});
  EXPECT_TRUE(judge_now().doubts.empty());
  host({"10.9.0.7"});
  EXPECT_EQ(judge_now().doubts.size(), 1U) << "the host says so too";
  look_->pods->clear();
  pod("another", {address_of("10.9.0.7")});
  host({});
  judge_now();
  EXPECT_EQ(stock_.find("10.9.0.7")->doubts, std::vector{WarmDoubt::used_by_pod});
}

TEST_F(WarmReconcile, WhatNobodyKnowsIsQuarantinedOrItsPods) {
  cloud({"10.9.0.7", "10.9.0.8"});
  pod("web", {address_of("10.9.0.8")});
  host({"10.9.0.8"});
  settle();
  EXPECT_EQ(stock_.find("10.9.0.7")->state, WarmState::quarantined);
  ASSERT_EQ(stock_.find("10.9.0.8")->state, WarmState::held);
  EXPECT_EQ(stock_.find("10.9.0.8")->pod.name, "web");
}

/// Which of the pod's sandboxes has it nobody knows.
TEST_F(WarmReconcile, ALateDelOfAnotherSandboxSparesWhatHasNoContainer) {
  cloud({"10.9.0.8", "10.9.0.9"});
  pod("web", {address_of("10.9.0.8")});
  host({"10.9.0.8"});
  settle();
  ASSERT_EQ(stock_.find("10.9.0.8")->state, WarmState::held);
  const Release late{{"net", "dead", "eth0"}, {"web", "shop", ""}, {}, kCooldown};
  EXPECT_EQ(stock_.release(late), 0U);
  Release by_address = late;
  by_address.address = address_of("10.9.0.8");
  EXPECT_EQ(stock_.release(by_address), 0U);
  settle();
  EXPECT_EQ(stock_.find("10.9.0.8")->state, WarmState::held) << "the pod lives";
  look_->pods->clear();
  pod("web", {address_of("10.9.0.7")});
  settle();
  EXPECT_EQ(stock_.find("10.9.0.8")->state, WarmState::held) << "the host uses it";
  host({"10.9.0.7"});
  settle();
  EXPECT_EQ(stock_.find("10.9.0.8")->state, WarmState::cooling) << "the pod's next sandbox has another";
}

TEST_F(WarmReconcile, WhatHasNoContainerCoolsWhenItsPodIsGone) {
  cloud({"10.9.0.8"});
  pod("web", {address_of("10.9.0.8")});
  host({"10.9.0.8"});
  settle();
  look_->pods->clear();
  pod("another");
  settle();
  EXPECT_EQ(stock_.find("10.9.0.8")->state, WarmState::held);
  host({});
  settle();
  EXPECT_EQ(stock_.find("10.9.0.8")->state, WarmState::cooling);
}

TEST_F(WarmReconcile, AStatusWithAnotherAddressFreesNothingOfAKnownContainer) {
  stock_.take({given("10.9.0.7", true)});
  ASSERT_EQ(stock_.address_for(request_of("c1")), "10.9.0.7");
  pod("c1", {address_of("10.9.0.9")});
  host({});
  settle();
  EXPECT_EQ(stock_.find("10.9.0.7")->state, WarmState::held);
}

TEST_F(WarmReconcile, AnOpenIntentExplainsWhatIsUnknown) {
  WarmIntent intent;
  intent.id = "i1";
  intent.count = 1;
  intent.process = 7;
  stock_.records.put(warm_intent_key("i1"), intent);
  cloud({"10.9.0.7", "10.9.0.8", "10.9.0.9"});
  host({"10.9.0.7"});
  EXPECT_TRUE(settle().findings.empty());
  Look look = *look_;
  const auto brought = brought_by(intent, stock_.all(), look);
  ASSERT_EQ(brought.size(), 1U);
  EXPECT_EQ(brought[0].address, address_of("10.9.0.8")) << "not what the host uses";
  look.apart = {address_of("10.9.0.8")};
  intent.address = address_of("10.9.0.8");
  EXPECT_TRUE(brought_by(intent, stock_.all(), look).empty()) << "a claim names it, and it is for the stock";
  promise_to(intent, "shop/web-0");
  EXPECT_EQ(brought_by(intent, stock_.all(), look).size(), 1U) << "asked for by name, for the pod of the claim";
  look.host.reset();
  EXPECT_TRUE(brought_by(intent, stock_.all(), look).empty()) << "nobody knows what the host uses";
}

TEST_F(WarmReconcile, APodsAddressIsFoundBesideAnOpenIntent) {
  WarmIntent intent;
  intent.id = "i1";
  intent.count = 4;
  stock_.records.put(warm_intent_key("i1"), intent);
  cloud({"10.9.0.7", "10.9.0.8"});
  pod("web", {address_of("10.9.0.8")});
  host({});
  const Judgement judged = settle();
  ASSERT_EQ(judged.findings.size(), 1U) << "the other one may be what the intent brought";
  EXPECT_EQ(judged.findings[0].odd, Odd::pod_unrecorded);
  ASSERT_NE(stock_.find("10.9.0.8"), nullptr);
  EXPECT_EQ(stock_.find("10.9.0.8")->state, WarmState::held);
  EXPECT_EQ(stock_.find("10.9.0.7"), nullptr);
}

TEST_F(WarmReconcile, WhatIsSetApartIsNobodysFinding) {
  cloud({"10.9.0.7", "10.9.0.8"});
  pod("web", {address_of("10.9.0.8")});
  host({});
  look_->apart = {address_of("10.9.0.7"), address_of("10.9.0.8")};
  EXPECT_TRUE(settle().findings.empty());
}

TEST_F(WarmReconcile, YoungRecordsAreNobodysBusiness) {
  stock_.take({given("10.9.0.7", true)});
  cloud({});
  EXPECT_TRUE(judge_now().findings.empty());
}

}  // namespace
}  // namespace croft::core::warm
