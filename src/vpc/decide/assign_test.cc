#include "vpc/decide/assign.h"

#include <rapidcheck.h>

#include <gtest/gtest.h>

#include "vpc/decide/test_stock.h"

namespace croft::core::warm {
namespace {

using namespace std::chrono_literals;

TEST(WarmAssign, TheOwnerThatAsksAgainGetsTheSameAndNothingIsWritten) {
  TestStock stock;
  stock.take({given("10.9.0.7", true), given("10.9.0.8", true)});
  const std::string first = stock.address_for(request_of("c1"));
  const auto before = stock.records.records();
  const auto again = stock.assign(request_of("c1"));
  ASSERT_TRUE(again);
  EXPECT_TRUE(std::get<Assigned>(*again).was_held);
  EXPECT_EQ(std::get<Assigned>(*again).address.address.to_string(), first);
  EXPECT_EQ(stock.records.records(), before);
  EXPECT_NE(stock.address_for(request_of("c2")), first);
  EXPECT_EQ(stock.address_for(request_of("c3")), "");
}

TEST(WarmAssign, WhatWasNotProbedIsNobodys) {
  TestStock stock;
  stock.take({given("10.9.0.7")});
  EXPECT_EQ(stock.address_for(request_of("c1")), "");
  EXPECT_EQ(stock.counts().probing, 1U);
}

TEST(WarmAssign, WhatTheHostUsesIsNotGivenAnew) {
  TestStock stock;
  stock.take({given("10.9.0.7", true), given("10.9.0.8", true)});
  Request request = request_of("c1");
  request.in_use = {address_of("10.9.0.7")};
  EXPECT_EQ(stock.address_for(request), "10.9.0.8");
  request.in_use.insert(address_of("10.9.0.8"));
  EXPECT_EQ(stock.address_for(request), "10.9.0.8") << "who has it keeps it";
  request.owner.container_id = "c2";
  EXPECT_EQ(stock.address_for(request), "");
}

TEST(WarmAssign, AnAddressOfAnotherInterfaceIsNobodys) {
  TestStock stock;
  StockNode node;
  node.node = "a";
  node.mac = kOtherMac;
  stock.records.put(warm_node_key(), node);
  stock.take({given("10.9.0.7", true)});
  EXPECT_EQ(stock.address_for(request_of("c1")), "");
}

TEST(WarmAssign, OfTheSubnetThatIsAskedFor) {
  TestStock stock;
  stock.take(
      {given("10.9.0.7", true, "subnet-1"), given("10.9.1.7", true, "subnet-2"), given("fd00::7", true, "subnet-6")});
  Request request = request_of("c1");
  request.subnet = "subnet-2";
  EXPECT_EQ(stock.address_for(request), "10.9.1.7");
  request = request_of("c2");
  request.subnet = "subnet-6";
  EXPECT_EQ(stock.address_for(request), "fd00::7");
}

TEST(WarmAssign, ANewSandboxOfThePodLetsTheOldOnesAddressCool) {
  TestStock stock;
  stock.take({given("10.9.0.7", true), given("10.9.0.8", true)});
  const std::string old = stock.address_for(request_of("c1", "web", "uid-1"));
  ASSERT_NE(stock.address_for(request_of("c2", "web", "uid-1")), "");
  EXPECT_EQ(stock.find(old)->state, StockAddressState::cooling);
  // Another pod of the name is another pod.
  stock.clock.advance(kCooldown);
  ASSERT_NE(stock.address_for(request_of("c3", "web", "uid-2")), "");
  EXPECT_EQ(stock.find("10.9.0.8")->state, StockAddressState::held);
}

TEST(WarmAssign, WithoutACooldownTheNewSandboxGetsTheOldOnes) {
  TestStock stock;
  stock.take({given("10.9.0.7", true)});
  ASSERT_EQ(stock.address_for(request_of("c1", "web", "uid-1")), "10.9.0.7");
  Request request = request_of("c2", "web", "uid-1");
  request.cooldown = 0s;
  request.in_use = {address_of("10.9.0.7")};
  EXPECT_EQ(stock.address_for(request), "") << "the host uses it still";
  EXPECT_EQ(stock.find("10.9.0.7")->state, StockAddressState::free);
  request.in_use.clear();
  EXPECT_EQ(stock.address_for(request), "10.9.0.7");
  request.owner.container_id = "c3";
  EXPECT_EQ(stock.address_for(request), "10.9.0.7") << "let go and given in one commit";
  EXPECT_EQ(stock.find("10.9.0.7")->owner.container_id, "c3");
}

/// An ADD as a writer decides it that took `term`; 0: a plugin alone.
Result<Answer> assign_in(TestStock& stock, std::uint64_t term, const std::string& container) {
  return stock.decide([&](const Snapshot& snapshot, const Instant& now) {
    return in_term(snapshot, term, plan_assign(snapshot, request_of(container), now));
  });
}
std::uint64_t next_term(TestStock& stock, std::uint64_t own) { return stock.decide(plan_term, own).value(); }

TEST(WarmTerm, EachTakesTheOneAfterTheLast) {
  TestStock stock;
  stock.take({given("10.0.0.1", true), given("10.0.0.2", true), given("10.0.0.3", true), given("10.0.0.4", true)});
  const std::uint64_t agent = next_term(stock, 0);
  EXPECT_EQ(agent, 1U);
  EXPECT_EQ(next_term(stock, agent), agent) << "it still stands";
  EXPECT_TRUE(assign_in(stock, agent, "c1"));
  EXPECT_TRUE(assign_in(stock, agent, "c2"));
  EXPECT_TRUE(assign_in(stock, 0, "c3")) << "a plugin alone takes the next";
  const auto late = assign_in(stock, agent, "c4");
  ASSERT_FALSE(late);
  EXPECT_TRUE(is_term_over(late.error()));
  EXPECT_EQ(next_term(stock, agent), 3U);
  EXPECT_TRUE(assign_in(stock, 3, "c4"));
}

/// A plugin that read the stock before must not commit beside it by conditions on other addresses alone.
TEST(WarmTerm, AnAddressThatIsGivenMovesTheRowOfTheTerm) {
  TestStock stock;
  stock.take({given("10.0.0.1", true)});
  const std::uint64_t agent = next_term(stock, 0);
  bool is_moved = false;
  const auto assigned = stock.records.decide<Answer>([&](const Snapshot& snapshot) {
    auto step = in_term(snapshot, agent, plan_assign(snapshot, request_of("c1"), stock.clock.now()));
    if (const auto* plan = std::get_if<Plan<Answer>>(&step)) {
      is_moved = std::ranges::any_of(plan->writes, [](const PlannedWrite& write) {
        return write.key == warm_node_key() && write.value.has_value();
      });
    }
    return step;
  });
  EXPECT_TRUE(assigned);
  EXPECT_TRUE(is_moved);
}

TEST(WarmRelease, ALateOneSparesTheSuccessor) {
  TestStock stock;
  stock.take({given("10.9.0.7", true)});
  ASSERT_EQ(stock.address_for(request_of("c1")), "10.9.0.7");
  ASSERT_EQ(stock.release("c1"), 1U);
  EXPECT_EQ(stock.release("c1"), 0U);
  stock.clock.advance(kCooldown);
  ASSERT_EQ(stock.address_for(request_of("c2")), "10.9.0.7");
  EXPECT_EQ(stock.release("c1"), 0U);
  Release by_address{{"", "c1", ""}, {}, net::Address::parse("10.9.0.7").value(), kCooldown};
  EXPECT_EQ(stock.release(by_address), 0U);
  EXPECT_EQ(stock.find("10.9.0.7")->state, StockAddressState::held);
  by_address.owner.container_id = "c2";
  EXPECT_EQ(stock.release(by_address), 1U);
}

TEST(WarmRelease, AnOldClientKnowsNoNetworkAndNoInterface) {
  TestStock stock;
  stock.take({given("10.9.0.7", true)});
  ASSERT_EQ(stock.address_for(request_of("c1")), "10.9.0.7");
  EXPECT_EQ(stock.release({{"", "c1", ""}, {"other", "shop", ""}, {}, kCooldown}), 0U) << "another pod";
  EXPECT_EQ(stock.release({{"", "c1", ""}, {"c1", "shop", ""}, {}, kCooldown}), 1U);
}

StockAddress told(const std::string& address, const std::string& container) {
  StockAddress told;
  told.address = net::Address::parse(address).value();
  told.prefix_length = 24;
  told.mac = kOwnMac;
  told.owner.container_id = container;
  told.pod = {container, "shop", ""};
  return told;
}

/// UK8S' plugin of version 2 took the address from the cloud by itself.
TEST(WarmRelease, WhatWasTakenInFromAPodsStatusGoesByThePodsNameAndIsUnsure) {
  TestStock stock;
  stock.take({given("10.9.0.7", true)});
  ASSERT_EQ(stock.address_for(request_of("c1", "web", "uid-1")), "10.9.0.7");
  StockAddress adopted = *stock.find("10.9.0.7");
  adopted.owner = {};
  stock.records.put(warm_address_key(adopted.address), adopted);
  EXPECT_EQ(stock.release({{"", "c9", ""}, {"other", "shop", ""}, {}, kCooldown}), 0U);
  EXPECT_EQ(stock.release({{"", "c9", ""}, {}, {}, kCooldown}), 0U) << "a pod that is not named";
  EXPECT_EQ(stock.release({{"", "c9", ""}, {"web", "shop", "uid-2"}, {}, kCooldown}), 0U) << "another pod of the name";
  EXPECT_EQ(stock.release({{"", "c9", ""}, {"web", "shop", ""}, {}, kCooldown}), 1U);
  stock.clock.advance(kCooldown);
  EXPECT_EQ(stock.address_for(request_of("c2")), "") << "another sandbox of the pod may live by it";
  EXPECT_EQ(stock.find("10.9.0.7")->doubts, std::vector{StockDoubt::used_by_pod});
}

TEST(WarmRecord, WhatAnOldClientTookBackIsForgottenAndNeverCools) {
  TestStock stock;
  ASSERT_TRUE(stock.decide(plan_record, told("10.9.0.7", "c1")));
  const auto forget = [&](const std::string& container) {
    return stock.decide(plan_forget, Release{{"", container, ""}, {"c1", "shop", ""}, {}, {}})->size();
  };
  EXPECT_EQ(forget("c2"), 0U) << "another sandbox";
  EXPECT_EQ(forget("c1"), 1U);
  EXPECT_FALSE(stock.find("10.9.0.7"));
  EXPECT_EQ(forget("c1"), 0U) << "again";
}

TEST(WarmRecord, WhatAnOldClientTellsIsTakenInUnlessItIsAnothers) {
  TestStock stock;
  const auto record = [&](const StockAddress& address) { return stock.decide(plan_record, address); };
  ASSERT_TRUE(record(told("10.9.0.7", "c1")));
  EXPECT_EQ(stock.find("10.9.0.7")->state, StockAddressState::held);
  ASSERT_TRUE(record(told("10.9.0.7", "c1"))) << "again";
  EXPECT_EQ(stock.find("10.9.0.7")->doubts, std::vector{StockDoubt::not_in_cloud}) << "the cloud has not shown it yet";
  const auto others = record(told("10.9.0.7", "c2"));
  ASSERT_FALSE(others);
  EXPECT_EQ(others.error().code, ErrorCode::already_exists);
  stock.take({given("10.9.0.8", true)});
  EXPECT_FALSE(record(told("10.9.0.8", "c2"))) << "of the stock, and nobody's";
  ASSERT_EQ(stock.address_for(request_of("c3")), "10.9.0.8");
  StockAddress more = told("10.9.0.8", "c3");
  more.pod.uid = "uid-3";
  more.extra = {{"eipID", "eip-1"}};
  ASSERT_TRUE(record(more));
  EXPECT_EQ(stock.find("10.9.0.8")->pod.uid, "uid-3");
  EXPECT_EQ(stock.find("10.9.0.8")->owner.network, "net") << "what was known stays";
}

// Any history of ADDs and DELs on a small stock, beside a model that knows only who holds what and since when it rests.
TEST(WarmAssign, AnyHistoryKeepsToTheModel) {
  EXPECT_TRUE(rc::check([] {
    TestStock stock;
    const int size = *rc::gen::inRange(1, 6);
    std::vector<Given> all;
    for (int i = 0; i < size; ++i) all.push_back(given("10.9.0." + std::to_string(10 + i), true));
    stock.take(all);
    std::map<std::string, std::string> holds;
    std::map<std::string, std::chrono::nanoseconds> resting_until;
    const auto steps = *rc::gen::container<std::vector<int>>(rc::gen::inRange(0, 32));
    for (const int step : steps) {
      const std::string container = "c" + std::to_string(step % 8);
      const auto now = stock.clock.now().since_boot;
      switch (step / 8) {
        case 0:
        case 1: {
          const std::string got = stock.address_for(request_of(container));
          std::size_t available = all.size() - holds.size();
          for (const auto& [what, until] : resting_until) available -= until > now ? 1 : 0;
          if (const auto held = holds.find(container); held != holds.end()) {
            RC_ASSERT(got == held->second);
          } else if (available == 0) {
            RC_ASSERT(got.empty());
          } else {
            RC_ASSERT(!got.empty());
            for (const auto& [who, what] : holds) RC_ASSERT(what != got);
            RC_ASSERT(!resting_until.contains(got) || resting_until[got] <= now);
            resting_until.erase(got);
            holds[container] = got;
          }
          break;
        }
        case 2:
          RC_ASSERT(stock.release(container) == holds.count(container));
          if (const auto held = holds.find(container); held != holds.end()) {
            resting_until[held->second] = now + kCooldown;
            holds.erase(held);
          }
          break;
        default:
          stock.clock.advance(std::chrono::seconds{step % 8 * 7});
          stock.clock.jump_wall(std::chrono::minutes{step % 3 * 20 - 20});
      }
    }
  }));
}

// ---------------------------------------------------------------- by name

/// An ADD of a pod that keeps its address.
Result<Assigned> give(TestStock& stock, const Given& address, const Request& request) {
  return stock.decide(plan_give_promised, std::string(), address, request);
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
  ASSERT_TRUE(stock.decide(plan_probed, std::vector{Probed{address_of("10.9.0.7"), kOtherMac}}));
  const auto refused = give(stock, given("10.9.0.7", true), request_of("c2", "web-0", "u1"));
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, ErrorCode::refused_for_safety);
}

}  // namespace
}  // namespace croft::core::warm
