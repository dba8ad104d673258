// A StockKeeper whose records are lost or damaged.

#include <set>

#include <gtest/gtest.h>

#include "vpc/use/test_stock_node.h"

namespace croft::engine {
namespace {

using namespace std::chrono_literals;
using core::WarmState;
namespace warm = core::warm;

class LostRecordsTest : public StockKeeperTest {
 protected:
  /// Two pods, one that only the host knows of, and three that are free.
  LostRecordsTest() {
    node_.options.marks = {.low = 6, .high = 8};
    node_.begin();
    static_cast<void>(node_.keeper->step());
    web_ = net::Address::parse(node_.add("web")).value();
    db_ = net::Address::parse(node_.add("db")).value();
    old_ = net::Address::parse(node_.add("old")).value();
    std::erase_if(node_.pods.all, [](const NodePods::Pod& pod) { return pod.pod.name == "old"; });
    before_ = cloud_.of(node_.mac());
  }
  void lose() {
    node_.keeper.reset();
    node_.lose_records();
    node_.begin();
  }
  void pass(std::chrono::seconds span) {
    for (auto left = span; left.count() > 0; left -= 5s) {
      clock_.advance(5s);
      static_cast<void>(node_.keeper->step());
    }
  }
  net::Address web_, db_, old_;
  std::set<net::Address> before_;
};

TEST_F(LostRecordsTest, AreKnownAgainFromTheCloudThePodsAndTheHost) {
  lose();
  static_cast<void>(node_.keeper->step());
  pass(55s);
  for (const net::Address& address : before_) EXPECT_FALSE(node_.find(address)) << address.to_string();
  const std::string first = node_.add("new");
  EXPECT_NE(first, "") << "pods are served meanwhile, from what the cloud gives anew";
  EXPECT_FALSE(before_.contains(net::Address::parse(first).value()));
  pass(180s);
  ASSERT_TRUE(node_.find(web_));
  EXPECT_EQ(node_.find(web_)->state, WarmState::held);
  EXPECT_EQ(node_.find(web_)->pod.name, "web");
  EXPECT_EQ(node_.find(db_)->state, WarmState::held);
  ASSERT_TRUE(node_.find(old_));
  EXPECT_EQ(node_.find(old_)->state, WarmState::quarantined) << "the host uses it, and nobody says for whom";
  EXPECT_TRUE(node_.view().intents.empty());
  EXPECT_EQ(node_.recorded(), cloud_.of(node_.mac())) << "nothing has leaked";
  EXPECT_EQ(node_.keeper->tally().rebuilt, before_.size() - 1) << "all but what the host uses";
  EXPECT_EQ(node_.del("web"), 1U) << "by the pod's name";
  node_.host.used.insert(web_);
  pass(30s);
  EXPECT_FALSE(node_.find(web_)->doubts.empty()) << "another sandbox may live by it: the host uses it still";
  node_.host.used.erase(web_);
  pass(240s);
  const auto after = node_.find(web_);
  EXPECT_TRUE(!after || after->doubts.empty()) << "the pod is gone, and the host does not use it";
}

TEST_F(LostRecordsTest, NoneIsTakenInWhileASourceIsSilent) {
  lose();
  node_.pods.is_away = true;
  pass(300s);
  for (const net::Address& address : before_) EXPECT_FALSE(node_.find(address)) << address.to_string();
  EXPECT_EQ(node_.view().intents.size(), 1U);
  node_.pods.is_away = false;
  node_.host.is_away = true;
  pass(300s);
  EXPECT_FALSE(node_.find(*before_.rbegin())) << "the pods' are recorded, no more";
  EXPECT_EQ(node_.view().intents.size(), 1U);
  node_.host.is_away = false;
  pass(300s);
  EXPECT_TRUE(node_.view().intents.empty());
  EXPECT_EQ(node_.recorded(), cloud_.of(node_.mac()));
}

TEST_F(LostRecordsTest, APodThatEndsMeanwhileLeavesARest) {
  node_.options.cooldown = 300s;
  lose();
  pass(30s);
  EXPECT_EQ(node_.del("web"), 0U) << "there is no record yet";
  node_.host.used.erase(web_);
  const auto ended = clock_.now().since_boot;
  while (!node_.find(web_) || node_.find(web_)->state != WarmState::free) {
    pass(5s);
    ASSERT_LT(clock_.now().since_boot - ended, 1000s);
  }
  EXPECT_GE(clock_.now().since_boot - ended, 300s) << "the cooldown";
}

TEST_F(LostRecordsTest, AnAgentThatDiesAnywhereBeginsAgain) {
  lose();
  for (int calls = 0; calls < 60; ++calls) {
    node_.begin(calls);
    pass(90s);
  }
  node_.begin();
  pass(300s);
  EXPECT_TRUE(node_.view().intents.empty());
  EXPECT_EQ(node_.find(web_)->state, WarmState::held);
  EXPECT_EQ(node_.find(db_)->state, WarmState::held);
  EXPECT_EQ(node_.find(old_)->state, WarmState::quarantined);
  EXPECT_EQ(node_.recorded(), cloud_.of(node_.mac()));
}

TEST_F(LostRecordsTest, AClaimedAddressIsTheClaims) {
  const net::Address fixed = *before_.rbegin();
  ASSERT_FALSE(node_.host.used.contains(fixed));
  node_.claims.all = {fixed, web_};
  lose();
  node_.claims.is_away = true;
  pass(300s);
  for (const net::Address& address : before_) EXPECT_FALSE(node_.find(address)) << "claims are not known";
  EXPECT_EQ(node_.view().intents.size(), 1U) << "it waits for them";
  ASSERT_FALSE(node_.keeper->unused({}));
  EXPECT_NE(node_.keeper->unused({}).error().message.find("whether claims name"), std::string::npos);
  node_.claims.is_away = false;
  pass(300s);
  EXPECT_FALSE(node_.find(fixed)) << "its pod may come back";
  EXPECT_FALSE(node_.find(web_));
  EXPECT_EQ(node_.find(db_)->state, WarmState::held);
  EXPECT_TRUE(node_.view().intents.empty());
  const auto unused = node_.keeper->unused({});
  ASSERT_TRUE(unused);
  for (const auto& one : *unused) EXPECT_NE(one.address, fixed) << "no operator is shown it as nobody's";
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
  EXPECT_EQ(node_.find(stray)->state, WarmState::quarantined);
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
