#include "agent/door/lanes.h"

#include <condition_variable>
#include <map>
#include <memory>
#include <mutex>
#include <set>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "agent/door/test_agent.h"

namespace croft::edge {
namespace {

namespace agent = wire::agent;
using std::chrono::milliseconds;
using std::chrono::seconds;
using testing::ElementsAre;
using testing::HasSubstr;

/// Lanes, and who waits for their answers.
class LanesTest : public testing::Test {
 protected:
  void start(const LanesOptions& options = {}) {
    lanes_ = std::make_unique<Lanes>(
        agent_.service, [this](std::vector<AgentAnswer> answers) { take(std::move(answers)); }, options);
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
  start({.alone = 1, .releases_max = 2, .assigns_max = 3});
  agent_.store.held = true;
  add("first");
  until_a_commit_waits();
  std::vector<std::uint64_t> adds, dels;
  for (int i = 0; i < 5; ++i) adds.push_back(add("a" + std::to_string(i)));
  for (int i = 0; i < 5; ++i) dels.push_back(del("d" + std::to_string(i)));
  EXPECT_THAT(adds, ElementsAre(testing::Gt(0U), testing::Gt(0U), testing::Gt(0U), 0U, 0U));
  EXPECT_THAT(dels, ElementsAre(testing::Gt(0U), testing::Gt(0U), 0U, 0U, 0U));
  agent_.store.held = false;
  for (int i = 0; i < 3; ++i) EXPECT_THAT(address(adds[static_cast<std::size_t>(i)]), HasSubstr("10.0."));
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
