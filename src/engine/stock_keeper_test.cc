#include "engine/stock_keeper.h"

#include <map>
#include <memory>
#include <set>
#include <thread>
#include <utility>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/manual_clock.h"
#include "engine/test_cloud.h"
#include "engine/warm_stock.h"
#include "store/memory/memory_store.h"

namespace croft::engine {
namespace {

using namespace std::chrono_literals;
using core::WarmState;
namespace warm = core::warm;

net::Mac mac_of(int node) { return net::Mac::parse("52:54:00:00:00:0" + std::to_string(node)).value(); }

/// Asks the agents it is told of, and may lose their answers.
class TestPeers final : public PeerAgents {
 public:
  std::map<std::string, StockKeeper*> keepers;
  std::map<std::string, std::uint32_t> said;
  bool loses_replies = false;
  int asked = 0;
  [[nodiscard]] Result<std::vector<Peer>> peers(const std::string& subnet, Deadline) override {
    std::vector<Peer> all;
    for (const auto& [node, free] : said) all.push_back({node, node + ":7312", subnet, free});
    return all;
  }
  [[nodiscard]] Result<cloud::CloudAddress> borrow(const Peer& peer, const net::Mac& mac, const std::string& subnet,
                                                   const std::string& request, Deadline deadline) override {
    ++asked;
    const auto keeper = keepers.find(peer.node);
    if (keeper == keepers.end()) return fail(ErrorCode::unavailable, peer.node + " does not answer");
    const auto lent = keeper->second->lend({request, mac, subnet}, deadline);
    if (loses_replies) return fail(ErrorCode::unknown_outcome, "no reply");
    if (!lent) return fail(lent.error());
    cloud::CloudAddress address;
    address.address = lent->address;
    address.prefix_length = lent->prefix_length;
    address.mac = mac;
    address.vpc = lent->vpc;
    address.subnet = lent->subnet;
    return address;
  }
};

/// One node with its agent, which can die and begin again on what it wrote.
class Node {
 public:
  Node(TestCloud& cloud, ManualClock& clock, int number) : cloud_(cloud), clock_(clock), number_(number) {}
  void begin(std::int64_t calls = std::int64_t{1} << 60) {
    keeper.reset();
    life = std::make_unique<Life>();
    life->calls_left = calls;
    mortal_ = std::make_unique<MortalStore>(store, *life);
    provider_ = std::make_unique<TestProvider>(cloud_, mac(), *life);
    auto others = wire ? wire->others : std::map<net::Address, net::Mac>();
    wire = std::make_unique<TestWire>(*life);
    wire->others = std::move(others);
    options.node = "node-" + std::to_string(number_);
    options.process = ++process_;
    KeeperWorld world{*mortal_, clock_, random, *provider_};
    world.probe = probes ? wire.get() : nullptr;
    world.peers = liar != nullptr ? liar : &peers;
    world.host = &host;
    world.pods = &pods;
    world.claims = &claims;
    world.is_alive = [](std::uint32_t, std::uint64_t) { return false; };
    world.log = [this](const std::string& line) { log.push_back(line); };
    world.stocked = [] {};
    world.conflicted = [this](const core::WarmAddress& address) { conflicts.push_back(address); };
    keeper = std::make_unique<StockKeeper>(world, options);
  }
  [[nodiscard]] net::Mac mac() const { return mac_of(number_); }
  [[nodiscard]] Context context() { return {store, clock_, random}; }
  [[nodiscard]] std::string add(const std::string& container) {
    warm::Request request;
    request.owner = {"net", container, "eth0"};
    request.pod = {container, "shop", ""};
    request.cooldown = options.cooldown;
    const auto answer = assign_from_stock(context(), request);
    EXPECT_TRUE(answer) << answer.error().message;
    const auto* assigned = answer ? std::get_if<warm::Assigned>(&*answer) : nullptr;
    if (assigned == nullptr) return "";
    host.used.insert(assigned->address.address);
    if (!assigned->was_held) pods.all.push_back({{container, "shop", ""}, {assigned->address.address}, false, false});
    return assigned->address.address.to_string();
  }
  std::size_t del(const std::string& container) {
    warm::Release release;
    release.owner = {"net", container, "eth0"};
    release.pod = {container, "shop", ""};
    release.cooldown = options.cooldown;
    const auto let_go = release_to_stock(context(), release);
    EXPECT_TRUE(let_go) << let_go.error().message;
    for (const auto& one : *let_go) host.used.erase(one.address);
    std::erase_if(pods.all, [&](const NodePods::Pod& pod) { return pod.pod.name == container; });
    return let_go->size();
  }
  [[nodiscard]] StockView view() {
    auto view = view_stock(context());
    EXPECT_TRUE(view) << view.error().message;
    return view ? *std::move(view) : StockView{};
  }
  [[nodiscard]] warm::Counts counts() {
    warm::Counts counts;
    for (const auto& one : view().addresses) warm::count(counts, one, clock_.now());
    return counts;
  }
  /// What the records say lies on the interface.
  [[nodiscard]] std::set<net::Address> recorded() {
    std::set<net::Address> addresses;
    for (const auto& one : view().addresses) {
      if (one.state != WarmState::lent) addresses.insert(one.address);
    }
    return addresses;
  }
  /// As it is when a damaged store was set aside: all records are gone.
  void lose_records() {
    std::vector<store::Write> writes;
    for (const auto& one : view().addresses) {
      writes.push_back({core::warm_address_key(one.address), std::nullopt, store::Condition::always()});
    }
    for (const auto& one : view().intents) {
      writes.push_back({core::warm_intent_key(one.id), std::nullopt, store::Condition::always()});
    }
    writes.push_back({core::warm_node_key(), std::nullopt, store::Condition::always()});
    for (const store::Write& write : writes) {
      const auto gone = store.commit({&write, 1}, {}, Deadline::after(clock_.now(), 30s));
      EXPECT_TRUE(gone) << gone.error().message;
    }
    const auto begun = begin_rebuild(context());
    EXPECT_TRUE(begun) << begun.error().message;
  }
  /// As it is when an older copy of the store's files was put back.
  void put_back(const StockView& then) {
    for (const auto& one : view().addresses) {
      const store::Write write{core::warm_address_key(one.address), std::nullopt, store::Condition::always()};
      EXPECT_TRUE(store.commit({&write, 1}, {}, Deadline::after(clock_.now(), 30s)));
    }
    for (const auto& one : view().intents) {
      const store::Write write{core::warm_intent_key(one.id), std::nullopt, store::Condition::always()};
      EXPECT_TRUE(store.commit({&write, 1}, {}, Deadline::after(clock_.now(), 30s)));
    }
    std::vector<store::Write> writes;
    for (const auto& one : then.addresses) {
      writes.push_back({core::warm_address_key(one.address), core::Value(one), store::Condition::always()});
    }
    for (const auto& one : then.intents) {
      writes.push_back({core::warm_intent_key(one.id), core::Value(one), store::Condition::always()});
    }
    for (const store::Write& write : writes) {
      EXPECT_TRUE(store.commit({&write, 1}, {}, Deadline::after(clock_.now(), 30s)));
    }
  }
  [[nodiscard]] std::optional<core::WarmAddress> find(const net::Address& address) {
    for (const auto& one : view().addresses) {
      if (one.address == address) return one;
    }
    return std::nullopt;
  }
  /// Rounds, with time between them, until whatever was left is settled.
  void settle(int rounds = 12) {
    for (int i = 0; i < rounds; ++i) {
      static_cast<void>(keeper->step());
      clock_.advance(31s);
    }
  }

  store::MemoryStore store;
  SeededRandom random{7};
  KeeperOptions options;
  TestHost host;
  TestPods pods;
  TestClaims claims;
  TestPeers peers;
  PeerAgents* liar = nullptr;  ///< in the place of `peers`
  bool probes = true;
  std::unique_ptr<Life> life;
  std::unique_ptr<TestWire> wire;
  std::unique_ptr<StockKeeper> keeper;
  std::vector<std::string> log;
  std::vector<core::WarmAddress> conflicts;

 private:
  TestCloud& cloud_;
  ManualClock& clock_;
  const int number_;
  std::uint32_t process_ = 0;
  std::unique_ptr<MortalStore> mortal_;
  std::unique_ptr<TestProvider> provider_;
};

class StockKeeperTest : public testing::Test {
 protected:
  StockKeeperTest() { node_.begin(); }
  ManualClock clock_;
  TestCloud cloud_{20};
  Node node_{cloud_, clock_, 1};
};

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
  EXPECT_TRUE(node_.keeper->trouble());
  cloud_.fate = [] { return CallFate::done; };
  node_.settle(3);
  EXPECT_GE(node_.counts().free, 3U);
}

TEST_F(StockKeeperTest, WhatAnotherHasIsQuarantinedWithItsMac) {
  const net::Address first = cloud_.unowned().front();
  node_.wire->others[first] = mac_of(9);
  node_.settle(2);
  const auto view = node_.view();
  const auto found = std::ranges::find(view.addresses, first, &core::WarmAddress::address);
  ASSERT_NE(found, view.addresses.end());
  EXPECT_EQ(found->state, WarmState::quarantined);
  EXPECT_EQ(found->other_mac, mac_of(9));
  EXPECT_EQ(node_.counts().free, 3U) << "another one is asked for";
  EXPECT_EQ(node_.keeper->tally().conflicts, 1U);
  ASSERT_EQ(node_.conflicts.size(), 1U) << "who tells the node is told once";
  EXPECT_EQ(node_.conflicts.front(), *found);
}

TEST_F(StockKeeperTest, TheSurplusGoesBack) {
  node_.options.marks = {.low = 5, .high = 5};
  node_.begin();
  static_cast<void>(node_.keeper->step());
  ASSERT_EQ(node_.counts().free, 5U);
  node_.options.marks = {.low = 0, .high = 2};
  node_.begin();
  node_.settle(4);
  EXPECT_EQ(node_.counts().free, 2U);
  EXPECT_EQ(cloud_.of(node_.mac()).size(), 2U);
}

TEST_F(StockKeeperTest, WhoWaitsIsServedWithBothMarksZero) {
  node_.options.marks = {.low = 0, .high = 0};
  node_.begin();
  static_cast<void>(node_.keeper->step());
  EXPECT_EQ(node_.counts().free, 0U);
  node_.keeper->set_waiting(2);
  static_cast<void>(node_.keeper->step());
  EXPECT_EQ(node_.counts().free, 2U);
}

TEST_F(StockKeeperTest, AnAddressDeletedBehindOurBackLeavesTheStock) {
  static_cast<void>(node_.keeper->step());
  cloud_.set_owner(*node_.recorded().begin(), std::nullopt);
  node_.settle(8);
  EXPECT_EQ(node_.recorded(), cloud_.of(node_.mac()));
  EXPECT_EQ(node_.counts().free, 3U);
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
  node_.keeper->look_before_serving(Deadline::after(clock_.now(), 5s), 1s);
  EXPECT_EQ(node_.find(web_)->doubts, std::vector{core::WarmDoubt::used_by_host});
  EXPECT_EQ(node_.counts().free, 2U) << "all others are served";
  expect_never_given();
}

TEST_F(OlderCopyTest, APodsWordCountsWhereTheHostIsSilent) {
  node_.host.is_away = true;
  node_.begin();
  node_.keeper->look_before_serving(Deadline::after(clock_.now(), 5s), 1s);
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
  node_.keeper->look_before_serving(Deadline::after(clock_.now(), 5s), 1s);
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
  node_.keeper->look_before_serving(Deadline::after(clock_.now(), 5s), 1s);
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
  node_.pods.all.push_back({{"web", "shop", ""}, {used}, false, false});
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

TEST_F(StockKeeperTest, WhatTheCloudGivesAndNoPodMayHaveIsQuarantined) {
  node_.options.marks = {.low = 3, .high = 3};
  node_.probes = false;
  node_.begin();
  const std::vector<net::Address> next = cloud_.unowned();
  cloud_.range = net::Prefix::parse("10.9.0.11/32").value();
  node_.host.used = {next[1]};
  static_cast<void>(node_.keeper->step());
  EXPECT_EQ(node_.counts().free, 0U);
  EXPECT_EQ(node_.counts().quarantined, 3U);
  EXPECT_EQ(node_.keeper->tally().refused, 3U);
  EXPECT_THAT(node_.find(next[0])->why, testing::HasSubstr("not of the node's subnet"));
  EXPECT_THAT(node_.find(next[1])->why, testing::HasSubstr("the host uses it"));
  EXPECT_EQ(node_.add("c1"), "");
  const auto taken = cloud_.of(node_.mac()).size();
  static_cast<void>(node_.keeper->step());
  EXPECT_EQ(cloud_.of(node_.mac()).size(), taken) << "a cloud that gives such is not asked again at once";
}

TEST_F(StockKeeperTest, ACloudThatDoesNotTellItsSubnetServesAllTheSame) {
  int calls = 0;
  cloud_.fate = [&] { return ++calls == 2 ? CallFate::away : CallFate::done; };  // the question behind the first answer
  static_cast<void>(node_.keeper->step());
  EXPECT_EQ(node_.counts().free, 3U);
  EXPECT_TRUE(std::ranges::any_of(node_.log, [](const auto& line) { return line.find("its subnet") != line.npos; }));
}

TEST_F(StockKeeperTest, ALostReplyIsNotAskedAgain) {
  int calls = 0;
  cloud_.fate = [&] { return ++calls == 1 ? CallFate::reply_lost : CallFate::done; };
  static_cast<void>(node_.keeper->step());
  node_.settle(4);
  EXPECT_EQ(node_.recorded(), cloud_.of(node_.mac()));
  EXPECT_EQ(node_.counts().free, 3U);
  EXPECT_EQ(cloud_.of(node_.mac()).size(), 3U);
  EXPECT_TRUE(node_.view().intents.empty());
}

class ReleasedAgainTest : public StockKeeperTest {
 protected:
  /// One is to be released, and nobody hears of it.
  ReleasedAgainTest() {
    node_.options.marks = {.low = 2, .high = 20};
    node_.begin();
    static_cast<void>(node_.keeper->step());
    address_ = *node_.recorded().begin();
    cloud_.fate = [] { return CallFate::reply_lost; };
    EXPECT_FALSE(node_.keeper->pop(address_, {}));
    cloud_.fate = [] { return CallFate::done; };
    EXPECT_FALSE(cloud_.owner_of(address_));
    EXPECT_EQ(node_.find(address_)->state, WarmState::releasing);
  }
  net::Address address_;
};

TEST_F(ReleasedAgainTest, WhatAnotherNodeHasByThenIsItsOwn) {
  cloud_.set_owner(address_, mac_of(2));
  const int before = cloud_.releases;
  node_.settle(4);
  EXPECT_EQ(cloud_.releases, before) << "a cloud may go by the address alone";
  EXPECT_EQ(cloud_.owner_of(address_), mac_of(2));
  EXPECT_FALSE(node_.find(address_));
}

TEST_F(ReleasedAgainTest, WhatCameBackAndIsUsedStays) {
  cloud_.set_owner(address_, node_.mac());
  node_.host.used.insert(address_);
  node_.pods.all.push_back({{"web", "shop", ""}, {address_}, false, false});
  node_.host.is_away = true;
  node_.settle(4);
  EXPECT_EQ(cloud_.owner_of(address_), node_.mac()) << "whether it is used is not known";
  node_.host.is_away = false;
  node_.settle(12);
  EXPECT_EQ(cloud_.owner_of(address_), node_.mac());
  EXPECT_EQ(node_.find(address_)->state, WarmState::held);
}

TEST_F(ReleasedAgainTest, WhatTheCloudStillHasHereGoes) {
  cloud_.set_owner(address_, node_.mac());
  node_.settle(4);
  EXPECT_FALSE(cloud_.owner_of(address_));
  EXPECT_FALSE(node_.find(address_));
}

TEST_F(StockKeeperTest, WhatTheHostUsesIsNotGivenBack) {
  static_cast<void>(node_.keeper->step());
  const net::Address used = *node_.recorded().begin();
  node_.host.used.insert(used);
  const auto popped = node_.keeper->pop(used, {});
  ASSERT_FALSE(popped);
  EXPECT_EQ(popped.error().code, ErrorCode::refused_for_safety);
  EXPECT_EQ(cloud_.owner_of(used), node_.mac());
  EXPECT_EQ(node_.find(used)->doubts, std::vector{core::WarmDoubt::used_by_host}) << "nor is it given to a pod";
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

// ---- borrowing

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
    b_.keeper->set_waiting(4);
    static_cast<void>(b_.keeper->step());
    b_.keeper->set_waiting(0);
    ASSERT_EQ(b_.counts().free, 4U);
    a_.peers.said = {{"node-2", 4}};
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
  a_.keeper->set_waiting(1);
  static_cast<void>(a_.keeper->step());
  EXPECT_EQ(a_.counts().free, 1U);
  EXPECT_EQ(b_.counts().free, 3U);
  EXPECT_NE(a_.add("c1"), "");
  expect_one_owner_each("at once");
}

/// Lends what it does not have, or not to us.
class Liar final : public PeerAgents {
 public:
  cloud::CloudAddress says;
  [[nodiscard]] Result<std::vector<Peer>> peers(const std::string& subnet, Deadline) override {
    return std::vector<Peer>{{"node-9", "node-9:7312", subnet, 1}};
  }
  [[nodiscard]] Result<cloud::CloudAddress> borrow(const Peer&, const net::Mac&, const std::string&, const std::string&,
                                                   Deadline) override {
    return says;
  }
};

TEST_F(Borrowing, ALendersWordIsNoProof) {
  fill_b();
  ASSERT_NE(b_.add("b1"), "");
  Liar liar;
  liar.says.address = *b_.host.used.begin();
  liar.says.prefix_length = 16;
  liar.says.mac = a_.mac();
  liar.says.subnet = "subnet-1";
  a_.liar = &liar;
  a_.begin();
  const auto ask = [&] {
    a_.keeper->set_waiting(1);
    static_cast<void>(a_.keeper->step());
    a_.keeper->set_waiting(0);
  };
  ask();
  EXPECT_EQ(a_.add("c1"), "") << "the cloud has it at the other node";
  EXPECT_TRUE(a_.recorded().empty());
  EXPECT_EQ(a_.keeper->tally().borrowed, 0U);
  ASSERT_TRUE(a_.keeper->trouble());
  EXPECT_THAT(a_.keeper->trouble()->message, testing::HasSubstr("node-9 says that it lent"));
  // What is ours, and no pod's to have.
  cloud_.set_owner(liar.says.address, a_.mac());
  a_.host.used.insert(liar.says.address);
  a_.settle(6);
  ask();
  EXPECT_EQ(a_.add("c2"), "");
  a_.host.used.clear();
}

TEST_F(Borrowing, FillingNeverBorrows) {
  fill_b();
  a_.options.marks = {.low = 3, .high = 20};
  begin_both();
  static_cast<void>(a_.keeper->step());
  EXPECT_EQ(a_.peers.asked, 0);
  EXPECT_EQ(a_.counts().free, 0U);
}

TEST_F(Borrowing, TheRichestFirstAndTheDeadOnePassedOver) {
  fill_b();
  a_.peers.said = {{"node-2", 4}, {"node-9", 7}, {"node-8", 0}};
  a_.keeper->set_waiting(1);
  static_cast<void>(a_.keeper->step());
  EXPECT_EQ(a_.peers.asked, 2);
  EXPECT_EQ(a_.counts().free, 1U);
}

TEST_F(Borrowing, NobodyHasAny) {
  fill_b();
  for (int i = 0; i < 4; ++i) ASSERT_NE(b_.add("b" + std::to_string(i)), "");
  a_.keeper->set_waiting(1);
  static_cast<void>(a_.keeper->step());
  EXPECT_EQ(a_.counts().free, 0U);
  ASSERT_TRUE(a_.keeper->trouble());
  EXPECT_EQ(a_.keeper->trouble()->code, ErrorCode::exhausted);
  EXPECT_TRUE(a_.view().intents.empty());
}

TEST_F(Borrowing, ALostReplyIsFoundByAskingTheCloud) {
  fill_b();
  a_.peers.loses_replies = true;
  a_.keeper->set_waiting(1);
  static_cast<void>(a_.keeper->step());
  EXPECT_EQ(a_.counts().free, 0U);
  a_.peers.loses_replies = false;
  a_.settle(2);
  EXPECT_GE(a_.counts().free, 1U);
  expect_one_owner_each("afterwards");
}

TEST_F(Borrowing, TheMovesReplyIsLost) {
  fill_b();
  int calls = 0;
  // The lender's move is the second call of the cloud from here on: the first is the borrower's own question.
  cloud_.fate = [&] { return ++calls == 2 ? CallFate::reply_lost : CallFate::done; };
  a_.keeper->set_waiting(1);
  static_cast<void>(a_.keeper->step());
  a_.keeper->set_waiting(0);
  a_.settle(3);
  b_.settle(3);
  expect_one_owner_each("afterwards");
  EXPECT_EQ(a_.recorded().size() + b_.recorded().size(), 4U);
}

// ---- pods that keep their address (engine/stock_promised.cc)

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
    const auto given = node.keeper->give_promised(address, request, Deadline::after(clock_.now(), 60s));
    if (given) node.host.used.insert(address);
    if (given) node.pods.all.push_back({request.pod, {address}, false, false});
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
  const net::Address fixed_ = cloud_.unowned().front();
};

TEST_F(Promised, FollowsItsPodFromNodeToNode) {
  for (Node* node : {&a_, &b_}) node->claims.all = {fixed_};
  ASSERT_TRUE(give(a_, fixed_, "c1")) << "the cloud has it to give";
  EXPECT_EQ(cloud_.owner_of(fixed_), a_.mac());
  end(a_, "c1");
  EXPECT_EQ(a_.keeper->kept_for({"web-0", "shop", "uid-2"}), fixed_);
  EXPECT_EQ(a_.add("other"), "") << "nobody else gets it";
  a_.settle(20);
  EXPECT_EQ(cloud_.owner_of(fixed_), a_.mac()) << "and it is not given back";
  const auto given = give(b_, fixed_, "c2");
  ASSERT_TRUE(given) << given.error().message;
  EXPECT_EQ(given->address.mac, b_.mac());
  EXPECT_EQ(cloud_.owner_of(fixed_), b_.mac());
  a_.settle(20);
  EXPECT_FALSE(a_.find(fixed_)) << "it is another's now";
  EXPECT_TRUE(a_.view().intents.empty() && b_.view().intents.empty());
  end(b_, "c2");
  ASSERT_TRUE(give(b_, fixed_, "c3"));
  EXPECT_EQ(b_.counts().held, 1U);
}

TEST_F(Promised, AMoveThatNobodyHeardOfIsFoundTheNextTime) {
  for (Node* node : {&a_, &b_}) node->claims.all = {fixed_};
  ASSERT_TRUE(give(a_, fixed_, "c1"));
  end(a_, "c1");
  int calls = 0;
  cloud_.fate = [&] { return ++calls == 2 ? CallFate::reply_lost : CallFate::done; };
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

TEST_F(Promised, WhatAnswersOnTheWireIsNotGiven) {
  a_.wire->others[fixed_] = mac_of(9);
  const auto refused = give(a_, fixed_, "c1");
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, ErrorCode::refused_for_safety);
  EXPECT_EQ(a_.counts().held, 0U);
  EXPECT_TRUE(a_.view().intents.empty());
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
  fill_b();
  cloud_.fate = [] { return CallFate::request_lost; };
  b_.keeper->set_waiting(5);
  static_cast<void>(b_.keeper->step());
  b_.keeper->set_waiting(0);
  cloud_.fate = [] { return CallFate::done; };
  ASSERT_EQ(b_.view().intents.size(), 1U);
  clock_.advance(61s);
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

TEST_F(Borrowing, DeathOfEitherBeforeAnyCall) {
  for (const bool is_borrower : {true, false}) {
    for (std::int64_t calls = 0; calls < 30; ++calls) {
      cloud_ = TestCloud(4);
      a_.store.set_faults({});
      Node a(cloud_, clock_, 1), b(cloud_, clock_, 2);
      for (Node* node : {&a, &b}) node->options.marks = {.low = 0, .high = 20};
      b.begin();
      b.keeper->set_waiting(4);
      static_cast<void>(b.keeper->step());
      b.begin(is_borrower ? std::int64_t{1} << 60 : calls);
      static_cast<void>(b.keeper->step());
      a.begin(is_borrower ? calls : std::int64_t{1} << 60);
      a.peers.keepers = {{"node-2", b.keeper.get()}};
      a.peers.said = {{"node-2", 4}};
      a.keeper->set_waiting(1);
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

// ---- records that are lost

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
  EXPECT_EQ(node_.del("web"), 0U) << "which of its sandboxes has it nobody knows";
  pass(30s);
  EXPECT_EQ(node_.find(web_)->state, WarmState::held) << "the host uses it still";
  node_.host.used.erase(web_);
  pass(240s);
  const auto after = node_.find(web_);
  EXPECT_FALSE(after && after->state == WarmState::held) << "the pod is gone, and the host does not use it";
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
  lose();
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
  const auto released = node_.keeper->release_unused({damaged}, {});
  ASSERT_FALSE(released);
  EXPECT_EQ(released.error().code, ErrorCode::refused_for_safety);
  for (int i = 0; i < 12; ++i) {
    EXPECT_NE(node_.add("c" + std::to_string(i)), damaged.to_string());
    static_cast<void>(node_.keeper->step());
  }
  EXPECT_EQ(cloud_.owner_of(damaged), node_.mac());
}

// ---- everything together

/// Three nodes, pods that come and go, a cloud that loses, throttles and is away, addresses that somebody deletes,
/// agents that die anywhere, wall clocks that jump, records that are lost.
void live(std::uint64_t seed) {
  SCOPED_TRACE("seed " + std::to_string(seed));
  SeededRandom random(seed);
  const auto below = [&](std::uint64_t limit) { return random.next() % limit; };
  ManualClock clock;
  TestCloud cloud(12);
  std::vector<std::unique_ptr<Node>> nodes;
  for (int i = 1; i <= 3; ++i) {
    nodes.push_back(std::make_unique<Node>(cloud, clock, i));
    nodes.back()->options.marks = {.low = static_cast<std::uint32_t>(below(4)), .high = 4};
    nodes.back()->options.reconcile.missing_grace = 600s;
    nodes.back()->random = SeededRandom(seed * 3 + static_cast<std::uint64_t>(i));
  }
  const auto begin = [&](Node& node) {
    node.begin(below(3) == 0 ? static_cast<std::int64_t>(below(30)) : std::int64_t{1} << 60);
    for (auto& other : nodes) {
      other->peers.keepers.clear();
      for (std::size_t i = 0; i < nodes.size(); ++i) {
        if (nodes[i] == other || !nodes[i]->keeper || nodes[i]->life->is_over) continue;
        other->peers.keepers["node-" + std::to_string(i + 1)] = nodes[i]->keeper.get();
      }
    }
  };
  for (auto& node : nodes) begin(*node);
  std::map<std::string, std::pair<std::size_t, net::Address>> holders;
  std::map<net::Address, std::chrono::nanoseconds> rests_until;
  std::set<net::Address> stolen;
  std::set<std::string> unrecorded;  ///< containers of before their node's records were lost, or that older ones name
  std::map<std::size_t, StockView> copies;
  for (int step = 0; step < 150; ++step) {
    const std::size_t which = below(nodes.size());
    Node& node = *nodes[which];
    const std::string container = std::to_string(which) + "-" + std::to_string(below(5));
    const std::uint64_t trouble = below(10);
    cloud.fate = [&, trouble] {
      if (trouble > 4) return CallFate::done;
      return static_cast<CallFate>(below(8) < 5 ? 0 : below(6));
    };
    switch (below(8)) {
      case 0:
      case 1: {
        if (unrecorded.contains(container)) break;  // no runtime adds one twice
        const std::string got = node.add(container);
        if (got.empty()) {
          node.keeper->set_waiting(1);
          break;
        }
        node.keeper->set_waiting(0);
        const net::Address address = net::Address::parse(got).value();
        const auto before = holders.find(container);
        if (before != holders.end()) {
          ASSERT_EQ(before->second.second, address) << "step " << step;
          break;
        }
        // What somebody takes away in the cloud's console, and another node gets, is found out a look later only.
        if (!stolen.contains(address)) {
          for (const auto& [who, what] : holders) {
            ASSERT_NE(what.second, address) << "two holders, step " << step << ", " << who;
          }
          ASSERT_EQ(cloud.owner_of(address), node.mac()) << "step " << step;
        }
        const auto rest = rests_until.find(address);
        if (rest != rests_until.end() && !stolen.contains(address)) {
          ASSERT_LE(rest->second, clock.now().since_boot) << "reused too early, step " << step;
        }
        holders[container] = {which, address};
        break;
      }
      case 2: {
        const auto held = holders.find(container);
        const bool may_be_unrecorded = unrecorded.erase(container) > 0;
        const std::size_t let_go = node.del(container);
        // What an older copy has for a container may be another's by now, and the host uses it as before.
        for (const auto& [who, what] : holders) {
          if (what.first == which && who != container) node.host.used.insert(what.second);
        }
        if (may_be_unrecorded && held != holders.end()) node.host.used.erase(held->second.second);
        if (!may_be_unrecorded) {
          ASSERT_EQ(let_go, held == holders.end() ? 0U : 1U) << "step " << step;
        }
        if (held != holders.end()) {
          rests_until[held->second.second] = clock.now().since_boot + node.options.cooldown;
          holders.erase(held);
        }
        break;
      }
      case 3:
      case 4:
      case 5:
        for (std::size_t i = 0; i < nodes.size(); ++i) {
          for (auto& other : nodes) other->peers.said["node-" + std::to_string(i + 1)] = nodes[i]->counts().free;
        }
        static_cast<void>(node.keeper->step());
        if (node.life->is_over) begin(node);
        break;
      case 6:
        cloud.catch_up();  // no cloud is later than the doubt
        clock.advance(std::chrono::seconds{below(40)});
        if (below(4) == 0) clock.jump_wall(std::chrono::minutes{static_cast<std::int64_t>(below(5))} - 2min);
        break;
      default:
        if (below(12) == 0) {
          node.keeper.reset();
          node.lose_records();
          for (const auto& [who, what] : holders) {
            if (what.first == which) unrecorded.insert(who);
          }
          begin(node);
        } else if (copies.contains(which) && below(8) == 0) {
          // Somebody puts an older copy back; the agent begins on it, and the cloud answers.
          node.keeper.reset();
          node.put_back(copies[which]);
          for (const auto& [who, what] : holders) {
            if (what.first == which) unrecorded.insert(who);
          }
          for (const auto& one : copies[which].addresses) {
            if (!one.owner.container_id.empty()) unrecorded.insert(one.owner.container_id);
          }
          rests_until.clear();  // an older copy knows of no rest since
          cloud.fate = [] { return CallFate::done; };
          cloud.catch_up();
          begin(node);
          node.keeper->look_before_serving(Deadline::after(clock.now(), 5s), 1s);
          if (!node.life->is_over) static_cast<void>(node.keeper->step());
          if (node.life->is_over) {
            node.begin();
            node.keeper->look_before_serving(Deadline::after(clock.now(), 5s), 1s);
            static_cast<void>(node.keeper->step());
          }
        } else if (below(6) == 0) {
          copies[which] = node.view();
        } else if (below(10) == 0) {
          // Somebody takes a free one away in the cloud's own console.
          const auto free = node.view().addresses;
          for (const auto& one : free) {
            if (one.state != WarmState::free || cloud.owner_of(one.address) != node.mac()) continue;
            cloud.set_owner(one.address, std::nullopt);
            stolen.insert(one.address);
            break;
          }
        } else {
          begin(node);
        }
    }
    if (::testing::Test::HasFatalFailure()) return;
  }
  cloud.fate = [] { return CallFate::done; };
  cloud.catch_up();
  // A wall clock that was set back makes records look young until it has caught up.
  for (int round = 0; round < 60; ++round) {
    for (auto& node : nodes) {
      if (round == 0) node->begin();
      node->keeper->set_waiting(0);
      static_cast<void>(node->keeper->step());
    }
    clock.advance(31s);
  }
  for (auto& node : nodes) {
    std::set<net::Address> in_cloud = cloud.of(node->mac());
    std::set<net::Address> recorded = node->recorded();
    // A pod that lives by one that was taken away keeps its record: that is told, and left to people.
    for (const auto& [who, what] : holders) {
      if (stolen.contains(what.second)) recorded.erase(what.second), in_cloud.erase(what.second);
    }
    EXPECT_EQ(recorded, in_cloud) << node->options.node;
    EXPECT_TRUE(node->view().intents.empty()) << node->options.node;
  }
}

TEST(StockSimulation, ManyLives) {
  for (std::uint64_t seed = 1; seed <= 250; ++seed) {
    live(seed);
    if (testing::Test::HasFailure()) return;
  }
}

}  // namespace
}  // namespace croft::engine
