#include "agent/door/service.h"

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <thread>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "agent/door/test_agent.h"
#include "ipam/use/test_world.h"

namespace croft::edge {
namespace {

namespace agent = wire::agent;

/// Whether an agent that serves one store answers a caller that names the other. The store behind is in memory; the
/// URLs are only compared.
bool serves(const std::string& own, const std::string& callers, std::vector<std::string> plugin_stores = {},
            std::string shown = {}) {
  engine::World world;
  if (shown.empty()) shown = callers;
  AgentWorld agents_world{world.store, world.store, world.clock, world.random,
                          own,         "node-a",    {},          [](const std::string&) {}};
  agents_world.plugin_stores = std::move(plugin_stores);
  AgentService service(agents_world);
  const Instant now = world.clock.now();
  const agent::ReleaseCall call{{callers, "node-a", now.boot, Deadline::after(now, std::chrono::seconds(5))},
                                core::Owner{"net", "c", "eth0"}};
  const auto answer = serve(service, service.take_release(agent::encode(call), {}));
  if (!answer) {
    EXPECT_EQ(answer.error().code, ErrorCode::refused_by_configuration);
    EXPECT_EQ(answer.error().message, "this agent serves the store " + own + ", not " + shown);
  }
  return answer.has_value();
}

TEST(StoreOfAnAgent, IsShownWithoutWhatMayBeAPassword) {
  EXPECT_FALSE(serves("kube:", "etcd:u:PW@10.0.0.1:2379", {}, "etcd:(hidden)@10.0.0.1:2379"));
  EXPECT_FALSE(serves("kube:", "etcd:http://u:PW@10.0.0.1:2379", {}, "etcd:http://(hidden)@10.0.0.1:2379"));
}

TEST(AgentServiceCalls, ARefusalIsToldToThePod) {
  AgentOnMemory on;
  std::vector<std::string> told;
  on.world.refused = [&](const core::PodIdentity& pod, const Error& why) {
    told.push_back(pod.namespace_name + "/" + pod.name + ": " + why.message);
  };
  agent::AssignCall call{on.caller(), {}, engine::World::request("c1")};
  call.request.pod = {"web-0", "shop", ""};
  call.request.pools.v4 = {"none"};
  EXPECT_TRUE(on.add(call));
  ASSERT_EQ(told.size(), 1U);
  EXPECT_EQ(told[0].find("shop/web-0: the given pool (none) does not exist"), 0U) << told[0];
  call.request.pools.v4 = {};
  EXPECT_TRUE(on.add(call));
  EXPECT_EQ(told.size(), 1U) << "an address is no refusal";
}

/// ipam/use/assign_test.cc has the rest.
TEST(AgentServiceCalls, AnAddressThatSomebodyOnTheNodeLivesWithIsNotGiven) {
  AgentOnMemory on;
  std::optional<net::Address> living;  // the first one that would be given
  on.world.living.device_of = [&](const net::Address& address) {
    if (!living) living = address;
    return address == *living ? std::optional<std::string>("veth7") : std::nullopt;
  };
  std::vector<std::string> told;
  on.world.living.warn = [&](const std::string& line) { told.push_back(line); };
  const auto served = on.add("one");
  ASSERT_TRUE(served);
  const auto outcome = agent::decode_assign_outcome(*served);
  ASSERT_TRUE(living);
  EXPECT_NE(std::get<core::Assigned>(*outcome).addresses.at(0).address, *living);
  ASSERT_EQ(told.size(), 1U);
  EXPECT_NE(told[0].find("passed over " + living->to_string() + " (device veth7)"), std::string::npos) << told[0];
}

TEST(AgentServiceCalls, AnnotationsOfTheApiAreHeeded) {
  AgentOnMemory on;
  EXPECT_TRUE(engine::create_pool(on.context, engine::World::spec("b", "10.1.0.0/24", 26)));
  const auto call_of = [&](const std::string& container) {
    agent::AssignCall call{on.caller(), {}, engine::World::request(container)};
    call.request.pod = {container, "shop", "u"};
    call.annotations = core::WishesWanted{};
    return call;
  };
  const auto taken = on.add(call_of("c0"));
  ASSERT_FALSE(taken) << "an agent without an API leaves it to the plugin";
  EXPECT_EQ(taken.error().code, ErrorCode::refused_by_configuration);
  const auto wishes_for = [](const char* pool) {
    core::AnnotatedWishes wishes;
    wishes.pod.pools.v4 = {core::asked_pool(pool)};
    return wishes;
  };
  int asked = 0;
  on.world.remembered_wishes = [&](const core::PodIdentity& pod) -> std::optional<Result<core::AnnotatedWishes>> {
    if (pod.name == "known") return wishes_for("b");
    if (pod.name == "wrong") return fail(ErrorCode::invalid_argument, "annotations of pod shop/wrong: odd");
    return std::nullopt;
  };
  on.world.ask_for_wishes = [&](const core::PodIdentity& pod, Deadline) -> Result<core::AnnotatedWishes> {
    ++asked;
    if (pod.name == "away") return fail(ErrorCode::unavailable, "no API server");
    return wishes_for("b");
  };
  std::vector<std::string> told;
  on.world.refused = [&](const core::PodIdentity& pod, const Error& why) {
    told.push_back(pod.name + ": " + why.message);
  };
  const auto outcome = [&](const std::string& container) -> std::string {
    const auto answer = on.add(call_of(container));
    if (!answer) return answer.error().message;
    const auto decoded = agent::decode_assign_outcome(*answer).value();
    if (const auto* assigned = std::get_if<core::Assigned>(&decoded)) return assigned->addresses.front().pool;
    return std::get<Error>(decoded).message;
  };
  EXPECT_EQ(outcome("known"), "b");
  EXPECT_EQ(asked, 0);
  EXPECT_EQ(outcome("asked"), "b");
  EXPECT_EQ(asked, 1);
  EXPECT_EQ(outcome("wrong"), "annotations of pod shop/wrong: odd");
  EXPECT_EQ(outcome("away"), "no API server");
  EXPECT_EQ(told, std::vector<std::string>{"wrong: annotations of pod shop/wrong: odd"}) << "the others have no fault";
  EXPECT_TRUE(on.held("wrong") == 0);
}

TEST(AgentServiceStore, OtherNamesOfItThatThePluginsHaveAreServed) {
  const std::string theirs = "kube:/etc/cni/net.d/calico-kubeconfig";
  EXPECT_FALSE(serves("kube:", theirs));
  EXPECT_TRUE(serves("kube:", theirs, {"kube:/other", theirs}));
  EXPECT_TRUE(serves("kube:", "kube:", {theirs}));
  EXPECT_FALSE(serves("kube:", "kube:/third", {"kube:/other", theirs}));
  EXPECT_TRUE(serves("kube:", "etcd:https://b:2379,https://a:2379?ca=/x", {"etcd:https://a:2379,https://b:2379"}));
}

TEST(AgentServiceStore, AnotherFileAtThePathIsNotServed) {
  AgentOnMemory on;
  const agent::StoreFile ours{7, 41};
  on.world.file = [&](Deadline) -> Result<agent::StoreFile> { return ours; };
  agent::ReleaseCall call{on.caller(), core::Owner{"net", "c", "eth0"}};
  EXPECT_TRUE(on.del(call)) << "a plugin that does not say";
  call.caller.file = ours;
  EXPECT_TRUE(on.del(call));
  for (const agent::StoreFile other : {agent::StoreFile{7, 42}, agent::StoreFile{8, 41}}) {
    call.caller.file = other;
    const auto answer = on.del(call);
    ASSERT_FALSE(answer);
    EXPECT_EQ(answer.error().code, ErrorCode::refused_by_configuration);
  }
}

TEST(AgentServiceCalls, AnotherNodeOrBootIsNotServed) {
  AgentOnMemory on;
  agent::AssignCall call{on.caller(), {}, engine::World::request("one")};
  call.caller.node = "node-b";
  EXPECT_EQ(on.service.take_assign(agent::encode(call), {}).error().code, ErrorCode::refused_by_configuration);
  call.caller = on.caller();
  call.caller.boot = {};
  EXPECT_EQ(on.service.take_assign(agent::encode(call), {}).error().code, ErrorCode::refused_by_configuration);
}

TEST(AgentServiceCalls, OneThatCameTooLateWritesNothing) {
  AgentOnMemory on;
  const auto before = on.store.counts().commit;
  const auto late = on.service.take_assign(on.assign_message("late", std::chrono::milliseconds(-1)), {});
  ASSERT_FALSE(late);
  EXPECT_EQ(late.error().code, ErrorCode::deadline_exceeded);
  EXPECT_FALSE(on.service.take_assign(on.assign_message("late"), Deadline{on.clock.now().since_boot}));
  auto waited = on.service.take_assign(on.assign_message("late"), {});
  waited->limit = Deadline{on.clock.now().since_boot};
  EXPECT_EQ(serve(on.service, waited).error().code, ErrorCode::deadline_exceeded);
  EXPECT_EQ(on.service.serve_alone(*waited).message.error().code, ErrorCode::deadline_exceeded);
  EXPECT_EQ(on.store.counts().commit, before);
}

TEST(AgentServiceCalls, CountsWhereAnswersCameFrom) {
  AgentOnMemory on;
  // The last one again: it is looked up in the store.
  for (const char* container : {"one", "two", "one"}) ASSERT_TRUE(on.add(container));
  const auto status = agent::decode_status(on.service.status());
  EXPECT_EQ(status->served_from_cache, 2U);
  EXPECT_EQ(status->served_from_store, 1U);
  EXPECT_EQ(status->failed, 0U);
}

/// Of a pod's DELs all but the first find nothing: they ask the store for the handle, and memory for the node's blocks.
TEST(AgentServiceCalls, ADelThatFindsNothingReadsTheHandleAlone) {
  AgentOnMemory on;
  ASSERT_TRUE(on.add("one"));
  ASSERT_TRUE(on.del("one"));
  const auto before = on.store.counts();
  const auto nothing = on.del("one");
  ASSERT_TRUE(nothing);
  EXPECT_EQ(std::get<0>(*agent::decode_release_outcome(*nothing)).size(), 0U);
  EXPECT_EQ(on.store.counts().read, before.read + 1);
  EXPECT_EQ(on.store.counts().list, before.list);
  EXPECT_EQ(on.store.counts().commit, before.commit);
}

/// It is looked at after every answer: the store's writers must not wait for that.
TEST(AgentServiceCalls, AClaimAheadThatIsNotNeededTakesNoTurn) {
  AgentOnMemory on;
  const auto add = [&](int i) {
    ASSERT_TRUE(on.add("c" + std::to_string(i)));
    on.service.claim_ahead();
  };
  const auto ahead = [&] { return agent::decode_status(on.service.status())->blocks_ahead; };
  add(0);
  const auto turns = on.store.counts().take_turn;
  const auto commits = on.store.counts().commit;
  for (int i = 1; i <= 50; ++i) add(i);
  EXPECT_EQ(on.store.counts().take_turn, turns + 50);
  EXPECT_EQ(on.store.counts().commit, commits + 50);
  EXPECT_EQ(ahead(), 0U);
  for (int i = 51; i < 60; ++i) add(i);
  EXPECT_EQ(ahead(), 1U);
  EXPECT_EQ(on.store.counts().commit, commits + 60) << "one for each ADD, and one for the claim";
  on.service.give_back(true);
  EXPECT_EQ(ahead(), 0U);
}

TEST(AgentServiceCalls, AStoreInTroubleIsAnAnswer) {
  AgentOnMemory on;
  on.store.set_faults(store::FaultScript().from_commit(on.store.counts().commit + 1, store::Fault::unavailable));
  const auto served = on.add("one");
  ASSERT_TRUE(served);
  const auto outcome = agent::decode_assign_outcome(*served);
  EXPECT_EQ(std::get<Error>(*outcome).code, ErrorCode::unavailable);
  EXPECT_EQ(on.service.failed(), 1U);
}

/// An agent that was stopped finds calls whose plugins have gone, before it has met their ends.
TEST(AgentCallTest, IsLeftWithoutASignOfLife) {
  AgentOnMemory on;
  wire::agent::AssignCall wanted{on.caller(std::chrono::milliseconds(300)), {}, engine::World::request("one")};
  wanted.caller.ends = on.in(std::chrono::seconds(14));
  auto call = on.service.take_assign(wire::agent::encode(wanted), Deadline{std::chrono::nanoseconds::max()});
  ASSERT_TRUE(call);
  EXPECT_TRUE(call->wants_signs_of_life());
  const Instant now = on.clock.now();
  const auto later = [&](std::chrono::nanoseconds span) {
    Instant then = now;
    then.since_boot += span;
    return then;
  };
  EXPECT_FALSE(call->is_left(now));
  EXPECT_TRUE(call->is_left(later(std::chrono::milliseconds(400))));
  const auto told = std::make_shared<std::atomic<std::chrono::nanoseconds>>(now.since_boot);
  call->told = told;
  EXPECT_FALSE(call->is_left(later(std::chrono::milliseconds(800))));
  EXPECT_TRUE(call->is_left(later(std::chrono::milliseconds(950))));
  told->store(now.since_boot + std::chrono::seconds(13));
  EXPECT_FALSE(call->is_left(later(std::chrono::milliseconds(13800))));
  EXPECT_TRUE(call->is_left(later(std::chrono::seconds(15)))) << "its own time is over";
  const auto hung_up = std::make_shared<std::atomic<bool>>(true);
  call->hung_up = hung_up;
  EXPECT_TRUE(call->is_left(now));
}

using std::chrono::milliseconds;
using std::chrono::seconds;
using testing::ElementsAre;
using testing::HasSubstr;

/// Lanes, and who waits for their answers.
class LanesTest : public testing::Test {
 protected:
  void start(std::size_t room = kLanesRoom) {
    lanes_ = std::make_unique<Lanes>(
        agent_.service, [this](std::vector<AgentAnswer> answers) { take(std::move(answers)); }, room);
  }

  /// Waits for nothing; the answer comes under the number.
  std::uint64_t send(Result<AgentCall> call, HungUp hung_up = nullptr) {
    EXPECT_TRUE(call) << call.error().message;
    call->id = ++last_;
    call->hung_up = std::move(hung_up);
    std::vector<AgentCall> calls;
    calls.push_back(*std::move(call));
    if (!lanes_->add(std::move(calls)).empty()) return 0;
    return last_;
  }
  std::uint64_t add(const std::string& container) {
    return send(agent_.service.take_assign(agent_.assign_message(container), {}));
  }
  std::uint64_t del(const std::string& container) {
    return send(agent_.service.take_release(agent_.release_message(container), {}));
  }
  /// The address, or why there is none.
  std::string address(std::uint64_t id) {
    const auto message = answer(id);
    if (!message) return message.error().message;
    const auto outcome = agent::decode_assign_outcome(*message);
    const auto* assigned = std::get_if<core::Assigned>(&*outcome);
    return assigned != nullptr ? assigned->addresses.at(0).address.to_string() : "not assigned";
  }
  std::size_t released(std::uint64_t id) {
    const auto message = answer(id);
    EXPECT_TRUE(message) << message.error().message;
    return std::get<std::vector<net::Address>>(*agent::decode_release_outcome(*message)).size();
  }
  Result<std::string> answer(std::uint64_t id) {
    std::unique_lock lock(mutex_);
    EXPECT_TRUE(came_.wait_for(lock, seconds(20), [&] { return answers_.contains(id); })) << "no answer to " << id;
    return answers_.contains(id) ? answers_.at(id) : fail(ErrorCode::internal, "none");
  }
  bool is_answered(std::uint64_t id) {
    const std::lock_guard lock(mutex_);
    return answers_.contains(id);
  }
  void until_a_commit_waits() {
    while (agent_.store.waiting == 0) std::this_thread::sleep_for(milliseconds(1));
  }

 private:
  void take(std::vector<AgentAnswer> answers) {
    {
      const std::lock_guard lock(mutex_);
      for (AgentAnswer& one : answers) {
        EXPECT_TRUE(answers_.emplace(one.id, std::move(one.message)).second) << "answered twice";
      }
    }
    came_.notify_all();
  }

  std::mutex mutex_;
  std::condition_variable came_;
  std::map<std::uint64_t, Result<std::string>> answers_;
  std::uint64_t last_ = 0;

 protected:
  AgentOnMemory agent_;
  // The last: it ends first, and what it still answers then has somewhere to go.
  std::unique_ptr<Lanes> lanes_;
};

TEST_F(LanesTest, WhatComesWhileACommitIsUnderWayIsTheNextOne) {
  start();
  const std::string first = address(add("first"));
  agent_.store.held = true;
  const std::uint64_t under_way = add("under-way");
  until_a_commit_waits();
  const auto commits = agent_.store.counts().commit;
  agent_.clock.stop();  // a batch decides for 50 ms at most
  std::vector<std::uint64_t> waiting;
  for (int i = 0; i < 50; ++i) waiting.push_back(add("c" + std::to_string(i)));
  agent_.store.held = false;
  std::set<std::string> addresses{first, address(under_way)};
  for (const std::uint64_t id : waiting) addresses.insert(address(id));
  EXPECT_EQ(addresses.size(), 52U);
  EXPECT_EQ(agent_.store.counts().commit, commits + 2);  // the one under way, and one for all
  EXPECT_TRUE(engine::audit(agent_.context, {})->findings.empty());
}

/// A runtime kills an ADD and sends its DEL at once; the agent goes on with the ADD.
TEST_F(LanesTest, ADelSeesWhatTheAddBeforeItOfTheSameOwnerCommits) {
  start();
  agent_.store.held = true;
  add("one");
  until_a_commit_waits();
  const std::uint64_t deleting = del("one");
  EXPECT_FALSE(is_answered(deleting));
  agent_.store.held = false;
  EXPECT_EQ(released(deleting), 1U);
  EXPECT_EQ(agent_.held("one"), 0U);
}

TEST_F(LanesTest, ADelWaitsForTheAddThatIsServedAlone) {
  start();
  const std::string before = address(add("one"));
  agent_.store.held = true;
  std::vector<std::uint64_t> ids;
  for (int i = 0; i < 20; ++i) {
    ids.push_back(add("one"));  // again: looked up by itself, or new
    ids.push_back(del("one"));
    ids.push_back(add("other" + std::to_string(i)));
  }
  agent_.store.held = false;
  for (std::size_t i = 0; i < ids.size(); i += 3) {
    EXPECT_THAT(address(ids[i]), HasSubstr("10.0."));
    EXPECT_EQ(released(ids[i + 1]), 1U) << i;
    EXPECT_THAT(address(ids[i + 2]), HasSubstr("10.0."));
  }
  EXPECT_EQ(agent_.held("one"), 0U);
  EXPECT_TRUE(engine::audit(agent_.context, {})->findings.empty());
}

/// After two conflicts each call goes by itself: those of one owner still one after the other.
TEST_F(LanesTest, AnAddAndItsDelKeepTheirOrderThroughConflicts) {
  start();
  for (int i = 0; i < 10; ++i) {
    const std::string name = "x" + std::to_string(i);
    agent_.store.held = true;
    const std::uint64_t first = add("first" + name);
    until_a_commit_waits();
    const auto commits = agent_.store.counts().commit;
    agent_.store.set_faults(store::FaultScript()
                                .on_commit(commits + 2, store::Fault::conflict)
                                .on_commit(commits + 3, store::Fault::conflict));
    const std::uint64_t adding = add(name);
    const std::uint64_t deleting = del(name);
    agent_.store.held = false;
    EXPECT_THAT(address(first), HasSubstr("10.0."));
    EXPECT_THAT(address(adding), HasSubstr("10.0."));
    EXPECT_EQ(released(deleting), 1U);
    EXPECT_EQ(agent_.held(name), 0U);
    EXPECT_GE(agent_.store.counts().commit, commits + 5) << "the two conflicts were met";
  }
}

TEST_F(LanesTest, NothingIsBegunForACallerThatHungUp) {
  start();
  address(add("gone"));
  const auto hung_up = std::make_shared<const std::atomic<bool>>(true);
  const auto del_of_gone = send(agent_.service.take_release(agent_.release_message("gone"), {}), hung_up);
  const auto add_of_gone = send(agent_.service.take_assign(agent_.assign_message("never"), {}), hung_up);
  for (const auto id : {del_of_gone, add_of_gone}) {
    const auto told = answer(id);
    ASSERT_FALSE(told);
    EXPECT_EQ(told.error().code, ErrorCode::deadline_exceeded);
  }
  EXPECT_EQ(agent_.held("gone"), 1U);
  EXPECT_EQ(agent_.held("never"), 0U);
}

TEST_F(LanesTest, EachKindHasItsOwnRoom) {
  start(2);
  agent_.store.held = true;
  add("first");
  until_a_commit_waits();
  std::vector<std::uint64_t> adds, dels;
  for (int i = 0; i < 5; ++i) adds.push_back(add("a" + std::to_string(i)));
  for (int i = 0; i < 5; ++i) dels.push_back(del("d" + std::to_string(i)));
  EXPECT_THAT(adds, ElementsAre(testing::Gt(0U), testing::Gt(0U), 0U, 0U, 0U));
  EXPECT_THAT(dels, ElementsAre(testing::Gt(0U), testing::Gt(0U), 0U, 0U, 0U));
  agent_.store.held = false;
  for (int i = 0; i < 2; ++i) EXPECT_THAT(address(adds[static_cast<std::size_t>(i)]), HasSubstr("10.0."));
  EXPECT_THAT(address(add("later")), HasSubstr("10.0."));
}

TEST_F(LanesTest, WhatWaitsAtTheEndIsDone) {
  start();
  agent_.store.held = true;
  const std::uint64_t first = add("first");
  until_a_commit_waits();
  const std::uint64_t second = add("second");
  const std::uint64_t again = add("first");
  std::thread stopping([&] { lanes_->stop(); });
  agent_.store.held = false;
  stopping.join();
  for (const auto id : {first, second, again}) EXPECT_TRUE(is_answered(id));
  EXPECT_EQ(address(again), address(first));
  EXPECT_EQ(add("late"), 0U);
}

TEST_F(LanesTest, ARefusalDelaysNobody) {
  start();
  core::AssignRequest refused = engine::World::request("refused");
  refused.pools.v4 = {"nosuch"};
  const auto id = send(agent_.service.take_assign(agent::encode(agent::AssignCall{agent_.caller(), {}, refused}), {}));
  EXPECT_THAT(address(add("one")), HasSubstr("10.0."));
  EXPECT_EQ(address(id), "not assigned");
}

}  // namespace
}  // namespace croft::edge
