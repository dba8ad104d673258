// Addresses that go from one node to another: borrowed ones, and those that their pods keep.

#include <thread>
#include <utility>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "vpc/decide/assign.h"
#include "vpc/use/test_stock_node.h"

namespace croft::engine {
namespace {

using namespace std::chrono_literals;
using core::StockAddressState;
namespace warm = core::warm;

class Borrowing : public testing::Test {
 protected:
  Borrowing() {
    for (Node* node : {&a_, &b_}) node->options.marks = {.low = 0, .high = 20};
    begin_both();
  }
  void begin_both(std::int64_t a_calls = std::int64_t{1} << 60, std::int64_t b_calls = std::int64_t{1} << 60) {
    a_.begin(a_calls);
    b_.begin(b_calls);
    a_.peers.keepers = {{"node-2", b_.keeper.get()}};
  }
  /// B has all of the subnet in stock; A knows.
  void fill_b() {
    b_.wait(4);
    static_cast<void>(b_.keeper->step());
    b_.wait(0);
    ASSERT_EQ(b_.counts().free, 4U);
    a_.peers.said = {{"node-2", 4}};
  }
  /// B has asked the cloud for one more a minute ago, and heard nothing.
  void ask_unheard() {
    fill_b();
    cloud_.fate = [] { return CallFate::request_lost; };
    b_.wait(5);
    static_cast<void>(b_.keeper->step());
    b_.wait(0);
    cloud_.fate = [] { return CallFate::done; };
    ASSERT_EQ(b_.view().intents.size(), 1U);
    clock_.advance(61s);
  }
  void expect_one_owner_each(const std::string& when) {
    EXPECT_EQ(a_.recorded(), cloud_.of(a_.mac())) << when;
    EXPECT_EQ(b_.recorded(), cloud_.of(b_.mac())) << when;
  }
  ManualClock clock_;
  TestCloud cloud_{4};
  Node a_{cloud_, clock_, 1}, b_{cloud_, clock_, 2};
};

TEST_F(Borrowing, OfAnExhaustedSubnet) {
  fill_b();
  a_.wait(1);
  static_cast<void>(a_.keeper->step());
  EXPECT_EQ(a_.counts().free, 1U);
  EXPECT_EQ(b_.counts().free, 3U);
  EXPECT_NE(a_.add("c1"), "");
  expect_one_owner_each("at once");
}

TEST_F(Borrowing, WhatIsAskedForAgainMayStillGoFromThenOn) {
  fill_b();
  const auto ask = [&](CallFate fate) {
    cloud_.fate = [fate] { return fate; };
    const auto lent = b_.keeper->lend({"r1", a_.mac(), "subnet-1"}, Deadline::after(clock_.now(), 60s));
    cloud_.fate = [] { return CallFate::done; };
    ASSERT_FALSE(lent);
    EXPECT_EQ(lent.error().code, ErrorCode::unknown_outcome);
  };
  ask(CallFate::request_lost);
  static_cast<void>(b_.keeper->step());
  clock_.advance(61s);
  ask(CallFate::late);
  for (int i = 0; i < 2; ++i) {
    static_cast<void>(b_.keeper->step());
    EXPECT_EQ(b_.counts().free, 3U) << "a pod would lose it when the call is done";
    clock_.advance(30s);
  }
  cloud_.catch_up();
  b_.settle(2);
  EXPECT_EQ(b_.recorded(), cloud_.of(b_.mac()));
  EXPECT_EQ(cloud_.of(a_.mac()).size(), 1U);
}

TEST_F(Borrowing, ALendersWordIsNoProof) {
  fill_b();
  ASSERT_NE(b_.add("b1"), "");
  // It lends what it does not have, or not to us.
  cloud::CloudAddress says;
  says.address = *b_.host.used.begin();
  says.prefix_length = 16;
  says.mac = a_.mac();
  says.subnet = "subnet-1";
  a_.peers.said = {{"node-9", 1}};
  a_.peers.bad.emplace("node-9", says);
  const auto ask = [&] {
    a_.wait(1);
    static_cast<void>(a_.keeper->step());
    a_.wait(0);
  };
  ask();
  EXPECT_EQ(a_.add("c1"), "") << "the cloud has it at the other node";
  EXPECT_TRUE(a_.recorded().empty());
  EXPECT_EQ(a_.keeper->tally().borrowed, 0U);
  ASSERT_TRUE(a_.keeper->last_problem());
  EXPECT_THAT(a_.keeper->last_problem()->message, testing::HasSubstr("node-9 says that it lent"));
  // What is ours, and no pod's to have.
  cloud_.set_owner(says.address, a_.mac());
  a_.host.used.insert(says.address);
  a_.settle(6);
  ask();
  EXPECT_EQ(a_.add("c2"), "");
  a_.host.used.clear();
}

/// The cloud has addresses still, and others answer for them.
TEST_F(Borrowing, WhereWhatTheCloudGivesIsSomebodys) {
  TestCloud large{20};
  Node lender(large, clock_, 2), node(large, clock_, 1);
  for (Node* one : {&lender, &node}) one->options.marks = {.low = 0, .high = 20};
  lender.begin();
  node.begin();
  lender.wait(2);
  static_cast<void>(lender.keeper->step());
  lender.wait(0);
  ASSERT_EQ(lender.counts().free, 2U);
  node.peers.keepers = {{"node-2", lender.keeper.get()}};
  node.peers.said = {{"node-2", 2}};
  for (const net::Address& address : large.unowned()) node.wire->others[address] = mac_of(9);
  node.wait(1);
  static_cast<void>(node.keeper->step());
  EXPECT_EQ(node.peers.asked.size(), 1U);
  EXPECT_EQ(node.counts().free, 1U);
  EXPECT_NE(node.add("c1"), "");
}

TEST_F(Borrowing, TheRichestFirstAndTheDeadOnePassedOver) {
  fill_b();
  a_.peers.said = {{"node-2", 4}, {"node-9", 7}, {"node-8", 0}};
  a_.wait(1);
  static_cast<void>(a_.keeper->step());
  EXPECT_THAT(a_.peers.asked, testing::ElementsAre("node-9", "node-2"));
  EXPECT_EQ(a_.counts().free, 1U);
}

TEST_F(Borrowing, OneThatMayHaveLentDoesNotKeepTheOthersFromIt) {
  fill_b();
  a_.peers.said = {{"node-2", 4}, {"node-8", 50}, {"node-9", 60}};
  cloud::CloudAddress nowhere;
  nowhere.address = net::Address::parse("10.9.0.250").value();
  a_.peers.bad.emplace("node-9", fail(ErrorCode::unknown_outcome, "no ip in pool"));
  a_.peers.bad.emplace("node-8", nowhere);
  a_.wait(1);
  static_cast<void>(a_.keeper->step());
  EXPECT_THAT(a_.peers.asked, testing::ElementsAre("node-9", "node-8", "node-2"));
  EXPECT_EQ(a_.counts().free, 1U);
  EXPECT_EQ(a_.view().intents.size(), 2U) << "what the two may have lent still comes";
  // What may still come of them is one address each, however often somebody waits; and the good one is asked first.
  a_.peers.asked.clear();
  for (int i = 0; i < 3; ++i) {
    ASSERT_NE(a_.add("c" + std::to_string(i)), "");
    clock_.advance(5s);
    static_cast<void>(a_.keeper->step());
  }
  EXPECT_THAT(a_.peers.asked, testing::ElementsAre("node-2", "node-2", "node-2"));
  EXPECT_EQ(a_.view().intents.size(), 2U);
  a_.wait(0);
  a_.settle(4);
  EXPECT_TRUE(a_.view().intents.empty());
  expect_one_owner_each("afterwards");
}

TEST_F(Borrowing, AskedAgainSoonWhereOnlyABadOneIsThere) {
  fill_b();
  a_.peers.said = {{"node-9", 60}};
  a_.peers.bad.emplace("node-9", fail(ErrorCode::unknown_outcome, "no ip in pool"));
  a_.wait(1);
  const auto next = a_.keeper->step();
  EXPECT_LE(next - clock_.now().since_boot, 5s) << "somebody waits, and a neighbour may come to have one";
  ASSERT_TRUE(a_.keeper->last_problem());
  EXPECT_EQ(a_.keeper->last_problem()->code, ErrorCode::exhausted);
  EXPECT_THAT(a_.keeper->last_problem()->message, testing::HasSubstr("node-9: no ip in pool"));
  a_.peers.said = {{"node-2", 4}, {"node-9", 60}};
  clock_.advance(next - clock_.now().since_boot);
  static_cast<void>(a_.keeper->step());
  EXPECT_EQ(a_.counts().free, 1U);
  EXPECT_THAT(a_.peers.asked, testing::ElementsAre("node-9", "node-2"));
}

TEST_F(Borrowing, TheMovesReplyIsLost) {
  fill_b();
  int calls = 0;
  // The lender's move is the second call of the cloud from here on: the first is the borrower's own question.
  cloud_.fate = [&] { return ++calls == 2 ? CallFate::reply_lost : CallFate::done; };
  a_.wait(1);
  static_cast<void>(a_.keeper->step());
  a_.wait(0);
  a_.settle(3);
  b_.settle(3);
  expect_one_owner_each("afterwards");
  EXPECT_EQ(a_.recorded().size() + b_.recorded().size(), 4U);
}

TEST_F(Borrowing, ALenderKeepsWhatItsOwnPodsWaitFor) {
  fill_b();
  b_.wait(4);
  const auto soon = Deadline::after(clock_.now(), 30s);
  EXPECT_EQ(b_.keeper->lend({"r1", a_.mac(), "subnet-1"}, soon).error().code, ErrorCode::exhausted);
  b_.wait(3);
  EXPECT_TRUE(b_.keeper->lend({"r1", a_.mac(), "subnet-1"}, soon));
  EXPECT_EQ(b_.keeper->lend({"r2", a_.mac(), "subnet-1"}, soon).error().code, ErrorCode::exhausted);
}

// ---- an older copy of the lender's store is put back

class OfAnOlderCopy : public Borrowing {
 protected:
  /// B's copy has four free ones; two of them are lent since, and pods of A live by them.
  OfAnOlderCopy() {
    fill_b();
    copy_ = b_.view();
    a_.wait(2);
    static_cast<void>(a_.keeper->step());
    a_.wait(0);
    for (const char* pod : {"a1", "a2"}) lent_.insert(net::Address::parse(a_.add(pod)).value());
    EXPECT_EQ(cloud_.of(a_.mac()), lent_);
  }
  void begin_on_the_copy() {
    b_.keeper.reset();
    b_.put_back(copy_);
    b_.options.looks_first = true;
    b_.begin();
  }
  void expect_none_of_the_lent() {
    for (int i = 0; i < 4; ++i) {
      const std::string got = b_.add("b" + std::to_string(i));
      if (got.empty()) continue;
      EXPECT_FALSE(lent_.contains(net::Address::parse(got).value())) << got << ": two holders";
    }
    EXPECT_EQ(b_.counts().held, 2U) << "all others are served";
  }
  StockView copy_;
  std::set<net::Address> lent_;
};

TEST_F(OfAnOlderCopy, TheCloudIsAskedBeforeTheFirstAdd) {
  begin_on_the_copy();
  EXPECT_EQ(b_.add("early"), "") << "before the look nothing is given";
  b_.keeper->look_before_serving();
  expect_none_of_the_lent();
}

TEST_F(OfAnOlderCopy, WhileTheCloudIsAwayPodsStart) {
  begin_on_the_copy();
  cloud_.fate = [] { return CallFate::away; };
  b_.keeper->look_before_serving();
  EXPECT_NE(b_.add("b1"), "");
  EXPECT_THAT(b_.log, testing::Contains(testing::HasSubstr("without that having been seen")));
}

TEST_F(OfAnOlderCopy, TheRoundAsksTheCloudBeforeItAsksForMore) {
  b_.keeper.reset();
  b_.put_back(copy_);
  b_.options.marks = {.low = 8, .high = 20};
  b_.begin();
  b_.log.clear();
  static_cast<void>(b_.keeper->step());
  const auto place = [&](const std::string& what) {
    return std::ranges::find_if(b_.log, [&](const std::string& line) { return line.find(what) != line.npos; });
  };
  ASSERT_NE(place("is given to no pod for now"), b_.log.end());
  EXPECT_LT(place("is given to no pod for now"), place("asking for"));
}

TEST_F(OfAnOlderCopy, PutUnderARunningAgentNothingLeavesBeforeALook) {
  b_.replace_files(copy_);
  EXPECT_FALSE(b_.may_give());
  EXPECT_EQ(b_.add("b"), "");
  const auto soon = Deadline::after(clock_.now(), 30s);
  EXPECT_EQ(b_.keeper->lend({"r9", mac_of(3), "subnet-1"}, soon).error().code, ErrorCode::exhausted) << "none for now";
  EXPECT_EQ(b_.keeper->pop(std::nullopt, soon).error().code, ErrorCode::unavailable);
  EXPECT_EQ(b_.keeper->release_unused({*lent_.begin()}, soon).error().code, ErrorCode::unavailable);
  warm::Request request;
  request.owner = {"net", "w", "eth0"};
  request.pod = {"web-0", "shop", "u1"};
  EXPECT_FALSE(b_.keeper->give_promised({copy_.addresses.front().address}, request, soon));
  EXPECT_EQ(b_.counts().free, 4U);
  b_.keeper->look_before_serving();
  EXPECT_TRUE(b_.may_give());
  expect_none_of_the_lent();
}

/// Unlike at a start there is evidence: what was lent since only the cloud knows.
TEST_F(OfAnOlderCopy, PutUnderARunningAgentNothingIsGivenBeforeTheCloudHasAnswered) {
  b_.replace_files(copy_);
  cloud_.fate = [] { return CallFate::away; };
  for (int i = 0; i < 3; ++i) {
    b_.keeper->look_before_serving();
    EXPECT_FALSE(b_.may_give());
    EXPECT_EQ(b_.add("b"), "");
  }
  ASSERT_TRUE(b_.keeper->last_problem());
  EXPECT_NE(b_.keeper->last_problem()->message.find("files are others"), std::string::npos) << "who waits is told";
  cloud_.fate = [] { return CallFate::done; };
  b_.keeper->look_before_serving();
  EXPECT_TRUE(b_.may_give());
  expect_none_of_the_lent();
}

/// A replacement between the look and what it concludes is another one.
TEST_F(OfAnOlderCopy, AndPutUnderTheLookItself) {
  b_.replace_files(copy_);
  cloud_.after_look = [&] { b_.store.begin_epoch(); };
  b_.keeper->look_before_serving();
  EXPECT_FALSE(b_.may_give());
  cloud_.after_look = [] {};
  b_.keeper->look_before_serving();
  EXPECT_TRUE(b_.may_give());
}

// ---- pods that keep their address (vpc/use/stock_transfers.cc)

class Promised : public Borrowing {
 protected:
  Promised() {
    static_cast<void>(a_.keeper->step());
    static_cast<void>(b_.keeper->step());
  }
  [[nodiscard]] Result<warm::Assigned> give(Node& node, const net::Address& address, const std::string& container) {
    warm::Request request;
    request.owner = {"net", container, "eth0"};
    request.pod = {"web-0", "shop", "uid-" + container};
    request.cooldown = 30s;
    promise_.address = address;
    const auto given = node.keeper->give_promised(promise_, request, Deadline::after(clock_.now(), 60s));
    if (given) node.host.used.insert(address);
    if (given) promise_.mac = node.mac();
    if (given) node.pods.all.push_back({request.pod, {address}, false});
    return given;
  }
  void end(Node& node, const std::string& container) {
    warm::Release release;
    release.owner = {"net", container, "eth0"};
    const auto let_go = release_to_stock(node.context(), release);
    ASSERT_TRUE(let_go && let_go->size() == 1U);
    node.host.used.clear();
    node.pods.all.clear();
  }
  void expect_refused(Node& node, const std::string& container, const std::string& why) {
    const auto owner = cloud_.owner_of(fixed_);
    const auto refused = give(node, fixed_, container);
    ASSERT_FALSE(refused) << container;
    EXPECT_THAT(refused.error().message, testing::HasSubstr(why));
    EXPECT_EQ(cloud_.owner_of(fixed_), owner) << "it stays where it is";
    EXPECT_EQ(node.counts().held, 0U);
    EXPECT_TRUE(node.view().intents.empty());
  }
  const net::Address fixed_ = cloud_.unowned().front();
  FixedAddresses::Promise promise_;  ///< as the claim has it
};

TEST_F(Promised, NeverFromAnInterfaceThatThePromiseDoesNotName) {
  // The promise is of before: meanwhile the cloud gave it to B, where a pod lives by it.
  promise_.mac = mac_of(9);
  b_.wait(1);
  static_cast<void>(b_.keeper->step());
  b_.wait(0);
  ASSERT_EQ(cloud_.owner_of(fixed_), b_.mac());
  expect_refused(a_, "other", "and the VpcIpClaim names " + mac_of(9).to_string());
  promise_.mac.reset();
  expect_refused(a_, "none", "and the VpcIpClaim names none; it is not taken from there");
}

TEST_F(Promised, NeverFromUnderAnotherPodThatLives) {
  for (Node* node : {&a_, &b_}) node->claims.all = {fixed_};
  ASSERT_TRUE(give(a_, fixed_, "c1"));
  end(a_, "c1");
  b_.claims.living = {{"web-0", "shop", "uid-c1"}, {"plain", "shop", "u9"}};
  expect_refused(b_, "c2", "shop/plain\" has it, and lives");
  b_.claims.is_away = true;
  expect_refused(b_, "c3", "whether a pod lives by it is not known");
  b_.claims.is_away = false;
  b_.claims.living.pop_back();
  EXPECT_TRUE(give(b_, fixed_, "c4")) << "from its predecessor, which was deleted by force";
}

TEST_F(Promised, WhatAnotherPodKeepsHereIsNotGiven) {
  ASSERT_TRUE(give(a_, fixed_, "c1"));
  end(a_, "c1");
  warm::Request request;
  request.owner = {"net", "c2", "eth0"};
  request.pod = {"web-1", "shop", "uid-c2"};
  const auto refused = a_.keeper->give_promised(promise_, request, Deadline::after(clock_.now(), 60s));
  ASSERT_FALSE(refused);
  EXPECT_THAT(refused.error().message, testing::HasSubstr("kept for pod shop/web-0"));
  EXPECT_EQ(cloud_.owner_of(fixed_), a_.mac());
}

TEST_F(Promised, AMoveThatTheCloudRefusesLeavesItKept) {
  for (Node* node : {&a_, &b_}) node->claims.all = {fixed_};
  ASSERT_TRUE(give(a_, fixed_, "c1"));
  end(a_, "c1");
  int calls = 0;
  cloud_.fate = [&] { return ++calls == 3 ? CallFate::throttled : CallFate::done; };
  ASSERT_FALSE(give(b_, fixed_, "c2"));
  cloud_.fate = [] { return CallFate::done; };
  EXPECT_EQ(a_.keeper->kept_for({"web-0", "shop", ""}), fixed_);
  EXPECT_TRUE(warm::is_waiting_for(*a_.find(fixed_), {"web-0", "shop", ""}));
  EXPECT_EQ(a_.add("other"), "");
  EXPECT_TRUE(give(b_, fixed_, "c3"));
}

TEST_F(Borrowing, AnAgentThatIsStillStartingSaysThatItMovedNothing) {
  Node third(cloud_, clock_, 3);
  third.begin();
  const auto later = Deadline::after(clock_.now(), 10s);
  const auto refused = third.keeper->lend({"r1", a_.mac(), "subnet-1"}, later);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, ErrorCode::exhausted) << "as one that has none to lend now";
  EXPECT_EQ(refused.error().message, "the agent is still starting");
  // The same of one that has not looked at its host yet.
  third.options.looks_first = true;
  third.begin();
  third.wait(1);
  static_cast<void>(third.keeper->step());
  const auto early = third.keeper->lend({"r2", a_.mac(), "subnet-1"}, later);
  ASSERT_FALSE(early);
  EXPECT_EQ(early.error().code, ErrorCode::exhausted) << early.error().message;
}

TEST_F(Promised, FollowsItsPodFromNodeToNode) {
  for (Node* node : {&a_, &b_}) node->claims.all = {fixed_};
  ASSERT_TRUE(give(a_, fixed_, "c1")) << "the cloud has it to give";
  EXPECT_EQ(cloud_.owner_of(fixed_), a_.mac());
  end(a_, "c1");
  EXPECT_EQ(a_.keeper->kept_for({"web-0", "shop", "uid-2"}), fixed_);
  EXPECT_EQ(a_.add("other"), "") << "nobody else gets it";
  a_.settle(20);
  EXPECT_EQ(cloud_.owner_of(fixed_), a_.mac()) << "and it is not given back";
  b_.wire->others[fixed_] = mac_of(9);
  expect_refused(b_, "c2", "answers for it on the wire");
  b_.wire->others[fixed_] = a_.mac();  // as a cloud answers for the interface that has it
  const auto given = give(b_, fixed_, "c2");
  ASSERT_TRUE(given) << given.error().message;
  EXPECT_EQ(given->address.mac, b_.mac());
  EXPECT_EQ(cloud_.owner_of(fixed_), b_.mac());
  a_.settle(130);
  EXPECT_FALSE(a_.find(fixed_)) << "it is another's now";
  EXPECT_TRUE(a_.view().intents.empty() && b_.view().intents.empty());
  b_.wire->others.clear();
  end(b_, "c2");
  ASSERT_TRUE(give(b_, fixed_, "c3"));
  EXPECT_EQ(b_.counts().held, 1U);
}

TEST_F(Promised, AMoveThatNobodyHeardOfIsFoundTheNextTime) {
  for (Node* node : {&a_, &b_}) node->claims.all = {fixed_};
  ASSERT_TRUE(give(a_, fixed_, "c1"));
  end(a_, "c1");
  int calls = 0;
  // The subnet and the address are asked for before it is moved.
  cloud_.fate = [&] { return ++calls == 3 ? CallFate::reply_lost : CallFate::done; };
  const auto lost = give(b_, fixed_, "c2");
  ASSERT_FALSE(lost);
  EXPECT_EQ(lost.error().code, ErrorCode::unknown_outcome);
  cloud_.fate = [] { return CallFate::done; };
  b_.settle(5);
  EXPECT_EQ(b_.counts().free, 0U) << "what came is promised: the stock does not get it";
  const auto given = give(b_, fixed_, "c3");
  ASSERT_TRUE(given) << given.error().message;
  EXPECT_EQ(b_.counts().held, 1U);
}

/// The cloud gave it anew, or moved it, and then something kept it from the pod.
TEST_F(Promised, WhatWasBroughtAndNotGivenWaitsForItsPod) {
  int calls = 0;
  // Nobody has it: described, of the subnet, and allocated.
  cloud_.fate = [&] { return ++calls == 3 ? CallFate::reply_lost : CallFate::done; };
  ASSERT_FALSE(give(a_, fixed_, "c1"));
  cloud_.fate = [] { return CallFate::done; };
  ASSERT_EQ(cloud_.owner_of(fixed_), a_.mac());
  a_.claims.all = b_.claims.all = {fixed_};
  a_.settle(3);
  ASSERT_TRUE(a_.find(fixed_));
  EXPECT_TRUE(warm::is_waiting_for(*a_.find(fixed_), {"web-0", "shop", ""}));
  EXPECT_TRUE(give(a_, fixed_, "c2"));
  end(a_, "c2");
  // Another one of the subnet, which somebody answers for once it is allocated.
  const net::Address other = cloud_.unowned().front();
  a_.wire->others[other] = mac_of(9);
  const auto refused = give(a_, other, "c3");
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, ErrorCode::refused_for_safety);
  EXPECT_EQ(cloud_.owner_of(other), a_.mac());
  ASSERT_TRUE(a_.find(other)) << "what the cloud gave is in the records";
  EXPECT_TRUE(warm::is_waiting_for(*a_.find(other), {"web-0", "shop", ""}));
  EXPECT_TRUE(a_.view().intents.empty());
}

TEST_F(Promised, OnlyWhoAskedTheClusterKnowsThatAPodKeepsNone) {
  const core::PodIdentity pod{"web-0", "shop", "uid-1"};
  warm::Request request;
  request.owner = {"net", "c1", "eth0"};
  request.pod = pod;
  a_.options.marks = {.low = 3, .high = 20};
  begin_both();
  static_cast<void>(a_.keeper->step());
  ASSERT_TRUE(assign_from_stock(a_.context(), request));
  EXPECT_EQ(a_.keeper->is_known_as_fixed(pod), std::nullopt) << "a plugin that worked alone";
  request.owner.container_id = "c2";
  request.extra[warm::kKeepsNoneKey] = "true";
  ASSERT_TRUE(assign_from_stock(a_.context(), request));
  EXPECT_EQ(a_.keeper->is_known_as_fixed(pod), false);
}

TEST_F(Promised, DeathBeforeAnyCallLosesNothing) {
  for (std::int64_t calls = 0; calls < 80; ++calls) {
    a_.begin(calls);
    static_cast<void>(a_.keeper->step());
    a_.claims.all = {fixed_};
    const bool was_given = give(a_, fixed_, "c" + std::to_string(calls)).has_value();
    const bool died = a_.life->is_over;
    a_.begin();
    static_cast<void>(a_.keeper->step());
    const auto again = give(a_, fixed_, "c" + std::to_string(calls));
    ASSERT_TRUE(again) << "dead before call " << calls << ": " << again.error().message;
    EXPECT_EQ(again->was_held || !was_given, true);
    EXPECT_EQ(a_.counts().held, 1U);
    end(a_, "c" + std::to_string(calls));
    a_.settle(3);
    EXPECT_TRUE(a_.view().intents.empty()) << "dead before call " << calls;
    if (!died) return;
  }
  FAIL() << "it never lived to the end";
}

/// It did once: the look had the address, the record said `lent`, and so the call that was not heard of had brought it.
TEST_F(Borrowing, WhatIsLentDuringALookHasNotCome) {
  ask_unheard();
  bool has_looked = false;
  cloud_.after_look = [&] {
    if (std::exchange(has_looked, true)) return;
    // As its own thread does it; it may be told to come again, which takes it five seconds.
    std::thread([&] {
      static_cast<void>(b_.keeper->lend({"r1", a_.mac(), "subnet-1"}, Deadline::after(clock_.now(), 60s)));
    }).join();
  };
  static_cast<void>(b_.keeper->step());
  EXPECT_TRUE(has_looked);
  EXPECT_EQ(b_.recorded(), cloud_.of(b_.mac()));
  b_.settle(2);
  EXPECT_EQ(b_.recorded(), cloud_.of(b_.mac()));
  EXPECT_TRUE(b_.view().intents.empty());
}

/// The same of one that went back to the cloud; no call of this process tells of it.
TEST_F(Borrowing, WhatIsGivenBackDuringALookHasNotCome) {
  ask_unheard();
  const net::Address went = *b_.recorded().begin();
  cloud_.after_look = [&] {
    cloud_.set_owner(went, std::nullopt);
    b_.put(core::warm_address_key(went), std::nullopt);
    cloud_.after_look = [] {};
  };
  static_cast<void>(b_.keeper->step());
  EXPECT_FALSE(b_.find(went)) << "the list had it, and the cloud has it not any more";
  EXPECT_TRUE(b_.view().intents.empty());
}

TEST_F(Borrowing, DeathOfEitherBeforeAnyCall) {
  for (const bool is_borrower : {true, false}) {
    for (std::int64_t calls = 0; calls < 30; ++calls) {
      cloud_ = TestCloud(4);
      a_.store.set_faults({});
      Node a(cloud_, clock_, 1), b(cloud_, clock_, 2);
      for (Node* node : {&a, &b}) node->options.marks = {.low = 0, .high = 20};
      b.begin();
      b.wait(4);
      static_cast<void>(b.keeper->step());
      b.begin(is_borrower ? std::int64_t{1} << 60 : calls);
      static_cast<void>(b.keeper->step());
      a.begin(is_borrower ? calls : std::int64_t{1} << 60);
      a.peers.keepers = {{"node-2", b.keeper.get()}};
      a.peers.said = {{"node-2", 4}};
      a.wait(1);
      static_cast<void>(a.keeper->step());
      const bool died = (is_borrower ? a : b).life->is_over;
      a.begin();
      b.begin();
      a.peers.keepers = {{"node-2", b.keeper.get()}};
      a.settle(6);
      b.settle(6);
      const std::string when =
          (is_borrower ? "borrower" : "lender") + std::string(" dead before call ") + std::to_string(calls);
      EXPECT_EQ(a.recorded(), cloud_.of(a.mac())) << when;
      EXPECT_EQ(b.recorded(), cloud_.of(b.mac())) << when;
      EXPECT_EQ(a.recorded().size() + b.recorded().size(), 4U) << when;
      EXPECT_TRUE(a.view().intents.empty()) << when;
      if (!died) break;
      ASSERT_LT(calls, 29) << "it never lived to the end";
    }
  }
}

}  // namespace
}  // namespace croft::engine
